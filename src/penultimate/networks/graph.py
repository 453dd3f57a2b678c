"""The graph of an ONNX file: the input of its last layer, its number of weights, and where these lie."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.errors import RequestError, legible

LINEAR = {
    **dict.fromkeys(("Gemm", "MatMul", "FusedGemm", "FusedMatMul", "GemmFloat8", "MatMulNBits"), 1),
    **dict.fromkeys(("MatMulBnb4", "MatMulFpQ4", "MatMulInteger", "MatMulIntegerToFloat"), 1),
    **dict.fromkeys(("DynamicQuantizeMatMul", "Conv", "FusedConv", "ConvInteger"), 1),
    **dict.fromkeys(("QLinearMatMul", "QGemm", "QLinearConv"), 3),
}
"""Operators that multiply by weights, in which a classifier may end, and the index of that input."""
CONVOLUTIONS = ("Conv", "FusedConv", "ConvInteger", "QLinearConv")
WITH_SCALE = {"QLinearMatMul": (1, 2), "QGemm": (1, 2), "QLinearConv": (1, 2), "MatMulIntegerToFloat": (2, 4)}
"""For operators on quantised values: which inputs are the scale and the zero point of the first input."""
WITHOUT_SCALE = ("MatMulInteger", "ConvInteger")
SHAPING = ("Flatten", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Identity")
PASSED = {
    *SHAPING,
    *("Cast", "CastLike", "Dropout", "QuantizeLinear", "DequantizeLinear", "ArgMax", "TopK", "Hardmax"),
    *("Softmax", "LogSoftmax", "Sigmoid", "HardSigmoid", "Tanh", "Softplus", "Softsign", "Erf", "Atan"),
    *("Exp", "Log", "Neg", "Reciprocal", "Clip", "Sub", "Div", "Round", "Floor", "Ceil", "Sign"),
    *("QLinearSoftmax", "QLinearSigmoid"),
}
"""Operators that may follow the last layer: the output is still a function of its logits."""
WITH_CONSTANT = ("Add", "Mul", "Min", "Max", "QLinearAdd", "QLinearMul")
"""Operators that may also lie there if only one input is not constant: x * sigmoid(x) ends a trunk."""
SIZING = ("Pow", "Sqrt", "Abs")
"""Operators that may lie there unless the logits are also reduced, because they may normalise features."""
REDUCED = ("ReduceMax", "ReduceSum", "ReduceLogSumExp")
"""Operators that may lie there as parts of a softmax that is written out."""
AVERAGES = (
    "GlobalAveragePool",
    "AveragePool",
    "QLinearGlobalAveragePool",
    "QLinearAveragePool",
    "ReduceMean",
)
NO_WEIGHTS = {
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear", "Clip", "Pad"), (1, 2)),
    **dict.fromkeys(("QLinearMatMul", "QLinearConv"), (1, 2, 4, 5, 6, 7)),
    "QGemm": (1, 2, 4, 5, 7, 8),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), (1, 2, 4, 5, 6, 7)),
    **dict.fromkeys(("MatMulInteger", "ConvInteger"), (2, 3)),
    **dict.fromkeys(("MatMulIntegerToFloat", "DynamicQuantizeMatMul", "MatMulNBits"), (2, 3, 4, 5)),
    "BatchNormalization": (3, 4),
    **dict.fromkeys(("Resize", "Upsample"), (1, 2, 3)),
}
"""Inputs that are scales, zero points, bounds or moments, and not trained weights."""
FEATURES = "penultimate_features"
ENDS = (b"", b"Sigmoid", b"Tanh", b"Softmax")
"""The activations inside a linear operator after which the output still consists of a classifier's logits."""


def files_of(path: Path) -> list[Path]:
    """Return an ONNX file, and every file beside it that holds one of its tensors.

    Raises RequestError if the file is not an ONNX network, if a tensor lies outside its folder, or if a file
    is missing.
    """
    found = [path]
    for place in dict.fromkeys(filter(None, map(_place, tensors_in(parsed(path))))):
        beside = path.parent / place
        inside = not Path(place).is_absolute() and beside.resolve().is_relative_to(path.parent.resolve())
        if not inside:
            raise RequestError(
                f"'{path}' keeps weights in '{legible(place)}', outside its folder; export it in one file, or"
                " with its weights beside it"
            )
        if not beside.is_file():
            raise RequestError(
                f"'{path}' keeps weights in '{legible(place)}', but there is no such file in '{path.parent}'"
            )
        found.append(beside)
    return found


