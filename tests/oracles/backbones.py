"""Convolution and batch normalisation as loops over their defining sums, in float64; slow on purpose."""

from __future__ import annotations

import itertools

import numpy as np


def convolution(x: np.ndarray, kernel: np.ndarray, stride: int, padding: int) -> np.ndarray:
    """y[n, o, r, s] = sum over c, i, j of kernel[o, c, i, j] x[n, c, stride r + i - p, stride s + j - p]."""
    n, c, h, w = x.shape
    o, _, size, _ = kernel.shape
    rows, columns = ((side + 2 * padding - size) // stride + 1 for side in (h, w))
    y = np.zeros((n, o, rows, columns))
    for r, s, i, j in itertools.product(range(rows), range(columns), range(size), range(size)):
        row, column = stride * r + i - padding, stride * s + j - padding
        if 0 <= row < h and 0 <= column < w:
            for image, out in itertools.product(range(n), range(o)):
                y[image, out, r, s] += sum(kernel[out, k, i, j] * x[image, k, row, column] for k in range(c))
    return y


def unit(
    x: np.ndarray,
    kernel: np.ndarray,
    gain: np.ndarray,
    shift: np.ndarray,
    stride: int,
    epsilon: float,
    residual: np.ndarray | None,
    activate: bool,
) -> np.ndarray:
    """max(0, gain (y - mean) / sqrt(variance + epsilon) + shift + residual), by the moments of the batch."""
    y = convolution(x, kernel, stride, kernel.shape[2] // 2)
    for channel in range(y.shape[1]):
        values = y[:, channel]
        mean = values.sum() / values.size
        variance = ((values - mean) ** 2).sum() / values.size
        y[:, channel] = gain[channel] * (values - mean) / np.sqrt(variance + epsilon) + shift[channel]
    if residual is not None:
        y = y + residual
    return np.maximum(y, 0) if activate else y
