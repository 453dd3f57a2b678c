"""The evidence for claims: the numbers that a study measured, by objective, temperature, task or arm."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from penultimate.data.catalog import card, shifted
from penultimate.paper.arms import COMBINATIONS, SWEEP
from penultimate.paper.claims.aspects import (
    EDGES,
    ELSEWHERE,
    MEASURED_BY,
    NAMES,
    ORIGINAL,
    QUANTITIES,
    Among,
    Aspect,
    is_ratio,
)
from penultimate.paper.claims.courses import at_equal_training, below_their_peak
from penultimate.paper.claims.criteria import (
    CRITERIA,
    FURTHER,
    Criteria,
    Criterion,
    FurtherCriteria,
    judged_shots,
)
from penultimate.paper.claims.effects import (
    BySeed,
    Effect,
    common_seeds,
    difference,
    exact_effect,
    unknown_effect,
)
from penultimate.paper.claims.rules import ALTERNATIVES
from penultimate.paper.claims.trials import Trials, runs_each
from penultimate.paper.combined import best_epochs, of_one_recipe, terms_of
from penultimate.report.base import Missing
from penultimate.report.measurements import ByRun, Measurements, Seed
from penultimate.report.shapes.depth import PENULTIMATE, layers_of
from penultimate.statistics import mean

BASELINE = "softmax"
Whole = tuple[str, BySeed, list[BySeed]]
"""A combination of objectives: its label, its runs, and those of each of its parts."""
_E = TypeVar("_E", bound="Evidence")


@dataclass(frozen=True)
class Evidence(ABC):
    """The numbers that claims are judged by, and the numbers of the rules.

    Accuracies and gaps are in per cent. If a `task` is given, transfer is to that task alone. With `blocks`,
    objectives are compared within the seeds that they share. If `is_exact`, means are taken as they stand.
    """

    task: str = ""
    blocks: bool = True
    criteria: Criteria = CRITERIA
    further: FurtherCriteria = FURTHER
    is_exact: ClassVar[bool] = False

    @abstractmethod
    def values(self, aspect: Aspect, over: Among = "objectives") -> ByRun:
        """Return the runs of every compared objective, or of the sweep's temperatures in ascending order."""

    @abstractmethod
    def alternatives(self, aspect: Aspect) -> tuple[BySeed, dict[str, BySeed]]:
        """Return the runs of softmax, and those of the paper's alternatives by their slugs."""

    @abstractmethod
    def label(self, spec: str, over: Among = "objectives") -> str:
        """Return the label of an objective, or of a temperature."""

    @abstractmethod
    def tasks(self, aspect: Aspect) -> Sequence[str]:
        """Return the tasks, shifted test sets, labels or epochs for which an aspect has a value each."""

    @abstractmethod
    def lacking(self, aspect: Aspect, what: str = "") -> Trials:
        """Return the trials of a rule for which nothing was measured."""

    @abstractmethod
    def with_arm(self: _E, arm: str) -> _E:
        """Return the evidence of another arm."""

    @abstractmethod
    def elsewhere(self: _E) -> _E | None:
        """Return the evidence of a second architecture, or None if there is none."""

    @abstractmethod
    def combinations(self) -> tuple[BySeed, list[Whole]]:
        """Return softmax's best holdout accuracies, and those of combinations with those of their parts."""

    @abstractmethod
    def benchmarks(self) -> dict[str, ByRun]:
        """Return the accuracies of all objectives, by their labels, on each benchmark."""

    def on_task(self: _E, task: str) -> _E:
        return dataclasses.replace(self, task=task)

    def by_task(self, aspect: Aspect) -> dict[str, ByRun]:
        """Return the runs by task, shifted test set, label or epoch, where there are any."""
        by_task = {task: self.on_task(task).values(aspect) for task in self.tasks(aspect)}
        return {task: runs for task, runs in by_task.items() if runs}

    def extent(self, counts: Iterable[int]) -> str:
        """Return the number of runs behind each mean, in words; nothing for printed means."""
        counts = list(counts)
        return "" if self.is_exact and {*counts} <= {0, 1} else runs_each(counts)

    def is_enough(self, runs: int) -> bool:
        """Return whether this number of runs is enough to judge anything."""
        return self.is_exact or runs >= self.criteria.least_runs.value

    def effect(self, groups: Sequence[BySeed], weights: Sequence[float], margin: float = 0.0) -> Effect:
        """Return the effect sum_i w_i mean_i, without an interval if the runs allow none."""
        found = difference(groups, weights, margin, self.criteria, self.blocks)
        if found is not None:
            return found
        seeds = common_seeds(groups) if self.blocks else []
        sides = [[runs[seed] for seed in seeds] if seeds else [*runs.values()] for runs in groups]
        estimate = sum(w * mean(side) for side, w in zip(sides, weights, strict=True))
        return (exact_effect if self.is_exact else unknown_effect)(round(estimate, 9), margin)

    def least(self, aspect: Aspect, softmax: BySeed, share: Criterion | None = None) -> float:
        """Return the smallest difference that counts: a share of what softmax lacks to the highest value."""
        top = 1 if is_ratio(aspect) else 100
        return (share or self.criteria.least_gain).value * (top - mean(softmax.values()))


