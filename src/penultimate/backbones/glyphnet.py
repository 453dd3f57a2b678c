"""glyphnet: the small residual net of the embedded world, two million multiply-adds per 24 x 24 image.

    3 x 3 / 2, width - residual block 2 width / 2 - residual block 4 width / 2 - 1 x 1, features
    - two bottlenecks features - features / 2 - features of 1 x 1 - mean over space

Every convolution is followed by batch normalisation; every unit except the shortcuts, and every block, ends
in a ReLU. The two bottlenecks start as the identity (their last gain is zero), like ResNet v1.5's blocks.
"""

from __future__ import annotations

from torch import Tensor, nn

from penultimate.backbones.unit import Unit
from penultimate.backbones.unit_net import UnitNet, check_width


class ResidualBlock(nn.Module):
    """relu(unit(unit(x) / 2) + shortcut(x) / 2): half the side, twice the channels."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.shortcut = Unit(inputs, 2 * inputs, size=1, stride=2, activate=False)
        self.first = Unit(inputs, 2 * inputs, size=3, stride=2)
        self.second = Unit(2 * inputs, 2 * inputs, size=3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.second(self.first(x), self.shortcut(x))
        return y


class Bottleneck(nn.Module):
    """relu(x + unit(unit(x))) with 1 x 1 convolutions and half the channels in between; initially relu(x)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = Unit(channels, channels // 2, size=1)
        self.second = Unit(channels // 2, channels, size=1)
        nn.init.zeros_(self.second.normalisation.weight)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.second(self.first(x), x)
        return y


class GlyphNet(UnitNet):
    """The net above, with `width` channels in the first stage and `features` outputs.

    Raises RequestError for widths that are not numbers of channels.

    >>> import torch
    >>> net = GlyphNet(width=4, features=32)
    >>> net(torch.zeros(2, 3, 24, 24)).shape
    torch.Size([2, 32])
    """

    def __init__(self, width: int = 16, features: int = 256, channels: int = 3) -> None:
        super().__init__()
        for name, value, step in (("width", width, 1), ("features", features, 2), ("channels", channels, 1)):
            check_width("glyphnet", name, value, step)
        self.num_features = features
        self.stem = Unit(channels, width, size=3, stride=2)
        self.block1 = ResidualBlock(width)
        self.block2 = ResidualBlock(2 * width)
        self.expand = Unit(4 * width, features, size=1)
        self.bottleneck1 = Bottleneck(features)
        self.bottleneck2 = Bottleneck(features)

    def body(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = self.block2(self.block1(x))
        x = self.expand(x)
        x = self.bottleneck2(self.bottleneck1(x))
        return x
