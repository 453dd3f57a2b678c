"""The one building block of the small nets: convolution, batch normalisation, residual sum, ReLU."""

from __future__ import annotations

from torch import Tensor, nn


class Unit(nn.Module):
    """relu(batch_norm(conv(x)) + residual): an ordinary `Conv2d` (no bias) and an ordinary `BatchNorm2d`.

    With `groups` as many as channels each channel is convolved for itself. Initially kernels follow He's
    normal distribution by fan-out (as in ResNet), gains are 1 and shifts 0.

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
        self.convolution = nn.Conv2d(
            inputs, outputs, size, stride, padding=size // 2, groups=groups, bias=False
        )
        self.normalisation = nn.BatchNorm2d(outputs)
        self.activate = activate
        nn.init.kaiming_normal_(self.convolution.weight, mode="fan_out", nonlinearity="relu")
        self.convolution.weight.data *= groups**0.5  # PyTorch counts the fan-out of all groups together

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        y: Tensor = self.normalisation(self.convolution(x))
        if residual is not None:
            y = y + residual
        return y.relu() if self.activate else y