@dataclass(frozen=True)
class StudyEvidence(Evidence):
    """The numbers of a study, with heads relearned from `shots` images per class."""

    measurements: Measurements = dataclasses.field(kw_only=True)
    shots: int | None = None

    def values(self, aspect: Aspect, over: Among = "objectives") -> ByRun:
        runs = _values(self.among(over), aspect, self.shots, self.task)
        if over == "objectives":
            return runs
        in_order = [objective.spec for _, objective in self.among(over).temperatures]
        return {spec: runs[spec] for spec in in_order if spec in runs}

    def among(self, over: Among) -> Measurements:
        """Return the measurements of the networks that are ranked: the main arm's, or the sweep's."""
        return self.measurements if over == "objectives" else self.measurements.in_arm(SWEEP)

    def alternatives(self, aspect: Aspect) -> tuple[BySeed, dict[str, BySeed]]:
        by_slug: dict[str, BySeed] = {}
        for spec, runs in self.values(aspect).items():  # of several objectives of one slug the first counts
            by_slug.setdefault(self.measurements.objective(spec).slug, runs)
        return by_slug.get(BASELINE, {}), {name: by_slug[name] for name in ALTERNATIVES if name in by_slug}

    def label(self, spec: str, over: Among = "objectives") -> str:
        of_sweep = self.among(over).temperatures if over == "temperatures" else ()
        named = (f"τ = {value:g}" for value, objective in of_sweep if objective.spec == spec)
        return next(named, "") or self.among(over).objective(spec).label

    def tasks(self, aspect: Aspect) -> Sequence[str]:
        study = self.measurements
        if aspect == "robust":
            return tuple(shifted(study.source))
        if aspect == "labels":
            return tuple(label for target in study.several_labels[:1] for label in _of_labels(study, target))
        if aspect == "snapshots":
            courses = (study.course(one, QUANTITIES[aspect]) for one in study.objectives)
            epochs = {epoch for runs in courses for points in runs.values() for epoch, _ in points}
            return tuple(f"{epoch:g}" for epoch in sorted(epochs))
        return study.targets

    def lacking(self, aspect: Aspect, what: str = "") -> Trials:
        what = what or NAMES[aspect]
        command = ELSEWHERE.get(aspect, f"penultimate run {MEASURED_BY}")
        return Trials({}, missing=Missing(f"{what[0].upper()}{what[1:]}", command))

    def with_arm(self, arm: str) -> StudyEvidence:
        return dataclasses.replace(self, measurements=self.measurements.in_arm(arm))

    def elsewhere(self) -> StudyEvidence | None:
        further = self.measurements.backbones[1:]
        others = (
            dataclasses.replace(self, measurements=self.measurements.with_backbone(one)) for one in further
        )
        return next((one for one in others if one.values("linear")), None)

    def combinations(self) -> tuple[BySeed, list[Whole]]:
        combined, single = best_epochs(self.measurements, COMBINATIONS), best_epochs(self.measurements)
        alone: dict[frozenset[str], BySeed] = {
            _terms(spec): _scaled_runs(runs) for spec, runs in single.items() if len(_terms(spec)) < 2
        }
        wholes: list[Whole] = []
        for spec, runs in combined.items():
            parts = [alone[part] for term in sorted(_terms(spec)) if (part := frozenset({term})) in alone]
            if 1 < len(_terms(spec)) == len(parts):
                label = self.measurements.in_arm(COMBINATIONS).objective(spec).label
                wholes.append((label, _scaled_runs(runs), parts))
        return alone.get(frozenset(), {}), wholes if of_one_recipe(self.measurements) else []

    def benchmarks(self) -> dict[str, ByRun]:
        quantity = QUANTITIES["benchmarks"]
        further = self.measurements.of_others if self.measurements.further else ()
        others = {other.backbone: (other.in_arm(quantity.arm), other.values(quantity)) for other in further}
        found = {
            title: {of.objective(spec).label: _scaled_runs(one) for spec, one in runs.items()}
            for title, (of, runs) in others.items()
            if runs
        }
        own = {self.label(spec): runs for spec, runs in self.values("accuracy").items()}
        return {self.measurements.title: own, **found} if found else {}

    def on_edge(self) -> tuple[int, int]:
        """Return how many of the best cells of fine-tuning lie on the edge of their grid, and of how many."""
        cells: dict[tuple[str | None, str], bool] = {}
        for target in self.measurements.targets:
            for row in self.measurements.rows(EDGES.metric, EDGES.split, target).where(setting=EDGES.setting):
                key = row.objective, target
                cells[key] = cells.get(key, False) or row.value > 0
        return sum(cells.values()), len(cells)

    def of_seeds(self, seeds: Collection[Seed]) -> StudyEvidence:
        """Return the evidence of some seeds only."""
        return dataclasses.replace(self, measurements=self.measurements.of_seeds(seeds))


