"""ONNX files as modules; the features are the input of the last Gemm, MatMul or Conv of their graph."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from penultimate.backbones.passes import message_of
from penultimate.errors import RequestError
from penultimate.files import digest_file
from penultimate.networks.weights import refusal

LINEAR = ("Gemm", "MatMul", "Conv")
AVERAGES = ("GlobalAveragePool", "ReduceMean", "AveragePool")
AFTER = (
    *("Add", "Flatten", "Reshape", "Squeeze", "Identity", "Softmax", "LogSoftmax", "Sigmoid", "Cast", "Div"),
    *AVERAGES,
)
"""Operators that may lie between the last linear one and the output of a classifier."""
WEIGHTS, LAYER = "penultimate.weights", "penultimate.layer"
"""Keys of a stored file's metadata: its number of weights, and the name of its last layer."""


class OnnxBody(nn.Module):
    """The network of a file, run by onnxruntime on the CPU: images float [n c h w] -> features [n m].

    Its layers cannot be observed. It runs with the batch size and the layout that the file requires; the last
    batch is padded with zeros.
    """

    def __init__(self, path: Path) -> None:
        """Load the file; raise RequestError if onnxruntime cannot run it or its input is not images."""
        super().__init__()
        _library()
        import onnxruntime

        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 4
        settings.intra_op_num_threads = torch.get_num_threads()
        try:
            self.session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's errors have no narrower base class
            raise refusal(error, f"'{path.name}'") from None
        inputs = self.session.get_inputs()
        kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
        if len(inputs) != 1 or len(inputs[0].shape) != 4 or inputs[0].type not in kinds:
            listed = ", ".join(f"{one.name}: {one.type} {one.shape}" for one in inputs)
            raise RequestError(
                f"an ONNX network takes one batch of images, float [n c h w]; this one: {listed}"
            )
        self.input, self.dtype = inputs[0].name, kinds[inputs[0].type]
        sizes = [size if isinstance(size, int) and size > 0 else None for size in inputs[0].shape]
        self.batch = sizes[0]
        self.channels_last = sizes[3] in (1, 3) and sizes[1] not in (1, 3)
        self.channels, *sides = (sizes[3], *sizes[1:3]) if self.channels_last else sizes[1:]
        if sides[0] != sides[1]:
            raise RequestError(
                f"the network takes images of {sides[0]} x {sides[1]}; only squares are supported"
            )
        self.side = sides[0]
        self.digest = digest_file(path)
        facts = self.session.get_modelmeta().custom_metadata_map
        self.has_last_layer = bool(facts.get(LAYER))
        self.parameter_count = int(facts.get(WEIGHTS, 0))

    def extra_repr(self) -> str:
        """Return the sha256 of its file, which identifies all its weights."""
        return self.digest

    def forward(self, images: Tensor) -> Tensor:
        values = images.permute(0, 2, 3, 1) if self.channels_last else images
        array = np.ascontiguousarray(values.cpu().numpy(), dtype=self.dtype)
        size = self.batch or max(1, len(array))
        parts = []
        for start in range(0, len(array), size):
            part = array[start : start + size]
            missing = size - len(part) if self.batch else 0
            parts.append(self._output(np.pad(part, ((0, missing), *((0, 0),) * 3)))[: len(part)])
        return torch.from_numpy(np.concatenate(parts)).to(images.device, torch.float32)

    def _output(self, array: np.ndarray) -> np.ndarray:
        try:
            (output,) = self.session.run([self.session.get_outputs()[-1].name], {self.input: array})
        except Exception as error:  # onnxruntime's errors have no narrower base class
            shape, message = list(array.shape), message_of(error)
            raise RequestError(f"the ONNX network refuses images {shape}: {message}") from None
        values = np.asarray(output)
        is_flat = sum(size > 1 for size in values.shape[1:]) <= 1
        return values.reshape(len(values), -1) if is_flat else values


