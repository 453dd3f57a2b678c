"""Spearman's rank correlation, with an exact p for samples as small as a set of objectives."""

from __future__ import annotations

import functools
import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from penultimate.errors import RequestError
from penultimate.statistics.summary import numbers

EXACT_UP_TO = 12
"""The most pairs for an exact p, whose distribution costs 2^n n numbers: 0.1 s at n = 12."""


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho of n pairs, two-sided p values and an interval; undefined values are NaN.

    `p_t` comes from the t approximation, and `p_exact` from all n! orders (None above 12 pairs); `low` and
    `high` are the ends of an approximate 95 % interval. `p` is the exact value if there is one, else `p_t`.
    """

    rho: float
    n: int
    p_t: float
    p_exact: float | None
    low: float
    high: float

    @property
    def p(self) -> float:
        return self.p_t if self.p_exact is None else self.p_exact


def spearman(
    x: Iterable[float], y: Iterable[float], confidence: float = 0.95, exact: bool = True
) -> Correlation:
    """Return the correlation of the ranks of x and y, where equal values share the mean of their ranks.

    rho = sum_i a_i b_i / sqrt(sum_i a_i^2 sum_i b_i^2),    a, b: the ranks less (n + 1)/2
    p_t: rho sqrt((n - 2)/(1 - rho^2)) under t with n - 2 degrees of freedom (n >= 3)
    p_exact: the share of the n! orders of b whose |sum_i a_i b_i| is at least the observed one
    interval: tanh(artanh rho +- z sqrt((1 + rho^2/2)/(n - 3))) (n >= 4, |rho| < 1)

    If all x or all y are equal, rho does not exist and every value is NaN. With `exact=False`, `p_exact` is
    not computed. Raise RequestError if the lengths differ, if there are fewer than two pairs, or if a value
    is not finite (the error names the pair).

    >>> spearman([0.35, 0.42, 0.60, 0.85], [75.9, 74.3, 70.2, 71.0])
    Correlation(rho=-0.8, n=4, p_t=0.19..., p_exact=0.33..., low=-0.99..., high=0.81...)

    Kornblith et al., 2021, section 3.4; the interval: Bonett and Wright, 2000.
    """
    first, second = numbers(x, "values to correlate"), numbers(y, "values to correlate")
    n = len(first)
    if n != len(second):
        raise RequestError(f"a rank correlation takes pairs; got {n} and {len(second)} values")
    if n < 2:
        raise RequestError(f"a rank correlation takes two pairs or more; got {n}")
    for position, pair in enumerate(zip(first, second, strict=True)):
        if not all(map(math.isfinite, pair)):
            raise RequestError(f"pair {position} is {pair}: leave out what was not measured")
    if not 0 < confidence < 1:
        raise RequestError(f"the confidence of an interval lies between 0 and 1; got {confidence!r}")
    a, b = _centred_ranks(first), _centred_ranks(second)
    size = sum(v * v for v in a) * sum(v * v for v in b)
    if size == 0:
        return Correlation(math.nan, n, math.nan, math.nan, math.nan, math.nan)
    covariance = sum(v * w for v, w in zip(a, b, strict=True))
    p_exact = _exact_p(a, b, abs(covariance)) if exact and n <= EXACT_UP_TO else None
    if covariance * covariance == size:
        rho, p_t = math.copysign(1.0, covariance), 0.0 if n > 2 else math.nan
        return Correlation(rho, n, p_t, p_exact, math.nan, math.nan)
    from scipy.special import stdtr

    rho = covariance / math.sqrt(size)
    p_t = 2 * float(stdtr(n - 2, -abs(rho) * math.sqrt((n - 2) / ((1 - rho) * (1 + rho)))))
    reach = math.nan
    if n > 3:
        reach = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt((1 + rho * rho / 2) / (n - 3))
    low, high = math.tanh(math.atanh(rho) - reach), math.tanh(math.atanh(rho) + reach)
    return Correlation(rho, n, p_t, p_exact, low, high)


@dataclass(frozen=True)
class WithoutTwo:
    """How far rho moves when two pairs are left out.

    `low` and `high` are its range over all choices of two; `pair` is the choice that moves rho most, `rho`
    the value without it, and `ties` the number of choices that move rho as far.
    """

    low: float
    high: float
    pair: tuple[int, int]
    rho: float
    ties: int


def leave_two_out(x: Sequence[float], y: Sequence[float]) -> WithoutTwo | None:
    """Return how far Spearman's rho moves when any two pairs are left out.

    Return None for fewer than five pairs, or if rho does not exist.

    >>> leave_two_out([1, 2, 3, 4, 5, 6], [3, 1, 4, 2, 9, 8])
    WithoutTwo(low=0.0, high=0.8, pair=(4, 5), rho=0.0, ties=1)
    """
    n = len(x)
    if n < 5 or math.isnan(whole := spearman(x, y, exact=False).rho):
        return None
    kept = {
        pair: [place for place in range(n) if place not in pair]
        for pair in itertools.combinations(range(n), 2)
    }
    rhos = {
        pair: spearman([x[i] for i in places], [y[i] for i in places], exact=False).rho
        for pair, places in kept.items()
    }
    found = {pair: rho for pair, rho in rhos.items() if not math.isnan(rho)}
    if not found:
        return None
    moved = {pair: round(abs(rho - whole), 9) for pair, rho in found.items()}
    most = max(moved, key=moved.__getitem__)
    return WithoutTwo(
        min(found.values()), max(found.values()), most, found[most], [*moved.values()].count(moved[most])
    )


def _centred_ranks(values: list[float]) -> list[int]:
    """Return twice the ranks minus n + 1: whole numbers even for shared ranks, so sums compare exactly."""
    ascending, n = sorted(values), len(values)
    return [bisect_left(ascending, value) + bisect_right(ascending, value) - n for value in values]


def _exact_p(a: list[int], b: list[int], observed: int) -> float:
    """Return the share of orders pi with |sum_i a_i b_pi(i)| >= observed."""
    counts = _counts_of_sums(tuple(sorted(a)), tuple(sorted(b)))
    bound = len(counts) // 2
    extreme = [*counts[: bound + 1 - observed], *counts[max(bound + observed, bound + 1) :]]
    return sum(extreme) / math.factorial(len(a))


@functools.lru_cache(maxsize=64)
def _counts_of_sums(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many orders pi have each sum_i a_i b_pi(i), zero in the middle, without visiting all n!.

    The row of `counts` for a set s of elements of b is the distribution of the sum over the first |s|
    elements of a, matched to s in every order. Adding an element j to a set shifts its distribution by a_i
    b_j. The counts depend on the ranks alone. Studies of one size share few rankings, so they are cached.
    """
    import numpy as np

    n = len(a)
    # Every partial sum stays within this bound, by the Cauchy-Schwarz inequality.
    bound = math.isqrt(sum(v * v for v in a) * sum(v * v for v in b))
    width = 2 * bound + 1
    subsets = np.arange(1 << n)
    sizes = sum((subsets >> j) & 1 for j in range(n))
    sets, counts = subsets[:1], np.zeros((1, width), np.int64)
    counts[0, bound] = 1
    for i in range(n):
        larger = subsets[sizes == i + 1]
        grown = np.zeros((len(larger), width), np.int64)
        for j in range(n):
            free = (sets >> j) & 1 == 0
            target = np.searchsorted(larger, sets[free] | (1 << j))
            step = a[i] * b[j]
            if step >= 0:
                grown[target, step:] += counts[free, : width - step]
            else:
                grown[target, :step] += counts[free, -step:]
        sets, counts = larger, grown
    return tuple(counts[0].tolist())
