"""ONNX files: their features are those of the network that they were exported from."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import penultimate as pu
from penultimate.data.images import ImageSet
from penultimate.errors import RequestError
from penultimate.networks import Network
from penultimate.networks.given import GivenNetwork
from penultimate.networks.sources import fingerprint
from penultimate.networks.store import fetch, load_given

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

IMAGES = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (5, 40, 50, 3), dtype=np.uint8))


class Small(nn.Module):
    """A body of 8 features, and an end."""

    def __init__(self, end: str, channels: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.end = end
        self.body = nn.Sequential(nn.Conv2d(channels, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.fc, self.conv = nn.Linear(8, 5), nn.Conv2d(8, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        features = self.body(x)
        match self.end:
            case "linear":
                return self.fc(features.flatten(1))
            case "softmax":
                return self.fc(features.flatten(1)).softmax(1)
            case "convolution":
                return self.conv(features).flatten(1)
            case "last":
                return self.fc(features.permute(0, 2, 3, 1)).flatten(1)
        return features.flatten(1)


def export(
    net: nn.Module, path: Path, *, channels: int = 3, side: int = 32, batch: int | None = None
) -> None:
    axes: dict[str, Any] = {} if batch else {"dynamic_axes": {"images": {0: "n"}}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        images = torch.zeros(batch or 2, channels, side, side)
        torch.onnx.export(net.eval(), (images,), path, input_names=["images"], dynamo=False, **axes)


def given(path: Path, folder: Path, settings: str = "") -> GivenNetwork:
    stored = folder / "stored"
    stored.mkdir(exist_ok=True)
    fetch(f"onnx:{path}{settings}", (), stored)
    return load_given(stored)


@pytest.mark.parametrize(
    ("end", "batch"),
    [(end, None) for end in ("linear", "softmax", "convolution", "last", "features")] + [("linear", 2)],
)
def test_the_features_are_those_of_the_exported_network(end: str, batch: int | None, tmp_path: Path) -> None:
    net = Small(end)
    export(net, tmp_path / "net (1).onnx", batch=batch)
    network = given(tmp_path / "net (1).onnx", tmp_path)
    assert isinstance(network, Network)
    assert network.preparation.crop == 32
    with torch.no_grad():
        expected = net.body(network.prepared(IMAGES)).flatten(1)
    torch.testing.assert_close(network.features(IMAGES), expected, rtol=1e-4, atol=1e-5)
    images = ImageSet(IMAGES.numpy(), np.zeros(5, np.int64), np.arange(5), ("a",))
    bank = pu.extract(network, images)
    assert (bank.features.shape, bank.logits) == ((5, 8), None)


def test_a_network_of_one_channel_sees_grey(tmp_path: Path) -> None:
    net = Small("linear", channels=1)
    export(net, tmp_path / "grey.onnx", channels=1)
    network = given(tmp_path / "grey.onnx", tmp_path)
    assert network.prepared(IMAGES).shape == (5, 1, 32, 32)
    assert network.features(IMAGES).shape == (5, 8)


def test_weights_in_a_file_beside_it_are_part_of_the_network(tmp_path: Path) -> None:
    net = Small("linear")
    export(net, tmp_path / "whole.onnx")
    model = onnx.load(tmp_path / "whole.onnx")
    settings = {"save_as_external_data": True, "size_threshold": 0, "convert_attribute": False}
    onnx.save(model, tmp_path / "net.onnx", location="net.onnx.data", **settings)
    source = f"onnx:{tmp_path / 'net.onnx'}"
    before = fingerprint(source)
    assert set(before) == {"net.onnx", "net.onnx.data"}
    expected = given(tmp_path / "whole.onnx", tmp_path).features(IMAGES)
    stored = given(tmp_path / "net.onnx", tmp_path)
    (tmp_path / "net.onnx").unlink()
    torch.testing.assert_close(stored.features(IMAGES), expected)


def test_what_is_wrong_is_a_sentence(tmp_path: Path) -> None:
    net = Small("linear")
    export(net, tmp_path / "net.onnx")
    (tmp_path / "cut.onnx").write_bytes((tmp_path / "net.onnx").read_bytes()[:-100])
    (tmp_path / "text.onnx").write_text("no network")
    with pytest.raises(RequestError, match=r"'.*cut\.onnx' is no ONNX network that can be read"):
        given(tmp_path / "cut.onnx", tmp_path)
    with pytest.raises(RequestError, match=r"text\.onnx' is no ONNX network|onnxruntime does not run"):
        given(tmp_path / "text.onnx", tmp_path)
    with pytest.raises(RequestError, match="refuses images"):
        given(tmp_path / "net.onnx", tmp_path, "(crop=20)")
    with pytest.raises(RequestError, match="has no final layer that takes its features to logits"):
        fetch(f"onnx:{tmp_path / 'net.onnx'}", ("a", "b"), tmp_path)
    with pytest.raises(RequestError, match=r"the name of an ONNX file ends in \.onnx"):
        fetch(f"onnx:{tmp_path}", (), tmp_path)
    with pytest.raises(RequestError, match="there is no file of a network at"):
        fingerprint("onnx:none.onnx")
