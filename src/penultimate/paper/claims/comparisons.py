"""Rules that compare softmax with the alternatives in one quantity: each, all, and task by task."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from penultimate.objectives.presets import PRESETS
from penultimate.paper.claims.aspects import NAMES, Aspect, is_ratio
from penultimate.paper.claims.criteria import Criterion
from penultimate.paper.claims.effects import BySeed, common_seeds, corrected
from penultimate.paper.claims.evidence import BASELINE, Evidence, StudyEvidence
from penultimate.paper.claims.rules import (
    ALTERNATIVES,
    Adds,
    Alike,
    Below,
    BestForMost,
    BestForShare,
    BestOfAll,
    Better,
    NoSingleBest,
    OnlyThese,
    SomeBetter,
    Unbeaten,
)
from penultimate.paper.claims.trials import EffectUnit, Trial, Trials, refused, unit
from penultimate.report.base import MISSING
from penultimate.report.text import counted, fixed
from penultimate.statistics import mean

Sides: TypeAlias = Mapping[str, Sequence[tuple[int, bool]]]
"""The differences of each alternative from softmax that are tested: the sign, and whether they are denied."""
LOWER, HIGHER, NOT_HIGHER = ((-1, False),), ((1, False),), ((1, True),)
NO_OTHER = ((1, True), (-1, True))


def level_text(value: float, aspect: Aspect) -> str:
    """Return a value of a quantity, with its unit or its name.

    >>> level_text(75.95, "linear"), level_text(0.349, "separation")
    ('76.0 %', 'R² 0.349')
    """
    return f"R² {fixed(value, 3)}" if is_ratio(aspect) else f"{fixed(value, 1)} %"


def against_softmax(
    evidence: Evidence, aspect: Aspect, sides: Sides, share: Criterion | None = None
) -> Trials:
    """Return the differences of alternatives from softmax; `share` is the share of its errors that counts."""
    softmax, alternatives = evidence.alternatives(aspect)
    present = {slug: alternatives[slug] for slug in sides if slug in alternatives}
    if not softmax or not present:
        return evidence.lacking(aspect)
    margin = evidence.least(aspect, softmax, share)
    trials = []
    for slug, runs in present.items():
        count = runs_compared(evidence, (runs, softmax))
        trials += [
            Trial(
                evidence.effect((runs, softmax), (sign, -sign), margin),
                unit(aspect),
                PRESETS[slug].label,
                denied,
                sign,
                runs=count,
                least=unit(aspect).either_way(margin) if len(sides[slug]) > 1 else "",
            )
            for sign, denied in sides[slug]
        ]
    return Trials(
        {"": trials},
        lead=f"Softmax {level_text(mean(softmax.values()), aspect)}",
        extent=evidence.extent(trial.runs for trial in trials),
        absent=tuple(PRESETS[slug].label for slug in sides if slug not in present),
    )


def runs_compared(evidence: Evidence, groups: Sequence[BySeed]) -> int:
    """Return the number of runs that a comparison rests on: common seeds, or the fewest of a group."""
    return len(common_seeds(groups)) if evidence.blocks else min(map(len, groups))


def all_sides(side: Sequence[tuple[int, bool]], among: Sequence[str] = ALTERNATIVES) -> Sides:
    """Return the same differences for each of these alternatives."""
    return dict.fromkeys(among, side)


def better(evidence: Evidence, rule: Better) -> Trials:
    """Return the difference of one alternative from softmax, corrected for being one of several."""
    family = against_softmax(evidence, rule.aspect, all_sides(HIGHER))
    label = PRESETS[rule.objective].label
    own = [trial for trial in family.every if trial.name == label]
    if not own:
        return _no_run(evidence, rule)
    tested = [trial for trial in family.every if trial.is_tested and evidence.is_enough(trial.runs)]
    (chosen,) = own
    if chosen in tested:
        effects = corrected(corrected([trial.effect for trial in tested], "p_for"), "p_against")
        note = f"corrected for {counted(len(tested), 'comparison')}" if len(tested) > 1 else ""
        chosen = dataclasses.replace(
            chosen, effect=effects[tested.index(chosen)], note=note, times=len(tested)
        )
    return Trials({"": (dataclasses.replace(chosen, name=""),)}, extent=evidence.extent([chosen.runs]))


def _no_run(evidence: Evidence, rule: Better) -> Trials:
    label = PRESETS[rule.objective].label
    if isinstance(evidence, StudyEvidence):
        study = evidence.measurements
        labels = {entry.label for entry in study.objectives if entry.slug == rule.objective}
        if labels & {run.objective for run in study.diverged if not run.backbone}:
            return refused(MISSING, f"No run of {label} is left: all diverged.")
    which = label if evidence.alternatives(rule.aspect)[0] else PRESETS[BASELINE].label
    return evidence.lacking(rule.aspect, f"{which}, {NAMES[rule.aspect]}")


def against_all(evidence: Evidence, rule: BestOfAll | Unbeaten | OnlyThese) -> Trials:
    """Return the differences that decide if softmax is ahead of each, behind each, of none, or of some."""
    match rule:
        case BestOfAll(aspect, sign, among):
            return against_softmax(evidence, aspect, all_sides(LOWER if sign > 0 else HIGHER, among))
        case Unbeaten(aspect):
            return against_softmax(evidence, aspect, all_sides(NOT_HIGHER))
        case OnlyThese(aspect, objectives):
            return against_softmax(
                evidence, aspect, {**all_sides(NOT_HIGHER), **all_sides(HIGHER, objectives)}
            )


def alike(evidence: Evidence, rule: Alike) -> Trials:
    """Return the differences either way, of which none may count: two one-sided tests of each alternative."""
    return against_softmax(evidence, rule.aspect, all_sides(NO_OTHER), evidence.further.little)


def some_better(evidence: Evidence, rule: SomeBetter) -> Trials:
    """Return the gains, on the first task of the rule that there is, of those that separate further."""
    task = next((one for one in rule.tasks if one in evidence.tasks(rule.aspect)), "")
    softmax, others = evidence.alternatives("separation")
    if not task or not softmax:
        return evidence.lacking(rule.aspect, NAMES["shared"])
    further = [slug for slug, runs in others.items() if mean(runs.values()) > mean(softmax.values())]
    trials = against_softmax(evidence.on_task(task), rule.aspect, all_sides(NOT_HIGHER, further))
    return dataclasses.replace(trials, any_of=True, absent=()) if further else trials


def best_for_most(evidence: Evidence, rule: BestForMost | BestForShare) -> Trials:
    """Return, for each task, label or epoch, softmax's leads on the alternatives.

    To hold, as many must pass as are needed: with u of T, p_(u) (T - u + 1) <= a over their own p, each an
    intersection over alternatives. To fail, T - u + 1 of them must, likewise.

    Benjamini and Heller, 2008.
    """
    of_share = isinstance(rule, BestForShare)
    by_task = {
        task: against_softmax(evidence.on_task(task), rule.aspect, all_sides(LOWER))
        for task in evidence.tasks(rule.aspect)
    }
    if not by_task or any(one.missing for one in by_task.values()):
        return evidence.lacking(rule.aspect)
    total = len(by_task)
    needed = (
        -(-round(1000 * rule.share * total) // 1000) if isinstance(rule, BestForShare) else total // 2 + 1
    )
    means = {task: _means(evidence.on_task(task), rule.aspect) for task in by_task}
    noun = {"labels": "label", "snapshots": "snapshot"}.get(rule.aspect, "task")
    best = [of for of in means.values() if of[BASELINE] == max(of.values())]
    tied = sum([*of.values()].count(of[BASELINE]) > 1 for of in best)
    lead = f"Softmax best on {len(best)} of {total} {noun}s{f' (tied on {tied})' if tied else ''}"
    absent = () if of_share else next(iter(by_task.values())).absent
    counts = [trial.runs for one in by_task.values() for trial in one.every]
    return Trials(
        {task: one.every for task, one in by_task.items()},
        needed,
        lead=lead,
        extent=evidence.extent(counts),
        of_groups=noun,
        absent=absent,
    )


def _means(evidence: Evidence, aspect: Aspect) -> dict[str, float]:
    """Return means to a millionth of a point, so that ties stay ties in a kept study with nine digits."""
    softmax, others = evidence.alternatives(aspect)
    return {slug: round(mean(runs.values()), 6) for slug, runs in {BASELINE: softmax, **others}.items()}


def below(evidence: Evidence, rule: Below) -> Trials:
    """Return how far the means of these objectives lie below a limit."""
    _, alternatives = evidence.alternatives(rule.aspect)
    present = [slug for slug in rule.objectives if slug in alternatives]
    if not present:
        return evidence.lacking(rule.aspect)
    words = EffectUnit("{} % of activations", 1, has_sign=False)
    trials = []
    for slug in present:
        room = {seed: rule.limit - value for seed, value in alternatives[slug].items()}
        effect = evidence.effect((room,), (1,))
        trials.append(Trial(effect, words, PRESETS[slug].label, sign=-1, offset=rule.limit, runs=len(room)))
    absent = tuple(PRESETS[slug].label for slug in rule.objectives if slug not in present)
    return Trials({"": trials}, extent=evidence.extent(trial.runs for trial in trials), absent=absent)


def adds(evidence: Evidence, rule: Adds) -> Trials:
    """Return what each alternative gains on softmax in an arm, and what the arm gains on the main one."""
    softmax, inside = evidence.with_arm(rule.arm).alternatives("accuracy")
    _, outside = evidence.alternatives("accuracy")
    groups: dict[str, list[Trial]] = {}
    for slug, runs in inside.items():
        if not softmax or slug not in outside:
            continue
        margin = evidence.least("accuracy", softmax)
        for words, other in (("on softmax, augmented too", softmax), ("on itself without", outside[slug])):
            pair = (runs, other)
            name = f"{PRESETS[slug].label} {words}"
            effect, count = evidence.effect(pair, (1, -1), margin), runs_compared(evidence, pair)
            groups.setdefault("", []).append(Trial(effect, unit("accuracy"), name, runs=count))
    if not groups:
        return evidence.lacking("augmented")
    return Trials(groups, extent=evidence.extent(trial.runs for trial in groups[""]), noun="gain")


def no_single_best(evidence: Evidence, _: NoSingleBest) -> Trials:
    """Return, for each objective, what every other gains on it in each benchmark: one gain must count."""
    benchmarks = evidence.benchmarks()
    softmax, groups = PRESETS[BASELINE].label, dict[str, list[Trial]]()
    for title, runs in benchmarks.items():
        margin = evidence.least("accuracy", runs.get(softmax) or next(iter(runs.values())))
        for label, rival in itertools.permutations(runs, 2):
            pair = (runs[rival], runs[label])
            effect, count = evidence.effect(pair, (1, -1), margin), runs_compared(evidence, pair)
            trial = Trial(effect, unit("accuracy"), f"{rival} on {title}", True, runs=count)
            groups.setdefault(label, []).append(trial)
    if not groups:
        return evidence.lacking("benchmarks")
    best = {title: max(runs, key=lambda one: mean(runs[one].values())) for title, runs in benchmarks.items()}
    lead = "; ".join(f"best on {title}: {label}" for title, label in best.items())
    counts = [trial.runs for group in groups.values() for trial in group]
    extent = evidence.extent(counts)
    return Trials(groups, len(groups), True, f"{lead[0].upper()}{lead[1:]}", extent, of_groups="objective")
