"""How near a task's features are to neural collapse: CDNV, and the three terms of NCTI."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from penultimate.metrics import UndefinedError
from penultimate.metrics.blocks import as_features, expect_lengths, float64_blocks
from penultimate.metrics.inputs import ArrayLike, Bank, Names, as_classes, numbered, of_bank
from penultimate.metrics.moments import EPS, ClassMoments


def cdnv(features: ArrayLike | Bank, labels: Names | None = None) -> float:
    """Return the class-distance normalised variance, the mean over all pairs of classes; 0 at collapse.

    V(c, d) = (Var_c + Var_d) / (2 |mu_c - mu_d|^2),    Var_c = E |x - mu_c|^2 over the examples of class c

    `features` are [n m] and `labels` [n] class indices or names, or a feature bank holds both. All pairs of
    classes have equal weight. It takes one pass and O(k m + k^2) memory, in float64. Raise RequestError for
    NaN or infinity; raise UndefinedError for a single class, and for two classes whose means are equal to
    within rounding.

    >>> round(cdnv([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]), 12)
    0.01

    Galanti, Gyorgy and Hutter, 2022, definition 1.
    """
    given, named = of_bank(features, labels)
    matrix = as_features(given)
    classes = as_classes(numbered(named)[0], "labels", len(matrix), device=matrix.device)
    expect_lengths(matrix)
    moments = ClassMoments()
    for start, block in float64_blocks(matrix):
        moments.add(block, classes[start : start + len(block)])
    _expect_classes(moments.classes())
    means, counts = moments.means(), moments.sizes()
    squares = moments.squares[moments._rows] / counts
    variances = (squares - means.square().sum(1)).clamp_min_(0)
    distances = torch.cdist(means, means, compute_mode="donot_use_mm_for_euclid_dist").square_()
    first, second = torch.triu_indices(len(means), len(means), 1)
    apart = distances[first, second]
    rounding = torch.finfo(matrix.dtype).eps if matrix.dtype.is_floating_point else EPS
    assert moments.origin is not None
    length = float((means + moments.origin).square().sum(1).max())
    if bool((apart <= (rounding**2 / 4 + (8 * EPS) ** 2) * length).any()):
        raise UndefinedError("CDNV is undefined: the means of two classes are equal to within rounding")
    return float(((variances[first] + variances[second]) / (2 * apart)).mean())


def _expect_classes(present: Int[Tensor, " k"]) -> None:
    if len(present) < 2:
        seen = f"class {int(present[0])} alone" if len(present) else "no examples"
        raise UndefinedError(f"the collapse of features on a task needs two classes or more; saw {seen}")
