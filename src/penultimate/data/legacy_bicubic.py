"""TensorFlow 1's `resize_bicubic`, with which the authors of the paper prepared images for their networks.

It differs from Pillow's: no antialiasing, a pixel's place is x scale (not (x + 1/2) scale - 1/2), Keys' cubic
has a = -0.75, and its weights are tabulated at 1,024 offsets. The authors cut the middle out of the image
before it is resized.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, UInt8

A = -0.75
OFFSETS = 1024


def legacy_bicubic(image: Float[np.ndarray, "h w c"], size: int) -> Float[np.ndarray, "size size c"]:
    """Return an image resized to `size` pixels a side, float32; values beyond the image's own may occur.

    out[x] = sum_(j = -1..2) k(j - d) in[floor(s x) + j],   s = width / size,   d = s x - floor(s x) to 1/1024

    with k Keys' cubic for a = -0.75; places outside the image are its edge. Columns and rows alike.

    Keys, IEEE TASSP 1981, eq. 4; TensorFlow, `ResizeBicubic` with half_pixel_centers=False.
    """
    rows, row_weights = _taps(image.shape[0], size)
    columns, column_weights = _taps(image.shape[1], size)
    values = image.astype(np.float32, copy=False)
    tall = np.einsum("oj,ojwc->owc", row_weights, values[rows], optimize=True)
    made: npt.NDArray[np.float32] = np.einsum("oj,hojc->hoc", column_weights, tall[:, columns], optimize=True)
    return made


def legacy_square(
    image: UInt8[np.ndarray, "h w c"], resize: int, crop: int
) -> UInt8[np.ndarray, "crop crop c"]:
    """Return the middle of an image as the authors showed it to their networks, in 8 bits.

    The middle is crop / resize of the shorter side (.875 for 224 of 256; the whole side if both are equal),
    then resized to `crop` pixels. What the cubic overshoots is clipped.
    """
    height, width = image.shape[:2]
    side = int(np.rint(crop / resize * min(height, width)))
    row, column = (height - side + 1) // 2, (width - side + 1) // 2
    square = legacy_bicubic(image[row : row + side, column : column + side], crop)
    made: npt.NDArray[np.uint8] = np.rint(square).clip(0, 255).astype(np.uint8)
    return made


@cache
def _taps(length: int, size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return, for each of `size` outputs, the four places that it reads and their weights."""
    place = np.arange(size, dtype=np.float32) * (np.float32(length) / np.float32(size))
    first = np.floor(place).astype(np.int64)
    offset = np.rint((place - first) * OFFSETS) / OFFSETS
    places = (first[:, None] + np.arange(-1, 3)).clip(0, length - 1)
    weights = np.stack([_far(1 + offset), _near(offset), _near(1 - offset), _far(2 - offset)], axis=1)
    return places, weights.astype(np.float32)


def _near(distance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Keys' cubic at distances up to 1."""
    return ((A + 2) * distance - (A + 3)) * distance**2 + 1


def _far(distance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Keys' cubic at distances from 1 to 2."""
    return ((A * distance - 5 * A) * distance + 8 * A) * distance - 4 * A
