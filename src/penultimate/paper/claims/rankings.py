"""Claims that two quantities rank objectives alike, or that accuracy levels off as the temperature rises."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from penultimate.objectives.presets import PRESETS
from penultimate.paper.claims.aspects import NAMES, OF_THE_SWEEP, Among, Aspect
from penultimate.paper.claims.criteria import Criteria
from penultimate.paper.claims.effects import (
    BySeed,
    Effect,
    Verdict,
    all_of,
    bootstrap_over_seeds,
    common_seeds,
    decide,
    difference,
    each,
    rank_effect,
    trend_effect,
)
from penultimate.paper.claims.evidence import (
    Assessment,
    Evidence,
    not_judged,
    paper,
    relearned,
    unmeasured,
)
from penultimate.paper.claims.rules import Trend
from penultimate.paper.claims.wording import (
    COPIES,
    least_correlation,
    not_enough_runs,
    range_text,
    rank_text,
    reason,
    runs_each,
    too_few,
)
from penultimate.report.base import MISSING
from penultimate.report.shapes.numbers import without_two
from penultimate.report.text import counted, fixed, listed, p_value, signed
from penultimate.statistics import summarise


def ranked(
    evidence: Evidence, x: Aspect, y: Aspect, sign: int, criteria: Criteria, over: Among = "objectives"
) -> Assessment:
    """Judge whether x and y rank objectives (or temperatures) as claimed, by means over runs that have both.

    A seed is a draw of the world. If all that are ranked have enough seeds in common, only these count, so
    that no mean is lower because of a harder draw. A sign of 0 claims neither order.
    """
    pairs = _pairs(evidence, x, y, over)
    least = criteria.least_objectives if over == "objectives" else criteria.least_temperatures
    noun, enough = over.removesuffix("s"), int(least.value)
    if not pairs:
        return unmeasured(_missing(evidence, x, y, over))
    usable = {spec: both for spec, both in pairs.items() if len(both[0]) >= criteria.least_runs.value}
    chosen = _balanced(usable if len(usable) >= enough else pairs, criteria)
    of_x, of_y = _sides(chosen)
    counts = [len(runs) for runs in of_x]
    over_seeds = bootstrap_over_seeds(of_x, of_y, criteria) if min(counts) > 1 else None
    means = _means(of_x), _means(of_y)
    effect = rank_effect(*means, sign or 1, over_seeds, criteria)
    if effect is None:
        why = f"No rank correlation: {counted(len(chosen), noun)}, or all alike; {enough} are needed."
        return not_judged(MISSING, why)
    labels = [evidence.among(over).objective(spec).label for spec in chosen]
    ours = f"{_with_error(x, y)}{rank_text(effect, sign or 1, len(chosen), noun)}, {runs_each(counts)}"
    ours += _shots_text(evidence, x, y, criteria, tuple(chosen)) + without_two(*means, labels)
    if len(pairs) < enough:
        return not_judged(ours, too_few(len(pairs), enough, noun))
    if len(usable) < enough:
        return not_judged(ours, not_enough_runs(counts, criteria))
    if sign:
        verdict = decide(effect, criteria)
        why = reason(effect, verdict, least_correlation(sign, criteria), criteria)
    else:
        opposite = rank_effect(*means, -1, over_seeds, criteria)
        assert opposite is not None
        verdict = all_of(each({"alike": effect, "oppositely": opposite}, ("alike", "oppositely")).values())
        why = _UNRELATED[verdict].format(fixed(criteria.least_correlation.value, 2))
    left_out = [evidence.among(over).objective(spec).label for spec in pairs if spec not in usable]
    if left_out:
        why += f" Left out for too few runs: {listed(left_out)}."
    return Assessment(ours, verdict, why)


_UNRELATED: dict[Verdict, str] = {
    "holds": "Excluded on either side: ρ of {0} or stronger.",
    "does not hold": "Related beyond chance (corrected for two sides), with ρ of {0} or stronger.",
    "undecided": "Neither shown nor excluded on both sides: ρ of {0} or stronger.",
}


def trend(evidence: Evidence, rule: Trend, criteria: Criteria) -> Assessment:
    """Judge whether y rises or falls with the temperature within each seed that has all temperatures."""
    y = evidence.values(rule.aspect, "temperatures")
    temperatures = [
        (value, objective)
        for value, objective in evidence.among("temperatures").temperatures
        if objective.spec in y
    ]
    enough = int(criteria.least_temperatures.value)
    if not temperatures:
        return unmeasured(_missing_of_temperatures(evidence, rule.aspect))
    runs = [y[objective.spec] for _, objective in temperatures]
    seeds = common_seeds(runs)
    effect = (
        trend_effect([[of[seed] for of in runs] for seed in seeds], rule.sign, criteria) if seeds else None
    )
    if effect is None:
        count = counted(len(runs), "temperature")
        return not_judged(
            MISSING, f"No trend: {count}, or all alike, or no seed has all; {enough} are needed."
        )
    low, high = sorted((rule.sign * effect.low, rule.sign * effect.high))
    labels = [f"τ = {value:g}" for value, _ in temperatures]
    ours = (
        f"mean ρ = {signed(rule.sign * effect.estimate, 2)} ({range_text(low, high, 2)}),"
        f" {p_value(effect.p)} (Page), {counted(len(runs), 'temperature')}, {runs_each([len(seeds)])}"
        + without_two(range(len(runs)), _means({seed: of[seed] for seed in seeds} for of in runs), labels)
    )
    if len(runs) < enough:
        return not_judged(ours, too_few(len(runs), enough, "temperature"))
    if len(seeds) < criteria.least_runs.value:
        return not_judged(ours, not_enough_runs([len(seeds)], criteria))
    verdict, least = decide(effect, criteria), least_correlation(rule.sign, criteria)
    return Assessment(ours, verdict, reason(effect, verdict, least, criteria))


def _missing(evidence: Evidence, x: Aspect, y: Aspect, over: Among) -> str:
    """Return the name of the quantity that a ranking without any pair lacks."""
    return NAMES[next((name for name in (x, y) if not evidence.values(name, over)), y)]


def _missing_of_temperatures(evidence: Evidence, aspect: Aspect) -> str:
    """Return the name of what is missing at several temperatures: the one aspect, or the sweep as a whole."""
    some = any(evidence.values(other, "temperatures") for other in OF_THE_SWEEP)
    return f"{NAMES[aspect]} at several temperatures of cosine softmax" if some else NAMES["temperature"]


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


def _balanced(pairs: _Pairs, criteria: Criteria) -> _Pairs:
    """Return the runs of the seeds that all have in common if these are enough, and otherwise all runs."""
    kept = common_seeds(x for x, _ in pairs.values())
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


def _shots_text(evidence: Evidence, x: Aspect, y: Aspect, criteria: Criteria, specs: Sequence[str]) -> str:
    """Return words on the images per class that relearned the heads, with rho at the other numbers."""
    if evidence.shots is None or not {x, y} & {"relearned", "gap"}:
        return ""
    others = []
    for shots in relearned(evidence.measurements):
        if shots != evidence.shots:
            pairs = _pairs(dataclasses.replace(evidence, shots=shots), x, y)
            same = {spec: pairs[spec] for spec in specs if spec in pairs}
            of_x, of_y = _sides(_balanced(same, criteria) if same else same)
            effect = rank_effect(_means(of_x), _means(of_y), 1, None, criteria)
            if effect is not None:
                others.append(f"ρ = {signed(effect.estimate, 2)} at {shots}")
    also = f" (also, not judged: {', '.join(others)})" if others else ""
    return f", {evidence.shots} images per class{also}"


def ranked_in_paper(x: Aspect, y: Aspect, criteria: Criteria, over: Among = "objectives") -> str:
    """Return the correlation of the paper's printed means."""
    of_x, of_y = paper(x, over), paper(y, over)
    keys = [key for key in of_x if key in of_y]
    values = [of_x[key] for key in keys], [of_y[key] for key in keys]
    effect = rank_effect(*values, 1, None, criteria)
    assert effect is not None
    labels = [PRESETS[key].label if over == "objectives" else f"τ = {float(key):g}" for key in keys]
    ranked = rank_text(effect, 1, len(keys), over.removesuffix("s"))
    return f"{_with_error(x, y)}{ranked}{without_two(*values, labels)}"


