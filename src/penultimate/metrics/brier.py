"""The Brier score with its parts, and calibration class by class and in bins of equal mass.

Where `metrics.calibration` looks at the most probable class alone, these look at the probability of every
class, or at bins that hold equally many examples. Only sums per class and bin are kept, and each example's
confidence; all in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from penultimate.checks import real_number, whole_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.calibration import (
    BINS,
    MOST_BINS,
    blocks,
    inner_edges,
    pair,
    refuse_no_distribution,
    refuse_unreal,
)
from penultimate.metrics.inputs import ArrayLike, Names, as_matrix
from penultimate.metrics.labels import numbered


class BrierParts(NamedTuple):
    """A Brier score and what it is made of: score = reliability - resolution + uncertainty + within."""

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within: float


def brier_score(probabilities: ArrayLike, labels: Names) -> float:
    """Return the mean squared distance of the probabilities from the labels' indicators, from 0 (best) to 2.

    BS = (1/n) sum_i sum_k (p_ik - 1[y_i = k])^2

    `probabilities` [n k] are distributions and `labels` [n] class indices. Raise RequestError as
    `metrics.calibration.expected_calibration_error` does.

    >>> brier_score([[0.5, 0.5], [1.0, 0.0]], [0, 0])
    0.25

    Brier, 1950.
    """
    return _accumulated(probabilities, labels, 1).parts().score


def brier_parts(probabilities: ArrayLike, labels: Names, bins: int = BINS) -> BrierParts:
    """Return the Brier score as reliability less resolution plus uncertainty, summed over classes.

    REL = sum_k sum_b (n_bk/n) (p_bk - o_bk)^2,    RES = sum_k sum_b (n_bk/n) (o_bk - o_k)^2,
    UNC = sum_k o_k (1 - o_k),    BS = REL - RES + UNC + W

    For each class k its probabilities are sorted into `bins` of equal width (lo, hi]; p_bk is their mean in a
    bin, o_bk the share of the examples there that are of class k, and o_k that share among all examples. W is
    what differs within bins, W = sum_k sum_b (n_bk/n) (var_bk(p) - 2 cov_bk(p, y)). The three parts alone add
    up to the score exactly if each bin holds a single probability, as with forecasts on a grid; otherwise
    they do with W. Raise RequestError as `brier_score` does, and for bins < 1.

    >>> parts = brier_parts([[0.25, 0.75], [0.25, 0.75], [0.75, 0.25], [0.75, 0.25]], [1, 1, 0, 1])
    >>> parts
    BrierParts(score=0.375, reliability=0.125, resolution=0.125, uncertainty=0.375, within=0.0)

    Murphy, 1973; W: Stephenson, Coelho and Jolliffe, 2008.
    """
    return _accumulated(probabilities, labels, bins).parts()


def classwise_calibration_error(probabilities: ArrayLike, labels: Names, bins: int = BINS) -> float:
    """Return the mean over classes of the expected calibration error of each class's own probability.

    cw-ECE = (1/K) sum_k sum_b (n_bk/n) |o_bk - p_bk|

    Bins and symbols are those of `brier_parts`, and so are the errors.

    >>> classwise_calibration_error([[0.25, 0.75], [0.25, 0.75]], [1, 0])
    0.25

    Kull et al., NeurIPS 2019; Nixon et al., 2019 (static calibration error).
    """
    return _accumulated(probabilities, labels, bins).classwise_error()


def adaptive_calibration_error(probabilities: ArrayLike, labels: Names, bins: int = BINS) -> float:
    """Return the expected calibration error with bins that hold equally many examples (equal mass).

    The edges are every (n / bins)-th of the confidences in ascending order, rounded up, and a bin (lo, hi]
    contains its upper edge. Equal confidences so share a bin, whatever the order of the examples; where they
    make edges coincide, there are fewer bins. Confidence and prediction are those of
    `metrics.calibration.expected_calibration_error`, and so are the errors.

    >>> adaptive_calibration_error([[0.4, 0.6], [0.1, 0.9]], [1, 1], bins=2)
    0.25

    Nguyen and O'Connor, EMNLP 2015; Nixon et al., 2019.
    """
    return _accumulated(probabilities, labels, 1).adaptive_error(bins)


class BrierAccumulator:
    """Brier score, its parts, and the calibration of every class on examples that come in batches.

    `update` adds a batch of probabilities and `update_logits` one of logits. Kept are three sums for each
    class and bin, and the confidence of each example.

    >>> seen = BrierAccumulator().update([[0.25, 0.75]], [1]).update_logits([[0.0, 0.0]], [1])
    >>> round(seen.parts().score, 4), seen.classwise_error()
    (0.3125, 0.375)
    """

    def __init__(self, bins: int = BINS) -> None:
        self.bins = whole_number(bins, "bins", 1, MOST_BINS)
        self.counts = self.forecasts = self.hits = torch.zeros(0, self.bins, dtype=torch.float64)
        self.examples, self.squares = 0, 0.0
        self._confidences: list[Float[Tensor, " b"]] = []
        self._right: list[Bool[Tensor, " b"]] = []

    def update(self, probabilities: ArrayLike, labels: ArrayLike) -> BrierAccumulator:
        """Add a batch of distributions [n k] and their labels [n]."""
        matrix, classes = pair(probabilities, labels, "probabilities")
        parts = list(blocks(matrix))
        for start, block in parts:
            refuse_no_distribution(block, start, matrix.dtype)
        for start, block in parts:
            self._add(block.double(), classes[start : start + len(block)], matrix.dtype)
        return self

    def update_logits(
        self, logits: ArrayLike, labels: ArrayLike, temperature: float = 1.0
    ) -> BrierAccumulator:
        """Add a batch of probabilities softmax(logits / temperature), from logits [n k] and labels [n]."""
        temperature = real_number(temperature, "temperature", above=0)
        matrix, classes = pair(logits, labels, "logits")
        for start, block in blocks(matrix):
            refuse_unreal(block, start)
        for start, block in blocks(matrix):
            self._add((block.double() / temperature).softmax(1), classes[start : start + len(block)])
        return self

    def parts(self) -> BrierParts:
        """Return the Brier score and its parts; raise UndefinedError if there are no examples."""
        n = self._some()
        shares, rates = self.counts / n, self.hits.sum(1) / n
        filled = self.counts.clamp_min(1)
        seen = self.hits / filled
        reliability = float((shares * (self.forecasts / filled - seen).square()).sum())
        resolution = float((shares * (seen - rates[:, None]).square()).sum())
        uncertainty = float((rates * (1 - rates)).sum())
        score = self.squares / n
        return BrierParts(
            score, reliability, resolution, uncertainty, score - reliability + resolution - uncertainty
        )

    def classwise_error(self) -> float:
        """Return the class-wise ECE; raise UndefinedError if there are no examples."""
        return float((self.hits - self.forecasts).abs().sum()) / (self._some() * len(self.hits))

    def adaptive_error(self, bins: int = BINS) -> float:
        """Return the ECE in bins of equal mass; raise UndefinedError if there are no examples."""
        count = min(whole_number(bins, "bins", 1, MOST_BINS), self._some())
        confidence, right = torch.cat(self._confidences), torch.cat(self._right)
        ends = -(-torch.arange(1, count) * self.examples // count) - 1
        edges = confidence.sort().values[ends]
        place = torch.bucketize(confidence, edges)
        gaps = torch.bincount(place, right.double() - confidence, minlength=count)
        return float(gaps.abs().sum()) / self.examples

    def _some(self) -> int:
        if self.examples == 0:
            raise UndefinedError("the Brier score of no examples: nothing was added")
        return self.examples

    def _add(
        self,
        probabilities: Float[Tensor, "b k"],
        labels: Int[Tensor, " b"],
        dtype: torch.dtype = torch.float64,
    ) -> None:
        probabilities, labels = probabilities.cpu(), labels.cpu()
        classes = probabilities.shape[1]
        if not len(self.counts):
            self.counts, self.forecasts, self.hits = (
                torch.zeros(classes, self.bins, dtype=torch.float64) for _ in range(3)
            )
        if len(self.counts) != classes:
            raise RequestError(f"batches of {len(self.counts)} and of {classes} classes")
        edges = inner_edges(self.bins, dtype, probabilities.device)
        place = torch.bucketize(probabilities, edges) + self.bins * torch.arange(classes)
        own = probabilities.gather(1, labels[:, None])[:, 0]
        of_own = place.gather(1, labels[:, None])[:, 0]
        size = classes * self.bins
        for sums, places, weights in (
            (self.counts, place.ravel(), None),
            (self.forecasts, place.ravel(), probabilities.ravel()),
            (self.hits, of_own, None),
        ):
            sums += torch.bincount(places, weights, minlength=size).reshape(sums.shape)
        confidence, predicted = probabilities.max(1)
        self._confidences.append(confidence)
        self._right.append(predicted == labels)
        self.squares += float(probabilities.square().sum() - 2 * own.sum()) + len(labels)
        self.examples += len(labels)


def _accumulated(probabilities: ArrayLike, labels: Names, bins: int) -> BrierAccumulator:
    matrix = as_matrix(probabilities, "probabilities", "classes")
    (codes,) = numbered(labels, columns=matrix.shape[1])
    return BrierAccumulator(bins).update(matrix, codes)
