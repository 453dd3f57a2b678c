"""A value over several runs: its mean and the standard error of that mean."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from penultimate.errors import RequestError

LARGEST = 1e300
"""The largest valid value: sums of larger ones may overflow, and a run that reached one has diverged."""


@dataclass(frozen=True)
class MeanWithError:
    """The mean and standard error of n runs, as computed by `summarise` or as printed in a paper.

    The standard error of a single run is NaN, and `is_single` is then True.

    >>> MeanWithError(mean=77.0, standard_error=0.06, n=8).is_single
    False
    """

    mean: float
    standard_error: float
    n: int

    def __post_init__(self) -> None:
        error = self.standard_error
        if self.n < 1 or not abs(self.mean) <= LARGEST or error < 0 or error > LARGEST:
            raise RequestError(f"{self}: expected n >= 1, a finite mean and no negative standard error")

    @property
    def is_single(self) -> bool:
        """Whether there is a single run, so that the variation between runs is unknown."""
        return self.n == 1


Runs: TypeAlias = MeanWithError | Iterable[float]
"""The input of a test: the values of the runs, or their summary."""


def summarise(values: Runs) -> MeanWithError:
    """Return the mean of the runs and its standard error s / sqrt(n), s^2 = sum_i (x_i - mean)^2 / (n - 1).

    Raise RequestError if there is no value, or if one is not finite (leave out diverged runs, and say so).

    >>> summarise([77.1, 76.9, 77.0, 77.0])
    MeanWithError(mean=77.0, standard_error=0.0408..., n=4)
    >>> summarise([77.1])
    MeanWithError(mean=77.1, standard_error=nan, n=1)

    Kornblith et al., 2021, table 3.
    """
    if isinstance(values, MeanWithError):
        return values
    runs = numbers(values, "runs")
    if not runs:
        raise RequestError("the mean of no runs: at least one value is needed")
    for position, value in enumerate(runs):
        if not abs(value) <= LARGEST:
            raise RequestError(
                f"run {position} of {len(runs)} has the value {value}: leave diverged runs out"
            )
    n = len(runs)
    middle = math.fsum(runs) / n
    if n == 1:
        return MeanWithError(middle, math.nan, 1)
    apart = [value - middle for value in runs]
    unit = unit_of(apart)
    squares = math.fsum((value / unit) ** 2 for value in apart)
    return MeanWithError(middle, unit * math.sqrt(squares / (n - 1) / n), n)


def unit_of(values: Iterable[float]) -> float:
    """Return a power of two near the largest absolute value.

    Dividing by it changes no digit, and the squares of the quotients neither overflow nor underflow.

    >>> unit_of([-5e200, 3.0]) ** 0.5 > 1e100, unit_of([])
    (True, 0.5)
    """
    return math.ldexp(1.0, max(math.frexp(max(map(abs, values), default=0.0))[1] - 1, -1022))


def numbers(values: Iterable[float], what: str) -> list[float]:
    """Return the values as floats; raise RequestError for anything but numbers."""
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise RequestError(f"{what} must be a list of numbers: {error}") from None


def mean(values: Runs) -> float:
    """Return the mean of the runs.

    >>> mean([1.0, 2.0, 6.0])
    3.0
    """
    return summarise(values).mean


def standard_error(values: Runs) -> float:
    """Return the standard error of the mean of the runs, which is NaN for a single run.

    >>> standard_error([1.0, 3.0])
    1.0
    """
    return summarise(values).standard_error
