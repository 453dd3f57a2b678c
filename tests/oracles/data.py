"""Literal, slow equations of the data room, in float64, written from WORLD and the docstrings."""

from __future__ import annotations

import numpy as np


def reflected(position: int, length: int) -> int:
    """Fold a position outside 0..length-1 back at the edge pixel, the edge not repeated."""
    while not 0 <= position < length:
        position = -position if position < 0 else 2 * (length - 1) - position
    return position


def shifted(image: np.ndarray, down: int, across: int) -> np.ndarray:
    """out[y, x] = image[reflect(y + down), reflect(x + across)], pixel by pixel."""
    h, w = image.shape[:2]
    out = np.empty_like(image)
    for y in range(h):
        for x in range(w):
            out[y, x] = image[reflected(y + down, h), reflected(x + across, w)]
    return out


def normalised(images: np.ndarray, mean: tuple[float, ...], std: tuple[float, ...]) -> np.ndarray:
    """(x / 255 - mean) / std of each channel, [n h w c] to [n c h w]."""
    n, h, w, c = images.shape
    out = np.empty((n, c, h, w))
    for index in np.ndindex(n, h, w, c):
        i, y, x, k = index
        out[i, k, y, x] = (float(images[index]) / 255 - mean[k]) / (std[k] or 1.0)
    return out


def luminance(colour: np.ndarray) -> float:
    return 0.299 * float(colour[0]) + 0.587 * float(colour[1]) + 0.114 * float(colour[2])


def halved(mask: np.ndarray) -> np.ndarray:
    """The mean of each 2 x 2 block."""
    h, w = mask.shape
    return np.array(
        [[mask[2 * y : 2 * y + 2, 2 * x : 2 * x + 2].mean() for x in range(w // 2)] for y in range(h // 2)]
    )


def mixed(
    images: np.ndarray, labels: list[int], num_classes: int, share: float, order: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Mixup, image by image and class by class: Zhang et al., ICLR 2018, eq. 1."""
    out, targets = np.zeros(images.shape), np.zeros((len(images), num_classes))
    for i, j in enumerate(order):
        out[i] = share * images[i].astype(float) + (1 - share) * images[j].astype(float)
        targets[i, labels[i]] += share
        targets[i, labels[j]] += 1 - share
    return out, targets
