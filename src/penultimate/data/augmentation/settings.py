"""What training may do to an image, as data; `penultimate.data.augmentation.transforms` does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penultimate.checks import is_number, is_whole
from penultimate.errors import RequestError

MOST_MIXUP = 100
"""At an alpha of 100 every image is already mixed half and half with another, within a few per cent."""


@dataclass(frozen=True)
class Augmentation:
    """Random crops or shifts, mirror images, AutoAugment and Mixup.

    `crop` = (least, most) shows of an image on disk a random part of it, whose share of its area lies between
    these and whose width is 3/4 to 4/3 of its height, resized to the network's size; the paper's are
    (0.1, 1.0). With None it is the middle that is shown, as in tests.

    An image's shift is uniform on {-shift, ..., shift}^2. Pixels from outside are the image reflected at its
    edge (the edge itself not repeated), so a shifted image has no flat border. `autoaugment` is the ImageNet
    policy, on what was cropped, mirrored and shifted; `mixup` the alpha of Mixup, last of all, 0 for none.

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
    crop: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not is_whole(self.shift, 0):
            raise RequestError(f"augmentation: shift is a number of pixels, 0 or more, not {self.shift!r}")
        for name in ("flip", "autoaugment"):
            if not isinstance(getattr(self, name), bool):
                raise RequestError(f"augmentation: {name} is True or False, not {getattr(self, name)!r}")
        alpha = self.mixup
        if not is_number(alpha) or not 0 <= alpha <= MOST_MIXUP:
            raise RequestError(
                f"augmentation: mixup is the alpha of Beta(alpha, alpha), from 0 (no Mixup) to {MOST_MIXUP},"
                f" not {alpha!r}"
            )
        object.__setattr__(self, "mixup", float(alpha))
        if self.crop is not None:
            object.__setattr__(self, "crop", _shares(self.crop))

    @property
    def is_identity(self) -> bool:
        """Whether every image is left unchanged."""
        return self == Augmentation(shift=0)


def _shares(crop: object) -> tuple[float, float]:
    pair = tuple(crop) if isinstance(crop, Sequence) else ()
    if (
        len(pair) != 2
        or not all(isinstance(share, int | float) for share in pair)
        or not (0 < pair[0] <= pair[1] <= 1)
    ):
        raise RequestError(
            "augmentation: crop is (least, most), the share of an image's area that is shown, from above 0 to"
            f" 1, or None; not {crop!r}"
        )
    return float(pair[0]), float(pair[1])
