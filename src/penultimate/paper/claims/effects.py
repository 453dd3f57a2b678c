"""Effects with their intervals, and the one decision from an effect to a verdict that all claims share.

Effects are signed so that every claim says that its effect is positive. With e the estimate, m the smallest
effect that counts and a the one-sided level,

    holds          e >= m, and "no effect, or the opposite one" is rejected at a
    does not hold  "an effect of m or more" is rejected at a
    undecided      otherwise
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

from penultimate.paper.claims.margins import LEAST_RHO, ONE_SIDED, RESAMPLES
from penultimate.statistics import holm, spearman

if TYPE_CHECKING:
    import pandas as pd

Verdict: TypeAlias = Literal["holds", "does not hold", "undecided"]
Z = NormalDist().inv_cdf(1 - ONE_SIDED)


@dataclass(frozen=True)
class Effect:
    """An estimate with its interval, the smallest effect that counts, and the two one-sided p values.

    `p_for` is against "no effect, or the opposite one", `p_against` against "an effect that counts".
    """

    estimate: float
    low: float
    high: float
    margin: float
    p_for: float
    p_against: float

    @property
    def p(self) -> float:
        """Twice the one-sided p of the claimed effect, as a two-sided test would report it."""
        return min(1.0, 2 * self.p_for)


def decide(effect: Effect) -> Verdict:
    """Return the verdict on an effect.

    >>> decide(Effect(estimate=0.9, low=0.7, high=1.1, margin=0.2, p_for=1e-6, p_against=1.0))
    'holds'
    >>> decide(Effect(estimate=0.0, low=-0.1, high=0.1, margin=0.2, p_for=0.5, p_against=0.001))
    'does not hold'
    >>> decide(Effect(estimate=0.9, low=-0.5, high=2.3, margin=0.2, p_for=0.1, p_against=0.8))
    'undecided'
    """
    if effect.estimate >= effect.margin and effect.low > 0 and effect.p_for <= ONE_SIDED:
        return "holds"
    if effect.high < effect.margin and effect.p_against <= ONE_SIDED:
        return "does not hold"
    return "undecided"


def exact(estimate: float, margin: float) -> Effect:
    """Return the effect of printed means, which are taken as they stand: its interval is the estimate itself.

    >>> decide(exact(0.3, 0.2)), decide(exact(0.1, 0.2))
    ('holds', 'does not hold')
    """
    return Effect(estimate, estimate, estimate, margin, float(estimate <= 0), float(estimate >= margin))


def negated(verdict: Verdict) -> Verdict:
    """Return the verdict on the contrary claim."""
    opposite: dict[Verdict, Verdict] = {"holds": "does not hold", "does not hold": "holds"}
    return opposite.get(verdict, "undecided")


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on "each of these claims": holds if all do, fails if one does not.

    >>> all_of(["holds", "undecided"]), all_of(["undecided", "does not hold"])
    ('undecided', 'does not hold')
    """
    met = set(verdicts)
    if "does not hold" in met:
        return "does not hold"
    return "holds" if met == {"holds"} else "undecided"


def corrected(effects: Mapping[str, Effect]) -> dict[str, Effect]:
    """Return the effects with both p values corrected for their number (Holm)."""
    sides = [holm([getattr(one, side) for one in effects.values()]) for side in ("p_for", "p_against")]
    return {
        name: replace(one, p_for=p_for, p_against=p_against)
        for (name, one), p_for, p_against in zip(effects.items(), *sides, strict=True)
    }


def each(
    effects: Sequence[Effect], denied: Collection[int], times_for: int = 1, times_against: int = 1
) -> list[Verdict]:
    """Return the verdict on each effect, if the claim is that all exist, except those at the `denied` places.

    For the claim, each effect is tested by itself; against it, they are corrected for their number. If the
    claim itself is one of several, p values for it and against it are first multiplied by the two factors.
    """
    against = holm([one.p_for if place in denied else one.p_against for place, one in enumerate(effects)])
    verdicts: list[Verdict] = []
    for place, (one, p) in enumerate(zip(effects, against, strict=True)):
        if place in denied:
            turned = replace(one, p_for=p * times_against, p_against=one.p_against * times_for)
            verdicts.append(negated(decide(turned)))
        else:
            verdicts.append(decide(replace(one, p_for=one.p_for * times_for, p_against=p * times_against)))
    return verdicts


def by_t(estimate: float, error: float, degrees: float, margin: float) -> Effect:
    """Return the effect of an estimate whose error has a t distribution.

    >>> effect = by_t(1.8, 0.3, 5, margin=0.5)
    >>> round(effect.low, 2), round(effect.high, 2), decide(effect)
    (1.03, 2.57, 'holds')
    """
    from scipy.special import stdtr, stdtrit

    reach = float(stdtrit(degrees, 1 - ONE_SIDED)) * error
    return Effect(
        estimate,
        estimate - reach,
        estimate + reach,
        margin,
        p_for=float(stdtr(degrees, -estimate / error)),
        p_against=float(stdtr(degrees, (estimate - margin) / error)),
    )


def of_mean(values: Iterable[float], margin: float = 0.0) -> Effect | None:
    """Return the effect that a mean is above zero, by t; None for a single value, or for equal ones.

    >>> effect = of_mean([1.1, 0.9, 1.0], margin=0.3)
    >>> round(effect.low, 2), round(effect.high, 2), decide(effect)
    (0.75, 1.25, 'holds')
    """
    numbers = [round(value, 9) for value in values]
    n = len(numbers)
    if n < 2 or len({*numbers}) == 1:
        return None
    mean = math.fsum(numbers) / n
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in numbers) / (n - 1) / n)
    return by_t(mean, error, n - 1, margin)


