"""Straight lines through a few points, and tests that a mean is as good as zero."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from penultimate.errors import RequestError
from penultimate.statistics.summary import numbers, summarise


@dataclass(frozen=True)
class StraightLine:
    """A line by its slope and the point of means, through which a line of least squares goes."""

    slope: float
    middle: tuple[float, float]

    def height(self, x: float) -> float:
        """Return y at x.

        >>> StraightLine(slope=2.0, middle=(1.0, 5.0)).height(0.0)
        3.0
        """
        return self.middle[1] + self.slope * (x - self.middle[0])


def least_squares(x: Iterable[float], y: Iterable[float]) -> StraightLine | None:
    """Return the line of least squares through points, or None if fewer than two points differ in x.

    slope = sum_i (x_i - mean x)(y_i - mean y) / sum_i (x_i - mean x)^2

    Raise RequestError if the lengths differ, or if a value is not finite.

    >>> round(least_squares([0.35, 0.40, 0.45], [81.0, 80.5, 79.0]).slope, 6)
    -20.0
    """
    first, second = numbers(x, "values of x"), numbers(y, "values of y")
    if len(first) != len(second):
        raise RequestError(f"a line goes through pairs; got {len(first)} and {len(second)} values")
    if len(first) < 2:
        return None
    middle = summarise(first).mean, summarise(second).mean
    apart = [value - middle[0] for value in first]
    squares = math.fsum(value * value for value in apart)
    if squares <= (1e-12 * max(map(abs, first))) ** 2:
        return None
    products = math.fsum(a * (b - middle[1]) for a, b in zip(apart, second, strict=True))
    return StraightLine(products / squares, middle)


def equivalence(values: Iterable[float], margin: float) -> float | None:
    """Return p of the two one-sided tests that a mean lies between -margin and +margin.

    p = max(P(T <= (mean - margin) / e), P(T >= (mean + margin) / e)),    e = s / sqrt(n),    n - 1 degrees

    The mean is shown to be within the margin if p is at most the level. Return None for a single value, and
    raise RequestError for a margin that is not positive.

    >>> round(equivalence([0.2, -0.1, 0.1, 0.0, -0.2], margin=0.75), 5)
    0.0002...
    >>> round(equivalence([0.6, 0.9, 0.4, 0.8, 0.7], margin=0.75), 2)
    0.23

    Schuirmann, 1987.
    """
    if not (math.isfinite(margin) and margin > 0):
        raise RequestError(f"means are equivalent within a margin above zero; got {margin!r}")
    summary = summarise(list(values))
    if summary.is_single:
        return None
    nearest = margin - abs(summary.mean)
    if summary.standard_error == 0:
        return 0.0 if nearest > 0 else 1.0
    from scipy.special import stdtr

    return float(stdtr(summary.n - 1, -nearest / summary.standard_error))


@dataclass(frozen=True)
class SlopeWithin:
    """The common slope of several blocks, each with a height of its own, and its standard error."""

    slope: float
    standard_error: float
    degrees_of_freedom: int


def slope_within(blocks: Iterable[tuple[Iterable[float], Iterable[float]]]) -> SlopeWithin | None:
    """Return the slope of y on x within blocks [b], each of which has an intercept of its own.

    slope = sum_b Sxy_b / sum_b Sxx_b,    e^2 = (sum_b Syy_b - slope sum_b Sxy_b) / (df sum_b Sxx_b)

    with sums of squares and products around the means of each block, and df = n - b - 1. Return None if x
    does not differ within any block, or without a degree of freedom; raise RequestError as `least_squares`
    does.

    >>> found = slope_within([([0.3, 0.4, 0.5], [81.0, 80.0, 79.2]), ([0.3, 0.4, 0.5], [83.1, 82.2, 81.0])])
    >>> round(found.slope, 2), round(found.standard_error, 2), found.degrees_of_freedom
    (-9.75, 0.61, 3)
    """
    apart: list[tuple[float, float]] = []
    count, largest = 0, 0.0
    for x, y in blocks:
        first, second = numbers(x, "values of x"), numbers(y, "values of y")
        if len(first) != len(second):
            raise RequestError(f"a line goes through pairs; got {len(first)} and {len(second)} values")
        middle = summarise(first).mean, summarise(second).mean
        apart += [(a - middle[0], b - middle[1]) for a, b in zip(first, second, strict=True)]
        count, largest = count + 1, max(largest, *map(abs, first))
    degrees = len(apart) - count - 1
    squares = math.fsum(a * a for a, _ in apart)
    if degrees < 1 or squares <= (1e-12 * largest) ** 2:
        return None
    slope = math.fsum(a * b for a, b in apart) / squares
    rest = math.fsum((b - slope * a) ** 2 for a, b in apart)
    return SlopeWithin(slope, math.sqrt(rest / degrees / squares), degrees)


def resampled_mean(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return the two ends of the central interval of a mean when its values are drawn again with repetition.

    Up to six values, all draws are enumerated; of more, ten thousand are drawn, always the same.

    >>> [round(end, 2) for end in resampled_mean([1.0, 2.0, 4.0])]
    [1.22, 3.57]

    Efron, 1979.
    """
    import numpy as np

    given = np.array(numbers(values, "values to resample"))
    n = len(given)
    if n <= 6:
        draws = np.indices((n,) * n).reshape(n, -1).T
    else:
        draws = np.random.default_rng(0).integers(0, n, (10_000, n))
    tail = (1 - confidence) / 2
    low, high = np.quantile(given[draws].mean(1), [tail, 1 - tail])
    return float(low), float(high)


@dataclass(frozen=True)
class PartialSlope:
    """The slope on one column with the others held, its standard error, and its variance inflation."""

    slope: float
    error: float
    inflation: float
    degrees_of_freedom: int


def partial_slopes(
    groups: Sequence[Hashable], columns: Sequence[Sequence[float]], y: Sequence[float]
) -> list[PartialSlope] | None:
    """Return the slope of y on each column within groups, by least squares on all columns together.

    Columns and y have their group's mean taken off. With X [n k] of those columns, r the residuals and g
    groups,

    b = (X'X)^-1 X'y,    e_j^2 = r'r / (n - g - k) (X'X)^-1_jj,    inflation_j = (X'X)^-1_jj (X'X)_jj

    An inflation of 1 says that a column is unrelated to the others; from about 10, its slope is hardly its
    own. Return None if no degree of freedom is left, or if a column follows from the others.

    >>> slope, = partial_slopes("aabb", [[1.0, 2.0, 1.0, 3.0]], [5.0, 7.0, 1.0, 6.0])
    >>> round(slope.slope, 2), slope.inflation
    (2.4, 1.0)

    Frisch and Waugh, 1933.
    """
    import numpy as np

    places: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    within = np.array([*columns, y], dtype=float).T
    for rows in places.values():
        within[rows] -= within[rows].mean(0)
    x, up = within[:, :-1], within[:, -1]
    degrees = len(up) - len(places) - x.shape[1]
    if degrees < 1 or np.linalg.matrix_rank(x) < x.shape[1]:
        return None
    squares = x.T @ x
    inverse = np.linalg.inv(squares)
    slopes = inverse @ (x.T @ up)
    residuals = up - x @ slopes
    variance = float(residuals @ residuals) / degrees
    return [
        PartialSlope(float(slope), math.sqrt(variance * float(each)), float(each * own), degrees)
        for slope, each, own in zip(slopes, np.diag(inverse), np.diag(squares), strict=True)
    ]
