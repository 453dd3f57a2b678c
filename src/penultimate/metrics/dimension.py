"""How many directions features fill: RankMe and the stable rank, from their singular values."""

from __future__ import annotations

import math

import torch

from penultimate.metrics import UndefinedError
from penultimate.metrics.activations import centred_singular_values, singular_values
from penultimate.metrics.blocks import as_features
from penultimate.metrics.inputs import ArrayLike, Bank

SMALL = 1e-7
"""What RankMe adds to every share of a singular value, as its authors do."""


def stable_rank(features: ArrayLike | Bank) -> float:
    """Return the variance of features [n m] beside that along their longest direction, from 1 to m.

    sum_k t_k^2 / max_k t_k^2, t the singular values of the features less their mean

    Two passes in float64, O(m^2) memory. Raise RequestError for NaN or infinity; raise UndefinedError for
    features that are the same for all examples.

    >>> round(stable_rank([[3.0, 0.0], [-3.0, 0.0], [0.0, 3.0], [0.0, -3.0]]), 4)
    2.0

    Rudelson and Vershynin, 2007.
    """
    matrix = as_features(features.features if isinstance(features, Bank) else features)
    squares = centred_singular_values(matrix).square()
    noise = max(matrix.shape) * torch.finfo(torch.float64).eps * float(singular_values(matrix)[0])
    if float(squares[0]) <= noise**2:
        raise UndefinedError("the spread of features that are the same for all examples fills no direction")
    return float(squares.sum() / squares[0])


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
    shares = values / values.sum() + SMALL
    return math.exp(-float(torch.special.xlogy(shares, shares).sum()))
