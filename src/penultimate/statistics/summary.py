"""A value over several runs: its mean and the standard error of that mean."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from penultimate.errors import RequestError


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
        if self.n < 1 or not math.isfinite(self.mean) or self.standard_error < 0:
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
    """
    if isinstance(values, MeanWithError):
        return values
    runs = numbers(values, "runs")
    n = len(runs)
    if not runs:
        raise RequestError("the mean of no runs: at least one value is needed")
    for place, value in enumerate(runs):
        if not math.isfinite(value):
            raise RequestError(f"run {place} of {n} has the value {value}: leave diverged runs out")
    middle = math.fsum(runs) / n
    if n == 1:
        return MeanWithError(middle, math.nan, 1)
    squares = math.fsum((value - middle) ** 2 for value in runs)
    return MeanWithError(middle, math.sqrt(squares / (n - 1) / n), n)


def numbers(values: Iterable[float], what: str) -> list[float]:
    """Return the values as floats; raise RequestError for anything but numbers."""
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise RequestError(f"{what} must be a list of numbers: {error}") from None


def mean(values: Runs) -> float:
    """Return the mean of the runs.

    >>> mean([1.0, 2.0, 6.0])
    3.0
    """
    return summarise(values).mean
