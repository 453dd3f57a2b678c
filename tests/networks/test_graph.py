"""The last layer of an ONNX graph: found wherever its weights lie and whatever follows; of trunks, none."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from penultimate.errors import RequestError
from penultimate.networks.given import fetch
from penultimate.networks.onnx import OnnxBody, with_features
from penultimate.networks.sources import fingerprint

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

RANDOM = np.random.default_rng(0)
KERNEL = RANDOM.normal(size=(8, 3, 3, 3)).astype(np.float32)
WEIGHT = RANDOM.normal(size=(8, 5)).astype(np.float32)
BIAS = RANDOM.normal(size=5).astype(np.float32)
SCALE = np.float32(0.03)
WHOLE = np.clip(np.round(WEIGHT / SCALE), -127, 127).astype(np.int8)
IMAGES = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
MAPS = torch.nn.functional.conv2d(IMAGES, torch.from_numpy(KERNEL), stride=2).relu()
FEATURES = MAPS.mean((2, 3)).numpy()
Values = dict[str, Any]
Tail = tuple[Sequence[Any], Values]


def node(kind: str, inputs: str, outputs: str = "y", **settings: Any) -> Any:
    """An operator; its inputs and outputs are the words of a text, and - is none."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(kind, names, outputs.split(), **settings)


def constant(name: str, value: Any) -> Any:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value), name))


def model_of(
    tail: Sequence[Any],
    values: Values,
    outputs: Sequence[str] = ("y",),
    opset: int = 17,
    version: int = 9,
    inputs: bool = False,
    relu: bool = True,
) -> Any:
    """A convolution, a ReLU (r), a mean over positions (p), which is flattened (f), and what follows."""
    body = [
        node("Conv", "x kernel", "c", strides=[2, 2]),
        node("Relu" if relu else "Identity", "c", "r"),
        node("GlobalAveragePool", "r", "p"),
        node("Flatten", "p", "f"),
    ]
    values = {"kernel": KERNEL, **values}
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()]
    entries = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 16, 16])]
    if inputs:
        entries += [
            helper.make_tensor_value_info(each.name, each.data_type, list(each.dims)) for each in stored
        ]
    graph = helper.make_graph(
        [*body, *tail], "g", entries, [onnx.ValueInfoProto(name=name) for name in outputs], stored
    )
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=version)


def found(model: Any, folder: Path) -> tuple[np.ndarray, OnnxBody]:
    """What a model's features are, and its body."""
    onnx.save(model, folder / "net.onnx")
    (folder / "cut.onnx").write_bytes(with_features(folder / "net.onnx"))
    body = OnnxBody(folder / "cut.onnx")
    return body(IMAGES).numpy(), body


def after(*nodes: Any, **values: Any) -> Callable[[], Tail]:
    """A Gemm whose logits (l) are changed before they are the output."""
    gemm = node("Gemm", "f W b", "l")
    return lambda: ([gemm, *nodes], {"W": WEIGHT, "b": BIAS, **values})


