"""Effects and reasons in words that fit into a cell of a table and are the same for all claims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penultimate.objectives.presets import PRESETS
from penultimate.paper.claims.aspects import Aspect, is_ratio, unit_of
from penultimate.paper.claims.criteria import Criteria
from penultimate.paper.claims.effects import Effect, Verdict
from penultimate.report.text import counted, fixed, listed, p_value, signed

COPIES = "No spread at all between runs: they are copies of each other, and count as one."


@dataclass(frozen=True)
class Least:
    """Words for the smallest effect that counts: as one that was reached, and as one that was excluded."""

    reached: str
    excluded: str


def amount(size: float, aspect: Aspect) -> str:
    """Return a difference in a quantity, without its sign.

    >>> amount(0.234, "linear"), amount(0.0071, "separation")
    ('0.23 points', '0.007')
    """
    return fixed(size, 3) if is_ratio(aspect) else f"{fixed(size, 2)} points"


def level_text(value: float, aspect: Aspect) -> str:
    """Return a value of a quantity, with its unit or its name.

    >>> level_text(75.95, "linear"), level_text(0.349, "separation")
    ('76.0 %', 'R² 0.349')
    """
    return f"R² {fixed(value, 3)}" if is_ratio(aspect) else f"{fixed(value, 1)} %"


def least_gain(margin: float, aspect: Aspect) -> Least:
    """Return the smallest gain that counts, in points of accuracy or in R²."""
    least = amount(margin, aspect)
    return Least(f"at least {least}", f"a gain of {least} or more")


def least_correlation(sign: int, criteria: Criteria) -> Least:
    """Return the weakest correlation that counts, with the claimed sign."""
    rho = f"ρ = {signed(sign * criteria.least_correlation.value, 2)}"
    return Least(f"at least as strong as {rho}", f"{rho} or stronger")


def reason(
    effect: Effect,
    verdict: Verdict,
    least: Least,
    criteria: Criteria,
    several: int = 1,
    opposite: float | None = None,
) -> str:
    """Return the reason for a verdict; `several` is the number of comparisons for which p is corrected.

    `opposite` is the one-sided p of the opposite effect, corrected too; for a single comparison it follows
    from that of the effect.

    >>> from penultimate.paper.claims.criteria import CRITERIA
    >>> effect = Effect(0.9, 0.7, 1.1, 0.23, p_for=0.002, p_against=1)
    >>> reason(effect, "holds", least_gain(0.23, "linear"), CRITERIA, several=8)
    'Beyond chance (p = 0.004, corrected for eight comparisons), and the estimate is at least 0.23 ...'
    >>> turned = Effect(-0.4, -0.7, -0.1, 0.23, p_for=1, p_against=0.001)
    >>> for opposite in (0.02, 0.03):
    ...     reason(turned, "does not hold", least_gain(0.23, "linear"), CRITERIA, 8, opposite)
    'Excluded: a gain of 0.23 points or more (p = 0.002, ...); it is the other way round.'
    'Excluded: a gain of 0.23 points or more (p = 0.002, ...), and less does not count.'
    """
    note = f", corrected for {counted(several, 'comparison')}" if several > 1 else ""
    p = f"{p_value(effect.p)}{note}"
    if verdict == "holds":
        return f"Beyond chance ({p}), and the estimate is {least.reached}, the least that counts."
    if verdict == "does not hold":
        turned = (1 - effect.p_for if opposite is None else opposite) <= criteria.one_sided
        tail = "; it is the other way round." if effect.high < 0 and turned else ", and less does not count."
        return f"Excluded: {least.excluded} ({p_value(min(1, 2 * effect.p_against))}{note}){tail}"
    if effect.low > 0 and effect.p_for <= criteria.one_sided:
        return f"Beyond chance ({p}), but the estimate is not {least.reached}, the least that counts."
    if effect.low > 0:
        return f"It may still be chance ({p})."
    if effect.high < effect.margin:
        comparisons = counted(several, "comparison")
        return f"By itself this excludes {least.excluded}; not so when corrected for {comparisons}."
    return f"Both are possible: no effect, and {least.excluded} ({p})."


def enough_seeds(gain: float, seeds: int, aspect: Aspect) -> str:
    """Return a sentence on the number of seeds that would have found what the paper found.

    >>> enough_seeds(0.9, 12, "accuracy")
    " The paper's gain of 0.90 points would take 12 seeds to be found in nine studies of ten."
    """
    found = f"would take {counted(seeds, 'seed')} to be found in nine studies of ten"
    return f" The paper's gain of {amount(gain, aspect)} {found}."


def not_enough_runs(counts: Iterable[int], criteria: Criteria) -> str:
    """Return the reason why these runs are too few to decide anything.

    >>> from penultimate.paper.claims.criteria import CRITERIA
    >>> not_enough_runs([1, 1], CRITERIA)
    'One run each: too few to know how far runs differ by chance; three runs each are needed.'
    """
    runs = runs_each(counts)
    least = counted(int(criteria.least_runs.value), "run")
    few = f"{runs[0].upper()}{runs[1:]}: too few to know how far runs differ by chance"
    return f"{few}; {least} each are needed."


def too_few(count: int, enough: int, noun: str) -> str:
    """Return the reason why these objectives or temperatures are too few to decide anything."""
    return f"Too few: {counted(count, noun)}; {counted(enough, noun)} or more are needed."


def runs_each(counts: Iterable[int]) -> str:
    """Return the number of runs behind each mean, in words.

    >>> runs_each([5, 5]), runs_each([3, 5])
    ('five runs each', '3 to 5 runs each')
    """
    low, high = min(counts := list(counts)), max(counts)
    return f"{counted(low, 'run')} each" if low == high else f"{low} to {high} runs each"


def difference_text(
    estimate: float, effect: Effect | None, counts: Iterable[int], aspect: Aspect = "accuracy"
) -> str:
    """Return a difference with its interval, if there is one, and the runs behind it."""
    digits = 3 if is_ratio(aspect) else 2
    interval = f" ({range_text(effect.low, effect.high, digits)})" if effect else ""
    return f"{signed(estimate, digits)} {unit_of(aspect)}{interval}, {runs_each(counts)}"


def rank_text(effect: Effect, sign: int, n: int, noun: str) -> str:
    """Return a rank correlation with the sign that it has, its interval, its two-sided p and n."""
    low, high = sorted((sign * effect.low, sign * effect.high))
    p = 2 * min(effect.p_for, 1 - effect.p_for)
    rho = signed(sign * effect.estimate, 2)
    return f"ρ = {rho} ({range_text(low, high, 2)}), {p_value(p)}, {counted(n, noun)}"


def range_text(low: float, high: float, digits: int) -> str:
    """Return the ends of an interval.

    >>> range_text(-0.987, -0.675, 2)
    '−0.99 to −0.68'
    """
    return f"{fixed(low, digits)} to {fixed(high, digits)}"


def names_of(slugs: Iterable[str]) -> str:
    """Return the labels of presets as a phrase.

    >>> names_of(["sigmoid", "logit_norm"])
    'Sigmoid and Logit normalization'
    """
    return listed([PRESETS[slug].label for slug in slugs])
