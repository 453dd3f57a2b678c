"""Blur: defocus, frosted glass, motion, zoom."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from penultimate.data.corruptions.filters import disc, enlarged, gaussian, motion, unit, weighted
from penultimate.data.corruptions.lengths import scale_of, whole
from penultimate.data.corruptions.randomness import Draws, uniform


def defocus_blur(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Blur each point into a disc."""
    radius, softness = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))[severity - 1]
    return 255 * weighted(unit(images), disc(radius, softness, scale_of(*images.shape[1:3])))


def motion_blur(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Smear along a line at most 45 degrees off the horizontal; rounded as ImageMagick rounds."""
    radius, sigma = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))[severity - 1]
    scale = scale_of(*images.shape[1:3])
    angles = uniform(draws, -45, 45)
    made: np.ndarray = np.rint(motion(images.astype(np.float32), radius * scale, sigma * scale, angles))
    return made


def zoom_blur(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Return the mean of the image and of its enlargements."""
    most, step = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))[severity - 1]
    factors = np.arange(1, most, step)
    pixels = unit(images)
    total = pixels + sum(enlarged(pixels, float(factor)) for factor in factors)
    blurred: np.ndarray = 255 * total / (len(factors) + 1)
    return blurred


def glass_blur(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Blur with a Gaussian, copy pixels from places nearby, and blur again.

    The published code means to swap neighbours; its assignment copies instead, because both sides are views,
    so the published files hold copies. Rows and columns run from last to first, so a pixel can travel; a
    frame of `reach` pixels (and one more row and column at the start) stays in place. Random numbers: for
    each pass, row and column, the shifts across and down.
    """
    sigma, farthest, passes = ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))[severity - 1]
    height, width = images.shape[1:3]
    scale = scale_of(height, width)
    reach = whole(farthest, scale)
    # In float64: the truncated levels are blurred once more, and a difference of one level would show.
    levels = np.floor(gaussian(images.astype(np.float64), sigma * scale) + 1e-6).astype(np.uint8)
    rows, columns = np.arange(height - reach, reach, -1), np.arange(width - reach, reach, -1)
    shifts = np.stack([draw.integers(-reach, reach, (passes, len(rows), len(columns), 2)) for draw in draws])
    flat = levels.reshape(len(images), height * width, -1)
    for turn in range(passes):
        flat = np.take_along_axis(flat, _origins(shifts[:, turn], rows, columns, height, width)[..., None], 1)
    return 255 * gaussian(unit(flat.reshape(images.shape)), sigma * scale)


def _origins(
    shifts: Int64[np.ndarray, "n r c 2"], rows: np.ndarray, columns: np.ndarray, height: int, width: int
) -> Int64[np.ndarray, "n p"]:
    """Return where each pixel comes from after one pass, found by following all pixels at once.

    A pixel copies its neighbour's new value if that was set before, else its old one. Node p is the new value
    of pixel p and node P + p the old; each step doubles the distance followed.
    """
    pixels = height * width
    order = np.full(pixels, pixels)
    moving = (rows[:, None] * width + columns).reshape(-1)
    order[moving] = np.arange(len(moving))
    near = (rows[:, None] + shifts[..., 1]) * width + columns + shifts[..., 0]
    near = near.reshape(len(shifts), -1)
    points = np.tile(np.arange(2 * pixels), (len(shifts), 1))
    points[:, :pixels] += pixels
    set_before = order[near] < np.arange(len(moving))
    points[:, moving] = np.where(set_before, near, pixels + near)
    while (points[:, :pixels] < pixels).any():
        points = np.take_along_axis(points, points, 1)
    return points[:, :pixels] - pixels
