"""The rules on a disposable last block: does what is thrown away take the loss's specialisation with it?

A projector is hidden layers between the penultimate features and the head; they are dropped after training.
Features are read before it, at the same place with it and without. Five objectives, at the strengths that the
holdout chose, have none, one and two such layers in the study `sweep`, five seeds each.

The rules were written on 2026-11-27, before any network of the arm `behind a projector` was trained. What was
known of projectors is that of the kept searches for an objective that beats softmax: softmax with depth 1, 2
and 3, and label smoothing with depth 1 (`better_search`, two seeds), and the last again in `better` (eight
seeds). No network with a projector and logit normalization, cosine softmax or squared error had been trained,
and label smoothing none with depth 2. Softmax with a projector had been trained in this study, and was not
looked at before the rules were settled. Without a projector, all five had been transferred in three of the
five seeds of the kept run, where squared error's transfer lies points below that of the others.

No number of these rules is their own. Differences count from a hundredth of what softmax lacks to 100 %, as
in the first set, and are tested within seeds by t. The spread is that of the rule on fine-tuning
(`claims.spreads`), with its interval over resampled seeds and tasks, and a fall of it counts as any other
difference in transfer does. The objectives are fixed, not sampled: five are enough where seeds and tasks are
resampled, and all five are needed, so that a depth at which one diverged in all seeds is not judged.

With networks that vary by .45 points within a seed, five seeds find a mean gain of half a point in 83 % of
studies, by t. In 250 simulated studies a spread that falls to .7 of itself is found in 89 %, one that falls
to a half in all, and one that does not fall is taken to do so in 2 % (in 4 % where networks vary by a point).

The words of the first claim were narrowed on the same day, after the run: they said "the more, the better",
which the rule (two layers less none) does not test, and one layer turned out to do more than two. No verdict
changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from penultimate.objectives.presets import resolve
from penultimate.paper.arms import BEHIND_A_PROJECTOR
from penultimate.paper.claims.aspects import Aspect
from penultimate.paper.claims.criteria import CRITERIA
from penultimate.paper.claims.effects import BySeed, common_seeds
from penultimate.paper.claims.evidence import BASELINE, Evidence, StudyEvidence
from penultimate.paper.claims.rules import Claim, Projected
from penultimate.paper.claims.spreads import spread_fall, spreads
from penultimate.paper.claims.trials import EffectUnit, Trial, Trials, one, refused, too_few, unit, unmeasured
from penultimate.report.measurements import Seed
from penultimate.report.text import counted, fixed, listed, p_value
from penultimate.statistics import mean

PROJECTOR_RULES = "2026-11-27, a disposable last block"
"""The date of these rules."""
STUDY = "sweep"
"""The study that measures what these rules judge."""
OBJECTIVES = (
    "softmax",
    "label_smoothing(alpha=0.2)",
    "logit_norm(temperature=0.057)",
    "cosine_softmax(scale=1, temperature=0.05)",
    "squared_error(kappa=9, scale=1.28, target=3.75)",
)
"""The objectives that are compared, at the strengths that the holdout of the searches chose."""
DEPTHS = (0, 1, 2)
"""The numbers of hidden layers that are thrown away."""
ARMS = ("", "projector", BEHIND_A_PROJECTOR)
"""The arms whose networks are compared: the main one, softmax with a projector, and the others with one."""
ByDepth: TypeAlias = Mapping[int, Mapping[str, BySeed]]
"""Values by the number of layers thrown away, by the objective without them, and by seed."""


def _claim(key: str, says: str, rule: Projected) -> Claim:
    where = "section 3.4, read as a cause; no network of the paper has a projector"
    return Claim(key, says, where, rule, True, "", PROJECTOR_RULES)


PROJECTOR_CLAIMS: tuple[Claim, ...] = (
    _claim(
        "projector_gain",
        "Features before two hidden layers that are thrown away after training transfer better than those"
        " of a network without (linear classifiers)",
        Projected("gain"),
    ),
    _claim("projector_gain_knn", "The same holds for kNN classifiers", Projected("gain", "knn")),
    _claim(
        "projector_spread",
        "With two hidden layers thrown away, the objectives differ less in linear transfer than with none",
        Projected("spread"),
    ),
    _claim(
        "projector_accuracy",
        "With two hidden layers thrown away, the objectives are in the mean at least as accurate as softmax"
        " with none",
        Projected("accuracy"),
    ),
)


def projector_spoken() -> tuple[str, ...]:
    """Return these rules in sentences; those of the first set on level, runs and margins hold here too."""
    return (
        f"The rules on a disposable last block are of {PROJECTOR_RULES.partition(',')[0]},"
        f" before any network of the arm '{BEHIND_A_PROJECTOR}' was trained; the"
        " words of the first claim were narrowed after the run, to what its rule tests. They"
        f" look at {counted(len(OBJECTIVES), 'objective')} with no hidden layer thrown away after training"
        " and with two, and at features before these layers. The gain in transfer is the mean over the"
        " objectives of two layers less none, within seeds. It holds if it counts, beyond chance, and does"
        " not if a gain that counts is excluded. Page's test for a rise over none, one and two layers is told"
        " beside it and decides nothing.",
        "The spread is the standard deviation over objectives of their means, from products of two seeds, so"
        " that the noise of runs is not in it. That it falls from none to two layers is tested by resampled"
        " seeds and tasks, as the spread of fine-tuned networks is; a fall counts from the same number of"
        " points as a gain in linear transfer. The claim on accuracy holds if a loss that counts is excluded"
        " (the objectives' mean with two layers less softmax's with none), and does not if such a loss is"
        " beyond chance."
        f" Of these {len(PROJECTOR_CLAIMS)} claims up to"
        f" {fixed(len(PROJECTOR_CLAIMS) * CRITERIA.one_sided, 2)} may be decided wrongly by chance.",
    )


def behind(objective: str, depth: int) -> str:
    """Return the canonical spec of an objective behind a projector of this depth.

    >>> behind("label_smoothing(alpha=0.2)", 1), behind("softmax", 0)
    ('label_smoothing(alpha=0.2) + projector(depth=1, width=512)', 'softmax')
    """
    return resolve(f"{objective} + projector(depth={depth})" if depth else objective).canonical


def by_depth(evidence: StudyEvidence, aspect: Aspect) -> dict[int, dict[str, BySeed]]:
    """Return the values of an aspect at every depth, of those objectives that have any."""
    measured: dict[str, BySeed] = {}
    for arm in ARMS:
        measured = {**evidence.with_arm(arm).values(aspect), **measured}
    wanted = {depth: {spec: behind(spec, depth) for spec in OBJECTIVES} for depth in DEPTHS}
    return {
        depth: {spec: measured[own] for spec, own in of.items() if own in measured}
        for depth, of in wanted.items()
    }


def seeds_at(found: ByDepth, depths: Sequence[int] = DEPTHS) -> list[Seed]:
    """Return the seeds that all objectives have at all of these depths; none if one has no values."""
    groups = [found[depth].get(spec, {}) for depth in depths for spec in OBJECTIVES]
    return common_seeds(groups)


def judge_projected(evidence: Evidence, rule: Projected) -> Trials:
    """Judge a claim about networks with a projector, which the paper does not have."""
    aspect: Aspect = "accuracy" if rule.test == "accuracy" else rule.aspect
    words = "objectives with a projector that is thrown away"
    lacking = Trials({}, missing=unmeasured(words, f"penultimate run {STUDY}").missing)
    if not isinstance(evidence, StudyEvidence) or BEHIND_A_PROJECTOR not in evidence.measurements.arms:
        return lacking
    found = by_depth(evidence, aspect)
    if not found[0] or not any(found[depth] for depth in DEPTHS[1:]):
        return lacking
    absent = [
        f"{resolve(spec).label} at depth {depth}"
        for depth in (DEPTHS[0], DEPTHS[-1])
        for spec in OBJECTIVES
        if not found[depth].get(spec)
    ]
    if absent:
        return refused(_levels_text(found), f"Not measured, or diverged: {listed(absent)}.")
    judge_by = {"gain": _gain, "spread": _spread, "accuracy": _loss}[rule.test]
    return judge_by(evidence, aspect, found)


def _gain(evidence: StudyEvidence, aspect: Aspect, found: ByDepth) -> Trials:
    """Return the mean gain in transfer from no layer thrown away to two."""
    trial = mean_gain(evidence, aspect, found, (OBJECTIVES, DEPTHS[-1]), (OBJECTIVES, DEPTHS[0]))
    trials = one(trial, evidence.extent([trial.runs]), _levels_text(found))
    return dataclasses.replace(trials, remark=_rise(found))


def _loss(evidence: StudyEvidence, aspect: Aspect, found: ByDepth) -> Trials:
    """Return the loss in accuracy from softmax with no layer thrown away to all objectives with two."""
    trial = mean_gain(evidence, aspect, found, ((BASELINE,), DEPTHS[0]), (OBJECTIVES, DEPTHS[-1]))
    softmax = fixed(mean(found[DEPTHS[0]][BASELINE].values()), 2)
    lead = f"Softmax with no layer thrown away {softmax} %; {_levels_text(found)}"
    return one(dataclasses.replace(trial, denied=True, sign=-1), evidence.extent([trial.runs]), lead)


def mean_gain(
    evidence: StudyEvidence,
    aspect: Aspect,
    found: ByDepth,
    upper: tuple[Sequence[str], int],
    lower: tuple[Sequence[str], int],
) -> Trial:
    """Return what the mean of some objectives at one depth has more than that of others at another."""
    groups = [found[depth][spec] for specs, depth in (upper, lower) for spec in specs]
    weights = [1 / len(upper[0])] * len(upper[0]) + [-1 / len(lower[0])] * len(lower[0])
    effect = evidence.effect(groups, weights, evidence.least(aspect, found[DEPTHS[0]][BASELINE]))
    return Trial(effect, unit(aspect), runs=len(common_seeds(groups)))


def _spread(evidence: StudyEvidence, aspect: Aspect, found: ByDepth) -> Trials:
    """Return the fall of the objectives' spread in transfer from no layer thrown away to two."""
    import numpy as np

    ends = (DEPTHS[-1], DEPTHS[0])
    tasks = [by_depth(evidence.on_task(task), aspect) for task in evidence.tasks(aspect)]
    shared = [seeds_at(of, ends) for of in tasks]
    seeds = [seed for seed in seeds_at(found, ends) if all(seed in of for of in shared)]
    extent = f"{counted(len(OBJECTIVES), 'objective')}, {counted(len(tasks), 'task')}"
    needed = int(evidence.further.least_tasks.value)
    if len(tasks) < needed:
        return refused(extent, too_few(len(tasks), needed, "task"))
    extent = f"{extent}, {evidence.extent([len(seeds)])}"
    margin = evidence.least(aspect, found[DEPTHS[0]][BASELINE])
    words = EffectUnit(f"{{}} points of spread in {unit(aspect).text.rpartition(' of ')[2]}")
    if not evidence.is_enough(len(seeds)):
        return refused(extent, f"Seeds that all objectives have at both depths: {len(seeds)}, too few.")
    deep, plain = (
        np.array([[[task[depth][spec][seed] for task in tasks] for seed in seeds] for spec in OBJECTIVES])
        for depth in ends
    )
    of = spreads(deep, plain, True, evidence.further)
    effect = spread_fall(of, margin, evidence.criteria, evidence.further)
    lead = f"Spread {fixed(of.of_y, 2)} points with no layer thrown away, {fixed(of.of_x, 2)} with two"
    return one(Trial(effect, words, sign=-1, runs=len(seeds), over="", level=", 99 %"), extent, lead)


