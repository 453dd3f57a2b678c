"""The building block of the small nets: convolution, batch normalisation, residual sum, ReLU."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

FEWEST = 8
"""The number of input channels from which oneDNN's strided 1 x 1 convolutions are sound."""


class Subsampled(nn.Conv2d):
    """A 1 x 1 convolution with a stride that only receives the pixels it reads.

    Its results equal those of an ordinary convolution. For fewer channels than `FEWEST`, channels last, on a
    processor without AVX-512, the backward pass of oneDNN's own convolution writes past its memory (oneDNN
    issue 6035).
    """

    def forward(self, input: Tensor) -> Tensor:
        rows, columns = self.stride
        return F.conv2d(input[:, :, ::rows, ::columns], self.weight, self.bias, groups=self.groups)


def convolution(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """Return a convolution without a bias; its kernel is He normal by fan-out (as in ResNet)."""
    is_unsound = size == 1 and stride > 1 and inputs < FEWEST
    kind = Subsampled if is_unsound else nn.Conv2d
    made = kind(inputs, outputs, size, stride, padding=size // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(made.weight, mode="fan_out", nonlinearity="relu")
    made.weight.data *= groups**0.5  # PyTorch counts the fan-out of all groups together
    return made


class Unit(nn.Module):
    """relu(batch_norm(conv(x)) + residual): an ordinary `Conv2d` (no bias) and an ordinary `BatchNorm2d`.

    If `groups` equals the channels, each is convolved separately. Gains start at 1, shifts at 0.

    >>> import torch
    >>> unit = Unit(3, 8, size=3, stride=2)
    >>> unit(torch.zeros(4, 3, 24, 24)).shape
    torch.Size([4, 8, 12, 12])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int,
        stride: int = 1,
        activate: bool = True,
        groups: int = 1,
    ) -> None:
        super().__init__()
        self.convolution = convolution(inputs, outputs, size, stride, groups)
        self.normalisation = nn.BatchNorm2d(outputs)
        self.activate = activate

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        y: Tensor = self.normalisation(self.convolution(x))
        if residual is not None:
            y = y + residual
        return y.relu() if self.activate else y
