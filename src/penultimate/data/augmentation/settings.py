"""The settings of augmentation in training, which `penultimate.data.augmentation.transforms` applies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penultimate.checks import is_number, is_whole
from penultimate.errors import RequestError

MOST_MIXUP = 100
"""The largest alpha of Mixup; at 100 every image is already mixed almost half and half with another."""


@dataclass(frozen=True)
class Augmentation:
    """Random crops or shifts, mirror images, AutoAugment and Mixup.

    `crop` = (least, most) shows a random crop of an image on disk, resized to the network's size. Its share
    of the area lies between these, and its width is 3/4 to 4/3 of its height; the paper uses (0.1, 1.0). None
    shows the central crop, as in tests.

    An image's shift is uniform on {-shift, ..., shift}^2. Pixels from outside are reflected at the edge
    (without repeating it), so that a shifted image has no flat border. `autoaugment` applies the ImageNet
    policy after cropping, mirroring and shifting. `mixup` is the alpha of Mixup, which comes last; 0 means
    none.

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