def parsed(path: Path) -> Any:
    """Return the model in a file, without the tensors that are stored beside it."""
    onnx = library()
    try:
        model = onnx.load(path, load_external_data=False)
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
    except OSError as error:
        raise RequestError(f"'{path}' cannot be read: {error.strerror or error}") from None
    except Exception as error:  # a protobuf parser can raise anything on malformed bytes
        said = legible(str(error).partition("\n")[0] or type(error).__name__)[:300]
        raise RequestError(f"'{path}' is no ONNX network that can be read: {said}") from None
    if not model.graph.node and not model.graph.output:
        raise RequestError(f"'{path}' is no ONNX network that can be read: it has no graph")
    return model


def with_weights(path: Path) -> Any:
    """Return the model in a file with all of its tensors inside."""
    from onnx.external_data_helper import load_external_data_for_tensor

    onnx = library()
    files_of(path)
    model = parsed(path)
    for tensor in tensors_in(model):
        if _place(tensor):
            load_external_data_for_tensor(tensor, str(path.parent))
            tensor.data_location = onnx.TensorProto.DEFAULT
            del tensor.external_data[:]
    return model


def library() -> Any:
    """Return the library that reads ONNX files; raise RequestError if it is not installed."""
    try:
        import onnx
        import onnx.inliner
    except ImportError:
        raise RequestError("ONNX networks need onnxruntime: pip install 'penultimate[onnx]'") from None
    return onnx


def _place(tensor: Any) -> str:
    """Return the file that holds a tensor, as the model names it; an empty string for one inside."""
    places: dict[str, str] = {entry.key: entry.value for entry in tensor.external_data}
    return places.get("location", "")


def tensors_in(model: Any) -> Iterator[Any]:
    """Yield every tensor of a model: initial values and attributes, also those in nested graphs."""
    for graph in graphs_in(model.graph):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        for node in graph.node:
            for attribute in node.attribute:
                yield from _tensors_of(attribute)


def _tensors_of(attribute: Any) -> Iterator[Any]:
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
        yield from (sparse.values, sparse.indices)


def graphs_in(graph: Any) -> Iterator[Any]:
    """Yield a graph, and the graphs of its conditions and loops."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from graphs_in(inner)


# -- the last layer -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Known:
    """Known facts about a graph's values: those independent of the images, and shapes (0: any size)."""

    constants: set[str]
    shapes: dict[str, tuple[int, ...]]

    def kernel(self, node: Any) -> tuple[int, ...]:
        """Return the size of a convolution's kernel, or () if it is unknown."""
        weight = self.shapes.get(node.input[LINEAR[node.op_type]], ())
        return tuple(_settings(node).get("kernel_shape", ())) or weight[2:]


def let_features_out(model: Any) -> bool:
    """Make the input of a model's last layer its only output; return whether that layer was found.

    The last layer multiplies by constant weights, and only operators in PASSED lie between it and the output.
    If there are several outputs, the first that has such a layer counts. Without such a layer the first
    output stays.
    """
    onnx, graph = library(), model.graph
    known = _Known(_constants(graph), _shapes(model))
    for output in sorted(graph.output, key=lambda output: output.name != "logits"):
        found = _last_layer(graph, output.name, known)
        kernel = known.kernel(found[0]) if found and found[0].op_type in CONVOLUTIONS else ()
        given = _given(graph, *found, kernel) if found else None
        if given is not None:
            graph.node.append(onnx.helper.make_node("Identity", [given], [FEATURES]))
            del graph.output[:]
            graph.output.append(onnx.ValueInfoProto(name=FEATURES))
            return True
    del graph.output[1:]
    return False


