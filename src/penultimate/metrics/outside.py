"""Images of none of the classes: the distance from the classes' features, and how far two scores are apart.

An image is inside if it is of the data that the classes are from, and outside if it is of other data. A
score is higher for images that look inside; the area under its ROC curve is `metrics.auc.auc_interval` with
the inside as positives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int

from penultimate.checks import real_number, whole_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.blocks import as_features, float64_blocks, lengths
from penultimate.metrics.inputs import (
    ArrayLike,
    Bank,
    Names,
    as_classes,
    as_tensor,
    listed_rows,
    numbered,
    of_bank,
)
from penultimate.metrics.moments import EPS

KEPT = 95
"""The share of the inside images, in per cent, that are taken for inside: the usual true positive rate."""


class FalsePositives(NamedTuple):
    """The share of outside images taken for inside, the ends of its interval, and the score's threshold."""

    value: float
    low: float
    high: float
    threshold: float


def false_positive_rate(
    inside: ArrayLike, outside: ArrayLike, kept: int = KEPT, confidence: float = 0.95
) -> FalsePositives:
    """Return how many outside images score as high as `kept` % of the inside images do (FPR at 95 % TPR).

    FPR = #{j: s_j >= t} / m,    t the largest score that at least `kept` % of the n inside scores reach

    `inside` [n] and `outside` [m] are scores, higher for images that look inside; inside images are the
    positives, as in Liang et al. and Sun et al. The interval accounts for both samples of images. The
    threshold is an order statistic of the inside scores, whose distribution over bootstrap samples of these
    is known exactly, P(t* <= s_(i)) = P(Bin(n, i/n) >= rank of t); over that distribution the Clopper-Pearson
    interval of the outside share is averaged, by its beta distributions. So nothing is drawn at random, and
    the interval is never a single point.

    Raise RequestError for NaN (it lists the rows), no scores on a side, and a `kept` that is no whole number
    from 1 to 100.

    >>> rate = false_positive_rate([0.2, 0.6, 0.7, 0.9], [0.1, 0.3, 0.65, 0.2], kept=75)
    >>> rate.value, rate.threshold, rate.low < 0.25 < rate.high
    (0.25, 0.6, True)

    Liang, Li and Srikant, ICLR 2018; Sun et al., ICML 2022.
    """
    share = whole_number(kept, "kept", 1, 100)
    tail = (1 - real_number(confidence, "confidence", above=0, below=1)) / 2
    own, others = np.sort(_scores(inside, "inside")), np.sort(_scores(outside, "outside"))
    rank = len(own) - -(-share * len(own) // 100) + 1
    threshold = float(own[rank - 1])
    value = _reached(others, own[rank - 1 : rank])[0] / len(others)
    low, high = _ends(own, others, rank, tail)
    return FalsePositives(float(value), min(low, float(value)), max(high, float(value)), threshold)


def _ends(
    own: Float[np.ndarray, " n"], others: Float[np.ndarray, " m"], rank: int, tail: float
) -> tuple[float, float]:
    """Return the ends of the interval: quantiles of a mixture of beta distributions over thresholds."""
    from scipy.special import bdtrc, betainc

    below = bdtrc(rank - 1, len(own), np.arange(1, len(own)) / len(own))  # P(Bin(n, i/n) >= rank)
    weights = np.diff(below, prepend=0.0, append=1.0)
    likely = weights > 0
    counts, place = np.unique(_reached(others, own[likely]), return_inverse=True)
    shares = np.bincount(place, weights[likely])
    missed = len(others) - counts

    def cumulated(x: float, more: int) -> float:
        """Return the mixture's distribution function; `more` is 0 for its lower end, 1 for its upper."""
        hits, misses = counts + more, missed + 1 - more
        parts = np.where(
            hits == 0, 1.0, np.where(misses == 0, 0.0, betainc(np.maximum(hits, 1), np.maximum(misses, 1), x))
        )
        return float(shares @ parts)

    ends = []
    for more, quantile in ((0, tail), (1, 1 - tail)):
        low, high = 0.0, 1.0
        for _ in range(44):
            middle = (low + high) / 2
            low, high = (middle, high) if cumulated(middle, more) < quantile else (low, middle)
        ends.append((low + high) / 2)
    return ends[0], ends[1]


def _reached(others: Float[np.ndarray, " m"], thresholds: Float[np.ndarray, " t"]) -> Int[np.ndarray, " t"]:
    """Return how many of some ascending scores are at least as high as each threshold."""
    return len(others) - np.searchsorted(others, thresholds, "left")


def _scores(values: ArrayLike, what: str) -> Float[np.ndarray, " n"]:
    given = as_tensor(values, f"{what} scores").cpu()
    scores: Float[np.ndarray, " n"] = given.double().numpy()
    if scores.ndim != 1 or not len(scores):
        raise RequestError(f"{what} scores are [n], one or more; got {list(scores.shape)}")
    if np.isnan(scores).any():
        raise RequestError(f"{what} scores are not numbers: {listed_rows(given.isnan())}")
    return scores


class Mahalanobis:
    """The distance of features from the nearest class mean, in units of the spread within classes.

        d^2(x) = min_c (x - mu_c)' S^+ (x - mu_c),    S = (1/n) sum_i (x_i - mu_{y_i})(x_i - mu_{y_i})'

    `features` are [n m] and `labels` [n] class indices or names, or a feature bank holds both; one class
    will do. All classes share the covariance S. Directions in which no class varies, to within rounding, have
    no inverse and are left out (the pseudo-inverse): `rank` is the number of those that are kept, `whitening`
    [m r] makes S the identity on them, and `places` [c r] are the class means there.

    Raise RequestError for NaN or infinity (it lists the rows), wrong labels and unequal lengths, and
    UndefinedError if no class varies in any direction.

    >>> line = Mahalanobis([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1])
    >>> line.rank, line.squared([[1.0], [14.0]]).tolist()
    (1, [0.0, 9.0])

    Lee et al., NeurIPS 2018, eq. 2 (without their perturbation of the images and ensemble of layers).
    """

    def __init__(self, features: ArrayLike | Bank, labels: Names | None = None) -> None:
        features, labels = of_bank(features, labels)
        matrix = as_features(features).cpu()
        (codes,) = numbered(labels)
        given = as_classes(codes, "labels", len(matrix))
        if not len(matrix):
            raise RequestError("the distance from classes takes features of their images; there are none")
        _, classes, counts = torch.unique(given, return_inverse=True, return_counts=True)
        sums = torch.zeros(len(counts), matrix.shape[1], dtype=torch.float64)
        longest = 0.0
        for start, block in float64_blocks(matrix):
            longest = max(longest, float(lengths(block, start).amax()))
            sums.index_add_(0, classes[start : start + len(block)], block)
        means = sums / counts[:, None]
        spread = torch.zeros(matrix.shape[1], matrix.shape[1], dtype=torch.float64)
        for start, block in float64_blocks(matrix):
            block -= means[classes[start : start + len(block)]]
            spread += block.T @ block
        variances, directions = torch.linalg.eigh(spread / len(matrix))
        # Rounding of the means leaves variances of (EPS |x|)^2, and that of the sums EPS times the largest.
        least = max(variances.shape[0] * EPS * float(variances[-1]), (4 * EPS * longest) ** 2)
        kept = variances > least
        self.rank = int(kept.sum())
        if not self.rank:
            raise UndefinedError(
                "the features of each class are constant, so that no distance is large beside their spread"
            )
        self.whitening: Float[np.ndarray, "m r"] = (directions[:, kept] / variances[kept].sqrt()).numpy()
        self.places: Float[np.ndarray, "c r"] = means.numpy() @ self.whitening

    def squared(self, features: ArrayLike) -> Float[np.ndarray, " q"]:
        """Return the squared distance d^2 [q] of features [q m] from the nearest class mean.

        Raise RequestError for NaN or infinity (it lists the rows), and for another number of dimensions.
        """
        return nearest_squared(features, self.whitening, self.places)


def nearest_squared(
    features: ArrayLike, whitening: Float[np.ndarray, "m r"], places: Float[np.ndarray, "c r"]
) -> Float[np.ndarray, " q"]:
    """Return the squared distance [q] of features [q m] from the nearest of some places, after whitening.

        d^2(x) = min_c |W'x - v_c|^2,    W [m r] and v [c r] those of `Mahalanobis`

    Raise RequestError for NaN or infinity (it lists the rows), and for another number of dimensions.
    """
    matrix = as_features(features).cpu()
    if matrix.shape[1] != len(whitening):
        raise RequestError(
            f"these features have {matrix.shape[1]} dimensions, those of the classes {len(whitening)}"
        )
    turn, centres = torch.from_numpy(whitening), torch.from_numpy(places)
    halves = centres.square().sum(1) / 2
    found = [torch.zeros(0, dtype=torch.float64)]
    for start, block in float64_blocks(matrix, len(places)):
        lengths(block, start)
        # The nearest class is found by a matrix product; its distance is computed from differences, which
        # loses no digits.
        points = block @ turn
        nearest = (points @ centres.T - halves).argmax(1)
        found.append((points - centres[nearest]).square().sum(1))
    return torch.cat(found).numpy()
