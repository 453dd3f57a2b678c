"""Lengths at other sizes. The published parameters are for images of 224 x 224 pixels.

A length in pixels (a blur's width, a displacement, the size of a flake) is multiplied by side / 224, where
side is the image's shorter one, so that it covers the same share of the picture. A ratio (zoom, pixelate), a
level (noise, contrast, brightness) or a block of the JPEG standard stays as it is; the grain of noise is one
pixel at every size. A length that counts whole pixels is rounded and is at least one; one that weights pixels
(a blur) may be a fraction. At 224 every parameter is the published one.

Snow is cut from noise. Its grains are at least about one pixel wide, and the noise is equally
strong at every size, so that flakes cover the same share of the picture.

In small pictures some corruptions are therefore mild: at 24 pixels the gentlest defocus has a radius of a
third of a pixel and leaves the image unchanged.
"""

from __future__ import annotations

import math

SIDE = 224


def scale_of(height: int, width: int) -> float:
    """Return the factor by which a length at 224 pixels is multiplied.

    >>> scale_of(224, 320), scale_of(56, 56)
    (1.0, 0.25)
    """
    return min(height, width) / SIDE


def whole(length: float, scale: float) -> int:
    """Return a length in whole pixels, at least one (halves round up).

    >>> whole(4, 1.0), whole(4, 24 / 224), whole(20, 0.125)
    (4, 1, 3)
    """
    return max(1, math.floor(length * scale + 0.5))