GEMM = node("Gemm", "f W b")
ZERO = np.uint8(0)
STEP = np.float32(0.02)
QUANTISED: Values = {"s": STEP, "z": ZERO, "q": WHOLE, "qs": SCALE, "qz": np.int8(0), "b": BIAS}
WEIGHTS: dict[str, Callable[[], Tail]] = {
    "constants": lambda: ([constant("W", WEIGHT), constant("b", BIAS), GEMM], {}),
    "identity of a constant": lambda: (
        [constant("V", WEIGHT), node("Identity", "V", "W"), GEMM],
        {"b": BIAS},
    ),
    "half, cast": lambda: (
        [node("Cast", "V", "W", to=TensorProto.FLOAT), GEMM],
        {"V": WEIGHT.astype(np.float16), "b": BIAS},
    ),
    "turned": lambda: ([node("Transpose", "V", "W", perm=[1, 0]), GEMM], {"V": WEIGHT.T.copy(), "b": BIAS}),
    "turned by the operator": lambda: ([node("Gemm", "f V b", transB=1)], {"V": WEIGHT.T.copy(), "b": BIAS}),
    "reshaped and unsqueezed": lambda: (
        [
            node("Reshape", "V shape", "U"),
            node("Unsqueeze", "U axis", "T"),
            node("Squeeze", "T axis", "W"),
            GEMM,
        ],
        {"V": WEIGHT.ravel(), "shape": np.array([8, 5]), "axis": np.array([0]), "b": BIAS},
    ),
    "normalised": lambda: (
        [node("ReduceL2", "V", "norm", axes=[0]), node("Div", "V norm", "W"), node("MatMul", "f W")],
        {"V": WEIGHT},
    ),
    "int8 for each class": lambda: (
        [node("DequantizeLinear", "q s z", "W", axis=1), GEMM],
        {"q": WHOLE, "s": np.full(5, SCALE), "z": np.zeros(5, np.int8), "b": BIAS},
    ),
    "product and sum": lambda: ([node("MatMul", "f W", "l"), node("Add", "b l")], {"W": WEIGHT, "b": BIAS}),
    "of one pixel": lambda: (
        [node("Conv", "p W b", "l"), node("Flatten", "l")],
        {"W": WEIGHT.T.reshape(5, 8, 1, 1).copy(), "b": BIAS},
    ),
    "of one pixel, reshaped": lambda: (
        [node("Conv", "p W", "l"), node("Reshape", "l shape")],
        {"W": WEIGHT.T.reshape(5, 8, 1, 1).copy(), "shape": np.array([-1, 5])},
    ),
    "of each pixel, averaged": lambda: (
        [node("Conv", "r W b", "l"), node("GlobalAveragePool", "l", "m"), node("Flatten", "m")],
        {"W": WEIGHT.T.reshape(5, 8, 1, 1).copy(), "b": BIAS},
    ),
    "of each pixel, averaged by reduction": lambda: (
        [node("Conv", "r W b", "l"), node("ReduceMean", "l", axes=[2, 3], keepdims=0)],
        {"W": WEIGHT.T.reshape(5, 8, 1, 1).copy(), "b": BIAS},
    ),
    "of each token, averaged": lambda: (
        [
            node("Reshape", "r shape", "v"),
            node("Transpose", "v", "t", perm=[0, 2, 1]),
            node("MatMul", "t W", "l"),
            node("ReduceMean", "l", axes=[1], keepdims=0),
        ],
        {"W": WEIGHT, "shape": np.array([0, 8, -1])},
    ),
    "microsoft's": lambda: ([node("FusedMatMul", "f W", domain="com.microsoft")], {"W": WEIGHT}),
    "among the inputs": lambda: ([GEMM], {"W": WEIGHT, "b": BIAS}),
}
ENDS: dict[str, Callable[[], Tail]] = {
    "divided": after(node("Div", "l t"), t=np.float32([0.07])),
    "by a scale": after(node("Exp", "t", "u"), node("Mul", "u l"), t=np.float32(1)),
    "less a constant": after(node("Sub", "l t"), t=np.ones(5, np.float32)),
    "sigmoid": after(node("Sigmoid", "l")),
    "tanh": after(node("Tanh", "l")),
    "softmax": after(node("Softmax", "l", axis=1)),
    "log softmax": after(node("LogSoftmax", "l", "m"), node("Identity", "m")),
    "log of softmax": after(node("Softmax", "l", "m"), node("Log", "m")),
    "clip": after(node("Clip", "l low high"), low=np.float32(-5), high=np.float32(5)),
    "clip to shares": after(node("Clip", "l low high"), low=np.float32(0), high=np.float32(1)),
    "cast and shapes": after(
        node("Cast", "l", "m", to=TensorProto.FLOAT16),
        node("Unsqueeze", "m axes", "n1"),
        node("Squeeze", "n1 axes", "n2"),
        node("Flatten", "n2", "n3"),
        node("Cast", "n3", "y", to=TensorProto.FLOAT),
        axes=np.array([1]),
    ),
    "softmax written out": after(
        node("ReduceMax", "l", "m", axes=[1], keepdims=1),
        node("Sub", "l m", "d"),
        node("Exp", "d", "e"),
        node("ReduceSum", "e axes", "s", keepdims=1),
        node("Div", "e s"),
        axes=np.array([1]),
    ),
    "sigmoid written out": after(
        node("Neg", "l", "m"),
        node("Exp", "m", "e"),
        node("Add", "e one", "a"),
        node("Reciprocal", "a"),
        one=np.float32(1),
    ),
    "its class": after(node("ArgMax", "l", axis=1)),
    "quantised and back": after(
        node("QuantizeLinear", "l s z", "m"),
        node("DequantizeLinear", "m s z"),
        s=np.float32(0.1),
        z=np.int8(0),
    ),
}
IN_STEPS: dict[str, Callable[[], Tail]] = {
    "around the layer": lambda: (
        [
            node("QuantizeLinear", "f s z", "a"),
            node("DequantizeLinear", "a s z", "d"),
            node("DequantizeLinear", "q qs qz", "W"),
            node("Gemm", "d W b"),
        ],
        QUANTISED,
    ),
    "linear": lambda: (
        [
            node("QuantizeLinear", "f s z", "a"),
            node("QLinearMatMul", "a s z q qs qz ys yz", "m"),
            node("DequantizeLinear", "m ys yz", "l"),
            node("Add", "l b"),
        ],
        {**QUANTISED, "ys": np.float32(0.1), "yz": np.uint8(128)},
    ),
    "integers, static": lambda: (
        [
            node("QuantizeLinear", "f s z", "a"),
            node("MatMulInteger", "a q z qz", "m"),
            node("Cast", "m", "n", to=TensorProto.FLOAT),
            node("Mul", "n both", "l"),
            node("Add", "l b"),
        ],
        {**QUANTISED, "both": STEP * SCALE},
    ),
    "integers, dynamic": lambda: (
        [
            node("DynamicQuantizeLinear", "f", "a as az"),
            node("MatMulInteger", "a q az qz", "m"),
            node("Cast", "m", "n", to=TensorProto.FLOAT),
            node("Mul", "as qs", "both"),
            node("Mul", "n both", "l"),
            node("Add", "l b"),
        ],
        QUANTISED,
    ),
    "integers, dynamic, reshaped": lambda: (
        [
            node("DynamicQuantizeLinear", "p", "a as az"),
            node("Flatten", "a", "g"),
            node("MatMulInteger", "g q az qz", "m"),
            node("Cast", "m", "n", to=TensorProto.FLOAT),
            node("Mul", "as qs", "both"),
            node("Mul", "n both"),
        ],
        QUANTISED,
    ),
    "microsoft's gemm": lambda: (
        [
            node("QuantizeLinear", "f s z", "a"),
            node("QGemm", "a s z q qs qz", domain="com.microsoft"),
        ],
        QUANTISED,
    ),
    "microsoft's dynamic": lambda: (
        [node("DynamicQuantizeMatMul", "f q qs qz b", domain="com.microsoft")],
        QUANTISED,
    ),
    "convolution": lambda: (
        [
            node("QuantizeLinear", "p s z", "a"),
            node("QLinearConv", "a s z qc qs qz ys yz", "m"),
            node("DequantizeLinear", "m ys yz", "l"),
            node("Flatten", "l"),
        ],
        {**QUANTISED, "qc": WHOLE.T.reshape(5, 8, 1, 1).copy(), "ys": np.float32(0.1), "yz": np.uint8(128)},
    ),
}


