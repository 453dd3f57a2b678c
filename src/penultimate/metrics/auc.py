"""The area under the ROC curve: exact with DeLong's interval, or over a fixed number of thresholds."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float

from penultimate.checks import real_number, whole_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import ArrayLike, as_numbers, as_tensor, listed_rows


class AUC(NamedTuple):
    """An area under the ROC curve, its standard error, and the ends of its confidence interval."""

    value: float
    standard_error: float
    low: float
    high: float


def auc(scores: ArrayLike, labels: ArrayLike, thresholds: int | None = None) -> float:
    """Return the probability that a positive example scores higher than a negative one; ties count half.

    AUC = #{(i, j): s_i > s_j} / (P N) + #{(i, j): s_i = s_j} / (2 P N),    i positive, j negative

    `scores` [n] are higher for examples that are more likely positive; `labels` [n] are 0 or 1 (or booleans).
    The result is exact and takes O(n log n) time. With `thresholds` T it is instead the trapezoidal area over
    the T thresholds 0, 1/(T - 1), ..., 1; this needs scores in [0, 1], and it is .5 if all of them lie below
    1/(T - 1).

    Raise RequestError for NaN (it lists the rows), unequal lengths, other labels, and scores that the
    thresholds do not cover; raise UndefinedError if there is no positive or no negative example.

    >>> auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    >>> auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], thresholds=3)
    0.75

    Kornblith et al., 2021, appendix D.3, with 1,000 thresholds.
    """
    values, positive = _checked(scores, labels)
    if thresholds is None:
        return float(placements(values, positive)[0].mean())
    return _binned(values, positive, whole_number(thresholds, "thresholds", 2))


def auc_interval(scores: ArrayLike, labels: ArrayLike, confidence: float = 0.95) -> AUC:
    """Return the exact AUC with DeLong's standard error and confidence interval.

    se^2 = var(V_i) / P + var(W_j) / N, with V_i the share of negatives below positive i and W_j the share of
    positives above negative j (ties count half), var the unbiased variance; AUC -+ z se, clipped to [0, 1].

    If every positive lies above every negative (or below), the se is 0 and carries no information. The
    interval is then the exact one for a proportion of min(P, N) disjoint pairs that are all in order (or all
    out of order).

    `scores` [n] and `labels` [n] are as for `auc`; the computation takes O(n log n) time. Raise what `auc`
    raises, and UndefinedError for fewer than two positive or two negative examples.

    >>> interval = auc_interval([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    >>> interval.value, round(interval.standard_error, 4), interval.high
    (0.75, 0.3536, 1.0)

    DeLong, DeLong & Clarke-Pearson, 1988; in O(n log n): Sun & Xu, 2014; Clopper & Pearson, 1934.
    """
    real_number(confidence, "confidence", above=0, below=1)
    values, positive = _checked(scores, labels)
    below, above = placements(values, positive)
    if min(len(below), len(above)) < 2:
        raise UndefinedError(
            f"the interval of an AUC takes two positive and two negative examples; there are {len(below)} and"
            f" {len(above)}"
        )
    value = float(below.mean())
    if value in (0.0, 1.0):
        reach = 1 - ((1 - confidence) / 2) ** (1 / min(len(below), len(above)))
        return AUC(value, 0.0, max(0.0, value - reach), min(1.0, value + reach))
    error = math.sqrt(below.var(ddof=1) / len(below) + above.var(ddof=1) / len(above))
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return AUC(value, error, max(0.0, value - reach), min(1.0, value + reach))


def placements(
    values: Float[np.ndarray, " n"], positive: Bool[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " q"]]:
    """Return the share of negatives below each positive, and the share of positives above each negative,
    both in the order of their scores."""
    ones, zeros = np.sort(values[positive]), np.sort(values[~positive])
    below = np.searchsorted(zeros, ones, "left") + np.searchsorted(zeros, ones, "right")
    above = np.searchsorted(ones, zeros, "left") + np.searchsorted(ones, zeros, "right")
    return below / (2 * len(zeros)), 1 - above / (2 * len(ones))


def _binned(values: Float[np.ndarray, " n"], positive: Bool[np.ndarray, " n"], thresholds: int) -> float:
    if values.min() < 0 or values.max() > 1:
        raise RequestError("thresholds cover scores from 0 to 1: pass probabilities, or leave thresholds out")
    levels = np.linspace(0, 1, thresholds)
    rates = []
    for part in (values[positive], values[~positive]):
        reached = len(part) - np.searchsorted(np.sort(part), levels, "left")
        rates.append(np.concatenate([reached / len(part), [0.0]]))
    true, false = rates
    return float(((false[:-1] - false[1:]) * (true[:-1] + true[1:])).sum() / 2)


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    values = as_tensor(scores, "scores").cpu().double().numpy()
    truth = as_numbers(labels, "labels").numpy()
    if values.ndim != 1 or truth.shape != values.shape:
        raise RequestError(
            f"scores and labels are [n] each, of one length; got {list(values.shape)} and {list(truth.shape)}"
        )
    if np.isnan(values).any():
        raise RequestError(f"scores hold NaN in {listed_rows(torch.from_numpy(np.isnan(values)))}")
    if not np.isin(truth, (0, 1)).all():
        other = truth[~np.isin(truth, (0, 1))][0]
        raise RequestError(f"labels are 0 or 1, not {other}; say first what an uncertain label counts as")
    positive = truth.astype(bool)
    if positive.all() or not positive.any():
        which = "positive" if not positive.any() else "negative"
        raise UndefinedError(f"there is no {which} example among {len(values)}, so no AUC")
    return values, positive
