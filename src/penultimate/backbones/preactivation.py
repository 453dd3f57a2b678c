"""The residual block of wide residual networks, which normalises and rectifies before each convolution."""

from __future__ import annotations

from torch import Tensor, nn

from penultimate.backbones.unit import convolution


class PreActivationBlock(nn.Module):
    """x + second(r(first(a))), a = r(x), with r batch normalisation and a ReLU.

    If channels or side change, a 1 x 1 convolution of a replaces x.

    Zagoruyko and Komodakis, BMVC 2016.
    """

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        changes = inputs != outputs or stride > 1
        self.normalisation1 = nn.BatchNorm2d(inputs)
        self.shortcut = convolution(inputs, outputs, 1, stride) if changes else None
        self.first = convolution(inputs, outputs, 3, stride)
        self.normalisation2 = nn.BatchNorm2d(outputs)
        self.second = convolution(outputs, outputs, 3)

    def forward(self, x: Tensor) -> Tensor:
        active = self.normalisation1(x).relu()
        y: Tensor = self.second(self.normalisation2(self.first(active)).relu())
        y = y + (x if self.shortcut is None else self.shortcut(active))
        return y
