"""What training may do to an image, as data; `penultimate.data.transforms` does it."""

from __future__ import annotations

from dataclasses import dataclass

from penultimate.errors import RequestError


@dataclass(frozen=True)
class Augmentation:
    """Random shifts of up to `shift` pixels in each direction, and mirror images.

    An image's shift is uniform on {-shift, ..., shift}^2. Pixels from outside are the image reflected at its
    edge (the edge itself not repeated), so a shifted image has no flat border.

    >>> Augmentation(shift=2).is_identity, Augmentation(shift=0).is_identity
    (False, True)
    >>> Augmentation(shift=-1)
    Traceback (most recent call last):
    penultimate.errors.RequestError: augmentation: shift is a number of pixels, 0 or more, not -1
    """

    shift: int = 2
    flip: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.shift, bool) or not isinstance(self.shift, int) or self.shift < 0:
            raise RequestError(f"augmentation: shift is a number of pixels, 0 or more, not {self.shift!r}")
        if not isinstance(self.flip, bool):
            raise RequestError(f"augmentation: flip is True or False, not {self.flip!r}")

    @property
    def is_identity(self) -> bool:
        """Whether every image is left unchanged."""
        return self.shift == 0 and not self.flip
