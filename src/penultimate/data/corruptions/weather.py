"""Weather: snow, frost, fog, brightness."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32

from penultimate.data.corruptions.filters import enlarged, motion, plasma, unit
from penultimate.data.corruptions.lengths import scale_of
from penultimate.data.corruptions.randomness import Draws, normal, uniform

GREY = np.array((0.299, 0.587, 0.114), np.float32)
ICE = np.array((0.86, 0.94, 1.0), np.float32)
RIDGE = 0.25
"""How far from a crystal's line, in the clouds' height, its light falls to 1/e."""


def snow(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Flakes blown down the picture, and again upside down, over a whitened image.

    A flake is enlarged noise above a threshold, at least one pixel wide. Enlarging smooths noise; where noise
    is enlarged less than at 224 pixels, it is weakened to match, so that the flakes cover as much.
    """
    mean, spread, flake, threshold, radius, sigma, kept = (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    )[severity - 1]
    height, width = images.shape[1:3]
    scale = scale_of(height, width)
    wide = max(1.0, flake * scale)
    spread *= _left_by_enlarging(flake) / _left_by_enlarging(wide)
    layer = enlarged(mean + np.float32(spread) * normal(draws, height, width), wide)
    layer[layer < threshold] = 0
    layer = np.floor(255 * np.clip(layer, 0, 1) + 1e-3)
    layer = np.rint(motion(layer, radius * scale, sigma * scale, uniform(draws, -135, -45)))
    layer = (layer / 255)[..., None]
    pixels = unit(images)
    white = np.maximum(pixels, (pixels @ GREY)[..., None] * 1.5 + 0.5)
    whitened = kept * pixels + (1 - kept) * white
    levels: np.ndarray = 255 * (whitened + layer + layer[:, ::-1, ::-1])
    return levels


def frost(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Return a darkened image under ice: a x + b ice. The ice is procedural,
    not from the published photographs.
    """
    kept, added = ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))[severity - 1]
    height, width = images.shape[1:3]
    return kept * images.astype(np.float32) + added * 255 * ice(draws, height, width)


def ice(draws: Draws, height: int, width: int) -> Float32[np.ndarray, "n h w 3"]:
    """Frost flowers: bright lines where one field of clouds crosses its middle, thick where another is high.

    Bluish white, from a quarter of full brightness to full; the lines scale with the picture.
    """
    side = _power_of_two(max(height, width))
    lines, thickness = (plasma(draws, side, 1.5)[:, :height, :width] for _ in range(2))
    light = np.exp(-np.abs(2 * lines - 1) / (RIDGE * (0.2 + thickness)))
    textured: np.ndarray = (0.25 + 0.75 * light)[..., None] * ICE
    return textured


def fog(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """(x + c clouds) max x / (max x + c): clouds added, rescaled to the image's range."""
    strength, decay = ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4))[severity - 1]
    height, width = images.shape[1:3]
    pixels = unit(images)
    clouds = plasma(draws, _power_of_two(max(height, width)), decay)[:, :height, :width, None]
    most = pixels.max((1, 2, 3), keepdims=True)
    levels: np.ndarray = 255 * (pixels + np.float32(strength) * clouds) * most / (most + strength)
    return levels


def brightness(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """HSV value raised by c, hue and saturation kept: all channels times v' / v; black turns grey."""
    raised = (0.1, 0.2, 0.3, 0.4, 0.5)[severity - 1]
    pixels = unit(images)
    value = pixels.max(3, keepdims=True)
    new = np.minimum(value + np.float32(raised), 1)
    levels: np.ndarray = 255 * np.where(value > 0, pixels * (new / np.maximum(value, 1e-6)), new)
    return levels


def _left_by_enlarging(factor: float) -> float:
    """Return the deviation of white noise of deviation 1, enlarged linearly: (2 + 1 / factor^2)
    / 3 on average.
    """
    return (2 + factor**-2) / 3


def _power_of_two(side: int) -> int:
    return 1 << max(1, (side - 1).bit_length())