def mean_by_depth(found: ByDepth) -> dict[int, dict[Seed, float]]:
    """Return the means over all objectives at each depth that each has, of the seeds that all have there."""
    means: dict[int, dict[Seed, float]] = {}
    for depth, of in found.items():
        if seeds := seeds_at(found, (depth,)):
            means[depth] = {seed: mean([of[spec][seed] for spec in OBJECTIVES]) for seed in seeds}
    return means


def _levels_text(found: ByDepth) -> str:
    """Return the mean over all objectives at each depth."""
    means = mean_by_depth(found)
    return listed([f"{fixed(mean(of.values()), 2)} % at depth {depth}" for depth, of in means.items()])


def rise_over_depths(found: ByDepth) -> tuple[float, float, int] | None:
    """Return Page's L, its p and the number of seeds for a rise over all depths, or None with under two.

    Page, 1963.
    """
    from scipy.stats import page_trend_test

    seeds = seeds_at(found)
    if len(seeds) < 2:
        return None
    means = mean_by_depth(found)
    test = page_trend_test([[means[depth][seed] for depth in DEPTHS] for seed in seeds])
    return float(test.statistic), float(test.pvalue), len(seeds)


def _rise(found: ByDepth) -> str:
    test = rise_over_depths(found)
    if test is None:
        return ""
    return (
        f" Beside it, Page's test for a rise over depths {listed([str(depth) for depth in DEPTHS])} within"
        f" {counted(test[2], 'seed')}: L = {test[0]:g}, {p_value(test[1])}."
    )
