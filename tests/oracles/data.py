"""Literal, slow equations of the data room, in float64, written from WORLD and the docstrings."""

from __future__ import annotations

import math

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


def blurred(mask: np.ndarray, sigma: float, radius: int) -> np.ndarray:
    """Gaussian blur: the kernel written out, the image mirrored at its edge (the edge pixel repeated)."""
    offsets = range(-radius, radius + 1)
    weights = [math.exp(-(offset**2) / (2 * sigma**2)) for offset in offsets]
    weights = [weight / sum(weights) for weight in weights]
    out = mask.astype(np.float64)
    for axis in (0, 1):
        wide = np.pad(out, [(radius, radius) if a == axis else (0, 0) for a in (0, 1)], mode="symmetric")
        length = mask.shape[axis]
        out = sum(
            weight * np.take(wide, range(offset + radius, offset + radius + length), axis=axis)
            for offset, weight in zip(offsets, weights, strict=True)
        )
    return out


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's correlation of two masks' pixels, by its definition."""
    x, y = a.reshape(-1), b.reshape(-1)
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    top = sum((p - mean_x) * (q - mean_y) for p, q in zip(x, y, strict=True))
    return float(top / math.sqrt(sum((p - mean_x) ** 2 for p in x) * sum((q - mean_y) ** 2 for q in y)))


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