def _constants(graph: Any) -> set[str]:
    """Return the values that are independent of the images, including the scales of dynamic quantisation."""
    known = {tensor.name for tensor in graph.initializer}
    known |= {sparse.values.name for sparse in graph.sparse_initializer} | {""}
    for node in graph.node:
        if node.op_type == "DynamicQuantizeLinear":
            known.update(node.output[1:])
        of_constants = bool(node.input) and all(name in known for name in node.input)
        has_graph = any(attribute.HasField("g") for attribute in node.attribute)
        if node.op_type == "Constant" or (of_constants and not has_graph):
            known.update(node.output)
    return known


def _last_layer(graph: Any, output: str, known: _Known) -> tuple[Any, list[Any]] | None:
    """Return the operator that computes an output's logits, and the operators between them."""
    places = {name: place for place, node in enumerate(graph.node) for name in node.output}
    open_values, between, branched = {output}, list[Any](), False
    while open_values and open_values <= places.keys():
        node = graph.node[max(places[value] for value in open_values)]
        if node.op_type in LINEAR:
            kinds = {each.op_type for each in between}
            reduced, averaged = not kinds.isdisjoint(REDUCED), not kinds.isdisjoint(AVERAGES)
            odd = (reduced and not branched) or (averaged and branched)
            odd |= (reduced or averaged) and not kinds.isdisjoint(SIZING)
            alone = open_values <= set(node.output)
            return (node, between) if alone and not odd and _is_last(node, known, averaged) else None
        changing = {value for value in node.input if value not in known.constants}
        passed = node.op_type in (*PASSED, *AVERAGES, *REDUCED, *SIZING)
        passed |= node.op_type in WITH_CONSTANT and len(changing) == 1
        if not passed or _rectifies(graph, node):
            return None
        between.append(node)
        open_values = (open_values - set(node.output)) | changing
        branched |= len(open_values) > 1
    return None


def _is_last(node: Any, known: _Known, averaged: bool) -> bool:
    """Return whether a linear operator receives features [n m], or [n m h w] position by position."""
    place, settings = LINEAR[node.op_type], _settings(node)
    if len(node.input) <= place or node.input[place] not in known.constants:
        return False
    activation = settings.get("activation", b"")
    if node.input[0] in known.constants or settings.get("transA") or activation not in ENDS:
        return False
    if node.op_type not in CONVOLUTIONS:
        return True
    kernel, sides = known.kernel(node), known.shapes.get(node.input[0], ())[2:]
    if settings.get("group", 1) != 1 or not kernel:
        return False
    if set(kernel) == {1}:
        return averaged or not all(sides) or set(sides) <= {1}
    return kernel == sides and not any(settings.get("pads", ()))


def _rectifies(graph: Any, node: Any) -> bool:
    """Return whether an operator is a ReLU under another name (clip to 0 and above), which ends a trunk."""
    if node.op_type not in ("Clip", "Max"):
        return False
    settings = _settings(node)
    values = {name: _value(graph, name) for name in node.input}
    if node.op_type == "Max":
        return 0.0 in values.values()
    bounds = [*node.input[1:], "", ""][:2]
    low = settings.get("min", values.get(bounds[0]))
    high = settings.get("max", values.get(bounds[1]))
    unknown = bool(bounds[0]) and low is None
    return unknown or (low == 0 and high != 1)


def _value(graph: Any, name: str) -> float | None:
    """Return a constant number in a graph, or None if the value is not constant."""
    onnx = library()
    stored = [tensor for tensor in graph.initializer if tensor.name == name]
    for node in graph.node:
        if node.op_type == "Constant" and name in node.output:
            stored += [attribute.t for attribute in node.attribute if attribute.name == "value"]
            stored += [one for one in node.attribute if one.name == "value_float"]
    if len(stored) != 1:
        return None
    if not hasattr(stored[0], "dims"):
        return float(stored[0].f)
    if _place(stored[0]) or math.prod(stored[0].dims) != 1:
        return None
    return float(onnx.numpy_helper.to_array(stored[0]).reshape(()))


