"""glyphnet: the small residual net of the embedded world, two million multiply-adds an image at 24 x 24.

    3 x 3 / 2, width - residual block 2 width / 2 - residual block 4 width / 2 - 1 x 1, features
    - two bottlenecks features - features / 2 - features of 1 x 1 - mean over space

Every convolution is followed by batch normalisation; every unit but the shortcuts, and every block, ends in a
ReLU. The two bottlenecks start as the identity (their last gain is zero), as ResNet v1.5's blocks do.
"""

from __future__ import annotations

from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from penultimate.backbones.backbone import Backbone
from penultimate.backbones.tape import Recorded, record
from penultimate.backbones.unit import Unit
from penultimate.errors import RequestError

Activation = TypeVar("Activation", Tensor, Recorded)


class ResidualBlock(nn.Module):
    """relu(unit(unit(x) / 2) + shortcut(x) / 2): half the side, twice the channels."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.shortcut = Unit(inputs, 2 * inputs, size=1, stride=2, activate=False)
        self.first = Unit(inputs, 2 * inputs, size=3, stride=2)
        self.second = Unit(2 * inputs, 2 * inputs, size=3)

    def forward(self, x: Activation) -> Activation:
        y: Activation = self.second(self.first(x), self.shortcut(x))
        return y


class Bottleneck(nn.Module):
    """relu(x + unit(unit(x))) of 1 x 1 convolutions, with half the channels between; at first relu(x)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = Unit(channels, channels // 2, size=1)
        self.second = Unit(channels // 2, channels, size=1)
        nn.init.zeros_(self.second.normalisation.weight)

    def forward(self, x: Activation) -> Activation:
        y: Activation = self.second(self.first(x), x)
        return y


class GlyphNet(Backbone):
    """The net above: `width` channels in the first stage, `features` out of the last.

    In training on a CPU it runs on a tape (`tape.py`), elsewhere as the plain modules it is made of. Features
    are float32 (float64 of float64 images), under autocast too. Raises RequestError for other widths.

    >>> net = GlyphNet(width=4, features=32)
    >>> net(torch.zeros(2, 3, 24, 24)).shape
    torch.Size([2, 32])
    """

    def __init__(self, width: int = 16, features: int = 256, channels: int = 3) -> None:
        super().__init__()
        for name, value, step in (("width", width, 1), ("features", features, 2), ("channels", channels, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < step or value % step:
                kind = "an even number" if step == 2 else "a whole number"
                raise RequestError(f"glyphnet: {name} is {kind} of channels, at least {step}, not {value!r}")
        self.num_features = features
        self.stem = Unit(channels, width, size=3, stride=2)
        self.block1 = ResidualBlock(width)
        self.block2 = ResidualBlock(2 * width)
        self.expand = Unit(4 * width, features, size=1)
        self.bottleneck1 = Bottleneck(features)
        self.bottleneck2 = Bottleneck(features)
        self.units = [unit for unit in self.modules() if isinstance(unit, Unit)]

    def body(self, x: Activation) -> Activation:
        x = self.stem(x)
        x = self.block2(self.block1(x))
        x = self.expand(x)
        x = self.bottleneck2(self.bottleneck1(x))
        return x

    def forward(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n m"]:
        if self.training and images.device.type == "cpu" and not images.requires_grad:
            return self._recorded(images)
        x = self.body(images)
        return x.to(torch.promote_types(x.dtype, torch.float32)).mean((2, 3))

    def _recorded(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n m"]:
        if torch.is_autocast_enabled("cpu"):
            images = images.to(torch.get_autocast_dtype("cpu"))
        parameters = [
            parameter
            for unit in self.units
            for parameter in (unit.convolution.weight, unit.normalisation.weight, unit.normalisation.bias)
        ]
        with torch.autocast("cpu", enabled=False):
            return record(self.body, images, parameters)
