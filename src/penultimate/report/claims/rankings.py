"""Do two quantities rank objectives alike, and does accuracy level off as the temperature rises?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from penultimate.report.base import MISSING
from penultimate.report.claims.aspects import NAMES, Aspect
from penultimate.report.claims.effects import (
    BySeed,
    Effect,
    Verdict,
    all_of,
    bootstrap_over_seeds,
    contrast,
    corrected,
    decide,
    rank_effect,
)
from penultimate.report.claims.evidence import (
    Assessment,
    Evidence,
    paper,
    relearned,
    unmeasured,
)
from penultimate.report.claims.rules import Criteria, Ranked
from penultimate.report.claims.wording import (
    COPIES,
    least_correlation,
    not_enough_runs,
    rank_text,
    reason,
    runs_each,
    signed,
    too_few,
)
from penultimate.report.text import counted, fixed, listed
from penultimate.statistics import summarise


def ranked(evidence: Evidence, rule: Ranked, criteria: Criteria) -> Assessment:
    """Do x and y rank the objectives (or temperatures) as claimed? By means over the runs that have both.

    A seed is a draw of the world: where enough seeds are common to all that are ranked, only those count, so
    that a mean is not lower for a harder draw.
    """
    pairs = _pairs(evidence, rule)
    least = criteria.least_objectives if rule.over == "objectives" else criteria.least_temperatures
    noun, enough = rule.over.removesuffix("s"), int(least.value)
    if not pairs:
        return unmeasured(_missing(evidence, rule))
    usable = {spec: both for spec, both in pairs.items() if len(both[0]) >= criteria.least_runs.value}
    chosen = _balanced(usable if len(usable) >= enough else pairs, criteria)
    of_x, of_y = _sides(chosen)
    counts = [len(runs) for runs in of_x]
    over_seeds = bootstrap_over_seeds(of_x, of_y, criteria) if min(counts) > 1 else None
    effect = rank_effect(_means(of_x), _means(of_y), rule.sign, over_seeds, criteria)
    if effect is None:
        why = f"No rank correlation: {counted(len(chosen), noun)}, or all alike; {enough} are needed."
        return Assessment(MISSING, "undecided", why)
    ours = f"{rank_text(effect, rule.sign, len(chosen), noun)}, {runs_each(counts)}"
    ours += _shots_text(evidence, rule, criteria, tuple(chosen))
    if len(pairs) < enough:
        return Assessment(ours, "undecided", too_few(len(pairs), enough, noun))
    if len(usable) < enough:
        return Assessment(ours, "undecided", not_enough_runs(counts, criteria))
    verdict = decide(effect, criteria)
    why = reason(effect, verdict, least_correlation(rule.sign, criteria), criteria)
    left_out = [evidence.among(rule.over).objective(spec).label for spec in pairs if spec not in usable]
    if left_out:
        why += f" Left out for too few runs: {listed(left_out)}."
    return Assessment(ours, verdict, why)


def _missing(evidence: Evidence, rule: Ranked) -> str:
    """What is not measured of a ranking that has no pair."""
    if rule.over == "temperatures" and not evidence.values("temperature", "temperatures"):
        return NAMES["temperature"]
    return NAMES[next((name for name in (rule.x, rule.y) if not evidence.values(name, rule.over)), rule.y)]


_Pairs: TypeAlias = dict[str, tuple[BySeed, BySeed]]
"""The runs that have both quantities, by objective: {spec: (x by seed, y by seed)}."""


def _pairs(evidence: Evidence, rule: Ranked) -> _Pairs:
    x, y = evidence.values(rule.x, rule.over), evidence.values(rule.y, rule.over)
    both = {spec: [seed for seed in x[spec] if seed in y.get(spec, {})] for spec in x}
    return {
        spec: ({seed: x[spec][seed] for seed in seeds}, {seed: y[spec][seed] for seed in seeds})
        for spec, seeds in both.items()
        if seeds
    }


def _balanced(pairs: _Pairs, criteria: Criteria) -> _Pairs:
    """Of every one the same seeds, where enough are common to all; else as they are."""
    first, *others = [x for x, _ in pairs.values()]
    kept = [seed for seed in first if all(seed in runs for runs in others)]
    if len(kept) < criteria.least_runs.value:
        return pairs
    return {
        spec: ({seed: x[seed] for seed in kept}, {seed: y[seed] for seed in kept})
        for spec, (x, y) in pairs.items()
    }


def _sides(pairs: _Pairs) -> tuple[list[BySeed], list[BySeed]]:
    return [x for x, _ in pairs.values()], [y for _, y in pairs.values()]


def _means(by_run: Iterable[BySeed]) -> list[float]:
    return [summarise(runs.values()).mean for runs in by_run]


def _shots_text(evidence: Evidence, rule: Ranked, criteria: Criteria, ranked_specs: Sequence[str]) -> str:
    """From how many images per class the heads were relearned; rho of the same at the other numbers."""
    if evidence.shots is None or not {rule.x, rule.y} & {"relearned", "gap"}:
        return ""
    others = []
    for shots in relearned(evidence.measurements):
        if shots != evidence.shots:
            other = dataclasses.replace(evidence, shots=shots)
            pairs = _pairs(other, rule)
            same = {spec: pairs[spec] for spec in ranked_specs if spec in pairs}
            of_x, of_y = _sides(_balanced(same, criteria) if same else same)
            effect = rank_effect(_means(of_x), _means(of_y), rule.sign, None, criteria)
            if effect is not None:
                others.append(f"ρ = {signed(rule.sign * effect.estimate, 2)} at {shots}")
    also = f" (also, not judged: {', '.join(others)})" if others else ""
    return f", {evidence.shots} images per class{also}"


def ranked_in_paper(rule: Ranked, criteria: Criteria) -> str:
    """The correlation of the paper's printed means."""
    x, y = paper(rule.x, rule.over), paper(rule.y, rule.over)
    effect = rank_effect([x[key] for key in x], [y[key] for key in x], rule.sign, None, criteria)
    assert effect is not None
    return rank_text(effect, rule.sign, len(x), rule.over.removesuffix("s"))