def _given(graph: Any, node: Any, between: list[Any], kernel: tuple[int, ...]) -> str | None:
    """Return the name of the floating-point value [n m] that is a layer's input.

    None if a quantised value has no scale in the graph.
    """
    helper = library().helper
    makers = {name: maker for maker in graph.node for name in maker.output}
    name: str = node.input[0]
    maker = makers.get(name)
    while maker is not None and maker.op_type in SHAPING:
        maker = makers.get(maker.input[0])
    scaled: list[str] = []
    if node.op_type in WITH_SCALE:
        scaled = [node.input[place] for place in WITH_SCALE[node.op_type] if place < len(node.input)]
    elif node.op_type in WITHOUT_SCALE:
        if maker is None or maker.op_type not in ("QuantizeLinear", "DynamicQuantizeLinear"):
            return None
        dynamic = maker.op_type == "DynamicQuantizeLinear"
        scaled = list(maker.output[1:] if dynamic else maker.input[1:])
    added: list[Any] = []
    if maker is not None and maker.op_type == "DynamicQuantizeLinear" and name == maker.output[0]:
        name = maker.input[0]  # its steps depend on what else is in the batch
    elif scaled:
        added.append(helper.make_node("DequantizeLinear", [name, *scaled], [f"{FEATURES}_as_numbers"]))
        name = added[-1].output[0]
    if node.op_type in CONVOLUTIONS:
        joined = "GlobalAveragePool" if set(kernel) == {1} else "Flatten"
        added.append(helper.make_node(joined, [name], [f"{FEATURES}_joined"]))
        name = added[-1].output[0]
    else:
        for place, average in enumerate(one for one in reversed(between) if one.op_type in AVERAGES):
            copy = library().NodeProto()
            copy.CopyFrom(average)
            copy.name = f"{FEATURES}_average_{place}"
            copy.input[0] = name
            copy.output[0] = name = f"{FEATURES}_averaged_{place}"
            added.append(copy)
    graph.node.extend(added)
    return name


def _settings(node: Any) -> dict[str, Any]:
    onnx = library()
    return {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}


def _shapes(model: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the values of a model, as far as they follow from its inputs; 0 if variable."""
    onnx = library()
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except Exception:  # for a model above 2 GB, or with operators unknown to it
        graph = model.graph
    for value in (*graph.input, *graph.value_info):
        if value.type.tensor_type.HasField("shape"):
            dimensions = value.type.tensor_type.shape.dim
            shapes.setdefault(value.name, tuple(each.dim_value for each in dimensions))
    return shapes


# -- the weights --------------------------------------------------------------------------------------------


def count_weights(model: Any) -> int:
    """Return the number of weights of a model: constants except scales, zero points, moments and sizes."""
    total = 0
    for graph in graphs_in(model.graph):
        uses: dict[str, list[tuple[str, int]]] = {}
        for node in graph.node:
            for place, name in enumerate(node.input):
                uses.setdefault(name, []).append((node.op_type, place))
        constants = [(tensor.name, tensor) for tensor in graph.initializer]
        constants += [(sparse.values.name, sparse.values) for sparse in graph.sparse_initializer]
        for node in graph.node:
            if node.op_type == "Constant":
                held = (tensor for attribute in node.attribute for tensor in _tensors_of(attribute))
                constants += [(node.output[0], tensor) for tensor in held]
            if node.op_type == "MatMulNBits":
                settings = _settings(node)
                total += settings["K"] * settings["N"]
        packed = {node.input[1] for node in graph.node if node.op_type == "MatMulNBits"}
        for name, tensor in constants:
            if name not in packed and _is_weight(tensor, uses.get(name, [])):
                total += math.prod(tensor.dims)
    return total


def _is_weight(tensor: Any, uses: Iterable[tuple[str, int]]) -> bool:
    types = library().TensorProto
    if math.prod(tensor.dims) < 2 or tensor.data_type in (types.INT64, types.BOOL, types.STRING):
        return False
    used = [(kind, place) for kind, place in uses if place not in NO_WEIGHTS.get(kind, ())]
    if tensor.data_type == types.INT32:  # a bias in quantised steps, or a size
        return any(kind in ("DequantizeLinear", "QLinearConv", "QGemm") for kind, _ in used)
    return bool(used)
