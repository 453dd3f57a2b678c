"""How near a task's features are to neural collapse: CDNV, and the three terms of NCTI."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from penultimate.checks import real_number
from penultimate.metrics import UndefinedError
from penultimate.metrics.blocks import as_features, expect_lengths, float64_blocks
from penultimate.metrics.inputs import ArrayLike, Bank, Names, of_bank
from penultimate.metrics.labels import as_classes, numbered
from penultimate.metrics.moments import EPS, ClassMoments

SHRINKAGE = 0.1
"""The share of a multiple of the identity in the covariance within classes that NCTI's discriminant uses."""


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


class CollapseTerms(NamedTuple):
    """The terms of NCTI: `within` is 0 at collapse; more of the others is nearer to it."""

    within: float
    simplex: float
    nearest: float


def ncti_terms(
    features: ArrayLike | Bank, labels: Names | None = None, shrinkage: float = SHRINKAGE
) -> CollapseTerms:
    """Return three terms on how near features are to collapse on a task, seen through a discriminant.

    With S = (1 - s) S_W + s tr(S_W)/m I, where S_W is the covariance within classes, let U be the directions
    of the means in the metric of S (Fisher's discriminant), Z = (X - mean) U [n k-1], and P [n k] the
    posteriors of Gaussian classes with this covariance, p_ic ~ n_c exp(-(x_i - mu_c)' S^-1 (x_i - mu_c) / 2).

    within   log(sum_c |P_c|_* / sum_c sqrt(n_c))  P_c the rows of class c: nuclear norm of its predictions
    simplex  |Z|_* / n                             the nuclear norm of the discriminant's coordinates
    nearest  mean_i p_{i y_i}                      how sure the nearest centre is of the right class

    NCTI of a network among several is simplex + nearest - within, after each is scaled to 0 .. 1 over the
    networks (`joined_ncti`). The features' scale changes nothing. `features` are [n m] and `labels` [n], or a
    feature bank holds both. Raise RequestError for NaN, infinity and a shrinkage outside (0, 1); raise
    UndefinedError for a single class and for features without spread within classes.

    >>> points = [[2.0, 0.0], [4.0, 0.1], [0.0, 2.0], [0.1, 4.0]]
    >>> terms = ncti_terms(points, [0, 0, 1, 1])
    >>> round(terms.nearest, 3), abs(terms.within) < 1e-6, round(terms.simplex, 3)
    (1.0, True, 1.622)

    Wang et al., ICCV 2023 (the three terms); Shao et al., 2022 (the discriminant), with a fixed
    shrinkage and all components; the authors' code takes 64, and a shrinkage that falls with the variance.
    """
    share = real_number(shrinkage, "shrinkage", above=0, below=1)
    given, named = of_bank(features, labels)
    matrix = as_features(given)
    classes = as_classes(numbered(named)[0], "labels", len(matrix), device=matrix.device)
    expect_lengths(matrix)
    present, codes = torch.unique(classes, return_inverse=True)
    _expect_classes(present)
    points = matrix.to(torch.float64)
    points = points - points.mean(0)
    counts = torch.bincount(codes).double()
    means = points.new_zeros(len(counts), points.shape[1]).index_add_(0, codes, points) / counts[:, None]
    covariance = _within(points, means, codes)
    scatter = float(covariance.trace()) / len(covariance)
    if scatter <= EPS**2 * float(points.square().sum(1).max()):
        raise UndefinedError("NCTI is undefined: nothing is left within classes")
    covariance.mul_(1 - share).diagonal().add_(share * scatter)
    root = torch.linalg.cholesky(covariance)
    white = torch.linalg.solve_triangular(root, points.T, upper=False).T
    centres = torch.linalg.solve_triangular(root, means.T, upper=False).T
    scores = white @ centres.T - centres.square().sum(1) / 2 + counts.log()
    posteriors = scores.softmax(1)
    within = sum(_nuclear(posteriors[codes == each]) for each in range(len(counts)))
    _, scales, directions = torch.linalg.svd(centres * counts.sqrt()[:, None], full_matrices=False)
    kept = scales > scales[0] * max(centres.shape) * EPS
    coordinates = white @ directions[kept].T
    return CollapseTerms(
        math.log(within / float(counts.sqrt().sum())),
        _nuclear(coordinates) / len(points),
        float(posteriors[torch.arange(len(points)), codes].mean()),
    )


def _within(
    points: Float[Tensor, "n m"], means: Float[Tensor, "k m"], codes: Int[Tensor, " n"]
) -> Float[Tensor, "m m"]:
    residuals = points - means[codes]
    covariance: Tensor = residuals.T @ residuals / len(points)
    return covariance


def _nuclear(matrix: Float[Tensor, "n m"]) -> float:
    """Return the sum of the singular values."""
    triangle = torch.linalg.qr(matrix, mode="r").R if len(matrix) > matrix.shape[1] else matrix
    return float(torch.linalg.svdvals(triangle).sum())


def _expect_classes(present: Int[Tensor, " k"]) -> None:
    if len(present) < 2:
        seen = f"class {int(present[0])} alone" if len(present) else "no examples"
        raise UndefinedError(f"the collapse of features on a task needs two classes or more; saw {seen}")
