"""Rules that two quantities rank objectives alike or not, and rules on the order of temperatures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from penultimate.paper.claims.aspects import NAMES, OF_THE_SWEEP, Among, Aspect
from penultimate.paper.claims.effects import (
    BySeed,
    bootstrap_over_seeds,
    common_seeds,
    rank_effect,
    trend_effect,
)
from penultimate.paper.claims.evidence import Evidence, StudyEvidence, relearned
from penultimate.paper.claims.rules import Levels, Ranked, Trend, Unassociated
from penultimate.paper.claims.trials import (
    RHO,
    Trial,
    Trials,
    not_enough_runs,
    one,
    refused,
    runs_each,
    too_few,
)
from penultimate.report.base import MISSING
from penultimate.report.shapes.numbers import without_two
from penultimate.report.text import counted, fixed, listed, signed
from penultimate.statistics import summarise


def ranked(evidence: Evidence, rule: Ranked | Unassociated, over: Among = "objectives") -> Trials:
    """Return the rank correlation of x and y over objectives (or temperatures), by means over common runs.

    A seed is a draw of the world. If all that are ranked have enough seeds in common, only these count, so
    that no mean is lower because of a harder draw. A sign of 0 denies either order, `Unassociated` the same.
    """
    x, y, criteria = rule.x, rule.y, evidence.criteria
    claimed = rule.sign if isinstance(rule, Ranked) else 1
    signs = (claimed,) if claimed else (1, -1)
    denied = isinstance(rule, Unassociated) or len(signs) > 1
    pairs = _pairs(evidence, x, y, over)
    least = criteria.least_objectives if over == "objectives" else criteria.least_temperatures
    noun, enough = over.removesuffix("s"), int(least.value)
    if not pairs:
        absent = next((name for name in (x, y) if not evidence.values(name, over)), y)
        return evidence.lacking(absent)
    usable = {spec: both for spec, both in pairs.items() if evidence.is_enough(len(both[0]))}
    chosen = _balanced(usable if len(usable) >= enough else pairs, evidence)
    of_x, of_y = _sides(chosen)
    counts = [len(runs) for runs in of_x]
    over_seeds = bootstrap_over_seeds(of_x, of_y, criteria) if min(counts) > 1 else None
    means = _means(of_x), _means(of_y)
    trials = []
    for sign in signs:
        effect = rank_effect(*means, sign, over_seeds, criteria)
        if effect is None:
            why = f"No rank correlation: {counted(len(chosen), noun)}, or all alike; {enough} are needed."
            return refused(MISSING, why)
        words = RHO.either_way(effect.margin) if len(signs) > 1 else ""
        trials.append(Trial(effect, RHO, "", denied, sign, runs=len(chosen), over=noun, least=words))
    labels = [evidence.label(spec, over) for spec in chosen]
    lead = "With the calibration error (ECE, higher is worse)" if "ece" in (x, y) else ""
    parts = [counted(len(chosen), noun), evidence.extent(counts), _shots_text(evidence, x, y, tuple(chosen))]
    extent = ", ".join(filter(None, parts)) + without_two(*means, labels)
    left_out = [evidence.label(spec, over) for spec in pairs if spec not in usable]
    remark = f" Left out for too few runs: {listed(left_out)}." if left_out else ""
    refusal = "" if len(usable) >= enough else not_enough_runs(counts, criteria)
    refusal = refusal if len(pairs) >= enough else too_few(len(pairs), enough, noun)
    return Trials({"": trials}, lead=lead, extent=extent, refusal=refusal, remark=remark)


def trend(evidence: Evidence, rule: Trend) -> Trials:
    """Return whether y rises or falls with the temperature, within each seed that has all temperatures."""
    if not evidence.blocks:
        return ranked(evidence, Ranked("temperature", rule.aspect, rule.sign), "temperatures")
    y = evidence.values(rule.aspect, "temperatures")
    if not y:
        return _no_sweep(evidence, rule.aspect)
    runs, enough = [*y.values()], int(evidence.criteria.least_temperatures.value)
    seeds, noun = common_seeds(runs), "temperature"
    values = [[of[seed] for of in runs] for seed in seeds]
    effect = trend_effect(values, rule.sign, evidence.criteria) if seeds else None
    if effect is None:
        count = counted(len(runs), noun)
        return refused(MISSING, f"No trend: {count}, or all alike, or no seed has all; {enough} are needed.")
    labels = [evidence.label(spec, "temperatures") for spec in y]
    means = _means({seed: of[seed] for seed in seeds} for of in runs)
    extent = (
        f"{counted(len(runs), noun)}, {runs_each([len(seeds)])}{without_two(range(len(runs)), means, labels)}"
    )
    trial = Trial(effect, dataclasses.replace(RHO, text="mean ρ = {}"), sign=rule.sign, runs=len(seeds))
    refusal = "" if len(runs) >= enough else too_few(len(runs), enough, noun)
    return one(trial, extent, refusal=refusal)


def _no_sweep(evidence: Evidence, aspect: Aspect) -> Trials:
    """Return what is missing at several temperatures: the one aspect, or the sweep as a whole."""
    some = any(evidence.values(other, "temperatures") for other in OF_THE_SWEEP)
    what = f"{NAMES[aspect]} at several temperatures of cosine softmax" if some else NAMES["temperature"]
    return evidence.lacking("temperature", what)


_Pairs: TypeAlias = dict[str, tuple[BySeed, BySeed]]
"""The runs that have both quantities, by objective: {spec: (x by seed, y by seed)}."""


def _pairs(evidence: Evidence, of_x: Aspect, of_y: Aspect, over: Among = "objectives") -> _Pairs:
    x, y = evidence.values(of_x, over), evidence.values(of_y, over)
    both = {spec: [seed for seed in x[spec] if seed in y.get(spec, {})] for spec in x}
    return {
        spec: ({seed: x[spec][seed] for seed in seeds}, {seed: y[spec][seed] for seed in seeds})
        for spec, seeds in both.items()
        if seeds
    }


def _balanced(pairs: _Pairs, evidence: Evidence) -> _Pairs:
    """Return the runs of the seeds that all have in common if these are enough, and otherwise all runs."""
    kept = common_seeds(x for x, _ in pairs.values())
    if not evidence.is_enough(len(kept)):
        return pairs
    return {
        spec: ({seed: x[seed] for seed in kept}, {seed: y[seed] for seed in kept})
        for spec, (x, y) in pairs.items()
    }


def balanced_sides(evidence: Evidence, rule: Ranked) -> tuple[list[BySeed], list[BySeed]]:
    """Return the runs of x and of y that a rule ranks objectives by, of those with enough runs."""
    pairs = _pairs(evidence, rule.x, rule.y, "objectives")
    return _sides(
        _balanced({s: both for s, both in pairs.items() if evidence.is_enough(len(both[0]))}, evidence)
    )


def _sides(pairs: _Pairs) -> tuple[list[BySeed], list[BySeed]]:
    return [x for x, _ in pairs.values()], [y for _, y in pairs.values()]


def _means(by_run: Iterable[BySeed]) -> list[float]:
    return [summarise(runs.values()).mean for runs in by_run]


def _shots_text(evidence: Evidence, x: Aspect, y: Aspect, specs: Sequence[str]) -> str:
    """Return words on the images per class that relearned the heads, with rho at the other numbers."""
    if not isinstance(evidence, StudyEvidence) or evidence.shots is None or not {x, y} & {"relearned", "gap"}:
        return ""
    others = []
    for shots in relearned(evidence.measurements):
        if shots != evidence.shots:
            pairs = _pairs(dataclasses.replace(evidence, shots=shots), x, y)
            same = {spec: pairs[spec] for spec in specs if spec in pairs}
            of_x, of_y = _sides(_balanced(same, evidence) if same else same)
            effect = rank_effect(_means(of_x), _means(of_y), 1, None, evidence.criteria)
            if effect is not None:
                others.append(f"ρ = {signed(effect.estimate, 2)} at {shots}")
    also = f" (also, not judged: {', '.join(others)})" if others else ""
    return f"{evidence.shots} images per class{also}"


def levels(evidence: Evidence, rule: Levels) -> Trials:
    """Return whether accuracy A rises up to the middle temperature and is level above it.

    |A_t - A_mid| < share * (A_mid - A_min) for every t > mid

    Each bound is a linear contrast of means. The claim holds if all bounds are met, uncorrected; it fails if
    one is broken, corrected.
    """
    points = evidence.values(rule.aspect, "temperatures")
    if not points:
        return _no_sweep(evidence, rule.aspect)
    criteria, names = evidence.criteria, [evidence.label(spec, "temperatures") for spec in points]
    groups = [*points.values()]
    counts = [len(common_seeds(groups))] if evidence.blocks else [len(of_seeds) for of_seeds in groups]
    middle, share = (len(groups) - 1) // 2, criteria.plateau.value
    trials = []
    for upper in range(middle + 1, len(groups)):
        for side in (1, -1):
            weights = [0.0] * len(groups)
            weights[0], weights[middle], weights[upper] = -share, share + side, -side
            least = f"a change by less than {fixed(100 * share, 0)} % of the gain below {names[middle]}"
            effect = evidence.effect(groups, weights)
            trials.append(Trial(effect, RHO, names[upper], runs=min(counts), least=least))
    means = dict(zip(names, _means(groups), strict=True))
    words, enough = levels_text(means), int(criteria.least_temperatures.value)
    few = len(groups) < enough
    refusal = too_few(len(groups), enough, "temperature") if few else ""
    extent = evidence.extent(counts)
    return Trials(
        {"": trials}, lead=words, extent=extent, noun="higher temperature", numbers=False, refusal=refusal
    )


def levels_text(means: dict[str, float]) -> str:
    """Return the accuracy at the lowest and the middle temperature, and its range above, in words.

    >>> levels_text({"τ = 0.01": 74.9, "τ = 0.02": 77.0, "τ = 0.03": 77.5, "τ = 0.04": 77.6})
    '74.9 % at τ = 0.01, 77.0 % at τ = 0.02, 77.5 to 77.6 % above'
    """
    names = [*means]
    if len(names) < 3:
        return ", ".join(f"{fixed(means[name], 1)} % at {name}" for name in names)
    middle = (
        len(names) - 1
    ) // 2  # of the paper's eight this is 0.04, from which it calls accuracy saturated
    above = [means[name] for name in names[middle + 1 :]]
    low, mid = (f"{fixed(means[names[at]], 1)} % at {names[at]}" for at in (0, middle))
    return f"{low}, {mid}, {fixed(min(above), 1)} to {fixed(max(above), 1)} % above"
