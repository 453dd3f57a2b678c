"""Confidence intervals of a proportion, such as an accuracy, that hold for small counts too."""

from __future__ import annotations

from collections.abc import Sequence

from penultimate.errors import RequestError


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
    from scipy.special import betainccinv, betaincinv

    hits, misses = counts[0], counts[1] - counts[0]
    tail = (1 - level) / 2
    lower = float(betaincinv(hits, misses + 1, tail)) if hits else 0.0
    upper = float(betainccinv(hits + 1, misses, tail)) if misses else 1.0
    return lower, upper


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
