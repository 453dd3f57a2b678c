"""ONNX files as modules; the features are the input of their last linear layer, as for any network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from penultimate.errors import RequestError, legible, shortened
from penultimate.files import digest_file
from penultimate.networks import graph
from penultimate.userfile import first_line

WEIGHTS, LAYER = "penultimate.weights", "penultimate.layer"
"""Keys of a stored file's metadata: its number of weights, and whether its last layer was found."""
LARGEST = 2**31 - 1
"""The largest protobuf message in bytes, and so the largest ONNX file with its weights inside."""


class OnnxBody(nn.Module):
    """The network of a file, run by onnxruntime on the CPU: images float [n c h w] -> features [n m].

    Its layers cannot be observed. It runs with the batch size and the layout that the file requires; the last
    batch is padded with zeros.
    """

    def __init__(self, path: Path) -> None:
        """Load the file; raise RequestError if onnxruntime cannot run it or its input is not images."""
        super().__init__()
        runtime = _runtime()
        settings = runtime.SessionOptions()
        settings.log_severity_level = 4
        settings.intra_op_num_threads = torch.get_num_threads()
        try:
            self.session = runtime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's errors have no narrower base class
            said = shortened(legible(first_line(error)), 300)
            raise RequestError(f"onnxruntime does not run '{path.name}': {said}") from None
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
        told = self.session.get_modelmeta().custom_metadata_map
        self.has_last_layer = bool(told.get(LAYER))
        self.parameter_count = int(told[WEIGHTS]) if WEIGHTS in told else count_in(path)

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
            short = size - len(part)
            filled = np.pad(part, ((0, short), *((0, 0),) * 3)) if self.batch and short else part
            parts.append(self._run(filled)[: len(part)])
        return torch.from_numpy(np.concatenate(parts)).to(images.device, torch.float32)

    def _run(self, array: np.ndarray) -> np.ndarray:
        try:
            (output,) = self.session.run([self.session.get_outputs()[-1].name], {self.input: array})
        except Exception as error:  # as above
            said = shortened(legible(first_line(error)), 300)
            raise RequestError(f"the ONNX network refuses images {list(array.shape)}: {said}") from None
        values = np.asarray(output)
        alone = sum(size > 1 for size in values.shape[1:]) <= 1
        return values.reshape(len(values), -1) if alone else values


def count_in(path: Path) -> int:
    """Return the number of weights in an ONNX file."""
    return graph.count_weights(graph.parsed(path))


def with_features(path: Path) -> bytes:
    """Return an ONNX file in one piece, with the features as its only output.

    The features are the input of its last layer (`graph.let_features_out`), or else its output itself. The
    file's metadata records which, and the number of its weights.

    Raises RequestError if the file is not an ONNX network, is too large, or keeps weights elsewhere.
    """
    try:
        model = graph.with_weights(path)
        weights = graph.count_weights(model)
        found = graph.let_features_out(model)
        graph.library().helper.set_model_props(
            model, {**_metadata(model), WEIGHTS: str(weights), LAYER: "found" if found else ""}
        )
        whole: bytes = model.SerializeToString()
    except RequestError:
        raise
    except Exception as error:  # a protobuf parser can raise anything on malformed bytes
        said = shortened(legible(first_line(error) or type(error).__name__), 300)
        raise RequestError(f"'{path}' is no ONNX network that can be read: {said}") from None
    if len(whole) > LARGEST:
        raise RequestError(
            f"'{path}' has {len(whole):,} bytes with its weights; at most {LARGEST:,} are possible"
        )
    return whole


def _metadata(model: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in model.metadata_props}


def _runtime() -> Any:
    graph.library()
    try:
        import onnxruntime
    except ImportError:
        raise RequestError("ONNX networks need onnxruntime: pip install 'penultimate[onnx]'") from None
    return onnxruntime