def _with_error(x: Aspect, y: Aspect) -> str:
    """Return the words before a correlation with the calibration error, which is worse the higher it is."""
    return "With the calibration error (ECE, higher is worse): " if "ece" in (x, y) else ""


def levels(evidence: Evidence, aspect: Aspect, criteria: Criteria, blocks: bool) -> Assessment:
    """Judge whether accuracy A rises up to the middle temperature and is level above it.

    |A_t - A_mid| < share * (A_mid - A_min) for every t > mid

    Each bound is a linear contrast of means. The claim holds if all bounds are met, uncorrected; it fails if
    one is broken, corrected.
    """
    runs = evidence.values(aspect, "temperatures")
    temperatures = evidence.among("temperatures").temperatures
    points = [(t, runs[objective.spec]) for t, objective in temperatures if objective.spec in runs]
    if not points:
        return unmeasured(_missing_of_temperatures(evidence, aspect))
    enough = int(criteria.least_temperatures.value)
    groups = [of_seeds for _, of_seeds in points]
    counts = [len(common_seeds(groups))] if blocks else [len(of_seeds) for of_seeds in groups]
    means = {t: summarise(of_seeds.values()).mean for t, of_seeds in points}
    ours = f"{levels_text(means)}, {runs_each(counts)}"
    if len(points) < enough:
        return not_judged(ours, too_few(len(points), enough, "temperature"))
    if min(counts) < criteria.least_runs.value:
        return not_judged(ours, not_enough_runs(counts, criteria))
    middle, share = _middle(len(groups)), criteria.plateau.value
    effects: dict[str, Effect] = {}
    for upper in range(middle + 1, len(groups)):
        for side in (1, -1):
            weights = [0.0] * len(groups)
            weights[0], weights[middle], weights[upper] = -share, share + side, -side
            effect = difference(groups, weights, 0.0, criteria, blocks)
            if effect is None:
                return not_judged(ours, COPIES)
            effects[f"{points[upper][0]:g} {side}"] = effect
    verdicts = each(effects, (), criteria)
    verdict = all_of(verdicts.values())
    moved = sorted({float(key.split()[0]) for key, one in verdicts.items() if one == verdict})
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
    """Return the accuracy at the lowest and the middle temperature, and its range above, in words.

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
    """Return the index of the lower median.

    Among the paper's eight temperatures it is 0.04, from which the paper calls accuracy saturated.
    """
    return (count - 1) // 2
