"""The pooled output of every block: what taps see, averaged over space, in files and in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from tests.measures.worlds import network, world
from torch import Tensor

from penultimate.backbones.taps import pooled, tapped, taps
from penultimate.data.images import ImageSet, load_images
from penultimate.layers.pooling import pooled_layers
from penultimate.networks.trained import load_network


class Counted(ImageSet):
    """Images that count how often each is read."""

    def batches(self, size: int, order: Any = None, transform: Any = None) -> Iterator[Any]:
        for batch, rows in super().batches(size, order, transform):
            self.__dict__.setdefault("read", []).extend(rows.tolist())
            yield batch, rows


def test_files_hold_the_means_of_the_blocks_maps_in_one_pass(tmp_path: Path) -> None:
    images = load_images(world(tmp_path), "test")
    counted = Counted(images.images, images.labels, images.ids, images.class_names)
    trained = load_network(network(tmp_path, "softmax"))
    files = pooled_layers(trained, counted, tmp_path / "test", batch_size=7)
    assert counted.__dict__["read"] == list(range(40))
    maps: dict[str, Tensor] = {}
    with torch.no_grad(), tapped(taps(trained.body), maps.__setitem__):
        trained.body(trained.prepared(torch.from_numpy(images.images)))
    assert list(files) == list(maps) == ["block1", "block2", "bottleneck1", "bottleneck2"]
    for layer, output in maps.items():
        found = np.load(files[layer])
        assert found.dtype == np.float32
        literal = [[float(channel.double().sum() / channel.numel()) for channel in one] for one in output]
        np.testing.assert_allclose(found, literal, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "side", "channels"),
    [
        ("test_resnet", 64, [32, 48, 192, 96]),
        ("test_vit", 160, [64]),
        ("swin_tiny_patch4_window7_224", 224, [96, 192, 384, 768]),
    ],
    ids=["maps", "tokens", "maps with channels last"],
)
def test_channels_are_found_wherever_they_stand(name: str, side: int, channels: list[int]) -> None:
    model = timm.create_model(name, pretrained=False).eval()
    widths: list[int] = []
    with torch.no_grad(), tapped(taps(model), lambda _, output: widths.append(pooled(output).shape[1])):
        model(torch.zeros(1, 3, side, side))
    assert list(dict.fromkeys(widths)) == channels
