"""What training may do to an image, as data; `penultimate.data.transforms` does it."""

from __future__ import annotations

from dataclasses import dataclass

from penultimate.errors import RequestError

MOST_MIXUP = 100
"""At an alpha of 100 every image is already mixed half and half with another, within a few per cent."""


@dataclass(frozen=True)
class Augmentation:
    """Random shifts of up to `shift` pixels in each direction, mirror images, AutoAugment and Mixup.

    An image's shift is uniform on {-shift, ..., shift}^2. Pixels from outside are the image reflected at its
    edge (the edge itself not repeated), so a shifted image has no flat border. `autoaugment` is the ImageNet
    policy, on what was mirrored and shifted; `mixup` the alpha of Mixup, last of all, 0 for none.

    >>> Augmentation(shift=2).is_identity, Augmentation(shift=0).is_identity
    (False, True)
    >>> Augmentation(shift=-1)
    Traceback (most recent call last):
    penultimate.errors.RequestError: augmentation: shift is a number of pixels, 0 or more, not -1
    """

    shift: int = 2
    flip: bool = False
    autoaugment: bool = False
    mixup: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.shift, bool) or not isinstance(self.shift, int) or self.shift < 0:
            raise RequestError(f"augmentation: shift is a number of pixels, 0 or more, not {self.shift!r}")
        for name in ("flip", "autoaugment"):
            if not isinstance(getattr(self, name), bool):
                raise RequestError(f"augmentation: {name} is True or False, not {getattr(self, name)!r}")
        alpha = self.mixup
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 <= alpha <= MOST_MIXUP:
            raise RequestError(
                f"augmentation: mixup is the alpha of Beta(alpha, alpha), from 0 (no Mixup) to {MOST_MIXUP},"
                f" not {alpha!r}"
            )

    @property
    def is_identity(self) -> bool:
        """Whether every image is left unchanged."""
        return self == Augmentation(shift=0)
