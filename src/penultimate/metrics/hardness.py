"""Angular visual hardness: the angle from an example to its own class's weights, relative to all classes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from penultimate.checks import whole_number
from penultimate.metrics import UndefinedError
from penultimate.metrics.activations import gaussian_density
from penultimate.metrics.collapse import as_weight, expect_dimensions
from penultimate.metrics.inputs import (
    ArrayLike,
    Bank,
    Names,
    as_tensor,
    directions,
    float64_blocks,
    labelled_features,
    listed_rows,
)

BANDWIDTH = 0.005
"""The paper's bandwidth, 5e-6 for 1000 classes, as a multiple of the typical hardness 1/classes."""
NEARLY_PARALLEL = 0.99
PAIR_ELEMENTS = 1 << 21


class HardnessDensity(NamedTuple):
    """The density [p] of `classes * hardness`, evaluated at `points` [p]."""

    points: Float[Tensor, " p"]
    density: Float[Tensor, " p"]


def angular_visual_hardness(
    features: ArrayLike | Bank, labels: Names | None = None, weight: ArrayLike | None = None
) -> Float[Tensor, " n"]:
    """Return each example's angle to its own class's weights, divided by the sum over all classes.

    AVH_i = angle(w_y, x_i) / sum_k angle(w_k, x_i),    angle(u, v) = 2 atan2(|u - v|, |u + v|), |u| = |v| = 1

    `features` are [n m] and `labels` [n], or a feature bank holds both; `weight` [k m] is always needed. The
    result [n] is float64 in [0, 1], and 1/k if all angles are equal. Names of classes stand for the rows of
    the weight in sorted order if all of them occur. A zero vector has no direction: it has similarity 0,
    hence a right angle, to everything. Angles are accurate to a few ulp, also near 0 and pi (where arccos is
    accurate to 1e-8, or NaN). Raise RequestError for labels beyond the weights, shapes that do not fit, and
    NaN or infinity (it lists the rows); raise UndefinedError for a single class, and if all weights have the
    direction of an example's features (0/0).

    >>> features, weight = [[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]
    >>> angular_visual_hardness(features, [0, 1], weight)
    tensor([0.0000, 0.5000], dtype=torch.float64)

    Chen et al., 2020, "Angular Visual Hardness"; Kornblith et al., 2021, figure E.1.
    """
    heads = as_weight(weight)
    matrix, classes = labelled_features(features, labels, len(heads))
    expect_dimensions(heads, matrix.shape[1])
    heads = heads.to(matrix.device, torch.float64)
    if len(heads) < 2:
        raise UndefinedError("angular visual hardness compares classes; the weights have one row alone")
    units = directions(heads)
    hardness = torch.empty(len(matrix), dtype=torch.float64, device=matrix.device)
    for start, block in float64_blocks(matrix, 3 * len(heads)):
        rows = slice(start, start + len(block))
        angles = _angles(directions(block), units)
        hardness[rows] = angles.gather(1, classes[rows, None])[:, 0] / angles.sum(1)
    if bool(hardness.isnan().any()):
        raise UndefinedError(
            f"angular visual hardness is undefined: the weights of all classes point along the features of"
            f" {listed_rows(hardness.isnan())}"
        )
    return hardness


def hardness_density(
    hardness: ArrayLike, classes: int, points: int = 1001, bandwidth: float = BANDWIDTH
) -> HardnessDensity:
    """Return a Gaussian kernel density estimate of `classes * hardness`, from 0 to 2.

    Hardness is typically 1/classes. Multiplied by `classes` it is comparable between data sets, and 1 means
    that an example's own class is no nearer than the others. On this scale the default bandwidth is the
    paper's. Raise RequestError as `gaussian_density` does.

    >>> hardness_density([0.5, 0.25], classes=2, points=3).points
    tensor([0., 1., 2.], dtype=torch.float64)

    Kornblith et al., 2021, figure E.1.
    """
    whole_number(points, "points", 2)
    values = as_tensor(hardness, "hardness").to(torch.float64) * classes
    where = torch.linspace(0, 2, points, dtype=torch.float64, device=values.device)
    return HardnessDensity(where, gaussian_density(values, where, bandwidth))


def _angles(u: Float[Tensor, "n m"], v: Float[Tensor, "k m"]) -> Float[Tensor, "n k"]:
    """Return the angles between unit vectors.

    |u -+ v|^2 = 2 -+ 2 u.v is accurate if the two vectors are far from parallel. Otherwise the smaller of the
    two values would be lost in the rounding of u.v, so both are computed from the vectors themselves.
    """
    cosines = u @ v.T
    minus = (2 - 2 * cosines).clamp_min_(0).sqrt_()
    plus = (2 + 2 * cosines).clamp_min_(0).sqrt_()
    pairs: Int[Tensor, "p 2"] = (cosines.abs() > NEARLY_PARALLEL).nonzero()
    at_once = max(1, PAIR_ELEMENTS // u.shape[1])
    for start in range(0, len(pairs), at_once):
        rows, columns = pairs[start : start + at_once].unbind(1)
        left, right = u[rows], v[columns]
        minus[rows, columns] = torch.linalg.vector_norm(left - right, dim=1)
        plus[rows, columns] = torch.linalg.vector_norm(left + right, dim=1)
    return torch.atan2(minus, plus).mul_(2)