@pytest.mark.parametrize("kind", WEIGHTS)
def test_the_weights_may_come_from_anywhere(kind: str, tmp_path: Path) -> None:
    values, body = found(model_of(*WEIGHTS[kind](), inputs=kind == "among the inputs"), tmp_path)
    np.testing.assert_allclose(values, FEATURES, atol=1e-5)
    assert body.has_last_layer


@pytest.mark.parametrize("kind", ENDS)
def test_what_follows_the_logits_may_be_anything_of_theirs(kind: str, tmp_path: Path) -> None:
    values, body = found(model_of(*ENDS[kind]()), tmp_path)
    np.testing.assert_allclose(values, FEATURES, atol=1e-5)
    assert body.has_last_layer


@pytest.mark.parametrize("kind", IN_STEPS)
def test_a_layer_in_whole_numbers_is_given_the_same_features(kind: str, tmp_path: Path) -> None:
    values, body = found(model_of(*IN_STEPS[kind]()), tmp_path)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, FEATURES, atol=STEP)
    assert body.has_last_layer


TRUNKS: dict[str, Callable[[], Tail]] = {
    "flat": lambda: ([node("Identity", "f")], {}),
    "maps averaged": lambda: (
        [
            node("Conv", "r W", "d"),
            node("Relu", "d", "e"),
            node("GlobalAveragePool", "e", "g"),
            node("Flatten", "g"),
        ],
        {"W": WEIGHT.T.reshape(5, 8, 1, 1).copy()},
    ),
    "maps clipped": lambda: (
        [
            node("Conv", "r W", "d"),
            node("Clip", "d low high", "e"),
            node("GlobalAveragePool", "e", "g"),
            node("Flatten", "g"),
        ],
        {"W": WEIGHT.T.reshape(5, 8, 1, 1).copy(), "low": np.float32(0), "high": np.float32(6)},
    ),
    "swish": after(node("Sigmoid", "l", "m"), node("Mul", "l m")),
    "relu": after(node("Relu", "l")),
    "relu as a maximum": after(node("Max", "l zero"), zero=np.float32(0)),
    "relu of six": after(node("Clip", "l low high"), low=np.float32(0), high=np.float32(6)),
    "of length one": after(
        node("Pow", "l two", "m"),
        node("ReduceSum", "m axes", "s", keepdims=1),
        node("Sqrt", "s", "r2"),
        node("Div", "l r2"),
        two=np.float32(2),
        axes=np.array([1]),
    ),
    "residual": after(node("Gemm", "f V", "k"), node("Add", "l k"), V=WEIGHT),
    "normalised": after(node("LayerNormalization", "l g"), g=np.ones(5, np.float32)),
    "depthwise": lambda: (
        [node("Conv", "p W", "d", group=8), node("Flatten", "d")],
        {"W": np.ones((8, 1, 1, 1), np.float32)},
    ),
    "product of two": lambda: ([node("Transpose", "f", "t", perm=[1, 0]), node("MatMul", "f t")], {}),
}