def files_beside(path: Path) -> list[Path]:
    """Return the files in an ONNX file's folder that hold its weights, where it does not hold them itself."""
    onnx = _library()
    named = {
        entry.value
        for tensor in _parsed(path, load_external_data=False).graph.initializer
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return [path.parent / name for name in sorted(named) if (path.parent / name).is_file()]


def with_features(path: Path, target: Path, head: str = "") -> None:
    """Write an ONNX file in one piece, with the features as its only output.

    The features are the input of the last Gemm, MatMul or Conv, from which the output follows by operators of
    AFTER, or of the one whose name is `head`; else they are its output itself. The metadata
    records which, and the number of its weights.

    Raises RequestError if the file is not an ONNX network, or if its last layer is not clear.
    """
    onnx = _library()
    model = _parsed(path)
    graph = model.graph
    weights = sum(
        math.prod(tensor.dims)
        for tensor in graph.initializer
        if tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
        and math.prod(tensor.dims) > 1
    )
    name, layer, averages = _features(path, graph, head)
    fixed = {tensor.name for tensor in graph.initializer}
    inputs = [one.name for one in graph.input if one.name not in fixed]
    try:
        if name:
            model = onnx.shape_inference.infer_shapes(model)
            model = onnx.utils.Extractor(model).extract_model(inputs, [name])
        if averages:
            output = model.graph.output[0]
            averaged = onnx.helper.make_node("GlobalAveragePool", [name], ["penultimate_features"])
            model.graph.node.append(averaged)
            output.CopyFrom(onnx.helper.make_tensor_value_info("penultimate_features", 1, None))
        facts = {entry.key: entry.value for entry in model.metadata_props}
        onnx.helper.set_model_props(model, {**facts, WEIGHTS: str(weights), LAYER: layer})
        onnx.save(model, target)
    except Exception as error:  # onnx raises errors of protobuf, without a common class
        raise refusal(error, f"the ONNX network '{path}'") from None


def _features(path: Path, graph: Any, head: str) -> tuple[str, str, bool]:
    """Return the tensor that is the features, the layer that it goes into, and whether it is averaged."""
    makers = {output: node for node in graph.node for output in node.output}
    constants = {tensor.name for tensor in graph.initializer}
    constants |= {output for node in graph.node if node.op_type == "Constant" for output in node.output}

    def has_weights(node: Any) -> bool:
        name = node.input[1]
        while name not in constants and name in makers and len(makers[name].input):
            name = makers[name].input[0]  # transposed or converted before
        return name in constants

    linear = [node for node in graph.node if node.op_type in LINEAR and has_weights(node)]
    if head:
        named = [node for node in linear if head in (node.name, *node.output)]
        if not named:
            last = ", ".join(repr(node.name or node.output[0]) for node in linear[-4:])
            raise RequestError(f"'{path}' has no layer '{head}'; its last are {last or 'none'}")
        return named[-1].input[0], head, False
    output, averages = graph.output[-1].name, False
    while (node := makers.get(output)) is not None:
        if node in linear:
            return node.input[0], node.name or node.output[0], averages and node.op_type == "Conv"
        computed = [name for name in node.input if name not in constants and name in makers]
        if node.op_type not in AFTER or not computed or (node.op_type == "Add" and len(computed) > 1):
            break
        averages = averages or node.op_type in AVERAGES
        output = computed[0]
    return "", "", False


def _parsed(path: Path, load_external_data: bool = True) -> Any:
    try:
        model = _library().load(path, load_external_data=load_external_data)
    except Exception as error:  # a protobuf parser can raise anything on malformed bytes
        raise RequestError(f"'{path}' is no ONNX network that can be read: {message_of(error)}") from None
    if not model.graph.node:
        raise RequestError(f"'{path}' is no ONNX network that can be read: it has no graph")
    return model


def _library() -> Any:
    try:
        import onnx
        import onnx.utils
        import onnxruntime  # noqa: F401
    except ImportError:
        raise RequestError("ONNX networks need two packages: pip install 'penultimate[onnx]'") from None
    return onnx
