"""glyphwide: a wide residual net that normalises and rectifies before each convolution; a small WRN.

    3 x 3 / 2, width / 2 - residual blocks: width; 2 width / 2; features / 2 - normalisation, ReLU
    - mean over space

A block is x' + conv(r(conv(r(x)))) of 3 x 3 convolutions, with r batch normalisation and a ReLU, and x' a
1 x 1 convolution of r(x): the sum itself meets no ReLU (Zagoruyko and Komodakis, 2016).
"""

from __future__ import annotations

from torch import Tensor, nn

from penultimate.backbones.preactivation import PreActivationBlock
from penultimate.backbones.unit import convolution
from penultimate.backbones.unit_net import UnitNet, check_width


class GlyphWide(UnitNet):
    """The net above, with `width` channels in the first block and `features` outputs.

    Raises RequestError for widths that are not numbers of channels.

    >>> import torch
    >>> net = GlyphWide(width=4, features=32)
    >>> net(torch.zeros(2, 3, 24, 24)).shape
    torch.Size([2, 32])
    """

    def __init__(self, width: int = 16, features: int = 128, channels: int = 3) -> None:
        super().__init__()
        for name, value, step in (("width", width, 2), ("features", features, 1), ("channels", channels, 1)):
            check_width("glyphwide", name, value, step)
        self.num_features = features
        self.stem = convolution(channels, width // 2, 3, stride=2)
        self.block1 = PreActivationBlock(width // 2, width)
        self.block2 = PreActivationBlock(width, 2 * width, stride=2)
        self.block3 = PreActivationBlock(2 * width, features, stride=2)
        self.normalisation = nn.BatchNorm2d(features)

    def body(self, x: Tensor) -> Tensor:
        x = self.block2(self.block1(self.stem(x)))
        x = self.normalisation(self.block3(x)).relu()
        return x