@pytest.mark.parametrize("kind", TRUNKS)
def test_a_trunks_output_are_its_features_and_that_is_said(kind: str, tmp_path: Path) -> None:
    model = model_of(*TRUNKS[kind]())
    values, body = found(model, tmp_path)
    session = pytest.importorskip("onnxruntime").InferenceSession(model.SerializeToString())
    np.testing.assert_allclose(values, session.run(["y"], {"x": IMAGES.numpy()})[0], atol=1e-6)
    assert not body.has_last_layer
    stored = tmp_path / "stored"
    stored.mkdir()
    facts = fetch(f"onnx:{tmp_path / 'net.onnx'}", (), stored)
    assert "its output itself is evaluated" in facts["noted"]["output itself"]


@pytest.mark.parametrize("names", [("f", "y"), ("y", "f"), ("y", "l"), ("l", "y")])
def test_of_several_outputs_one_is_that_of_a_last_layer(names: tuple[str, str], tmp_path: Path) -> None:
    values, body = found(model_of(*after(node("Softmax", "l"))(), outputs=names), tmp_path)
    np.testing.assert_allclose(values, FEATURES, atol=1e-5)
    assert body.has_last_layer


@pytest.mark.parametrize(("opset", "version"), [(7, 3), (9, 4), (11, 6), (13, 7), (21, 10)])
def test_files_of_any_age_are_read(opset: int, version: int, tmp_path: Path) -> None:
    tail = after(node("Div", "l t"), t=np.float32([0.07]))()
    values, _ = found(model_of(*tail, opset=opset, version=version, inputs=version < 4), tmp_path)
    np.testing.assert_allclose(values, FEATURES, atol=1e-5)


def test_a_function_of_the_file_is_looked_into(tmp_path: Path) -> None:
    gemm = node("Gemm", "a W", "b")
    function = helper.make_function(
        "mine", "Classify", ["a", "W"], ["b"], [gemm], [helper.make_opsetid("", 17)]
    )
    model = model_of([node("Classify", "f W", domain="mine")], {"W": WEIGHT})
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("mine", 1))
    values, _ = found(model, tmp_path)
    np.testing.assert_allclose(values, FEATURES, atol=1e-5)


def test_a_convolution_over_the_whole_map_is_a_last_layer(tmp_path: Path) -> None:
    weight = RANDOM.normal(size=(5, 8, 7, 7)).astype(np.float32)
    values, _ = found(model_of([node("Conv", "r W", "l"), node("Flatten", "l")], {"W": weight}), tmp_path)
    np.testing.assert_allclose(values, MAPS.flatten(1).numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("constants", 45),
        ("half, cast", 45),
        ("int8 for each class", 45),
        ("reshaped and unsqueezed", 45),
        ("of one pixel", 45),
        ("turned by the operator", 45),
    ],
)
def test_weights_are_counted_wherever_they_lie(kind: str, count: int, tmp_path: Path) -> None:
    _, body = found(model_of(*WEIGHTS[kind]()), tmp_path)
    assert body.parameter_count == KERNEL.size + count
    assert OnnxBody(tmp_path / "net.onnx").parameter_count == KERNEL.size + count