def _terms(spec: str) -> frozenset[str]:
    """Return the parts of an objective without softmax."""
    return frozenset(str(term) for term in terms_of(spec) if term.name != "softmax")


def _values(measurements: Measurements, aspect: Aspect, shots: int | None, task: str) -> ByRun:
    if aspect == "temperature":
        seeds = measurements.seeds
        return {objective.spec: dict.fromkeys(seeds, value) for value, objective in measurements.temperatures}
    if aspect == "gap":
        originals = original_heads(measurements, shots)
        accuracies = originals or _values(measurements, "accuracy", shots, task)
        gaps: ByRun = {
            spec: {
                seed: value - accuracies[spec][seed]
                for seed, value in runs.items()
                if seed in accuracies.get(spec, {})
            }
            for spec, runs in _values(measurements, "relearned", shots, task).items()
        }
        return {spec: runs for spec, runs in gaps.items() if runs}
    return _scaled(_measured(measurements, aspect, shots, task), QUANTITIES[aspect].scale)


def _measured(measurements: Measurements, aspect: Aspect, shots: int | None, task: str) -> ByRun:
    quantity = QUANTITIES[aspect].of_arm(measurements.arm)
    if aspect == "relearned":
        return {} if shots is None else relearned(measurements).get(shots, {})
    if aspect == "active":
        return layers_of(measurements, quantity).get(PENULTIMATE, {})
    if aspect == "separation_before":
        layers = [runs for name, runs in layers_of(measurements, quantity).items() if name != PENULTIMATE]
        return layers[-1] if layers else {}
    if aspect in ("fall", "matched"):
        train, test = (
            {one.spec: measurements.curve(one, quantity.metric, split) for one in measurements.objectives}
            for split in ("train", "test")
        )
        return below_their_peak(train) if aspect == "fall" else at_equal_training(train, test)
    if aspect == "labels":
        (target,) = measurements.several_labels[:1] or ("",)
        return _of_labels(measurements, target).get(task, {}) if target else {}
    if aspect == "snapshots":
        courses = {one.spec: measurements.course(one, quantity) for one in measurements.objectives}
        at_epoch: ByRun = {
            spec: {
                seed: value
                for seed, points in runs.items()
                for epoch, value in points
                if f"{epoch:g}" == task
            }
            for spec, runs in courses.items()
        }
        return {spec: runs for spec, runs in at_epoch.items() if runs}
    return measurements.values(dataclasses.replace(quantity, target=task) if task else quantity)


def _of_labels(measurements: Measurements, target: str) -> dict[str, ByRun]:
    """Return the areas of each label, with uncertain labels counted as absent, as the paper counts them."""
    by_setting = measurements.conditions(QUANTITIES["labels"].metric, target)
    settings = {
        text: dict(part.split("=") for part in text.split(", ")) for text in by_setting if "=" in text
    }
    return {
        of["label"]: by_setting[text]
        for text, of in settings.items()
        if of.get("uncertain", "zeros") == "zeros"
    }


def _scaled(runs: ByRun, scale: float) -> ByRun:
    return {
        spec: {seed: scale * value for seed, value in of_seeds.items()} for spec, of_seeds in runs.items()
    }


def _scaled_runs(runs: BySeed) -> dict[Seed, float]:
    return {seed: 100 * value for seed, value in runs.items()}


def relearned(measurements: Measurements) -> dict[int, ByRun]:
    """Return the accuracies of relearned heads, by the number of images per class, in ascending order."""
    conditions = measurements.conditions("relearn_top1")
    by_shots = {int(setting.removeprefix("shots=")): runs for setting, runs in conditions.items() if setting}
    return dict(sorted(by_shots.items()))


def original_heads(measurements: Measurements, shots: int | None) -> ByRun:
    """Return the accuracies of original heads in per cent, if they were measured beside relearned ones.

    They are if heads are relearned from some of the test images, and scored on the others.
    """
    return _scaled(measurements.runs(ORIGINAL.metric, setting=f"shots={shots}"), ORIGINAL.scale)


def gather(measurements: Measurements) -> StudyEvidence:
    """Return a study's evidence, with the number of images per class at which relearning is judged."""
    source = card(measurements.source)
    images = source.sizes.get("train", source.images)
    shots = judged_shots(relearned(measurements), images / source.classes)
    return StudyEvidence(measurements=measurements, shots=shots)
