"""Projectors: networks between the penultimate features and the head, which training alone uses.

A plug-in is a function `f(num_features, *, hyperparameter=default)` that returns an nn.Module with an integer
`num_features`: called with features [n num_features of the body], it returns what the head is given,
[n num_features of the projector]. Its initial weights come from torch's default generator.
"""

from __future__ import annotations

import itertools

from torch import nn


class HiddenLayers(nn.Sequential):
    """Hidden layers one after the other, each a linear map, batch normalisation and a rectifier."""

    def __init__(self, num_features: int, depth: int, width: int) -> None:
        widths = [num_features, *[width] * depth]
        layers = [
            layer
            for before, after in itertools.pairwise(widths)
            for layer in (nn.Linear(before, after, bias=False), nn.BatchNorm1d(after), nn.ReLU())
        ]
        super().__init__(*layers)
        self.num_features = widths[-1]


def projector(num_features: int, *, depth: int = 2, width: int = 512) -> HiddenLayers:
    """Return `depth` hidden layers of `width` units each; `depth=0` is no projector.

    h_0 = x,   h_i = ReLU(BatchNorm(V_i h_(i-1))),   the head is given h_depth

    The linear maps have no bias, because batch normalisation takes it away again.

    >>> import torch
    >>> layers = projector(256, depth=2, width=512)
    >>> layers(torch.zeros(4, 256)).shape, len(layers), layers.num_features
    (torch.Size([4, 512]), 6, 512)

    Wang et al., CVPR 2022; Sariyildiz et al., ICLR 2023.
    """
    return HiddenLayers(num_features, depth, width)
