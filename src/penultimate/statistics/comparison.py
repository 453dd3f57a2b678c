"""Which entries of a column are beaten: the rule of significance that all tables and verdicts share."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from penultimate.errors import RequestError

_Seed = TypeVar("_Seed", bound=Hashable)

LEVEL = 0.05
LEAST_RUNS = 3
"""The fewest runs to test: one run shows no spread, and two leave a t-test a single degree of freedom."""
ROUNDING = 1e-12
"""Differences that vary by less than this share of the largest value are taken to be equal."""
POWER, MOST_SEEDS = 0.9, 10_000
"""The usual aim, that nine studies of ten find a difference that exists; and the most seeds to try."""


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


class Bold(NamedTuple):
    """The bold entries of a column, and the p values of its pairwise comparisons.

    `p_values[a][b]` is twice the one-sided p of the null hypothesis that b is no better than a, corrected for
    the number of comparisons of a. Pairs that cannot be tested are missing.
    """

    entries: frozenset[str]
    p_values: Mapping[str, Mapping[str, float]]


def bold(column: Mapping[str, Mapping[_Seed, float]], higher_is_better: bool = True) -> Bold:
    """Return the entries of a column that no other entry beats beyond chance.

    `column` maps names to runs by seed. Two entries are compared within the seeds that both have, because
    runs of the same seed share what the seed decides, such as a draw of the data:

    d_s = x_bs - x_as,    t = mean d / (s_d / sqrt(n)),    df = n - 1

    An entry is beaten if the one-sided p of one of its comparisons, corrected by Holm for all of them, is at
    most LEVEL / 2. If one entry is ahead of every other in uncorrected tests, it alone is bold: a claim that
    needs all the tests to succeed needs no correction. Pairs with fewer than three common seeds, or with the
    same difference in all seeds, cannot be tested; an entry without any test is not bold.

    >>> softmax, sigmoid = {0: 70.0, 1: 75.0, 2: 80.0}, {0: 71.1, 1: 75.9, 2: 81.0}
    >>> found = bold({"softmax": softmax, "sigmoid": sigmoid})
    >>> sorted(found.entries), round(found.p_values["softmax"]["sigmoid"], 4)
    (['sigmoid'], 0.0033)
    >>> bold({"softmax": {0: 70.0}, "sigmoid": {0: 71.1}}).entries
    frozenset()

    Student, 1908; Holm, 1979.
    """
    by_themselves: dict[str, dict[str, float]] = {name: {} for name in column}
    for worse, better in itertools.permutations(column, 2):
        pair = (column[better], column[worse]) if higher_is_better else (column[worse], column[better])
        p = _p_above(*pair)
        if p is not None:
            by_themselves[worse][better] = p
    corrected = {name: dict(zip(of, holm([*of.values()]), strict=True)) for name, of in by_themselves.items()}
    leaders = [
        name
        for name in column
        if len(column) > 1
        and all(by_themselves[other].get(name, 1.0) <= LEVEL / 2 for other in {*column} - {name})
    ]
    unbeaten = [name for name, of in corrected.items() if of and min(of.values()) > LEVEL / 2]
    p_values = {name: {other: min(1.0, 2 * p) for other, p in of.items()} for name, of in corrected.items()}
    return Bold(frozenset(leaders or unbeaten), p_values)


def _p_above(better: Mapping[_Seed, float], worse: Mapping[_Seed, float]) -> float | None:
    """Return the one-sided p that the first is no higher, or None if nothing can be tested."""
    seeds = [seed for seed in worse if seed in better]
    n = len(seeds)
    if n < LEAST_RUNS:
        return None
    gains = [better[seed] - worse[seed] for seed in seeds]
    mean = math.fsum(gains) / n
    error = math.sqrt(math.fsum((gain - mean) ** 2 for gain in gains) / (n - 1) / n)
    if error <= ROUNDING * max(abs(runs[seed]) for runs in (better, worse) for seed in seeds):
        return None
    from scipy.special import stdtr

    return float(stdtr(n - 1, -mean / error))


def power(difference: float, spread: float, seeds: int, comparisons: int = 1) -> float:
    """Return the probability of finding a difference between two objectives that are compared within seeds.

    P(T > t), T noncentral t with n - 1 degrees of freedom and difference / spread * sqrt(n),
    t the quantile of Student's t at 1 - LEVEL / (2 comparisons)

    `spread` is the standard deviation, over seeds, of the difference within a seed, in the same unit as
    `difference`. With several comparisons, the level is that of the first step of Holm's correction, which is
    the strictest. Raise RequestError for a spread that is not positive, or fewer than two seeds.

    >>> round(power(0.5, spread=0.265, seeds=9, comparisons=8), 3)
    0.938

    Student, 1908; Holm, 1979.
    """
    from scipy.special import nctdtr, stdtrit

    if not (math.isfinite(difference) and 0 < spread < math.inf and seeds >= 2 and comparisons >= 1):
        raise RequestError(
            "a test needs a difference, a positive spread of such differences, two seeds and one comparison;"
            f" got {difference}, {spread}, {seeds} and {comparisons}"
        )
    quantile = float(stdtrit(seeds - 1, 1 - LEVEL / (2 * comparisons)))
    expected = difference / spread * math.sqrt(seeds)
    found = 1 - float(nctdtr(seeds - 1, expected, quantile))
    return found if math.isfinite(found) else float(expected > quantile)  # SciPy gives up this far out


def seeds_needed(difference: float, spread: float, comparisons: int = 1, aim: float = POWER) -> int | None:
    """Return the smallest number of seeds whose `power` reaches the aim, or None if ten thousand do not.

    >>> seeds_needed(0.5, spread=0.265, comparisons=8), seeds_needed(0.5, spread=0.486, comparisons=8)
    (9, 20)
    """
    if not difference > 0:
        raise RequestError(f"a difference above 0 is expected; got {difference}")
    reaches = lambda seeds: power(difference, spread, seeds, comparisons) >= aim  # noqa: E731
    found = 2 + bisect_left(range(2, MOST_SEEDS + 1), True, key=reaches)
    return found if found <= MOST_SEEDS else None
