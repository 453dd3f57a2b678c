"""Effects with their intervals, and the one decision from an effect to a verdict that all claims share.

Effects are signed so that every claim says that its effect is positive. With e the estimate, m the smallest
effect that counts and a the one-sided level,

    holds          e >= m, and "no effect, or the opposite one" is rejected at a
    does not hold  "an effect of m or more" is rejected at a
    undecided      otherwise

No data can satisfy both of the first two (the second needs e < m). At a given estimate, a narrower interval
can only change "undecided" into the verdict on the side of the estimate.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

from penultimate.paper.claims.criteria import CRITERIA, Criteria
from penultimate.report.measurements import Seed
from penultimate.statistics import MeanWithError, holm, spearman, summarise

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Verdict: TypeAlias = Literal["holds", "does not hold", "undecided"]
BySeed: TypeAlias = Mapping[Seed, float]
"""The values of the runs of one objective, by seed."""


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


def decide(effect: Effect, criteria: Criteria = CRITERIA) -> Verdict:
    """Return the verdict on an effect.

    >>> decide(Effect(estimate=0.9, low=0.7, high=1.1, margin=0.2, p_for=1e-6, p_against=1.0))
    'holds'
    >>> decide(Effect(estimate=0.0, low=-0.1, high=0.1, margin=0.2, p_for=0.5, p_against=0.001))
    'does not hold'
    >>> decide(Effect(estimate=0.9, low=-0.5, high=2.3, margin=0.2, p_for=0.1, p_against=0.8))
    'undecided'
    """
    if effect.estimate >= effect.margin and effect.low > 0 and effect.p_for <= criteria.one_sided:
        return "holds"
    if effect.high < effect.margin and effect.p_against <= criteria.one_sided:
        return "does not hold"
    return "undecided"


def exact_effect(estimate: float, margin: float) -> Effect:
    """Return the effect of printed means, which are taken as they stand: its interval is the estimate itself.

    >>> decide(exact_effect(0.3, 0.2)), decide(exact_effect(0.1, 0.2))
    ('holds', 'does not hold')
    """
    return Effect(estimate, estimate, estimate, margin, float(estimate <= 0), float(estimate >= margin))


def unknown_effect(estimate: float, margin: float) -> Effect:
    """Return the effect of runs too few, or too much alike, for an interval, which decides nothing."""
    return Effect(estimate, -math.inf, math.inf, margin, 1.0, 1.0)


def needed_units(
    effect: Effect, units: int, over: str, criteria: Criteria = CRITERIA, times: int = 1
) -> int | None:
    """Return how many units would decide an effect if its estimate stayed as it is.

    Its p is corrected for `times` comparisons.

    `over` is "seed" for a mean over `units` runs, by a t test, and "objective" for a rank correlation of that
    many objectives. None if the estimate lies just on the border, or nothing is known of other units.

    >>> needed_units(Effect(0.4, -0.2, 1.0, 0.2, 0.08, 0.8), 5, "seed")
    9
    """
    counts = effect.estimate >= effect.margin
    if over == "objective":
        rho = max(-0.999, min(0.999, effect.estimate))
        gap = math.atanh(rho) if counts else math.atanh(effect.margin) - math.atanh(rho)
        z = NormalDist().inv_cdf(1 - criteria.one_sided / times)
        return math.ceil(3 + (z / gap) ** 2 * (1 + rho**2 / 2)) if gap > 0.02 else None
    gap, reach = (
        effect.estimate if counts else effect.margin - effect.estimate,
        (effect.high - effect.low) / 2,
    )
    if over != "seed" or units < 2 or gap <= reach / 100:
        return None
    from scipy.special import stdtrit

    def is_enough(count: int) -> bool:
        quantiles = stdtrit([units - 1, count - 1], [1 - criteria.one_sided, 1 - criteria.one_sided / times])
        return bool(quantiles[1] / math.sqrt(count) * reach < gap * quantiles[0] / math.sqrt(units))

    few, enough = units, 2 * units
    while not is_enough(enough):
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if is_enough(middle) else (middle, enough)
    return enough


def negated(verdict: Verdict) -> Verdict:
    """Return the verdict on the contrary claim.

    >>> negated("holds"), negated("undecided")
    ('does not hold', 'undecided')
    """
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


def corrected(effects: Sequence[Effect], side: Literal["p_for", "p_against"]) -> list[Effect]:
    """Return the effects with one of their p values corrected for the number of effects."""
    p_values = holm([getattr(effect, side) for effect in effects])
    return [dataclasses.replace(effect, **{side: p}) for effect, p in zip(effects, p_values, strict=True)]


def each(
    effects: Mapping[str, Effect],
    denied: Collection[str],
    criteria: Criteria = CRITERIA,
    times_for: int = 1,
    times_against: int = 1,
) -> dict[str, Verdict]:
    """Return the verdict on each effect, if the claim is that all exist, except the `denied` ones.

    For the claim, each effect is tested by itself; against it, they are corrected for their number. If the
    claim itself is one of several, p values for it and against it are first multiplied by the two factors.
    """
    against = holm([one.p_for if slug in denied else one.p_against for slug, one in effects.items()])
    verdicts = {}
    for (slug, one), p in zip(effects.items(), against, strict=True):
        if slug in denied:
            turned = dataclasses.replace(one, p_for=p * times_against, p_against=one.p_against * times_for)
            verdicts[slug] = negated(decide(turned, criteria))
        else:
            turned = dataclasses.replace(one, p_for=one.p_for * times_for, p_against=p * times_against)
            verdicts[slug] = decide(turned, criteria)
    return verdicts


def contrast(
    groups: Sequence[MeanWithError],
    weights: Sequence[float],
    margin: float = 0.0,
    criteria: Criteria = CRITERIA,
) -> Effect | None:
    """Return the effect sum_i w_i mean_i of independent groups; weights (1, -1) give Welch's comparison.

    se^2 = sum_i w_i^2 e_i^2,    df = se^4 / sum_i [w_i^4 e_i^4 / (n_i - 1)],    e_i: standard errors

    Returns None if no interval exists: for a group of one run, or without any spread (runs that are copies).

    >>> sigmoid, softmax = MeanWithError(77.9, 0.05, 8), MeanWithError(77.0, 0.06, 8)
    >>> effect = contrast([sigmoid, softmax], [1, -1], margin=0.23)
    >>> round(effect.low, 2), round(effect.high, 2), decide(effect)
    (0.73, 1.07, 'holds')

    Welch, 1947; Satterthwaite, 1946.
    """
    if any(group.is_single for group in groups):
        return None
    terms = [(w * group.standard_error) ** 2 for group, w in zip(groups, weights, strict=True)]
    variance = math.fsum(terms)
    if variance == 0:
        return None
    shares = [term / variance for term in terms]
    degrees = 1 / math.fsum(share**2 / (group.n - 1) for share, group in zip(shares, groups, strict=True))
    estimate = math.fsum(w * group.mean for group, w in zip(groups, weights, strict=True))
    return effect_by_t(estimate, math.sqrt(variance), degrees, margin, criteria)


def effect_by_t(estimate: float, error: float, degrees: float, margin: float, criteria: Criteria) -> Effect:
    """Return the effect of an estimate whose error has a t distribution.

    >>> effect = effect_by_t(1.8, 0.3, 5, margin=0.5, criteria=CRITERIA)
    >>> round(effect.low, 2), round(effect.high, 2), decide(effect)
    (1.03, 2.57, 'holds')
    """
    from scipy.special import stdtr, stdtrit

    reach = float(stdtrit(degrees, 1 - criteria.one_sided)) * error
    return Effect(
        estimate,
        estimate - reach,
        estimate + reach,
        margin,
        p_for=float(stdtr(degrees, -estimate / error)),
        p_against=float(stdtr(degrees, (estimate - margin) / error)),
    )


def common_seeds(groups: Iterable[BySeed]) -> list[Seed]:
    """Return the seeds that all groups have, in the order of the first group."""
    first, *others = groups
    return [seed for seed in first if all(seed in runs for runs in others)]


def difference(
    groups: Sequence[BySeed],
    weights: Sequence[float],
    margin: float = 0.0,
    criteria: Criteria = CRITERIA,
    blocks: bool = True,
) -> Effect | None:
    """Return the effect sum_i w_i mean_i of objectives that share their seeds, by a t test over common seeds.

    d_s = sum_i w_i y_is,    se = s_d / sqrt(n),    df = n - 1

    If the weights sum to zero, whatever a seed adds to all objectives cancels, and nothing is assumed about
    how their variances compare. Without `blocks`, the groups are treated as independent (`contrast`). Returns
    None if no interval exists: with fewer than two common seeds, or equal differences in all of them.

    >>> softmax, sigmoid = {0: 70.0, 1: 75.0, 2: 80.0}, {0: 71.1, 1: 75.9, 2: 81.0}
    >>> effect = difference([sigmoid, softmax], [1, -1], margin=0.3)
    >>> round(effect.low, 2), round(effect.high, 2), decide(effect)
    (0.75, 1.25, 'holds')
    """
    if not blocks:
        return contrast([summarise(runs.values()) for runs in groups], weights, margin, criteria)
    values = [
        round(math.fsum(w * runs[seed] for runs, w in zip(groups, weights, strict=True)), 9)
        for seed in common_seeds(groups)
    ]
    return contrast([summarise(values)], [1], margin, criteria) if values else None


def trend_effect(
    blocks: Sequence[Sequence[float]], sign: int, criteria: Criteria = CRITERIA
) -> Effect | None:
    """Return the effect sign * mean_s rho_s, where rho_s is that of block s [k] with the positions.

    p_for is Page's: L = sum_s sum_j j R_sj against all orders within blocks, exact up to eight positions. The
    interval and p_against are Fisher's for the mean of the blocks' artanh rho_s, where each rho_s is kept
    half a step away from +-1:

        se^2 = (1 + m^2/2) / (n (k - 3)),    m = tanh(mean_s artanh rho_s)

    A single block is passed to `rank_effect`. Returns None with fewer than four positions, or if the values
    of a block are all equal.

    >>> effect = trend_effect([[1, 2, 3, 4, 5], [1, 2, 3, 5, 4], [2, 1, 3, 4, 5]], sign=1)
    >>> round(effect.estimate, 2), round(effect.p_for, 5), decide(effect)
    (0.93, 4e-05, 'holds')

    Page, 1963.
    """
    n, k = len(blocks), len(blocks[0])
    if k < 4 or any(len(set(values)) == 1 for values in blocks):
        return None
    if n == 1:
        return rank_effect(range(k), blocks[0], sign, None, criteria)
    from scipy.stats import page_trend_test, rankdata

    rhos = [sign * spearman(range(k), values).rho for values in blocks]
    ranks = [[float(rank) for rank in rankdata([sign * value for value in values])] for values in blocks]
    nearest, margin = 1 - 6 / (k**3 - k), criteria.least_correlation.value
    centre = math.fsum(math.atanh(max(-nearest, min(nearest, rho))) for rho in rhos) / n
    error = math.sqrt((1 + math.tanh(centre) ** 2 / 2) / (n * (k - 3)))
    reach = NormalDist().inv_cdf(1 - criteria.one_sided) * error
    estimate = math.fsum(rhos) / n
    return Effect(
        estimate,
        min(estimate, math.tanh(centre - reach)),
        max(estimate, math.tanh(centre + reach)),
        margin,
        p_for=float(page_trend_test(ranks, ranked=True).pvalue),
        p_against=NormalDist().cdf((centre - math.atanh(margin)) / error),
    )


def rank_effect(
    x: Sequence[float],
    y: Sequence[float],
    sign: int,
    over_seeds: tuple[float, float] | None = None,
    criteria: Criteria = CRITERIA,
) -> Effect | None:
    """Return the effect sign * rho, where rho is Spearman's correlation of x and y [n].

    At either end, its interval is the wider one of `over_seeds` (an interval of rho) and of that over
    objectives:

        tanh(artanh r +- z sqrt((1 + rho^2/2)/(n - 3)))

    with r = rho, kept half a step of its scale, 6/(n^3 - n), away from +-1. p_for is half the two-sided p of
    `spearman` (exact up to 12 pairs), p_against that of artanh r against artanh m. Returns None if there is
    no such effect: with fewer than four pairs, or if all x or all y are equal. Raises RequestError as
    `spearman` does.

    >>> effect = rank_effect([0.35, 0.42, 0.46, 0.60, 0.64, 0.85], [76, 74, 75, 71, 66, 55], sign=-1)
    >>> round(effect.estimate, 2), round(effect.p, 3), decide(effect)
    (0.94, 0.017, 'holds')

    Bonett and Wright, 2000.
    """
    if len(x) < 4:
        return None
    ranks = spearman(x, y)
    if math.isnan(ranks.rho):
        return None
    rho, n, margin = sign * ranks.rho, ranks.n, criteria.least_correlation.value
    nearest = 1 - 6 / (n**3 - n)
    centre = math.atanh(max(-nearest, min(nearest, rho)))
    error = math.sqrt((1 + rho * rho / 2) / (n - 3))
    reach = NormalDist().inv_cdf(1 - criteria.one_sided) * error
    low, high = math.tanh(centre - reach), math.tanh(centre + reach)
    if over_seeds is not None:
        ends = sorted(sign * end for end in over_seeds)
        low, high = min(low, ends[0]), max(high, ends[1])
    return Effect(
        rho,
        low,
        high,
        margin,
        p_for=ranks.p / 2 if rho > 0 else 1 - ranks.p / 2,
        p_against=NormalDist().cdf((centre - math.atanh(margin)) / error),
    )


def bootstrap_over_seeds(
    x: Sequence[BySeed], y: Sequence[BySeed], criteria: Criteria = CRITERIA
) -> tuple[float, float]:
    """Return the central 95 % interval of rho of the means when the seeds are resampled.

    A seed is drawn for all objectives at once, since they share its draw of the data; an objective without a
    run of any drawn seed keeps its mean. The result is deterministic.

    >>> runs = [{0: 1.0, 1: 1.1}, {0: 2.0, 1: 2.1}, {0: 3.0, 1: 3.1}]
    >>> bootstrap_over_seeds(runs, runs)
    (1.0, 1.0)
    """
    import numpy as np

    rho, tail = resampled_correlations(x, y, criteria)[2], criteria.one_sided
    low, high = np.quantile(rho, [tail, 1 - tail])
    return float(low), float(high)


def resampled_correlations(
    x: Sequence[BySeed], y: Sequence[BySeed], criteria: Criteria = CRITERIA
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the means of x and of y [b k], and their rho [b], when seeds are resampled b times."""
    import numpy as np

    seeds = sorted(
        {seed for runs in (*x, *y) for seed in runs}, key=lambda seed: -1 if seed is None else seed
    )
    count = int(criteria.resamples.value)
    draws = np.random.default_rng(0).multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), size=count)
    ranks, of_sides = [], []
    for side in (x, y):
        present = np.array([[seed in runs for seed in seeds] for runs in side], dtype=float)
        values = np.array([[runs.get(seed, 0.0) for seed in seeds] for runs in side])
        weight = draws @ present.T
        plain = values.sum(1) / present.sum(1)
        means = np.where(weight > 0, (draws @ values.T) / np.maximum(weight, 1), plain)
        means = np.round(means, 12)  # equal runs, summed in another order, stay equal
        of_sides.append(means)
        ranks.append(np.sign(means[:, :, None] - means[:, None, :]).sum(2))
    size = np.sqrt((ranks[0] ** 2).sum(1) * (ranks[1] ** 2).sum(1))
    return of_sides[0], of_sides[1], (ranks[0] * ranks[1]).sum(1) / np.maximum(size, 1)
