"""Images of none of the classes: scores of how unlike the classes' images an image is.

An image is inside if it is of the data that the classes are from, and outside if it is of other data. A
score is higher for images that look inside; the area under its ROC curve is `metrics.auc.auc` with the inside
as positives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from penultimate.checks import whole_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import (
    ArrayLike,
    Bank,
    Names,
    as_features,
    as_logits,
    as_tensor,
    float64_blocks,
    labelled_features,
    listed_rows,
)
from penultimate.metrics.moments import EPS

KEPT = 95
"""The share of the inside images, in per cent, that are taken for inside: the usual true positive rate."""


def false_positive_rate(inside: ArrayLike, outside: ArrayLike, kept: int = KEPT) -> float:
    """Return how many outside images score as high as `kept` % of the inside images do (FPR at 95 % TPR).

    FPR = #{j: s_j >= t} / m,    t the largest score that at least `kept` % of the n inside scores reach

    `inside` [n] and `outside` [m] are scores, higher for images that look inside; inside images are the
    positives, as in Liang et al. and Sun et al. Raise RequestError for NaN (it lists the rows), no scores on
    a side, and a `kept` that is no whole number from 1 to 100.

    >>> false_positive_rate([0.2, 0.6, 0.7, 0.9], [0.1, 0.3, 0.65, 0.2], kept=75)
    0.25

    Liang, Li and Srikant, ICLR 2018; Sun et al., ICML 2022.
    """
    share = whole_number(kept, "kept", 1, 100)
    own, others = np.sort(_scores(inside, "inside")), _scores(outside, "outside")
    threshold = own[len(own) - -(-share * len(own) // 100)]
    return float((others >= threshold).mean())


def log_max_probability(logits: ArrayLike) -> Float[np.ndarray, " n"]:
    """Return the logarithm of the largest softmax probability of each row, in nats.

    log max_k p_k = -log(1 + sum_{j != k*} exp(z_j - z_k*)),    k* = argmax_k z_k

    It ranks as the maximum softmax probability does, but keeps its digits where that rounds to 1. `logits`
    are [n k]. Raise RequestError for NaN or infinity (it lists the rows), and UndefinedError for a single
    class.

    >>> log_max_probability([[0.0, 0.0], [50.0, 0.0]]).tolist()
    [-0.693..., -1.92...e-22]

    Hendrycks and Gimpel, ICLR 2017 (maximum softmax probability, MSP).
    """
    matrix = as_logits(logits).cpu()
    if matrix.shape[1] < 2:
        raise UndefinedError("with one class a network is as sure of every image")
    wrong = ~matrix.isfinite().all(1)
    if bool(wrong.any()):
        raise RequestError(f"logits hold NaN or infinity in {listed_rows(wrong)}")
    found = [torch.zeros(0, dtype=torch.float64)]
    for _, block in float64_blocks(matrix):
        top, place = block.max(1, keepdim=True)
        others = (block - top).exp_().scatter_(1, place, 0.0)
        found.append(-torch.log1p(others.sum(1)))
    return torch.cat(found).numpy()


class Whitening(NamedTuple):
    """The directions in which classes vary, scaled by their spread [m r], and the class means there [c r]."""

    whitening: Float[np.ndarray, "m r"]
    places: Float[np.ndarray, "c r"]


def within_class_whitening(features: ArrayLike | Bank, labels: Names | None = None) -> Whitening:
    """Return W that makes the covariance within classes S the identity, W'SW = 1, and the class means in it.

    S = (1/n) sum_i (x_i - mu_{y_i})(x_i - mu_{y_i})'

    `features` are [n m] and `labels` [n] class indices or names, or a feature bank holds both. Directions in
    which no class varies, to within rounding, are left out, so that W W' is the pseudo-inverse of S. Raise
    RequestError for NaN or infinity (it lists the rows), and UndefinedError if no class varies at all.

    >>> within_class_whitening([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]).places.tolist()
    [[1.0], [11.0]]

    Lee et al., NeurIPS 2018, eq. 1.
    """
    matrix, given = labelled_features(features, labels)
    _, classes, counts = torch.unique(given, return_inverse=True, return_counts=True)
    sums = torch.zeros(len(counts), matrix.shape[1], dtype=torch.float64, device=matrix.device)
    longest = 0.0
    for start, block in float64_blocks(matrix):
        longest = max(longest, float(torch.linalg.vector_norm(block, dim=1).amax()))
        sums.index_add_(0, classes[start : start + len(block)], block)
    means = sums / counts[:, None]
    spread = sums.new_zeros(matrix.shape[1], matrix.shape[1])
    for start, block in float64_blocks(matrix):
        block -= means[classes[start : start + len(block)]]
        spread += block.T @ block
    variances, turns = torch.linalg.eigh(spread / max(len(matrix), 1))
    # Rounding of the means leaves variances of (EPS |x|)^2, and that of the sums EPS times the largest.
    kept = variances > max(len(variances) * EPS * float(variances[-1]), (4 * EPS * longest) ** 2)
    if not bool(kept.any()):
        raise UndefinedError("the features of each class are constant, so that they have no spread")
    whitening: Tensor = turns[:, kept] / variances[kept].sqrt()
    return Whitening(whitening.cpu().numpy(), (means @ whitening).cpu().numpy())


def mahalanobis_squared(
    features: ArrayLike, whitening: Float[np.ndarray, "m r"], places: Float[np.ndarray, "c r"]
) -> Float[np.ndarray, " q"]:
    """Return the squared Mahalanobis distance [q] of features [q m] from the nearest class mean.

    d^2(x) = min_c (x - mu_c)' S^+ (x - mu_c) = min_c |W'x - v_c|^2,  W [m r] and v [c r] of a `Whitening`

    Raise RequestError for NaN or infinity (it lists the rows).

    >>> line = within_class_whitening([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    >>> mahalanobis_squared([[1.0], [14.0]], *line).tolist()
    [0.0, 9.0]

    Lee et al., NeurIPS 2018, eq. 2 (without their perturbation of the images and ensemble of layers).
    """
    turn, centres = torch.from_numpy(whitening), torch.from_numpy(places)
    halves = centres.square().sum(1) / 2
    found = [torch.zeros(0, dtype=torch.float64)]
    for _, block in float64_blocks(as_features(features).cpu(), len(places)):
        # A matrix product finds the nearest class; the distance from differences loses no digits.
        points = block @ turn
        nearest = (points @ centres.T - halves).argmax(1)
        found.append((points - centres[nearest]).square().sum(1))
    return torch.cat(found).numpy()


def _scores(values: ArrayLike, what: str) -> Float[np.ndarray, " n"]:
    scores = as_tensor(values, f"{what} scores").cpu().double()
    if scores.ndim != 1 or not len(scores):
        raise RequestError(f"{what} scores are [n], one or more; got {list(scores.shape)}")
    if bool(scores.isnan().any()):
        raise RequestError(f"{what} scores hold NaN in {listed_rows(scores.isnan())}")
    return scores.numpy()