def test_quantised_weights_count_and_their_scales_do_not(tmp_path: Path) -> None:
    for kind in ("linear", "integers, dynamic", "around the layer"):
        _, body = found(model_of(*IN_STEPS[kind]()), tmp_path)
        assert body.parameter_count == KERNEL.size + 45


# -- files beside it ----------------------------------------------------------------------------------------


def beside(tensor: Any, folder: Path, place: str) -> None:
    """Leave a tensor's numbers in a file beside its model."""
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", place), ("offset", "0"), ("length", str(path.stat().st_size))):
        tensor.external_data.add(key=key, value=value)


def with_external(folder: Path, place: str, branch: bool = False) -> Any:
    """A model whose weights are a Constant's, or lie in the branches of a condition, in a file beside it."""
    if not branch:
        model = model_of(*WEIGHTS["constants"]())
        beside(model.graph.node[4].attribute[0].t, folder, place)
        return model
    graphs = []
    for name in ("then", "else"):
        made = [constant(f"{name}_V", WEIGHT), node("Identity", f"{name}_V", f"{name}_W")]
        graphs.append(helper.make_graph(made, name, [], [onnx.ValueInfoProto(name=f"{name}_W")]))
        beside(graphs[-1].node[0].attribute[0].t, folder, place)
    for graph in graphs:
        graph.output[0].CopyFrom(
            helper.make_tensor_value_info(graph.output[0].name, TensorProto.FLOAT, [8, 5])
        )
    choice = node("If", "yes", "W", then_branch=graphs[0], else_branch=graphs[1])
    return model_of([choice, node("MatMul", "f W")], {"yes": np.array(True)})


@pytest.mark.parametrize("place", ["weights.bin", "parts/a/w.0"])
@pytest.mark.parametrize("branch", [False, True])
def test_a_file_that_any_tensor_lies_in_is_part_of_the_identity(
    place: str, branch: bool, tmp_path: Path
) -> None:
    onnx.save(with_external(tmp_path, place, branch), tmp_path / "net.onnx")
    source = f"onnx:{tmp_path / 'net.onnx'}"
    before = fingerprint(source)
    assert set(before) == {"net.onnx", place}
    whole = with_features(tmp_path / "net.onnx")
    (tmp_path / place).write_bytes(np.ones((8, 5), np.float32).tobytes())
    assert fingerprint(source)[place] != before[place]
    assert fingerprint(source)["net.onnx"] == before["net.onnx"]
    assert with_features(tmp_path / "net.onnx") != whole
    (tmp_path / place).unlink()
    with pytest.raises(RequestError, match=f"keeps weights in '{place}', but there is no such file"):
        fingerprint(source)


@pytest.mark.parametrize("place", ["../secret.bin", "{folder}/secret.bin", "link.bin"])
def test_no_file_outside_the_folder_is_read(place: str, tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(WEIGHT.tobytes())
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    model = with_external(folder, "weights.bin")
    (entry,) = (each for each in model.graph.node[4].attribute[0].t.external_data if each.key == "location")
    entry.value = place.format(folder=tmp_path)
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    for read in (fingerprint, lambda source: with_features(Path(source.removeprefix("onnx:")))):
        with pytest.raises(RequestError, match="outside its folder"):
            read(f"onnx:{folder / 'net.onnx'}")


@pytest.mark.parametrize("style", ["dynamic", "QDQ", "QOperator"])
def test_files_that_onnxruntime_has_quantised(style: str, tmp_path: Path) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    onnx.save(model_of(*WEIGHTS["among the inputs"](), opset=13, version=8), tmp_path / "float.onnx")

    class Shown(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.left = [{"x": IMAGES.numpy()}]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if style == "dynamic":
            quantization.quantize_dynamic(
                tmp_path / "float.onnx", tmp_path / "net.onnx", op_types_to_quantize=["MatMul", "Gemm"]
            )
        else:
            form = getattr(quantization.QuantFormat, style)
            quantization.quantize_static(
                tmp_path / "float.onnx", tmp_path / "net.onnx", Shown(), quant_format=form
            )
    (tmp_path / "cut.onnx").write_bytes(with_features(tmp_path / "net.onnx"))
    body = OnnxBody(tmp_path / "cut.onnx")
    assert body.has_last_layer
    np.testing.assert_allclose(body(IMAGES).numpy(), FEATURES, atol=0.1)