def of_independent(
    groups: Sequence[pd.Series], weights: Sequence[float], margin: float = 0.0
) -> Effect | None:
    """Return the effect sum_i w_i mean_i of independent groups; weights (1, -1) give Welch's comparison.

    se^2 = sum_i w_i^2 e_i^2,    df = se^4 / sum_i [w_i^4 e_i^4 / (n_i - 1)],    e_i: standard errors

    Returns None for a group of one value, or without any spread.

    Welch, 1947; Satterthwaite, 1946.
    """
    if any(len(group) < 2 for group in groups):
        return None
    terms = [float(w * group.sem()) ** 2 for group, w in zip(groups, weights, strict=True)]
    variance = math.fsum(terms)
    if variance == 0:
        return None
    shares = [(term / variance) ** 2 / (len(of) - 1) for term, of in zip(terms, groups, strict=True)]
    estimate = math.fsum(w * float(group.mean()) for group, w in zip(groups, weights, strict=True))
    return by_t(estimate, math.sqrt(variance), 1 / math.fsum(shares), margin)


def of_trend(blocks: Sequence[Sequence[float]], sign: int) -> Effect | None:
    """Return the effect sign * mean_s rho_s, where rho_s is that of block s [k] with the positions.

    p_for is Page's: L = sum_s sum_j j R_sj against all orders within blocks, exact up to eight positions. The
    interval and p_against are Fisher's for the mean of the blocks' artanh rho_s, where each rho_s is kept
    half a step away from +-1:

        se^2 = (1 + m^2/2) / (n (k - 3)),    m = tanh(mean_s artanh rho_s)

    Returns None with fewer than four positions, or if the values of a block are all equal.

    >>> effect = of_trend([[1, 2, 3, 4, 5], [1, 2, 3, 5, 4], [2, 1, 3, 4, 5]], sign=1)
    >>> round(effect.estimate, 2), round(effect.p_for, 5), decide(effect)
    (0.93, 4e-05, 'holds')

    Page, 1963.
    """
    n, k = len(blocks), len(blocks[0])
    if k < 4 or any(len(set(values)) == 1 for values in blocks):
        return None
    if n == 1:
        return of_ranks(range(k), blocks[0], sign)
    from scipy.stats import page_trend_test, rankdata

    rhos = [sign * spearman(range(k), values).rho for values in blocks]
    ranks = [[float(rank) for rank in rankdata([sign * value for value in values])] for values in blocks]
    nearest = 1 - 6 / (k**3 - k)
    centre = math.fsum(math.atanh(max(-nearest, min(nearest, rho))) for rho in rhos) / n
    error = math.sqrt((1 + math.tanh(centre) ** 2 / 2) / (n * (k - 3)))
    estimate = math.fsum(rhos) / n
    return Effect(
        estimate,
        min(estimate, math.tanh(centre - Z * error)),
        max(estimate, math.tanh(centre + Z * error)),
        LEAST_RHO,
        p_for=float(page_trend_test(ranks, ranked=True).pvalue),
        p_against=NormalDist().cdf((centre - math.atanh(LEAST_RHO)) / error),
    )


def of_ranks(
    x: Sequence[float], y: Sequence[float], sign: int, over_seeds: tuple[float, float] | None = None
) -> Effect | None:
    """Return the effect sign * rho, where rho is Spearman's correlation of x and y [n].

    At either end, its interval is the wider one of `over_seeds` (an interval of rho) and of that over
    objectives:

        tanh(artanh r +- z sqrt((1 + rho^2/2)/(n - 3)))

    with r = rho, kept half a step of its scale, 6/(n^3 - n), away from +-1. p_for is half the two-sided p of
    `spearman` (exact up to 12 pairs), p_against that of artanh r against artanh m. Returns None with fewer
    than four pairs, or if all x or all y are equal.

    >>> effect = of_ranks([0.35, 0.42, 0.46, 0.60, 0.64, 0.85], [76, 74, 75, 71, 66, 55], sign=-1)
    >>> round(effect.estimate, 2), round(effect.p, 3), decide(effect)
    (0.94, 0.017, 'holds')

    Bonett and Wright, 2000.
    """
    if len(x) < 4:
        return None
    ranks = spearman(x, y)
    if math.isnan(ranks.rho):
        return None
    rho, n = sign * ranks.rho, ranks.n
    nearest = 1 - 6 / (n**3 - n)
    centre = math.atanh(max(-nearest, min(nearest, rho)))
    error = math.sqrt((1 + rho * rho / 2) / (n - 3))
    low, high = math.tanh(centre - Z * error), math.tanh(centre + Z * error)
    if over_seeds is not None:
        ends = sorted(sign * end for end in over_seeds)
        low, high = min(low, ends[0]), max(high, ends[1])
    return Effect(
        rho,
        low,
        high,
        LEAST_RHO,
        p_for=ranks.p / 2 if rho > 0 else 1 - ranks.p / 2,
        p_against=NormalDist().cdf((centre - math.atanh(LEAST_RHO)) / error),
    )


def rho_over_seeds(x: pd.DataFrame, y: pd.DataFrame) -> tuple[float, float]:
    """Return the central 95 % interval of rho of the means of x and y [seed, objective], by a bootstrap.

    A seed is drawn for all objectives at once, since they share its draw of the data; an objective without a
    run of any drawn seed keeps its mean. The result is deterministic.
    """
    import numpy as np

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
