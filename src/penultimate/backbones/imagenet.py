"""The paper's two networks for ImageNet, as torchvision builds them, up to the penultimate features."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from penultimate.backbones.backbone import Backbone
from penultimate.checks import is_whole
from penultimate.errors import RequestError, unknown


class Pooled(Backbone):
    """A sequence of layers, then the mean over space in float32 (or float64), also under autocast."""

    def __init__(self, layers: Iterable[tuple[str, nn.Module]], num_features: int) -> None:
        super().__init__()
        self.num_features = num_features
        for name, layer in layers:
            self.add_module(name, layer)

    def forward(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n m"]:
        x = images
        for layer in self.children():
            x = layer(x)
        return x.to(torch.promote_types(x.dtype, torch.float32)).mean((2, 3))


POOLS = ("torchvision", "same")


def resnet50(pool: str = "torchvision", width: int = 64) -> Pooled:
    """Return ResNet-50 "v1.5": stride in the 3 x 3 convolutions; the last gain of each block starts at 0.

    23,508,032 parameters up to its 2,048 features, 25,557,032 with a linear layer for 1,000 classes.

    `pool` says what the max-pool pads an image of even side with: one pixel on each side as in "torchvision",
    or one after it as TensorFlow's "same" does, which the authors' networks were trained with; with the other
    pool all features are shifted by a pixel. The blocks have `width` / 64 times the channels of the paper's.
    Raise RequestError for another pool or width.

    He et al., CVPR 2016; Goyal et al., 2017, section 5.1.
    """
    if pool not in POOLS:
        raise unknown("pool of resnet50", str(pool), POOLS)
    if not is_whole(width, 1):
        raise RequestError(f"resnet50: width is a whole number, 1 or more, not {width!r}")
    models = _architectures()
    if width == 64:
        network = models.resnet50(weights=None, zero_init_residual=True)
    else:

        class Narrow(models.ResNet):  # type: ignore[misc, name-defined]
            def _make_layer(self, block: Any, planes: int, *args: Any, **options: Any) -> Any:
                return super()._make_layer(block, max(1, planes * width // 64), *args, **options)

        network = Narrow(models.resnet.Bottleneck, [3, 4, 6, 3], zero_init_residual=True)
        network.fc = nn.Linear(network.layer4[-1].bn3.num_features, 1)
    if pool == "same":
        network.maxpool = SamePool()
    return _without(network, "avgpool", "fc")


class SamePool(nn.Module):
    """Max-pooling of 3 x 3 at every second pixel, padded as by TensorFlow's SAME.

    Of the padding that ceil(side / 2) outputs need, the larger part comes after the image.

    >>> SamePool()(torch.arange(16.0).view(1, 1, 4, 4)).flatten().tolist()
    [10.0, 11.0, 14.0, 15.0]
    """

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c _ _"]:
        (top, bottom), (left, right) = (_padding(side) for side in x.shape[2:])
        return F.max_pool2d(F.pad(x, (left, right, top, bottom), value=-math.inf), 3, 2)


def _padding(side: int) -> tuple[int, int]:
    total = max(0, (-(-side // 2) - 1) * 2 + 3 - side)
    return total // 2, total - total // 2


def inception_v3() -> Pooled:
    """Return Inception v3 without its auxiliary classifier; it was made for images of 299 x 299 pixels.

    21,785,568 parameters up to its 2,048 features, 23,834,568 with a linear layer for 1,000 classes.

    Szegedy et al., CVPR 2016.
    """
    network = _architectures().inception_v3(
        weights=None, aux_logits=False, init_weights=True, transform_input=False
    )
    body = _without(network, "avgpool", "dropout", "fc")
    body.register_module("AuxLogits", None)  # files of weights hold it, and it counts for nothing here
    return body


def _architectures() -> Any:
    try:
        from torchvision import models
    except ImportError:
        raise RequestError(
            "the networks for ImageNet need torchvision: pip install 'penultimate[models]'"
        ) from None
    return models


def _without(network: nn.Module, *end: str) -> Pooled:
    layers = [(name, layer) for name, layer in network.named_children() if name not in end]
    final: nn.Linear = network.get_submodule(end[-1])  # type: ignore[assignment]
    return Pooled(layers, final.in_features)
