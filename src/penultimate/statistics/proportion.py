"""Confidence intervals of a proportion, such as an accuracy, that hold for small counts too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penultimate.errors import RequestError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def proportion_interval(right: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Return the two ends of the exact interval of a proportion, given `right` successes in `of` trials.

    P(X >= right | lower) = P(X <= right | upper) = (1 - level) / 2,    X binomial of `of` trials

    The lower end is 0 if `right` is 0, and the upper end is 1 if all trials are successes. The interval
    covers the true proportion at least as often as the level says, whatever the count, and it is never a
    single point. Raise RequestError for counts that are not whole numbers with 0 <= right <= of and of >= 1,
    and for a level outside (0, 1).

    >>> [round(end, 3) for end in proportion_interval(31, 31)]
    [0.888, 1.0]
    >>> [round(end, 3) for end in proportion_interval(5, 20)]
    [0.087, 0.491]

    Clopper and Pearson, 1934.
    """
    counts = _whole(right), _whole(of)
    if counts[0] is None or counts[1] is None or not 0 <= counts[0] <= counts[1] or counts[1] < 1:
        raise RequestError(
            "a proportion needs two whole numbers, how many are right and of how many (at least 1);"
            f" got {right!r} and {of!r}"
        )
    if not isinstance(level, float) or not 0 < level < 1:
        raise RequestError(f"the level of an interval lies between 0 and 1; got {level!r}")
    return _beta_ends(counts[0], counts[1], level)


def weighted_interval(
    right: Sequence[int], of: Sequence[int], weights: Sequence[float], level: float = 0.95
) -> tuple[float, float]:
    """Return an interval for the share of right answers when groups of examples have different weights.

    In group g, right_g of of_g answers are right, and each answer has the weight w_g; the weights of all
    answers sum to 1. The interval is that of a beta distribution with the mean and the variance of the
    weighted sum (y = sum_g w_g c_g):

    L(c) = B^-1(tail; y / s, (1 - y) / s + 1),    s = sum_g w_g^2 c_g / y
    U(c) = the same at 1 - tail, with one more event of the largest weight in both sums

    Each end is the wider of those from the right and from the wrong answers: L(right) or 1 - U(wrong) below,
    U(right) or 1 - L(wrong) above. If all examples have the same weight, this is `proportion_interval`. The
    interval is never a single point.

    >>> [round(end, 3) for end in weighted_interval([31, 4], [31, 4], [0.5 / 31, 0.5 / 4])]
    [0.631, 1.0]

    Fay & Feuer, 1997, for weighted sums of Poisson counts; adapted here to bounded counts.
    """
    if len(set(weights)) == 1:
        return proportion_interval(sum(right), sum(of), level)
    wrong = [whole - hits for hits, whole in zip(right, of, strict=True)]
    tail = (1 - level) / 2
    low = min(_end(right, weights, tail), 1 - _end(wrong, weights, 1 - tail))
    high = max(_end(right, weights, 1 - tail), 1 - _end(wrong, weights, tail))
    return max(0.0, low), min(1.0, high)


def clustered_interval(
    right: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], examples: int, level: float = 0.95
) -> tuple[float, float]:
    """Return an interval for the share of right answers when examples come in groups that are drawn whole.

    Group g adds `right` r_g of the `weights` w_g of its examples, which sum to 1 over all groups. With p the
    sum of r_g, the interval is the exact one of a proportion, of as many examples as independent ones would
    be as certain as these groups:

    n* = p (1 - p) / v (t_(n-1) / t_(G-1))^2,    v = G / (G - 1) sum_g (r_g - p w_g)^2,

    at most n, the number of `examples`, and at least one; t are Student's quantiles for n examples and G
    groups. If all answers are right, or all are wrong, nothing tells how alike the examples of a group are:
    n* is then 1 / sum_g w_g^2, the number of groups of one size. Groups of one example each, of equal weight,
    are left to `proportion_interval`.

    >>> import numpy as np
    >>> [round(end, 3) for end in clustered_interval(np.full(31, 1 / 31), np.full(31, 1 / 31), 310)]
    [0.888, 1.0]

    Korn & Graubard, 1998.
    """
    import numpy as np
    from scipy.special import stdtrit

    groups = len(weights)
    share = min(1.0, max(0.0, float(right.sum())))
    if groups == examples and np.allclose(weights, 1 / groups):
        return proportion_interval(round(share * examples), examples, level)
    if groups < 2:
        return 0.0, 1.0
    deviations = right - share * weights
    variance = groups / (groups - 1) * float(deviations @ deviations)
    if variance < 1e-18:
        effective = 1 / float(weights @ weights)
    else:
        tail = (1 - level) / 2
        ratio = float(stdtrit(max(examples - 1, 1), tail) / stdtrit(groups - 1, tail))
        effective = share * (1 - share) / variance * ratio**2
    effective = min(max(effective, 1.0), float(examples))
    return _beta_ends(share * effective, effective, level)


def _beta_ends(hits: float, of: float, level: float) -> tuple[float, float]:
    """Return the ends of the exact interval of a proportion, of counts that need not be whole."""
    from scipy.special import betainccinv, betaincinv

    tail, misses = (1 - level) / 2, max(0.0, of - hits)
    lower = float(betaincinv(hits, misses + 1, tail)) if hits > 1e-12 else 0.0
    upper = float(betainccinv(hits + 1, misses, tail)) if misses > 1e-12 else 1.0
    return lower, upper


def _end(counts: Sequence[int], weights: Sequence[float], quantile: float) -> float:
    """Return one end of the interval for the weighted share of events, from the events alone."""
    from scipy.special import betaincinv

    further = max(weights) if quantile > 0.5 else 0.0
    share = sum(weight * count for weight, count in zip(weights, counts, strict=True)) + further
    if share == 0:
        return 0.0
    each = (
        sum(weight**2 * count for weight, count in zip(weights, counts, strict=True)) + further**2
    ) / share
    others = (1 - share) / each + 1
    return float(betaincinv(share / each, others, quantile)) if others > 1e-9 else 1.0


def _whole(value: object) -> int | None:
    """Return the number as an int, or None if it is not a whole number; a bool does not count as one."""
    if isinstance(value, bool):
        return None
    try:
        whole = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None
    return whole if whole == value else None
