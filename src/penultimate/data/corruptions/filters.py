"""Building blocks of corruptions: weighted shifts, Gaussian blur, motion, zoom, resampling, plasma."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float32, Int64
from scipy import ndimage

from penultimate.data.corruptions.randomness import Draws

Image = np.ndarray
"""float32 arrays [n h w] or [n h w c], in 0..1 unless stated."""

BORDERS = {"nearest": "edge", "reflect": "symmetric", "mirror": "reflect"}
"""How an image continues beyond its edge: SciPy's name to NumPy's."""


def unit(images: np.ndarray) -> Image:
    """uint8 as float32 in 0..1."""
    return images.astype(np.float32) / 255


def gaussian(images: Image, sigma: float, border: str = "nearest", truncate: float = 4.0) -> Image:
    """Return each image (and channel) blurred by a Gaussian that is cut off at `truncate` deviations."""
    spread = (0, sigma, sigma, 0)[: images.ndim]
    blurred: Image = ndimage.gaussian_filter(images, spread, mode=border, truncate=truncate)
    return blurred


def noise_left(sigma: float, truncate: float = 4.0) -> float:
    """Return the standard deviation of white noise of deviation 1 after `gaussian`:
    the root of the sum of squares.

    >>> round(noise_left(4.0), 4), noise_left(0.0)
    (0.0705, 1.0)
    """
    radius = int(truncate * sigma + 0.5)
    if radius == 0:
        return 1.0
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    return float((weights**2).sum() / weights.sum() ** 2)


def grain(noise: Image, sigma: float, scale: float, border: str = "nearest", truncate: float = 4.0) -> Image:
    """Noise blurred over sigma * scale pixels, as strong as it is at scale 1.

    A narrower blur leaves stronger noise, which is scaled to what a blur over sigma pixels leaves, so that
    thresholds cut off the same share of it at every size.
    """
    narrow = gaussian(noise, sigma * scale, border, truncate)
    strength = noise_left(sigma, truncate) / noise_left(sigma * scale, truncate)
    return narrow * np.float32(strength)


def weighted(images: Image, kernel: np.ndarray) -> Image:
    """Correlation with a kernel [k k], k odd: shifted images, weighted and added in a fixed order."""
    radius = len(kernel) // 2
    height, width = images.shape[1:3]
    padding = [(0, 0), (radius, radius), (radius, radius), (0, 0)][: images.ndim]
    wide = np.pad(images, padding, mode=BORDERS["mirror"])  # type: ignore[call-overload]
    result = np.zeros_like(images)
    for down, across in np.argwhere(kernel):
        weight = images.dtype.type(kernel[down, across])
        result += weight * wide[:, down : down + height, across : across + width]
    return result


def motion(images: Image, radius: float, sigma: float, degrees: np.ndarray) -> Image:
    """ImageMagick's motion blur: each image smeared one way along its own angle.

    out(p) = sum_i g_i image(p + o_i), i = 0 .. 2 ceil(radius),  g_i ~ exp(-i^2 / (2 sigma^2)), sum 1,
    o_i = ceil(i (cos a, sin a) - 1/2) in (columns, rows); the edge pixels continue outside.
    """
    taps = np.arange(2 * math.ceil(radius) + 1)
    weights = np.exp(-(taps**2) / (2 * sigma**2))
    weights = (weights / weights.sum()).astype(np.float32)
    result = np.zeros_like(images)
    reach, (height, width) = len(taps), images.shape[1:3]
    padding = [(reach, reach), (reach, reach), (0, 0)][: images.ndim - 1]
    for image, smeared, angle in zip(images, result, np.deg2rad(degrees), strict=True):
        wide = np.pad(image, padding, mode="edge")
        across = reach + np.ceil(taps * math.cos(angle) - 0.5).astype(int)
        down = reach + np.ceil(taps * math.sin(angle) - 0.5).astype(int)
        for weight, y, x in zip(weights, down, across, strict=True):
            smeared += weight * wide[y : y + height, x : x + width]
    return result


def enlarged(images: Image, factor: float) -> Image:
    """Return the middle of each image, `factor` times as large, in the same frame; linear between pixels.

    The middle ceil(h / factor) rows are resized to round(that * factor), corners on corners, and the middle h
    of these are kept; columns likewise.
    """
    for axis in (1, 2):
        side = images.shape[axis]
        kept = math.ceil(side / factor)
        top = (side - kept) // 2
        grown = round(kept * factor)
        start = (grown - side) // 2
        places = np.arange(start, start + side) * ((kept - 1) / max(grown - 1, 1))
        lower = np.minimum(places.astype(int), max(kept - 2, 0))
        shape = [-1 if other == axis else 1 for other in range(images.ndim)]
        share = (places - lower).astype(np.float32).reshape(shape)
        below = np.take(images, top + lower, axis)
        above = np.take(images, top + np.minimum(lower + 1, kept - 1), axis)
        images = below + share * (above - below)
    return images


def folded(places: Int64[np.ndarray, "..."], side: int, border: str) -> Int64[np.ndarray, "..."]:
    """Positions outside 0 .. side - 1 folded back: "mirror" at the edge pixel, "reflect" at the edge.

    >>> folded(np.array([-2, -1, 0, 3, 4]), 3, "mirror"), folded(np.array([-2, -1, 0, 3, 4]), 3, "reflect")
    (array([2, 1, 0, 1, 0]), array([1, 0, 0, 2, 1]))
    """
    if border == "mirror":
        period = max(2 * side - 2, 1)
        places = places % period
        return np.minimum(places, period - places) if side > 1 else places * 0
    places = places % (2 * side)
    reflected: np.ndarray = np.minimum(places, 2 * side - 1 - places)
    return reflected


def sampled(
    images: Image, rows: Float32[np.ndarray, "n h w"], columns: Float32[np.ndarray, "n h w"], border: str
) -> Image:
    """Return the images [n h w c] at fractional places, linear between pixels."""
    height, width = images.shape[1:3]
    which = np.arange(len(images))[:, None, None]
    top, left = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    down = (rows - top).astype(np.float32)[..., None]
    across = (columns - left).astype(np.float32)[..., None]
    y0, y1 = folded(top, height, border), folded(top + 1, height, border)
    x0, x1 = folded(left, width, border), folded(left + 1, width, border)
    upper = images[which, y0, x0] * (1 - across) + images[which, y0, x1] * across
    lower = images[which, y1, x0] * (1 - across) + images[which, y1, x1] * across
    result: Image = upper * (1 - down) + lower * down
    return result


def plasma(draws: Draws, side: int, decay: float) -> Float32[np.ndarray, "n side side"]:
    """Clouds in 0..1 by midpoint displacement on a torus: squares, then diamonds, each level half as wide.

    A new point is the mean of its four neighbours plus a uniform number on +- r^2, r = 100 / decay^level.
    `side` is a power of two. Random numbers are used level by level: squares, diamonds to their left and
    right, diamonds above and below, each row by row.
    """
    numbers = np.stack([draw.uniform(-1, 1, side * side - 1) for draw in draws])
    field = np.zeros((len(draws), side, side))
    step, roughness, used = side, 100.0, 0

    def displaced(total: np.ndarray) -> np.ndarray:
        nonlocal used
        count = total[0].size
        moved: np.ndarray = numbers[:, used : used + count].reshape(total.shape)
        used += count
        return total / 4 + roughness**2 * moved

    def ahead(points: np.ndarray, axis: int) -> np.ndarray:
        sums: np.ndarray = points + np.roll(points, -1, axis)
        return sums

    def behind(points: np.ndarray, axis: int) -> np.ndarray:
        sums: np.ndarray = points + np.roll(points, 1, axis)
        return sums

    while step >= 2:
        half = step // 2
        corners = field[:, ::step, ::step]
        field[:, half::step, half::step] = displaced(ahead(ahead(corners, 1), 2))
        middles = field[:, half::step, half::step]
        field[:, ::step, half::step] = displaced(behind(middles, 1) + ahead(corners, 2))
        field[:, half::step, ::step] = displaced(behind(middles, 2) + ahead(corners, 1))
        step, roughness = half, roughness / decay
    field -= field.min((1, 2), keepdims=True)
    clouds: np.ndarray = (field / field.max((1, 2), keepdims=True)).astype(np.float32)
    return clouds


def disc(radius: float, softness: float, scale: float) -> Float32[np.ndarray, "k k"]:
    """Return a defocused point. At scale 1 the published kernel: pixels within the radius,
    softened by a Gaussian.

    At other scales, the share of each pixel covered by a disc of radius * scale (16 x 16 points per pixel).
    """
    if scale == 1:
        reach = max(8, math.ceil(radius))
        offsets = np.arange(-reach, reach + 1)
        covered = (offsets[:, None] ** 2 + offsets**2 <= radius**2).astype(np.float32)
        taps = np.arange(-1, 2) if radius <= 8 else np.arange(-2, 3)
        weights = np.exp(-(taps**2) / (2 * softness**2))
        soft = np.outer(weights, weights) / weights.sum() ** 2
        kernel: np.ndarray = weighted((covered / covered.sum())[None], soft.astype(np.float32))[0]
        return kernel
    reach = math.ceil(max(radius * scale - 0.5, 0))
    points = (np.arange((2 * reach + 1) * 16) + 0.5) / 16 - reach - 0.5
    covered = (points[:, None] ** 2 + points**2 <= (radius * scale) ** 2).astype(np.float32)
    cover = covered.reshape(2 * reach + 1, 16, -1, 16).sum((1, 3))
    return cover / cover.sum() if cover.any() else np.ones((1, 1), np.float32)


Corruption = Callable[[np.ndarray, int, Draws], np.ndarray]
"""(images uint8 [n h w 3], severity, a generator per image) -> float levels 0..255, or final uint8 images."""
