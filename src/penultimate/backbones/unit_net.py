"""What the small nets share: features in float32, and a check of widths."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from penultimate.backbones.backbone import Backbone
from penultimate.checks import is_whole
from penultimate.errors import RequestError


class UnitNet(Backbone):
    """A small net of convolutions: its `body`, which ends in a ReLU, then the mean over space.

    Features are float32 (float64 for float64 images), also under autocast.
    """

    def body(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n m h w"]:
        raise TypeError(f"{type(self).__name__} defines no body(x)")

    def forward(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n m"]:
        x = self.body(images)
        return x.to(torch.promote_types(x.dtype, torch.float32)).mean((2, 3))


def check_width(backbone: str, name: str, value: object, step: int = 1) -> None:
    """Raise RequestError unless `value` is a whole number of channels, `step` or a multiple of it.

    >>> check_width("glyphnet", "features", 31, step=2)
    Traceback (most recent call last):
    penultimate.errors.RequestError: glyphnet: features is an even number of channels, at least 2, not 31
    """
    if not is_whole(value, step) or value % step:
        kind = "an even number" if step == 2 else "a whole number"
        raise RequestError(f"{backbone}: {name} is {kind} of channels, at least {step}, not {value!r}")
