"""Spatter: drops of water that glint along their edges (severities 1 to 3), splashes of mud (4 and 5).

The published code shapes the water with OpenCV; its steps are written out here: Canny's edges, the distance
to them by the 5 x 5 chamfer mask in fixed point, equalisation, an embossing kernel.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int64, UInt8
from scipy import ndimage

from penultimate.data.corruptions.filters import gaussian, grain, unit, weighted
from penultimate.data.corruptions.lengths import scale_of
from penultimate.data.corruptions.randomness import Draws, normal

WATER = np.array((175, 238, 238), np.float32) / 255
MUD = np.array((63, 42, 20), np.float32) / 255
CANNY = (50, 150)
TANGENT = 13573
"""tan(22.5 degrees) * 2^15: where a gradient counts as horizontal, vertical or diagonal."""
STEPS = {(0, 1): 65536, (1, 0): 65536, (1, 1): 91750, (1, 2): 143976, (2, 1): 143976}
"""The chamfer mask's lengths 1, 1.4 and 2.1969 times 2^16, by rows and columns away."""
FAR = 1 << 30
DEEPEST = 20
EMBOSS = np.array(((-2, -1, 0), (-1, 1, 1), (0, 1, 2)), np.float32)
BOX = np.ones((3, 3), np.float32)


def spatter(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Liquid where blurred noise passes a threshold. A drop is at least about one pixel wide (sigma 1/2)."""
    mean, spread, sigma, threshold, strength = (
        (0.65, 0.3, 4, 0.69, 0.6),
        (0.65, 0.3, 3, 0.68, 0.6),
        (0.65, 0.3, 2, 0.68, 0.5),
        (0.65, 0.3, 1, 0.65, 1.5),
        (0.67, 0.4, 1, 0.65, 1.5),
    )[severity - 1]
    scale = max(scale_of(*images.shape[1:3]), 0.5 / sigma)
    liquid = mean + grain(np.float32(spread) * normal(draws, *images.shape[1:3]), sigma, scale)
    pixels = unit(images)
    if severity <= 3:
        liquid[liquid < threshold] = 0
        drops = np.clip(np.floor(255 * liquid + 1e-3), 0, 255).astype(np.uint8)
        return 255 * (pixels + np.float32(strength) * _glints(drops, scale)[..., None] * WATER)
    cover = gaussian((liquid > threshold).astype(np.float32), strength * scale)
    cover[cover < 0.8] = 0
    muddy: np.ndarray = 255 * (pixels * (1 - cover[..., None]) + cover[..., None] * MUD)
    return muddy


def _glints(drops: UInt8[np.ndarray, "n h w"], scale: float) -> np.ndarray:
    """Return how much light each place reflects, 0 to 1 in each image;
    0 throughout an image without glints.
    """
    distance = chamfer(~edges(drops)) / 65536 / scale
    depth = np.floor(weighted(np.minimum(distance, DEEPEST), BOX) / 9 + 1e-6)
    embossed = np.clip(weighted(equalised(depth.astype(np.uint8)).astype(np.float32), EMBOSS), 0, 255)
    light = drops * np.rint(weighted(embossed, BOX) / 9)
    glints: np.ndarray = light / np.maximum(light.max((1, 2), keepdims=True), 1)
    return glints


def edges(images: UInt8[np.ndarray, "n h w"]) -> Bool[np.ndarray, "n h w"]:
    """Canny's edges: maxima along the gradient, above 50 and connected to one above 150 (L1, 3 x 3 Sobel)."""
    levels = images.astype(np.int64)
    wide = np.pad(levels, ((0, 0), (1, 1), (1, 1)), mode="edge")
    smooth = wide[:, :-2] + 2 * wide[:, 1:-1] + wide[:, 2:]
    across = smooth[..., 2:] - smooth[..., :-2]
    smooth = wide[..., :-2] + 2 * wide[..., 1:-1] + wide[..., 2:]
    down = smooth[:, 2:] - smooth[:, :-2]
    size = np.pad(np.abs(across) + np.abs(down), ((0, 0), (1, 1), (1, 1)))
    centre = size[:, 1:-1, 1:-1]

    def beside(y: int, x: int) -> np.ndarray:
        height, width = centre.shape[1:]
        return size[:, 1 + y : 1 + y + height, 1 + x : 1 + x + width]

    flat, steep = np.abs(across) * TANGENT, np.abs(down) << 15
    horizontal = steep < flat
    vertical = steep > flat + (np.abs(across) << 16)
    falling = (across ^ down) >= 0
    diagonal = np.where(
        falling,
        (centre > beside(-1, -1)) & (centre > beside(1, 1)),
        (centre > beside(-1, 1)) & (centre > beside(1, -1)),
    )
    crest = np.where(
        horizontal,
        (centre > beside(0, -1)) & (centre >= beside(0, 1)),
        np.where(vertical, (centre > beside(-1, 0)) & (centre >= beside(1, 0)), diagonal),
    )
    weak, strong = (crest & (centre > threshold) for threshold in CANNY)
    neighbours = np.zeros((3, 3, 3), bool)
    neighbours[1] = True
    parts, count = ndimage.label(weak, neighbours)
    kept = np.zeros(count + 1, bool)
    kept[np.unique(parts[strong])] = True
    kept[0] = False
    connected: np.ndarray = kept[parts]
    return connected


def chamfer(away: Bool[np.ndarray, "n h w"]) -> Int64[np.ndarray, "n h w"]:
    """2^16 times the distance to the nearest False place, in steps of 1, 1.4 and 2.1969.

    Two passes: rows from above, then from below; within a row, steps of 1 from the left, then the right.
    """
    distance = np.where(away, FAR, 0).astype(np.int64)
    height, width = away.shape[1:]
    along = np.arange(width, dtype=np.int64) * STEPS[0, 1]
    for rows, nearer in ((range(height), -1), (range(height - 1, -1, -1), 1)):
        for row in rows:
            best = distance[:, row].copy()
            for (down, across), length in STEPS.items():
                above = row + nearer * down
                if down == 0 or not 0 <= above < height:
                    continue
                for shift in {across, -across}:
                    target = slice(max(0, shift), width + min(0, shift))
                    origin = slice(max(0, -shift), width + min(0, -shift))
                    np.minimum(best[:, target], distance[:, above, origin] + length, out=best[:, target])
            best = np.minimum.accumulate(best - along, 1) + along
            best = (np.minimum.accumulate((best + along)[:, ::-1], 1))[:, ::-1] - along
            distance[:, row] = best
    return np.minimum(distance, FAR)


def equalised(images: UInt8[np.ndarray, "n h w"]) -> UInt8[np.ndarray, "n h w"]:
    """Return each image's levels spread by rank: 255 (pixels up to it - N) / (all - N),
    N at the lowest level.

    An image of one level stays as it is.
    """
    result = images.copy()
    for image, spread in zip(images, result, strict=True):
        counts = np.bincount(image.reshape(-1), minlength=256)
        lowest = int(np.argmax(counts > 0))
        rest = image.size - counts[lowest]
        if rest:
            table = np.rint((np.cumsum(counts) - counts[lowest]) * (255 / rest))
            spread[:] = np.clip(table, 0, 255).astype(np.uint8)[image]
    return result
