"""What networks cost: multiply-adds as published, and the speed of the median batch."""

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import nn

from penultimate.backbones import operations
from penultimate.backbones.operations import images_a_second, multiply_adds


@pytest.mark.parametrize(
    ("name", "weights"),
    [("resnet18", "ResNet18_Weights"), ("mobilenet_v3_small", "MobileNet_V3_Small_Weights")],
)
def test_multiply_adds_are_those_that_torchvision_prints(name: str, weights: str) -> None:
    module = torchvision.models.get_model(name).eval()
    published = getattr(torchvision.models, weights).DEFAULT.meta["_ops"]  # billions, three digits
    assert multiply_adds(module, torch.zeros(1, 3, 224, 224)) / 1e9 == pytest.approx(published, abs=5e-4)


def test_attention_is_counted_though_it_may_run_fused() -> None:
    tokens, width, heads = 5, 8, 2
    layer = nn.TransformerEncoderLayer(width, heads, 16, batch_first=True).eval()
    enabled = torch.backends.mha.get_fastpath_enabled()
    products = tokens * width * (3 * width + width + 16 + 16) + 2 * tokens * tokens * width
    assert multiply_adds(layer, torch.zeros(3, tokens, width)) == products
    assert torch.backends.mha.get_fastpath_enabled() is enabled


def test_speed_is_of_the_median_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 1.0, 1.0, 3.0, 3.0, 13.0, 13.0, 15.0, 15.0, 17.0])
    monkeypatch.setattr(operations.time, "perf_counter", lambda: next(ticks))
    assert images_a_second(lambda images: images, torch.zeros(8, 1)) == 4.0  # batches of 1, 2, 10, 2, 2 s
