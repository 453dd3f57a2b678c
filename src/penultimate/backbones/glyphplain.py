"""glyphplain: a plain net for the embedded world, without residual sums: a small relative of VGG and All-CNN.

    3 x 3 / 2, width - 3 x 3 / 2, 2 width - 3 x 3, 2 width - 3 x 3 / 2, 4 width - 3 x 3, 4 width
    - 1 x 1, features - 1 x 1, features - mean over space

Every convolution is followed by batch normalisation and a ReLU. Convolutions of stride 2, not pooling, halve
the side, as in All-CNN (Springenberg et al., 2015).
"""

from __future__ import annotations

from torch import Tensor

from penultimate.backbones.unit import Unit
from penultimate.backbones.unit_net import UnitNet, check_width


class GlyphPlain(UnitNet):
    """The net above, with `width` channels in the first stage and `features` outputs.

    Raises RequestError for widths that are not numbers of channels.

    >>> import torch
    >>> net = GlyphPlain(width=4, features=32)
    >>> net(torch.zeros(2, 3, 24, 24)).shape
    torch.Size([2, 32])
    """

    def __init__(self, width: int = 16, features: int = 256, channels: int = 3) -> None:
        super().__init__()
        for name, value in (("width", width), ("features", features), ("channels", channels)):
            check_width("glyphplain", name, value)
        self.num_features = features
        self.unit1 = Unit(channels, width, size=3, stride=2)
        self.unit2 = Unit(width, 2 * width, size=3, stride=2)
        self.unit3 = Unit(2 * width, 2 * width, size=3)
        self.unit4 = Unit(2 * width, 4 * width, size=3, stride=2)
        self.unit5 = Unit(4 * width, 4 * width, size=3)
        self.unit6 = Unit(4 * width, features, size=1)
        self.unit7 = Unit(features, features, size=1)

    def body(self, x: Tensor) -> Tensor:
        x = self.unit1(x)
        x = self.unit3(self.unit2(x))
        x = self.unit5(self.unit4(x))
        x = self.unit7(self.unit6(x))
        return x
