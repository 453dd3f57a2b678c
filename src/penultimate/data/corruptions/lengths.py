"""Lengths at another size. The published parameters are for images of 224 x 224 pixels.

What is a length in pixels there (a blur's width, a displacement, the size of a flake) is multiplied by
side / 224, side being the image's shorter one, so that it covers the same share of the picture. What is a
ratio (zoom, pixelate), a level (noise, contrast, brightness) or a block of the JPEG standard stays as it is;
the grain of noise is one pixel at every size. A length that counts whole pixels is rounded, and is at least
one; one that weighs pixels (a blur) may be a fraction. At 224 every parameter is the published one.

Snow and spatter are cut from noise. Their grains are at least about one pixel wide, and the noise is as
strong at every size, so that they cover as much of the picture.

In small pictures some corruptions are therefore mild: at 24 pixels the gentlest defocus has a radius of a
third of a pixel, and leaves the image as it was.
"""

from __future__ import annotations

import math

SIDE = 224


def scale_of(height: int, width: int) -> float:
    """What a length at 224 pixels is multiplied by.

    >>> scale_of(224, 320), scale_of(56, 56)
    (1.0, 0.25)
    """
    return min(height, width) / SIDE


def whole(length: float, scale: float) -> int:
    """A length in whole pixels, at least one (halves round up).

    >>> whole(4, 1.0), whole(4, 24 / 224), whole(20, 0.125)
    (4, 1, 3)
    """
    return max(1, math.floor(length * scale + 0.5))
