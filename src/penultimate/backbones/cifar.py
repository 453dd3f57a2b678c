"""The two networks for CIFAR of the ICLR 2021 version, "Demystifying Loss Functions", appendix A.1."""

from __future__ import annotations

import itertools

from torch import Tensor, nn

from penultimate.backbones.preactivation import PreActivationBlock
from penultimate.backbones.unit import Unit, convolution
from penultimate.backbones.unit_net import UnitNet


class AllCNNC(UnitNet):
    """All-CNN-C with batch normalisation and the mean over space before its last convolution; 32 x 32 images.

        3 x 3, 96 - 3 x 3, 96 - 3 x 3 / 2, 96 - 3 x 3, 192 - 3 x 3, 192 - 3 x 3 / 2, 192
        - 3 x 3 without padding, 192 - 1 x 1, 192 - mean over space

    The last convolution (1 x 1, one output per class) is then the head: a linear layer on 192 features. The
    kernels and that layer have the published 1,369,738 parameters, except that 1,248 gains and 1,248 shifts
    of batch normalisation replace 1,248 biases.

    Springenberg et al., ICLR 2015 workshop, table 1.
    """

    num_features = 192

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 96, 96, 96, 192, 192, 192)
        for place, (inputs, outputs) in enumerate(itertools.pairwise(widths), 1):
            self.add_module(f"unit{place}", Unit(inputs, outputs, size=3, stride=1 + (place % 3 == 0)))
        self.unit7 = Unit(192, 192, size=3)
        self.unit7.convolution.padding = (0, 0)
        self.unit8 = Unit(192, 192, size=1)

    def body(self, x: Tensor) -> Tensor:
        for unit in self.children():
            x = unit(x)
        return x


class WideResNet(UnitNet):
    """A wide residual network of three groups for 32 x 32 images; WRN-16-8: depth 16, 8 times the width.

        3 x 3, 16 - (depth - 4) / 6 blocks of 16 w - as many of 32 w / 2 - as many of 64 w / 2
        - batch norm, ReLU - mean over space

    WRN-16-8 has 10,961,370 parameters with a linear layer for 10 classes ("11.0M").

    Zagoruyko and Komodakis, BMVC 2016, table 1.
    """

    def __init__(self, depth: int = 16, width: int = 8) -> None:
        super().__init__()
        self.num_features = 64 * width
        self.stem = convolution(3, 16, 3)
        channels = 16
        for group, outputs in enumerate((16 * width, 32 * width, 64 * width), 1):
            for block in range((depth - 4) // 6):
                stride = 2 if group > 1 and block == 0 else 1
                self.add_module(
                    f"group{group}_block{block + 1}", PreActivationBlock(channels, outputs, stride)
                )
                channels = outputs
        self.normalisation = nn.BatchNorm2d(channels)

    def body(self, x: Tensor) -> Tensor:
        for layer in self.children():
            x = layer(x)
        return x.relu()


def wrn16_8() -> WideResNet:
    """WRN-16-8."""
    return WideResNet(16, 8)
