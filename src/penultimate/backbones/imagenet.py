"""The paper's two networks for ImageNet, as torchvision builds them, up to the penultimate features."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from penultimate.backbones.backbone import Backbone
from penultimate.errors import RequestError


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


def resnet50() -> Pooled:
    """Return ResNet-50 "v1.5": stride in the 3 x 3 convolutions; the last gain of each block starts at 0.

    23,508,032 parameters up to its 2,048 features, 25,557,032 with a linear layer for 1,000 classes.

    He et al., CVPR 2016; Goyal et al., 2017, section 5.1.
    """
    network = _architectures().resnet50(weights=None, zero_init_residual=True)
    return _without(network, "avgpool", "fc")


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
