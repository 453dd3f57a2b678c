"""Do two quantities rank objectives alike, and does accuracy level off as the temperature rises?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from penultimate.report.claims.effects import (
    ByRun,
    Effect,
    Verdict,
    all_of,
    bootstrap_over_seeds,
    contrast,
    corrected,
    decide,
    rank_effect,
)
from penultimate.report.claims.evidence import NAMES, Finding, Study, paper, unmeasured
from penultimate.report.claims.rules import Criteria, Quantity, Ranked
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
from penultimate.report.exhibits.base import MISSING
from penultimate.report.text import counted, fixed, listed
from penultimate.statistics import summarise


def ranked(study: Study, rule: Ranked, criteria: Criteria) -> Finding:
    """Do x and y rank the objectives (or temperatures) as claimed? By means over the runs that have both.

    A seed is a draw of the world: where enough seeds are common to all that are ranked, only those count, so
    that a mean is not lower for a harder draw.
    """
    pairs = _pairs(study, rule)
    least = criteria.least_objectives if rule.over == "objectives" else criteria.least_temperatures
    noun, enough = rule.over.removesuffix("s"), int(least.value)
    if not pairs:
        return unmeasured(_missing(study, rule))
    usable = {spec: both for spec, both in pairs.items() if len(both[0]) >= criteria.least_runs.value}
    chosen = _balanced(usable if len(usable) >= enough else pairs, criteria)
    of_x, of_y = _sides(chosen)
    counts = [len(runs) for runs in of_x]
    over_seeds = bootstrap_over_seeds(of_x, of_y, criteria) if min(counts) > 1 else None
    effect = rank_effect(_means(of_x), _means(of_y), rule.sign, over_seeds, criteria)
    if effect is None:
        why = f"No rank correlation: {counted(len(chosen), noun)}, or all alike; {enough} are needed."
        return Finding(MISSING, "undecided", why)
    ours = f"{rank_text(effect, rule.sign, len(chosen), noun)}, {runs_each(counts)}"
    ours += _shots_text(study, rule, criteria, tuple(chosen))
    if len(pairs) < enough:
        return Finding(ours, "undecided", too_few(len(pairs), enough, noun))
    if len(usable) < enough:
        return Finding(ours, "undecided", not_enough_runs(counts, criteria))
    verdict = decide(effect, criteria)
    why = reason(effect, verdict, least_correlation(rule.sign, criteria), criteria)
    left_out = [study.measurements.objective(spec).label for spec in pairs if spec not in usable]
    if left_out:
        why += f" Left out for too few runs: {listed(left_out)}."
    return Finding(ours, verdict, why)


def _missing(study: Study, rule: Ranked) -> str:
    """What is not measured of a ranking that has no pair."""
    if rule.over == "temperatures" and not study.measurements.temperature_sweep:
        return NAMES["temperature"]
    return NAMES[next((name for name in (rule.x, rule.y) if not study.values(name, rule.over)), rule.y)]


_Pairs: TypeAlias = dict[str, tuple[ByRun, ByRun]]
"""The runs that have both quantities, by objective: {spec: (x by seed, y by seed)}."""


def _pairs(study: Study, rule: Ranked) -> _Pairs:
    x, y = study.values(rule.x, rule.over), study.values(rule.y, rule.over)
    both = {spec: sorted(set(x[spec]) & set(y.get(spec, {}))) for spec in x}
    return {
        spec: ({seed: x[spec][seed] for seed in seeds}, {seed: y[spec][seed] for seed in seeds})
        for spec, seeds in both.items()
        if seeds
    }


def _balanced(pairs: _Pairs, criteria: Criteria) -> _Pairs:
    """Of every one the same seeds, where enough are common to all; else as they are."""
    common = set[int].intersection(*(set(x) for x, _ in pairs.values()))
    if len(common) < criteria.least_runs.value:
        return pairs
    kept = sorted(common)
    return {
        spec: ({seed: x[seed] for seed in kept}, {seed: y[seed] for seed in kept})
        for spec, (x, y) in pairs.items()
    }


def _sides(pairs: _Pairs) -> tuple[list[ByRun], list[ByRun]]:
    return [x for x, _ in pairs.values()], [y for _, y in pairs.values()]


def _means(by_run: Iterable[ByRun]) -> list[float]:
    return [summarise(runs.values()).mean for runs in by_run]


def _shots_text(study: Study, rule: Ranked, criteria: Criteria, ranked_specs: Sequence[str]) -> str:
    """From how many images per class the heads were relearned; rho of the same at the other numbers."""
    if study.shots is None or not {rule.x, rule.y} & {"relearned", "gap"}:
        return ""
    others = []
    for shots in study.relearned:
        if shots != study.shots:
            other = dataclasses.replace(study, shots=shots)
            pairs = _pairs(other, rule)
            same = {spec: pairs[spec] for spec in ranked_specs if spec in pairs}
            of_x, of_y = _sides(_balanced(same, criteria) if same else same)
            effect = rank_effect(_means(of_x), _means(of_y), rule.sign, None, criteria)
            if effect is not None:
                others.append(f"ρ = {signed(rule.sign * effect.estimate, 2)} at {shots}")
    also = f" (also, not judged: {', '.join(others)})" if others else ""
    return f", {study.shots} images per class{also}"


def ranked_in_paper(rule: Ranked, criteria: Criteria) -> str:
    """The correlation of the paper's printed means."""
    x, y = paper(rule.x, rule.over), paper(rule.y, rule.over)
    effect = rank_effect([x[key] for key in x], [y[key] for key in x], rule.sign, None, criteria)
    assert effect is not None
    return rank_text(effect, rule.sign, len(x), rule.over.removesuffix("s"))


def levels(study: Study, quantity: Quantity, criteria: Criteria) -> Finding:
    """Does accuracy A rise up to the middle temperature, and is it level above?

    |A_t - A_mid| < share * (A_mid - A_min) for every t > mid

    Each bound is a linear contrast of means. All must be met, uncorrected, for the claim to hold; one must be
    broken, corrected, for it to fail.
    """
    runs = study.values(quantity, "temperatures")
    points = [
        (t, summarise(runs[one.spec].values()))
        for t, one in study.measurements.temperature_sweep
        if one.spec in runs
    ]
    if not points:
        return unmeasured(NAMES["temperature"])
    enough = int(criteria.least_temperatures.value)
    groups = [summary for _, summary in points]
    counts = [summary.n for summary in groups]
    ours = f"{levels_text({t: summary.mean for t, summary in points})}, {runs_each(counts)}"
    if len(points) < enough:
        return Finding(ours, "undecided", too_few(len(points), enough, "temperature"))
    if min(counts) < criteria.least_runs.value:
        return Finding(ours, "undecided", not_enough_runs(counts, criteria))
    middle, share = _middle(len(groups)), criteria.plateau.value
    effects: dict[tuple[int, int], Effect] = {}
    for upper in range(middle + 1, len(groups)):
        for side in (1, -1):
            weights = [0.0] * len(groups)
            weights[0], weights[middle], weights[upper] = -share, share + side, -side
            effect = contrast(groups, weights, 0.0, criteria)
            if effect is None:
                return Finding(ours, "undecided", COPIES)
            effects[upper, side] = effect
    family = corrected(list(effects.values()), "p_against")
    verdicts = dict(zip(effects, (decide(effect, criteria) for effect in family), strict=True))
    verdict = all_of(verdicts.values())
    moved = sorted({points[upper][0] for (upper, _), one in verdicts.items() if one == verdict})
    return Finding(ours, verdict, _levels_reason(verdict, moved, points[middle][0], share))


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
