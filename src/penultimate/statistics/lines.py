"""Straight lines through a few points, and tests that a mean is as good as zero."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from penultimate.errors import RequestError


class StraightLine(NamedTuple):
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

    >>> round(least_squares([0.35, 0.40, 0.45], [81.0, 80.5, 79.0]).slope, 6)
    -20.0
    """
    first, second = [*x], [*y]
    if len(first) < 2 or max(first) - min(first) <= 1e-12 * max(map(abs, first)):
        return None
    middle = math.fsum(first) / len(first), math.fsum(second) / len(second)
    apart = [value - middle[0] for value in first]
    products = math.fsum(a * (b - middle[1]) for a, b in zip(apart, second, strict=True))
    return StraightLine(products / math.fsum(a * a for a in apart), middle)


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
    from scipy.special import stdtr

    if not 0 < margin < math.inf:
        raise RequestError(f"means are equivalent within a margin above zero; got {margin!r}")
    numbers = [*values]
    n = len(numbers)
    if n < 2:
        return None
    mean = math.fsum(numbers) / n
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in numbers) / (n - 1) / n)
    nearest = margin - abs(mean)
    if error == 0:
        return 0.0 if nearest > 0 else 1.0
    return float(stdtr(n - 1, -nearest / error))


def resampled_mean(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Return the two ends of the central interval of a mean when its values are drawn again with repetition.

    Up to six values, all draws are enumerated; of more, ten thousand are drawn, always the same.

    >>> [round(end, 2) for end in resampled_mean([1.0, 2.0, 4.0])]
    [1.22, 3.57]

    Efron, 1979.
    """
    import numpy as np

    given, n = np.array(values, float), len(values)
    every = np.indices((n,) * n).reshape(n, -1).T if n <= 6 else None
    draws = np.random.default_rng(0).integers(0, n, (10_000, n)) if every is None else every
    tail = (1 - confidence) / 2
    low, high = np.quantile(given[draws].mean(1), [tail, 1 - tail])
    return float(low), float(high)


class PartialSlope(NamedTuple):
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
    own. Return None if no degree of freedom is left, or if a column does not vary within groups or follows
    from the others.

    >>> slope, = partial_slopes("aabb", [[1.0, 2.0, 1.0, 3.0]], [5.0, 7.0, 1.0, 6.0])
    >>> round(slope.slope, 2), slope.inflation
    (2.4, 1.0)

    Frisch and Waugh, 1933.
    """
    import numpy as np
    import pandas as pd

    table = pd.DataFrame(np.array([*columns, y], dtype=float).T)
    places = pd.factorize(pd.Series([*groups], dtype=object))[0]
    within = (table - table.groupby(places).transform("mean")).to_numpy()
    x, up = within[:, :-1], within[:, -1]
    degrees = len(up) - len({*places}) - x.shape[1]
    least = 1e-12 * np.abs(table.to_numpy()[:, :-1]).max(initial=0)
    if degrees < 1 or np.linalg.matrix_rank(x, tol=least) < x.shape[1]:
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
