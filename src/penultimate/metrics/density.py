"""Gaussian kernel density estimates with a given bandwidth."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from penultimate.checks import real_number
from penultimate.errors import RequestError
from penultimate.metrics.blocks import LONGEST
from penultimate.metrics.inputs import ArrayLike, as_tensor

BLOCK_ELEMENTS = 1 << 20
MOST_POINTS = 1 << 20
"""The most points of a density; more are finer than any screen, and are taken for a mistake."""
LEAST_BANDWIDTH = 1e-150


def gaussian_density(
    values: ArrayLike, points: ArrayLike, bandwidth: float, weights: ArrayLike | None = None
) -> Float[Tensor, " p"]:
    """Return the Gaussian kernel density estimate of `values` [n] at `points` [p].

    f(p) = sum_i w_i exp(-(p - v_i)^2 / (2 h^2)) / (h sqrt(2 pi) sum_i w_i),    w_i = 1 without `weights`

    The kernel's standard deviation h is `bandwidth`. The sum is exact, in float64; the unit of the density is
    the inverse of the values' unit. Raise RequestError for no values, values that are not finite, a bandwidth
    that is not above 0, or weights that are negative or all 0.

    >>> gaussian_density([0.0, 1.0], [0.0, 1.0], bandwidth=0.1)
    tensor([1.9947, 1.9947], dtype=torch.float64)
    """
    heights = as_tensor(values, "values").to(torch.float64)
    where = as_tensor(points, "points").to(heights)
    if heights.ndim != 1 or where.ndim != 1 or not len(heights):
        raise RequestError(
            f"a density wants values [n] and points [p], n of 1 or more; got {list(heights.shape)} and"
            f" {list(where.shape)}"
        )
    for name, numbers in (("values", heights), ("points", where)):
        if not bool((numbers.abs() <= LONGEST).all()):
            raise RequestError(f"a density wants finite {name} up to {LONGEST:g}; got others")
    bandwidth = real_number(bandwidth, "a density's bandwidth", LEAST_BANDWIDTH)
    shares = torch.ones_like(heights) if weights is None else as_tensor(weights, "weights").to(heights)
    total = float(shares.sum())
    if shares.shape != heights.shape or not bool((shares >= 0).all()) or not 0 < total < math.inf:
        raise RequestError("a density's weights are one for each value, 0 or more, finite, and not all 0")
    density = torch.zeros_like(where)
    rows = max(1, BLOCK_ELEMENTS // max(1, len(where)))
    for start in range(0, len(heights), rows):
        apart = (heights[start : start + rows, None] - where) / bandwidth
        density += shares[start : start + rows] @ apart.square_().mul_(-0.5).exp_()
    return density / (total * bandwidth * math.sqrt(2 * math.pi))
