"""Rules on one number per seed: from the course of training, tasks, layers, arms and pairs of networks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import linear_regression, stdev

from penultimate.objectives.presets import PRESETS
from penultimate.paper.arms import ONE_DRAW
from penultimate.paper.claims.aspects import QUANTITIES, SHARED
from penultimate.paper.claims.courses import kinship
from penultimate.paper.claims.effects import BySeed, common_seeds
from penultimate.paper.claims.evidence import BASELINE, Evidence, StudyEvidence
from penultimate.paper.claims.rules import NonePositive, NoSum, OnlyAccuracy, Positive
from penultimate.paper.claims.trials import Trial, Trials, one, refused, unit
from penultimate.report.measurements import Measurements, Seed
from penultimate.report.shapes.depth import in_order
from penultimate.report.shapes.pairs import pairs_of
from penultimate.report.text import counted, fixed, signed
from penultimate.statistics import mean, spearman


def positive(evidence: Evidence, rule: Positive) -> Trials:
    """Return a number that was measured for each seed, whose mean the claim says is above zero."""
    values, margin = _of_seeds(evidence, rule)
    if not values:
        return evidence.lacking(rule.aspect)
    trial = Trial(evidence.effect((values,), (1,), margin), unit(rule.aspect), runs=len(values))
    extent = evidence.extent([len(values)]).replace(
        " each", "" if rule.objective else ", each with all objectives"
    )
    return one(trial, extent)


def _of_seeds(evidence: Evidence, rule: Positive) -> tuple[BySeed, float]:
    """Return the number for each seed, and the smallest number that counts."""
    criteria = evidence.criteria
    if rule.aspect == "shared":
        return _shared(evidence), criteria.least_contrast.value
    if not isinstance(evidence, StudyEvidence):
        return {}, 0.0
    if rule.aspect == "kinship":
        quantity = QUANTITIES["kinship"]
        gains, others = kinship(pairs_of(evidence.measurements.or_in_arm(ONE_DRAW), quantity))
        scaled = {seed: quantity.scale * gain for seed, gain in gains.items()}
        return scaled, criteria.least_gain.value * (100 - quantity.scale * others)
    if rule.aspect == "moved":
        return _moved(evidence.measurements, rule.objective), criteria.least_gain.value
    softmax, _ = evidence.alternatives("separation")
    values, alternatives = evidence.alternatives(rule.aspect)
    values = values if rule.objective == BASELINE else alternatives.get(rule.objective, {})
    return (values, evidence.least("separation", softmax)) if softmax else ({}, 0.0)


def _moved(measurements: Measurements, slug: str) -> BySeed:
    """Return by how much fine-tuning leaves the first third of layers more alike (CKA) than the last third.

    It is the mean over the tasks, of each network of an objective.
    """
    spec = next((one.spec for one in measurements.objectives if one.slug == slug), "")
    gaps: dict[Seed, list[float]] = {}
    for target in measurements.targets:
        rows = [
            row
            for row in measurements.rows(QUANTITIES["moved"].metric, target=target)
            if row.objective == spec
        ]
        rows = [row for row in rows if row.setting == QUANTITIES["moved"].setting and row.layer is not None]
        for seed in dict.fromkeys(row.seed for row in rows):
            of_layers = {str(row.layer): row.value for row in rows if row.seed == seed}
            ordered = [of_layers[name] for name in in_order(of_layers, measurements)]
            if third := len(ordered) // 3:
                gaps.setdefault(seed, []).append(mean(ordered[:third]) - mean(ordered[-third:]))
    return {
        seed: mean(values) for seed, values in gaps.items() if len(values) == max(map(len, gaps.values()))
    }


def _shared(evidence: Evidence) -> BySeed:
    """Return, for each seed, the slope of the tasks' rho (R² with transfer) over their shares of classes.

    If tasks share all of their classes or none, the slope is the mean rho of the former less that of the
    latter. Networks without a seed are left out, unless means are exact, and so are, for each seed, tasks on
    which all transfer alike.
    """
    separation = {
        spec: runs
        for spec, runs in evidence.values("separation").items()
        if evidence.is_exact or {*runs} != {None}
    }
    tasks = evidence.by_task("linear")
    if len({*map(_share, tasks)}) < 2 or len(separation) < 3:
        return {}
    runs = [separation, *tasks.values()]
    slopes = {
        seed: slope_over_shares(
            {
                task: spearman(
                    [of_spec[seed] for of_spec in separation.values()],
                    [of[spec][seed] for spec in separation],
                    exact=False,
                ).rho
                for task, of in tasks.items()
            }
        )
        for seed in common_seeds(of.get(spec, {}) for of in runs for spec in separation)
    }
    return {seed: value for seed, value in slopes.items() if not math.isnan(value)}


def slope_over_shares(rhos: Mapping[str, float]) -> float:
    """Return the least-squares slope of the tasks' rho over the share of their classes that pretraining has.

    If tasks share all of their classes or none, it is the difference of two means. A task without a rho is
    left out. The slope is NaN if all tasks share alike.

    >>> slope_over_shares({"newfaces": -0.5, "shared_50": -0.75, "maths": -1.0, "typeface": math.nan})
    0.5
    """
    points = [(_share(task), rho) for task, rho in rhos.items() if not math.isnan(rho)]
    shares = [share for share, _ in points]
    if len({*shares}) < 2:
        return math.nan
    return linear_regression(shares, [rho for _, rho in points]).slope


def _share(task: str) -> float:
    return SHARED.get(task, 0.0)


def none_positive(evidence: Evidence, rule: NonePositive) -> Trials:
    """Return the numbers of the alternatives, of which the claim says that none is above zero."""
    softmax, _ = evidence.alternatives("separation")
    _, values = evidence.alternatives(rule.aspect)
    if not values or not softmax:
        return evidence.lacking(rule.aspect)
    margin = evidence.least("separation", softmax)
    trials = [
        Trial(
            evidence.effect((runs,), (1,), margin),
            unit(rule.aspect),
            PRESETS[slug].label,
            True,
            runs=len(runs),
        )
        for slug, runs in values.items()
    ]
    return Trials({"": trials}, extent=evidence.extent(trial.runs for trial in trials))


def only_accuracy(evidence: Evidence, rule: OnlyAccuracy) -> Trials:
    """Return the changes of accuracy and of class separation in an arm, in the mean over objectives."""
    arm = evidence.with_arm(rule.arm)
    plain = [evidence.values("accuracy"), evidence.values("separation")]
    other = [arm.values("accuracy"), arm.values("separation")]
    specs = [spec for spec in other[0] if all(spec in runs for runs in (*plain, *other))]
    if not specs:
        return evidence.lacking("augmented")
    seeds = common_seeds(runs[spec] for runs in (*plain, *other) for spec in specs)
    gain, change = (
        {seed: mean([after[spec][seed] - before[spec][seed] for spec in specs]) for seed in seeds}
        for before, after in zip(plain, other, strict=True)
    )
    extent = ", ".join(filter(None, (counted(len(specs), "objective"), evidence.extent([len(seeds)]))))
    if len(specs) < 2:
        return refused(extent, "One objective has no spread of R², of which to take a share.")
    softmax, _ = evidence.alternatives("accuracy")
    least = evidence.least("accuracy", softmax or plain[0][specs[0]])
    spread = stdev(mean(plain[1][spec].values()) for spec in specs)
    margin, of_r2, runs = evidence.further.far.value * spread, unit("separation"), len(seeds)
    effects = {sign: evidence.effect((change,), (sign,), margin) for sign in (1, -1)}
    trials = (
        Trial(evidence.effect((gain,), (1,), least), unit("accuracy"), "Accuracy", runs=runs),
        *(
            Trial(effect, of_r2, "Separation", True, sign, runs=runs, least=of_r2.either_way(margin))
            for sign, effect in effects.items()
        ),
    )
    return Trials({"": trials}, extent=f"{extent}; spread among the objectives {fixed(spread, 3)}")


def no_sum(evidence: Evidence, _: NoSum) -> Trials:
    """Return what combinations gain over the better of their parts, in the mean over combinations."""
    softmax, wholes = evidence.combinations()
    if not wholes or not softmax:
        return evidence.lacking("combined")
    seeds = common_seeds(runs for _, whole, parts in wholes for runs in (whole, *parts))
    if not seeds:
        return refused(
            counted(len(wholes), "combination"), "No seed has all combinations and all their parts."
        )
    gains = {label: on_better(whole, parts, seeds) for label, whole, parts in wholes}
    means: BySeed = {seed: mean([gain[seed] for gain in gains.values()]) for seed in seeds}
    effect = evidence.effect((means,), (1,), evidence.least("accuracy", softmax))
    best = max(gains, key=lambda label: mean(gains[label].values()))
    highest = signed(mean(gains[best].values()), 2)
    extent = f"mean of {counted(len(wholes), 'combination')}; the best: {best}, {highest}"
    of_runs = evidence.extent([len(seeds)])
    trial = Trial(effect, unit("combined"), denied=True, runs=len(seeds))
    return one(trial, ", ".join(filter(None, (of_runs, extent))))


def on_better(whole: BySeed, parts: Sequence[BySeed], seeds: Sequence[Seed]) -> BySeed:
    """Return, for each seed, the combination minus the part that is best in the mean of the other seeds."""
    gains = {}
    for seed in seeds:
        others = [other for other in seeds if other != seed] or [seed]
        better = max(parts, key=lambda part: mean([part[other] for other in others]))
        gains[seed] = whole[seed] - better[seed]
    return gains
