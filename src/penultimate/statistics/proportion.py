"""The interval of a proportion, such as an accuracy: exact, so it holds for small counts too."""

from __future__ import annotations

from penultimate.errors import RequestError


def proportion_interval(right: int, of: int, level: float = 0.95) -> tuple[float, float]:
    """Return the lower and the upper end of the exact interval for the proportion behind `right` of `of`.

    P(X >= right | lower) = P(X <= right | upper) = (1 - level) / 2,    X binomial of `of` trials

    The lower end is 0 where `right` is 0, and the upper end is 1 where all are right. The interval covers
    the true proportion at least as often as the level says, whatever the count; it is never a single point.

    Raises RequestError for counts that are not whole numbers with 0 <= right <= of and of >= 1, and for a
    level outside (0, 1).

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


def _whole(value: object) -> int | None:
    """Return the number as an int, or None where it is not a whole number (a bool is none)."""
    if isinstance(value, bool):
        return None
    try:
        whole = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None
    return whole if whole == value else None
