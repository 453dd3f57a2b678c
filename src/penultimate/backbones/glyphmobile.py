"""glyphmobile: inverted bottlenecks with depthwise convolutions; a small relative of MobileNetV2.

    3 x 3 / 2, width - inverted bottlenecks: 2 width / 2; 2 width; 4 width / 2; 4 width
    - 1 x 1, features - mean over space

A bottleneck widens three times by 1 x 1, convolves each channel separately, and narrows by 1 x 1 without a
ReLU; if the shape stays the same, its input is added (Sandler et al., 2018, with ReLU in place of ReLU6).

On a CPU, train it in float32: PyTorch's bfloat16 backward pass of a depthwise convolution of stride 2 takes
some fifty times as long as its float32 one.
"""

from __future__ import annotations

from torch import Tensor, nn

from penultimate.backbones.unit import Unit
from penultimate.backbones.unit_net import UnitNet, check_width

WIDENING = 3


class InvertedBottleneck(nn.Module):
    """Compute narrow(depthwise(widen(x))), plus x if the shape stays the same."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        wide = WIDENING * inputs
        self.adds = stride == 1 and inputs == outputs
        self.widen = Unit(inputs, wide, size=1)
        self.depthwise = Unit(wide, wide, size=3, stride=stride, groups=wide)
        self.narrow = Unit(wide, outputs, size=1, activate=False)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.narrow(self.depthwise(self.widen(x)), x if self.adds else None)
        return y


class GlyphMobile(UnitNet):
    """The net above, with `width` channels in the first stage and `features` outputs.

    Raises RequestError for widths that are not numbers of channels.

    >>> import torch
    >>> net = GlyphMobile(width=4, features=32)
    >>> net(torch.zeros(2, 3, 24, 24)).shape
    torch.Size([2, 32])
    """

    def __init__(self, width: int = 16, features: int = 256, channels: int = 3) -> None:
        super().__init__()
        for name, value in (("width", width), ("features", features), ("channels", channels)):
            check_width("glyphmobile", name, value)
        self.num_features = features
        self.stem = Unit(channels, width, size=3, stride=2)
        self.block1 = InvertedBottleneck(width, 2 * width, stride=2)
        self.block2 = InvertedBottleneck(2 * width, 2 * width)
        self.block3 = InvertedBottleneck(2 * width, 4 * width, stride=2)
        self.block4 = InvertedBottleneck(4 * width, 4 * width)
        self.expand = Unit(4 * width, features, size=1)

    def body(self, x: Tensor) -> Tensor:
        x = self.block2(self.block1(self.stem(x)))
        x = self.block4(self.block3(x))
        x = self.expand(x)
        return x
