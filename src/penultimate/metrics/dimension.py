"""How many directions features fill: RankMe, stable rank, the decay of their spectrum, intrinsic dimension.

The first three follow from the singular values. The intrinsic dimensions follow from the distances to the
nearest neighbours alone, so that they see a curved sheet as flat.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from penultimate.checks import whole_number
from penultimate.metrics import UndefinedError
from penultimate.metrics.activations import SpectrumAccumulator, singular_values
from penultimate.metrics.blocks import as_features, expect_lengths, float64_blocks
from penultimate.metrics.inputs import ArrayLike, Bank

SMALL = 1e-7
"""What RankMe adds to every share of a singular value, as its authors do."""
FIRST, LAST = 5, 100
"""The eigenvalues, counted from 1, between which the decay of a spectrum is fitted."""
KEPT = 0.9
"""The share of the ratios of distances that two-NN fits; the largest are left out, as its authors do."""
ROWS = 256
"""The number of points whose distances to all others are computed at once."""


class SpectrumShape(NamedTuple):
    """RankMe, the stable rank, and the exponent of the decay (None if too few eigenvalues are left)."""

    rankme: float
    stable_rank: float
    alpha: float | None


def spectrum_shape(features: ArrayLike | Bank) -> SpectrumShape:
    """Return three summaries of the singular values of features [n m].

    rankme       exp(-sum_k p_k log p_k),  p_k = s_k / sum_j s_j + 1e-7, s the features' singular values
    stable_rank  sum_k t_k^2 / max_k t_k^2, t the singular values of the features less their mean
    alpha        the decay t_k^2 ~ k^-alpha: minus the slope of log t_k^2 over log k, for k = 5 .. 100,
                 weighted by 1/k; of fewer than 12 eigenvalues all are fitted

    RankMe is of the features as they are, as its authors define it, the others are of their variance. Two
    passes in float64, O(m^2) memory. Raise RequestError for NaN or infinity; raise UndefinedError for
    features that are the same for all examples.

    >>> shape = spectrum_shape([[3.0, 0.0], [-3.0, 0.0], [0.0, 3.0], [0.0, -3.0]])
    >>> round(shape.rankme, 4), round(shape.stable_rank, 4), shape.alpha
    (2.0, 2.0, None)

    Garrido et al., 2023 (RankMe); Rudelson and Vershynin, 2007 (stable rank); Agrawal et al., 2022, after
    Stringer et al., 2019 (the decay).
    """
    matrix = as_features(features.features if isinstance(features, Bank) else features)
    values = singular_values(matrix)
    total = torch.zeros(matrix.shape[1], dtype=torch.float64, device=matrix.device)
    for _, block in float64_blocks(matrix):
        total += block.sum(0)
    spectrum = SpectrumAccumulator()
    for _, block in float64_blocks(matrix):
        spectrum.update(block - total / len(matrix))
    squares = spectrum.compute().square()
    noise = (max(matrix.shape) * torch.finfo(torch.float64).eps * float(values[0])) ** 2
    if float(squares[0]) <= noise:
        raise UndefinedError("the spread of features that are the same for all examples fills no direction")
    return SpectrumShape(_rankme(values), float(squares.sum() / squares[0]), _decay(squares[squares > noise]))


def rankme(features: ArrayLike | Bank) -> float:
    """Return the effective rank of features [n m], RankMe.

    exp(-sum_k p_k log p_k),  p_k = s_k / sum_j s_j + 1e-7, s the features' singular values

    One pass in float64, O(m^2) memory. Raise RequestError for NaN or infinity; raise UndefinedError for
    features that are all 0.

    >>> round(rankme([[3.0, 0.0], [-3.0, 0.0], [0.0, 3.0], [0.0, -3.0]]), 4)
    2.0

    Garrido et al., 2023.
    """
    values = singular_values(features)
    if not float(values[0]) > 0:
        raise UndefinedError("the rank of features that are all 0 is undefined")
    return _rankme(values)


def _rankme(values: Float[Tensor, " r"]) -> float:
    shares = values / values.sum() + SMALL
    return math.exp(-float(torch.special.xlogy(shares, shares).sum()))


def _decay(squares: Float[Tensor, " r"]) -> float | None:
    first, last = (FIRST, min(LAST, len(squares))) if len(squares) >= 12 else (1, len(squares))
    if last - first < 2:
        return None
    ranks = torch.arange(first, last + 1, dtype=torch.float64)
    x, y, weights = ranks.log(), squares[first - 1 : last].cpu().log(), 1 / ranks
    x = x - (weights * x).sum() / weights.sum()
    return -float((weights * x * y).sum() / (weights * x * x).sum())


class IntrinsicDimension(NamedTuple):
    """Two estimates of the dimension; `points` that have a neighbour at distance 0 are left out of both."""

    two_nn: float
    mle: float
    points: int


def intrinsic_dimension(features: ArrayLike | Bank, neighbours: int = 20) -> IntrinsicDimension:
    """Return two estimates of the intrinsic dimension of points [n m], from Euclidean distances.

    two_nn  the slope through the origin of -log(1 - i/n) over log mu_(i), mu = r_2 / r_1 in ascending order,
            without the largest tenth
    mle     1 / mean_i [1/(k-1) sum_{j<k} log(r_k / r_j)], r_j the distance to the j-th neighbour of point i
            (inverses are averaged, as MacKay and Ghahramani correct it)

    `neighbours` is k, or n - 1 if that is less. Copies are counted once. O(n^2 m) time: pass a sample of many
    points. Raise RequestError for NaN or infinity; raise UndefinedError for fewer than five different points,
    or if all distances are equal.

    >>> sheet = np.random.default_rng(0).random((1000, 2)) @ np.arange(10.0).reshape(2, 5)
    >>> found = intrinsic_dimension(sheet)
    >>> round(found.two_nn), round(found.mle), found.points
    (2, 2, 1000)

    Facco et al., 2017; Levina and Bickel, 2004; MacKay and Ghahramani, 2005.
    """
    whole_number(neighbours, "neighbours", 2)
    matrix = as_features(features.features if isinstance(features, Bank) else features)
    expect_lengths(matrix)
    points = torch.unique(matrix.to(torch.float64), dim=0)
    if len(points) < 5:
        raise UndefinedError(f"an intrinsic dimension needs five different points or more; saw {len(points)}")
    distances = _nearest(points, min(neighbours, len(points) - 1))
    return IntrinsicDimension(_two_nn(distances), _mle(distances), len(points))


def _nearest(points: Float[Tensor, "n m"], count: int) -> Float[np.ndarray, "n k"]:
    """Return the distances to the nearest other points [n k], in ascending order, from differences."""
    found = []
    centred = points - points.mean(0)
    halves = centred.square().sum(1) / 2
    beyond = min(count + 8, len(points) - 1)
    for start in range(0, len(points), ROWS):
        block = centred[start : start + ROWS]
        rough = halves - block @ centred.T
        rough[torch.arange(len(block)), torch.arange(start, start + len(block))] = torch.inf
        chosen = rough.topk(beyond, dim=1, largest=False).indices
        exact = torch.linalg.vector_norm(centred[chosen] - block[:, None], dim=2)
        found.append(exact.sort(dim=1).values[:, :count])
    return torch.cat(found).cpu().numpy()


def _two_nn(distances: Float[np.ndarray, "n k"]) -> float:
    ratios = np.sort(np.log(distances[:, 1] / distances[:, 0]))
    kept = max(1, int(KEPT * len(ratios)))
    x, y = ratios[:kept], -np.log1p(-np.arange(1, kept + 1) / len(ratios))
    if not float(x @ x) > 0:
        raise UndefinedError("two-NN is undefined: the two nearest neighbours of each point are equally far")
    return float(x @ y / (x @ x))


def _mle(distances: Float[np.ndarray, "n k"]) -> float:
    logs = np.log(distances[:, -1:] / distances[:, :-1])
    mean = float(logs.mean())
    if not mean > 0:
        raise UndefinedError(
            "the dimension is undefined: the nearest neighbours of each point are equally far"
        )
    return 1 / mean
