"""Noise: Gaussian, shot, impulse. The grain is one pixel and one channel."""

from __future__ import annotations

import numpy as np

from penultimate.data.corruptions.filters import unit
from penultimate.data.corruptions.randomness import Draws, normal


def gaussian_noise(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """x + s n, n standard normal."""
    strength = (0.08, 0.12, 0.18, 0.26, 0.38)[severity - 1]
    noisy: np.ndarray = 255 * (unit(images) + np.float32(strength) * normal(draws, *images.shape[1:]))
    return noisy


def shot_noise(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Poisson(c x) / c: c photons make a white pixel."""
    photons = (60, 25, 12, 5, 3)[severity - 1]
    counts = [draw.poisson(image / 255 * photons) for image, draw in zip(images, draws, strict=True)]
    return np.stack(counts).astype(np.float32) * np.float32(255 / photons)


def impulse_noise(images: np.ndarray, severity: int, draws: Draws) -> np.ndarray:
    """Salt and pepper: a share of the values is set to full or zero, half each."""
    share = (0.03, 0.06, 0.09, 0.17, 0.27)[severity - 1]
    levels = images.copy()
    for image, draw in zip(levels, draws, strict=True):
        struck = draw.random(image.shape) <= share
        salt = draw.random(image.shape) <= 0.5
        image[struck] = np.where(salt, 255, 0)[struck]
    return levels
