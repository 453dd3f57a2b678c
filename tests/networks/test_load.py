"""`pu.load`: a network of any origin as features, logits and the transform of its own library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import penultimate as pu
from penultimate.data.images import ImageSet
from penultimate.networks.given import GivenNetwork

PICTURE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (131, 197, 3), np.uint8))


def body() -> list[nn.Module]:
    return [nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]


@pytest.mark.parametrize("name", ["test_resnet", "test_vit", "test_convnext"])
def test_the_transform_is_timms_own(name: str) -> None:
    timm = pytest.importorskip("timm")
    network = pu.load(f"timm:{name}", pretrained=False)
    assert isinstance(network, GivenNetwork)
    config = timm.data.resolve_model_data_config(timm.create_model(name))
    theirs = timm.data.create_transform(**config, is_training=False)(PICTURE)
    torch.testing.assert_close(network.transform(PICTURE), theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["squeezenet1_1", "shufflenet_v2_x0_5"])
def test_the_transform_is_torchvisions_own(name: str) -> None:
    from torchvision import models

    network = pu.load(f"torchvision:{name}", pretrained=False)
    assert isinstance(network, GivenNetwork)
    theirs = models.get_model_weights(name).DEFAULT.transforms()(PICTURE)
    torch.testing.assert_close(network.transform(PICTURE), theirs, rtol=1e-5, atol=1e-6)


def test_a_network_goes_with_a_loader_and_with_an_image_set() -> None:
    net = nn.Sequential(*body(), nn.Linear(8, 4))
    network = pu.load(net, crop=16, mean=(0.5,) * 3, std=(0.5,) * 3)
    pixels = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 3), np.uint8)
    images = ImageSet(pixels, np.arange(6) % 2, np.arange(6), ("a", "b"))
    floats = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 127.5 - 1
    of_set, of_batches = pu.extract(network, images), pu.extract(network, [(floats, images.labels)])
    of_module = pu.extract(net, [(floats, images.labels)])
    for bank in (of_set, of_batches):
        np.testing.assert_allclose(bank.features, of_module.features, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(bank.logits, of_module.logits, rtol=1e-4, atol=1e-5)


def test_a_layer_a_head_a_file_and_a_transform_are_said(tmp_path: Path) -> None:
    net = nn.Sequential(*body(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4))
    images = torch.randn(2, 3, 16, 16)
    for said, width in (({}, 6), ({"layer": "3"}, 8), ({"head": "4"}, 8), ({"layer": "output"}, 4)):
        assert pu.load(net, crop=16, **said).features(images).shape == (2, width)  # type: ignore[arg-type]
    file = tmp_path / "net.py"
    file.write_text(
        "from torch import nn\ndef build():\n    return nn.Sequential(nn.Flatten(), nn.Linear(12, 3))\n"
    )
    built = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    torch.save({"state_dict": built.state_dict()}, tmp_path / "w.pth")
    own = {"weights": tmp_path / "w.pth", "transform": lambda image: torch.ones(3, 2, 2)}
    network = pu.load(f"{file}:build", crop=2, **own)
    assert isinstance(network, GivenNetwork)
    assert torch.equal(network.transform(PICTURE), torch.ones(3, 2, 2))
    features = network.features(torch.ones(1, 3, 2, 2))
    torch.testing.assert_close(network.logits(features), built(torch.ones(1, 3, 2, 2)).detach())
    with pytest.raises(pu.RequestError, match="both say what the features are"):
        pu.load(net, layer="3", head="4")
