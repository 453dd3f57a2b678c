"""Straight lines through a few points, and tests that a mean is as good as zero."""

from __future__ import annotations

import math
from collections.abc import Iterable
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

    >>> least_squares([0.35, 0.40, 0.45], [81.0, 80.5, 79.0])
    StraightLine(slope=-20.0..., middle=(0.4, 80.16...))
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
    0.24

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
