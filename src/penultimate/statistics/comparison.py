"""Which entries of a column are beaten: the rule of significance that all tables and verdicts share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from penultimate.errors import RequestError
from penultimate.statistics.summary import numbers, summarise

_Seed = TypeVar("_Seed", bound=Hashable)

LEVEL = 0.05
LEAST_RUNS = 3
"""The fewest runs to test: one run shows no spread, and two leave a t-test a single degree of freedom."""
ROUNDING = 1e-12
"""Differences that vary by less than this share of the largest value are taken to be equal."""


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for the number of tests, m.

    p'_(i) = max_{j <= i} min(1, (m - j + 1) p_(j)),    p_(1) <= p_(2) <= ...

    Rejecting every hypothesis with p' <= a makes any error at all with probability at most a, however the
    tests depend on each other.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]

    Holm, 1979.
    """
    corrected = [1.0] * len(p_values)
    so_far = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        so_far = max(so_far, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = so_far
    return corrected


@dataclass(frozen=True)
class Bold:
    """The bold entries of a column, and the p values of its pairwise comparisons.

    `p_values[a][b]` is twice the one-sided p of the null hypothesis that b is no better than a, corrected for
    the number of comparisons of a. Pairs that cannot be tested are missing.
    """

    entries: frozenset[str]
    p_values: Mapping[str, Mapping[str, float]]

    def __contains__(self, name: object) -> bool:
        return name in self.entries


def bold(
    column: Mapping[str, Mapping[_Seed, float]], higher_is_better: bool = True, level: float = LEVEL
) -> Bold:
    """Return the entries of a column that no other entry beats beyond chance.

    `column` maps names to runs by seed. Two entries are compared within the seeds that both have, because
    runs of the same seed share what the seed decides, such as a draw of the data:

    d_s = x_bs - x_as,    t = mean d / (s_d / sqrt(n)),    df = n - 1

    An entry is beaten if the one-sided p of one of its comparisons, corrected by Holm for all of them, is at
    most level / 2. If one entry is ahead of every other in uncorrected tests, it alone is bold: a claim that
    needs all the tests to succeed needs no correction. Pairs with fewer than three common seeds, or with the
    same difference in all seeds, cannot be tested; an entry without any test is not bold.

    Raise RequestError for a level outside (0, 1), or for a value that is not a finite number.

    >>> softmax, sigmoid = {0: 70.0, 1: 75.0, 2: 80.0}, {0: 71.1, 1: 75.9, 2: 81.0}
    >>> found = bold({"softmax": softmax, "sigmoid": sigmoid})
    >>> sorted(found.entries), round(found.p_values["softmax"]["sigmoid"], 4)
    (['sigmoid'], 0.0033)
    >>> bold({"softmax": {0: 70.0}, "sigmoid": {0: 71.1}}).entries
    frozenset()

    Student, 1908; Holm, 1979.
    """
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise RequestError(f"the level of a test lies between 0 and 1; got {level!r}")
    sign = 1 if higher_is_better else -1
    runs = {
        name: dict(
            zip(of, (sign * value for value in numbers(of.values(), f"runs of '{name}'")), strict=True)
        )
        for name, of in column.items()
    }
    by_themselves: dict[str, dict[str, float]] = {name: {} for name in runs}
    for worse, better in ((a, b) for a in runs for b in runs if a != b):
        p = _p_above(runs[better], runs[worse])
        if p is not None:
            by_themselves[worse][better] = p
    corrected = {
        name: dict(zip(of, holm(list(of.values())), strict=True)) for name, of in by_themselves.items()
    }
    leaders = [
        name
        for name in runs
        if len(runs) > 1
        and all(by_themselves[other].get(name, 1.0) <= level / 2 for other in {*runs} - {name})
    ]
    unbeaten = [name for name, of in corrected.items() if of and min(of.values()) > level / 2]
    p_values = {name: {other: min(1.0, 2 * p) for other, p in of.items()} for name, of in corrected.items()}
    return Bold(frozenset(leaders or unbeaten), p_values)


def _p_above(better: Mapping[_Seed, float], worse: Mapping[_Seed, float]) -> float | None:
    """Return the one-sided p of the null hypothesis that the first is no higher than the second.

    Return None if nothing can be tested.
    """
    seeds = [seed for seed in worse if seed in better]
    if len(seeds) < LEAST_RUNS:
        return None
    summary = summarise([better[seed] - worse[seed] for seed in seeds])
    largest = max(abs(runs[seed]) for runs in (better, worse) for seed in seeds)
    if summary.standard_error <= ROUNDING * largest:
        return None
    from scipy.special import stdtr

    return float(stdtr(summary.n - 1, -summary.mean / summary.standard_error))