def levels(evidence: Evidence, aspect: Aspect, criteria: Criteria) -> Assessment:
    """Does accuracy A rise up to the middle temperature, and is it level above?

    |A_t - A_mid| < share * (A_mid - A_min) for every t > mid

    Each bound is a linear contrast of means. All must be met, uncorrected, for the claim to hold; one must be
    broken, corrected, for it to fail.
    """
    runs = evidence.values(aspect, "temperatures")
    temperatures = evidence.among("temperatures").temperatures
    points = [
        (t, summarise(runs[objective.spec].values()))
        for t, objective in temperatures
        if objective.spec in runs
    ]
    if not points:
        return unmeasured(NAMES["temperature"])
    enough = int(criteria.least_temperatures.value)
    groups = [summary for _, summary in points]
    counts = [summary.n for summary in groups]
    ours = f"{levels_text({t: summary.mean for t, summary in points})}, {runs_each(counts)}"
    if len(points) < enough:
        return Assessment(ours, "undecided", too_few(len(points), enough, "temperature"))
    if min(counts) < criteria.least_runs.value:
        return Assessment(ours, "undecided", not_enough_runs(counts, criteria))
    middle, share = _middle(len(groups)), criteria.plateau.value
    effects: dict[tuple[int, int], Effect] = {}
    for upper in range(middle + 1, len(groups)):
        for side in (1, -1):
            weights = [0.0] * len(groups)
            weights[0], weights[middle], weights[upper] = -share, share + side, -side
            effect = contrast(groups, weights, 0.0, criteria)
            if effect is None:
                return Assessment(ours, "undecided", COPIES)
            effects[upper, side] = effect
    family = corrected(list(effects.values()), "p_against")
    verdicts = dict(zip(effects, (decide(effect, criteria) for effect in family), strict=True))
    verdict = all_of(verdicts.values())
    moved = sorted({points[upper][0] for (upper, _), one in verdicts.items() if one == verdict})
    return Assessment(ours, verdict, _levels_reason(verdict, moved, points[middle][0], share))


def _levels_reason(verdict: Verdict, moved: Iterable[float], middle: float, share: float) -> str:
    at = " and ".join(f"{t:g}" for t in moved)
    part = f"{fixed(100 * share, 0)} % of the gain below τ = {middle:g}"
    if verdict == "holds":
        return f"At every higher temperature a change of {part} or more is excluded."
    if verdict == "does not hold":
        return f"At τ = {at} accuracy has moved by more than {part}, beyond chance (corrected)."
    return f"Open at τ = {at}: the change may be more or less than {part}."


def levels_text(means: dict[float, float]) -> str:
    """Accuracy at the lowest and the middle temperature, and its range above.

    >>> levels_text({0.01: 74.9, 0.02: 77.0, 0.03: 77.5, 0.04: 77.6, 0.05: 77.5})
    '74.9 % at τ = 0.01, 77.5 % at 0.03, 77.5 to 77.6 % above'
    """
    temperatures = sorted(means)
    if len(temperatures) < 3:
        return ", ".join(f"{fixed(means[t], 1)} % at τ = {t:g}" for t in temperatures)
    middle = _middle(len(temperatures))
    above = [means[t] for t in temperatures[middle + 1 :]]
    low = f"{fixed(means[temperatures[0]], 1)} % at τ = {temperatures[0]:g}"
    mid = f"{fixed(means[temperatures[middle]], 1)} % at {temperatures[middle]:g}"
    return f"{low}, {mid}, {fixed(min(above), 1)} to {fixed(max(above), 1)} % above"


def _middle(count: int) -> int:
    """The index of the lower median: of the paper's eight, 0.04, from which it calls accuracy saturated."""
    return (count - 1) // 2
