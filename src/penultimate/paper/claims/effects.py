"""Effects: estimates with intervals and p values, each signed so that a claim says, or denies, that it is
positive."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from penultimate.paper.claims.filed import (
    FAR,
    LEAST_RHO,
    LEAST_RUNS,
    ONE_SIDED,
    RESAMPLES,
    SPREAD_RESAMPLES,
    TAIL,
)
from penultimate.results.text import fixed, p_value, signed
from penultimate.statistics import holm, page_p, spearman

Array: TypeAlias = "npt.NDArray[np.float64]"
Runs: TypeAlias = Mapping[int, float]
"""Values by seed."""
Z = NormalDist().inv_cdf(1 - ONE_SIDED)


class Unit(NamedTuple):
    """The unit of an effect: words around its number, and its decimals.

    >>> Unit("{} points of linear transfer").of(0.234), Unit("ρ = {}").of(-0.5)
    ('+0.23 points of linear transfer', 'ρ = −0.50')
    """

    text: str
    digits: int = 2
    has_sign: bool = True

    def of(self, value: float) -> str:
        """Return a value with its unit."""
        return self.text.format((signed if self.has_sign else fixed)(value, self.digits))


RHO = Unit("ρ = {}")
OF_RATIO: dict[str, Any] = {"unit": Unit("a ratio of {}", has_sign=False), "sign": -1, "offset": FAR}


@dataclass(frozen=True)
class Effect:
    """An estimate with its interval, the smallest effect that counts, and the two one-sided p values.

    `p_for` is against "no effect, or the opposite one", `p_against` against "an effect that counts". `n` is
    the number of seeds or objectives behind it, `tested` whether they are enough, and `denied` whether the
    claim says that there is no such effect. Readers see `offset + sign * estimate` in `unit`; without a unit
    they see nothing.
    """

    estimate: float
    low: float
    high: float
    margin: float
    p_for: float
    p_against: float
    n: int = 0
    tested: bool = True
    name: str = ""
    unit: Unit | None = None
    denied: bool = False
    sign: int = 1
    offset: float = 0.0

    @property
    def p(self) -> float:
        """Twice the one-sided p of the claimed effect, as a two-sided test would report it."""
        return min(1.0, 2 * self.p_for)

    @property
    def text(self) -> str:
        """The name, the estimate with its unit, and its interval, if there is one."""
        if self.unit is None:
            return ""
        value, low, high = (self.offset + self.sign * end for end in (self.estimate, self.low, self.high))
        interval = f" ({span(low, high, self.unit.digits)})" if math.isfinite(low) and low != high else ""
        return f"{f'{self.name}, ' if self.name else ''}{self.unit.of(value)}{interval}"

    @property
    def counts_from(self) -> str:
        """The smallest effect that counts, without a sign."""
        least = abs(self.offset + self.sign * self.margin)
        return self.unit.text.format(fixed(least, self.unit.digits)) if self.unit else ""

    def as_p(self, against: bool = False) -> str:
        """Return the two-sided p of the effect, or that of an effect that counts."""
        return p_value(min(1.0, 2 * self.p_against) if against else self.p)


def span(one: float, other: float, digits: int) -> str:
    """Return the ends of an interval, the lower one first.

    >>> span(-0.675, -0.987, 2)
    '−0.99 to −0.68'
    """
    low, high = sorted((one, other))
    return f"{fixed(low, digits)} to {fixed(high, digits)}"


def exact(estimate: float, margin: float, **shown: Any) -> Effect:
    """Return the effect of printed means, which are taken as they stand: its interval is the estimate."""
    p_for, p_against = float(estimate <= 0), float(estimate >= margin)
    return Effect(estimate, estimate, estimate, margin, p_for, p_against, **shown)


def unknown(estimate: float, margin: float, n: int = 0, **shown: Any) -> Effect:
    """Return an effect of which chance is not known, so that it decides nothing."""
    return Effect(estimate, -math.inf, math.inf, margin, 1.0, 1.0, n, tested=False, **shown)


def by_t(estimate: float, error: float, degrees: float, margin: float, **shown: Any) -> Effect:
    """Return the effect of an estimate whose error has a t distribution.

    >>> effect = by_t(1.8, 0.3, 5, margin=0.5)
    >>> round(effect.low, 2), round(effect.high, 2)
    (1.03, 2.57)
    """
    from scipy.special import stdtr, stdtrit

    reach = float(stdtrit(degrees, 1 - ONE_SIDED)) * error
    p_for = float(stdtr(degrees, -estimate / error))
    p_against = float(stdtr(degrees, (estimate - margin) / error))
    return Effect(estimate, estimate - reach, estimate + reach, margin, p_for, p_against, **shown)


def of_mean(values: Iterable[float], margin: float = 0.0, **shown: Any) -> Effect:
    """Return the effect that a mean over seeds is above zero, by t; unknown for one value or equal ones.

    >>> effect = of_mean([1.1, 0.9, 1.0], margin=0.3)
    >>> round(effect.low, 2), round(effect.high, 2), effect.n, effect.tested
    (0.75, 1.25, 3, True)
    """
    numbers = [round(value, 9) for value in values]
    n = len(numbers)
    mean = math.fsum(numbers) / n if n else math.nan
    if n < 2 or len({*numbers}) == 1:
        return unknown(mean, margin, n, **shown)
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in numbers) / (n - 1) / n)
    return by_t(mean, error, n - 1, margin, n=n, tested=n >= LEAST_RUNS, **shown)


def of_independent(
    groups: Sequence[Runs], weights: Sequence[float], margin: float = 0.0, **shown: Any
) -> Effect:
    """Return the effect sum_i w_i mean_i of independent groups; weights (1, -1) give Welch's comparison.

    se^2 = sum_i w_i^2 e_i^2,    df = se^4 / sum_i [w_i^4 e_i^4 / (n_i - 1)],    e_i: standard errors

    Without a spread in each group, such as that of printed means without an error, it is exact.

    Welch, 1947; Satterthwaite, 1946.
    """
    values = [np.array([*group.values()]) for group in groups]
    estimate = math.fsum(w * float(of.mean()) for of, w in zip(values, weights, strict=True))
    if any(len(of) < 2 for of in values):
        return exact(round(estimate, 9), margin, **shown)
    terms = [w**2 * float(of.var(ddof=1)) / len(of) for of, w in zip(values, weights, strict=True)]
    variance = math.fsum(terms)
    degrees = variance**2 / math.fsum(term**2 / (len(of) - 1) for term, of in zip(terms, values, strict=True))
    return by_t(estimate, math.sqrt(variance), degrees, margin, n=min(map(len, values)), **shown)


def of_trend(blocks: Sequence[Sequence[float]], sign: int) -> Effect | None:
    """Return the effect sign * mean_s rho_s, where rho_s is that of block s [k] with the positions.

    p_for is Page's: L = sum_s sum_j j R_sj against all orders within blocks. The
    interval and p_against are Fisher's for the mean of the blocks' artanh rho_s, where each rho_s is kept
    half a step away from +-1:

        se^2 = (1 + m^2/2) / (n (k - 3)),    m = tanh(mean_s artanh rho_s)

    Returns None with fewer than four positions, or if the values of a block are all equal.

    >>> effect = of_trend([[1, 2, 3, 4, 5], [1, 2, 3, 5, 4], [2, 1, 3, 4, 5]], sign=1)
    >>> round(effect.estimate, 2), round(effect.p_for, 5)
    (0.93, 4e-05)

    Page, 1963.
    """
    n, k = len(blocks), len(blocks[0])
    if k < 4 or any(len({*values}) == 1 for values in blocks):
        return None
    if n == 1:
        return of_ranks(range(k), blocks[0], sign)
    rhos = [sign * spearman(range(k), values, exact=False).rho for values in blocks]
    nearest = 1 - 6 / (k**3 - k)
    centre = math.fsum(math.atanh(max(-nearest, min(nearest, rho))) for rho in rhos) / n
    error = math.sqrt((1 + math.tanh(centre) ** 2 / 2) / (n * (k - 3)))
    estimate = math.fsum(rhos) / n
    low, high = min(estimate, math.tanh(centre - Z * error)), max(estimate, math.tanh(centre + Z * error))
    p_for = page_p([[sign * value for value in values] for values in blocks])
    p_against = NormalDist().cdf((centre - math.atanh(LEAST_RHO)) / error)
    return Effect(estimate, low, high, LEAST_RHO, p_for, p_against, n, unit=Unit("mean ρ = {}"), sign=sign)


def of_ranks(
    x: Sequence[float],
    y: Sequence[float],
    sign: int,
    over_seeds: tuple[float, float] | None = None,
    **shown: Any,
) -> Effect | None:
    """Return the effect sign * rho, where rho is Spearman's correlation of x and y [n].

    At either end, its interval is the wider one of `over_seeds` (an interval of rho) and of that over
    objectives:

        tanh(artanh r +- z sqrt((1 + rho^2/2)/(n - 3)))

    with r = rho, kept half a step of its scale, 6/(n^3 - n), away from +-1. p_for is half the two-sided p of
    `spearman` (exact up to 12 pairs), p_against that of artanh r against artanh m. Returns None with fewer
    than four pairs, or if all x or all y are equal.

    >>> effect = of_ranks([0.35, 0.42, 0.46, 0.60, 0.64, 0.85], [76, 74, 75, 71, 66, 55], sign=-1)
    >>> round(effect.estimate, 2), round(effect.p, 3)
    (0.94, 0.017)

    Bonett and Wright, 2000.
    """
    ranks = spearman(x, y) if len(x) > 3 else None
    if ranks is None or math.isnan(ranks.rho):
        return None
    rho, n = sign * ranks.rho, ranks.n
    nearest = 1 - 6 / (n**3 - n)
    centre = math.atanh(max(-nearest, min(nearest, rho)))
    error = math.sqrt((1 + rho * rho / 2) / (n - 3))
    low, high = math.tanh(centre - Z * error), math.tanh(centre + Z * error)
    if over_seeds is not None:
        ends = sorted(sign * end for end in over_seeds)
        low, high = min(low, ends[0]), max(high, ends[1])
    p_for = ranks.p / 2 if rho > 0 else 1 - ranks.p / 2
    p_against = NormalDist().cdf((centre - math.atanh(LEAST_RHO)) / error)
    return Effect(rho, low, high, LEAST_RHO, p_for, p_against, n, unit=RHO, sign=sign, **shown)


def rho_over_seeds(x: pd.DataFrame, y: pd.DataFrame) -> tuple[float, float]:
    """Return the central 95 % interval of rho of the means of x and y [seed, objective], by a bootstrap.

    A seed is drawn for all objectives at once, since they share its draw of the data; an objective without a
    run of any drawn seed keeps its mean. The result is deterministic.
    """
    seeds = sorted({*x.index, *y.index})
    draws = np.random.default_rng(0).multinomial(
        len(seeds), np.full(len(seeds), 1 / len(seeds)), size=RESAMPLES
    )
    ranks = []
    for side in (x, y):
        found = side.reindex(seeds).to_numpy(dtype=float).T
        present, values = ~np.isnan(found), np.nan_to_num(found)
        weight = draws @ present.T.astype(float)
        means = np.where(weight > 0, draws @ values.T / np.maximum(weight, 1), values.sum(1) / present.sum(1))
        means = np.round(means, 12)  # equal runs, summed in another order, stay equal
        ranks.append(np.sign(means[:, :, None] - means[:, None, :]).sum(2))
    size = np.sqrt((ranks[0] ** 2).sum(1) * (ranks[1] ** 2).sum(1))
    rho = (ranks[0] * ranks[1]).sum(1) / np.maximum(size, 1)
    low, high = np.quantile(rho, [ONE_SIDED, 1 - ONE_SIDED])
    return float(low), float(high)


class Spreads(NamedTuple):
    """The spreads in x and in y, and the squared spreads in every resample [b]."""

    of_x: float
    of_y: float
    drawn_x: Array
    drawn_y: Array


def spreads(x: Array, y: Array, same_tasks: bool) -> Spreads:
    """Return the spread of x [k n t] and of y [k n u]: k objectives, n seeds, t or u tasks.

        v = sum_{s != r} w_s w_r C_sr / sum_{s != r} w_s w_r,    spread = sqrt(max(v, 0))

    C_sr is the covariance, over objectives, of their means over tasks in seed s and in seed r; w_s is how
    often a seed is drawn (once, for the estimate). The noise of a run enters no product of two seeds, and
    what a seed adds to all objectives enters no covariance. Resamples of a single seed are left out. The
    result is deterministic.

    Owen, 2007.
    """

    def variance(values: Array, seeds: Array, tasks: Array) -> Array:
        """Return v [b] of resamples, given how often each draws a seed [b n] and a task [b t]."""
        centred = values - values.mean(0)
        means = np.einsum("bt,knt->bnk", tasks / tasks.sum(1, keepdims=True), centred, optimize=True)
        pairs = seeds[:, :, None] * seeds[:, None, :] * (1 - np.eye(seeds.shape[1]))
        products = ((means @ means.transpose(0, 2, 1)) * pairs).sum((1, 2))
        found: Array = products / pairs.sum((1, 2)) / (len(values) - 1)
        found[found < 0] = 0
        return found

    n, t, u = x.shape[1], x.shape[2], y.shape[2]
    once = np.ones((1, n))
    of_x, of_y = (float(np.sqrt(variance(of, once, np.ones((1, of.shape[2]))))[0]) for of in (x, y))
    random = np.random.default_rng(0)
    seeds, in_x, in_y = (
        random.multinomial(size, np.full(size, 1 / size), size=SPREAD_RESAMPLES).astype(float)
        for size in (n, t, u)
    )
    several = (seeds > 0).sum(1) > 1
    seeds, in_x, in_y = seeds[several], in_x[several], (in_x if same_tasks else in_y)[several]
    return Spreads(of_x, of_y, variance(x, seeds, in_x), variance(y, seeds, in_y))


def of_ratio(x: Array, y: Array, same_tasks: bool, **shown: Any) -> tuple[Spreads, Effect] | None:
    """Return how far the spread of x over that of y is below FAR, or None if y has none beyond chance."""
    found = spreads(x, y, same_tasks)
    if found.of_y <= 1e-9 * float(np.abs(y).max()):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.nan_to_num(np.sqrt(found.drawn_x / found.drawn_y), nan=np.inf, posinf=np.inf)
    above = of_resamples(found.of_x / found.of_y - FAR, drawn - FAR, 0.0)
    ends = FAR - found.of_x / found.of_y, -above.high, -above.low
    facts = {"tested": math.isfinite(above.high), **OF_RATIO, **shown}
    return found, Effect(*ends, 0.0, above.p_against, above.p_for, **facts)


def of_resamples(estimate: float, drawn: Array, margin: float, **shown: Any) -> Effect:
    """Return an effect with the interval and the p values of its resamples [b]."""
    ends = [ONE_SIDED * TAIL, 1 - ONE_SIDED * TAIL]
    low = float(np.quantile(drawn, ends[0], method="inverted_cdf"))
    high = float(np.quantile(drawn, ends[1], method="inverted_cdf"))
    p_for, p_against = (
        min(1.0, (1 + int(beyond.sum())) / (1 + len(drawn)) / TAIL)
        for beyond in (drawn <= 0, drawn >= margin)
    )
    return Effect(estimate, low, high, margin, p_for, p_against, **shown)


def corrected(effects: Mapping[str, Effect]) -> dict[str, Effect]:
    """Return the effects with both p values corrected for their number (Holm)."""
    sides = [holm([getattr(one, side) for one in effects.values()]) for side in ("p_for", "p_against")]
    return {
        name: replace(one, p_for=p_for, p_against=p_against)
        for (name, one), p_for, p_against in zip(effects.items(), *sides, strict=True)
    }
