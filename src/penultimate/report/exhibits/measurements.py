"""A study's rows as exhibits ask for them: by objective and seed; limited and diverged runs kept apart."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penultimate.data.catalog import card
from penultimate.errors import RequestError
from penultimate.registry import parse_sum
from penultimate.report.exhibits.base import StudyResults
from penultimate.report.text import plain

PROBES = {"linear": "linear", "knn": "kNN"}
MEASURED_BY = "quickstart"
"""The built-in study that measures everything the exhibits of this package ask for."""

Key = tuple[str, str, str, str]
Runs = dict[str, dict[int, float]]
"""Values of the runs of each objective: {canonical spec: {seed: value}}."""


@dataclass(frozen=True)
class Objective:
    """An objective of the study: its short name, its label for people, its canonical spec string."""

    slug: str
    label: str
    spec: str


@dataclass(frozen=True)
class Diverged:
    """A run whose loss turned NaN: excluded from every mean, named wherever its numbers would stand."""

    objective: str
    seed: int | None
    epoch: int | None
    reason: str

    def __str__(self) -> str:
        run = self.objective if self.seed is None else f"{self.objective}, seed {self.seed}"
        when = "" if self.epoch is None else f" after epoch {self.epoch}"
        return f"{run}{when}" + (f" ({self.reason})" if self.reason else "")


@dataclass
class Measurements:
    """The rows of a study, indexed. Made by `admit` only."""

    results: StudyResults
    limited: bool
    objectives: tuple[Objective, ...]
    source: str
    targets: tuple[str, ...]
    diverged: tuple[Diverged, ...] = ()
    finals: dict[Key, dict[int, float]] = field(default_factory=dict)
    series: dict[Key, dict[int, dict[int, float]]] = field(default_factory=dict)
    other_backbones: tuple[str, ...] = ()

    def runs(self, metric: str, target: str | None = None, split: str | None = None) -> Runs:
        """The final values of every objective that has any, in the study's order."""
        found = {}
        for objective in self.objectives:
            values = self.finals.get((metric, target or self.source, split or "test", objective.spec))
            if values:
                found[objective.spec] = dict(sorted(values.items()))
        return found

    def curve(self, objective: Objective, metric: str, split: str) -> dict[int, list[tuple[float, float]]]:
        """The points (epoch, value) of every run of an objective, by seed."""
        own = self.series.get((metric, self.source, split, objective.spec), {})
        return {
            seed: sorted((float(e), v) for e, v in points.items()) for seed, points in sorted(own.items())
        }

    def transfer(self, probe: str, target: str) -> Runs:
        """A probe's accuracy on a target, by the measure that is official there."""
        return self.runs(f"{probe}_{measure(target)}", target)

    def mean_transfer(self, probe: str) -> Runs:
        """The mean over all targets, of the runs that were probed on every one of them."""
        per_target = [self.transfer(probe, target) for target in self.targets]
        found: Runs = {}
        for objective in self.objectives if per_target else ():
            columns = [runs.get(objective.spec, {}) for runs in per_target]
            seeds = set(columns[0]).intersection(*columns[1:])
            if seeds:
                found[objective.spec] = {
                    seed: math.fsum(column[seed] for column in columns) / len(columns)
                    for seed in sorted(seeds)
                }
        return found

    def objective(self, spec: str) -> Objective:
        return next(one for one in self.objectives if one.spec == spec)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every seed of which anything was measured."""
        return tuple(sorted({seed for values in self.finals.values() for seed in values}))

    @property
    def temperature_sweep(self) -> tuple[tuple[float, Objective], ...]:
        """Cosine softmax alone at three or more temperatures: (temperature, objective), ascending.

        They belong together where the loss is scaled by the temperature, as in the paper's sweep, or by one
        number. Empty without a sweep.
        """
        return _sweep(self.objectives)

    @property
    def compared(self) -> tuple[Objective, ...]:
        """The objectives that are compared with each other: of a sweep none, or its first in place of it."""
        sweep = [objective for _, objective in self.temperature_sweep]
        others = tuple(one for one in self.objectives if one not in sweep)
        if not sweep or any(_cosine_arguments(one.spec) for one in others):
            return others
        first = next(one for one in self.objectives if one in sweep)
        return tuple(one for one in self.objectives if one in others or one is first)

    def without(self, runs: Runs) -> Runs:
        """Runs restricted to the objectives that are compared."""
        specs = {objective.spec for objective in self.compared}
        return {spec: values for spec, values in runs.items() if spec in specs}

    def notes(self) -> tuple[str, ...]:
        """What every exhibit of this study must say of its runs."""
        said = [f"Diverged, and left out of every mean: {run}." for run in self.diverged]
        if self.other_backbones:
            said.append(
                f"Only the first architecture is shown; also measured: {', '.join(self.other_backbones)}."
            )
        return tuple(said)


def admit(results: StudyResults, allow_limited: bool = False) -> Measurements:
    """The measurements of a study, if they may be shown as evidence.

    Raises RequestError for a limited study unless `allow_limited`, and for two values of one quantity.
    """
    description = results.description
    rows = list(results.table)
    limited = bool(description.get("limited")) or any(row.status == "limited" for row in rows)
    if limited and not allow_limited:
        raise RequestError(
            f"study '{plain(description.get('name', ''))}' is a limited run, too small to be evidence."
            f" Pass allow_limited=True (--allow-limited) to see it, marked as such, or run a full study:"
            f" penultimate run {MEASURED_BY}"
        )
    objectives = _objectives(description.get("objectives", ()), rows)
    backbones = [str(name) for name in description.get("backbones", ())]
    present = list(dict.fromkeys(str(row.backbone) for row in rows if row.backbone))
    present.sort(key=lambda name: backbones.index(name) if name in backbones else len(backbones))
    measurements = Measurements(
        results,
        limited,
        objectives,
        str(description["source"]),
        tuple(str(target) for target in description.get("targets", ())),
        _diverged(rows, objectives, results.provenance.get("diverged")),
        other_backbones=tuple(present[1:]),
    )
    for row in rows:
        if row.status != "diverged" and (not row.backbone or row.backbone == present[0]):
            _index(measurements, row)
    return measurements


def measure(target: str) -> str:
    """The official accuracy of a data set: top1 or mean_per_class, as its card says."""
    return str(card(target).accuracy)


def short_title(name: str) -> str:
    """A data set's name as a column heading.

    >>> short_title("newfaces")
    'Newfaces'
    """
    return plain(name.replace("_", " ")).capitalize()


def _objectives(listed: Iterable[Mapping[str, Any]], rows: Iterable[Any]) -> tuple[Objective, ...]:
    """The described objectives, then any that only the rows know."""
    found = [Objective(str(one["slug"]), plain(one["label"]), str(one["spec"])) for one in listed]
    known = {objective.spec for objective in found}
    for row in rows:
        if row.objective and row.objective not in known:
            known.add(row.objective)
            found.append(Objective(str(row.objective), plain(row.objective), str(row.objective)))
    sweep = [objective for _, objective in _sweep(found)]
    labels = [objective.label for objective in found if objective not in sweep]
    return tuple(
        dataclasses.replace(one, label=f"{one.label} ({_arguments(one.spec)})")
        if one in sweep or labels.count(one.label) > 1
        else one
        for one in found
    )


def _sweep(objectives: Iterable[Objective]) -> tuple[tuple[float, Objective], ...]:
    families: dict[object, list[tuple[float, Objective]]] = {}
    for objective in objectives:
        arguments = _cosine_arguments(objective.spec)
        temperature, scale = arguments.get("temperature"), arguments.get("scale", 1)
        if isinstance(temperature, int | float):
            family = "temperature" if scale == temperature else scale
            families.setdefault(family, []).append((float(temperature), objective))
    whole = [family for family in families.values() if len(family) >= 3]
    whole.sort(key=len, reverse=True)
    return tuple(sorted(whole[0], key=lambda pair: pair[0])) if whole else ()


def _cosine_arguments(spec: str) -> dict[str, Any]:
    """The hyperparameters of cosine softmax alone; of anything else, nothing."""
    try:
        terms = parse_sum(spec)
    except RequestError:
        return {}
    return terms[0].arguments if len(terms) == 1 and terms[0].name == "cosine_softmax" else {}


def _arguments(spec: str) -> str:
    """The hyperparameters of a spec, which tell objectives of one label apart."""
    try:
        terms = parse_sum(spec)
    except RequestError:
        return plain(spec)
    return ", ".join(f"{key} = {value}" for term in terms for key, value in term.arguments.items())


def _index(measurements: Measurements, row: Any) -> None:
    if row.value is None or row.seed is None or not math.isfinite(row.value) or not row.objective:
        return
    if row.layer is not None or row.objective_b is not None:
        return
    key = (
        str(row.metric),
        str(row.target or measurements.source),
        str(row.split or "test"),
        str(row.objective),
    )
    if row.epoch is None:
        own: dict[int, float] = measurements.finals.setdefault(key, {})
        slot = row.seed
    else:
        own = measurements.series.setdefault(key, {}).setdefault(row.seed, {})
        slot = row.epoch
    if own.setdefault(slot, float(row.value)) != float(row.value):
        raise RequestError(
            f"two values of one quantity: {row.metric} of '{row.objective}', seed {row.seed}, on '{key[1]}'"
            f" ({key[2]}): {own[slot]} and {row.value}. Read one study's rows at a time."
        )


def _diverged(rows: Iterable[Any], objectives: tuple[Objective, ...], told: Any) -> tuple[Diverged, ...]:
    """The runs that ended as NaN: from the rows they left, and the steps that provenance names."""
    reasons: dict[str, str] = {str(k): plain(v) for k, v in told.items()} if isinstance(told, Mapping) else {}
    labels = {objective.spec: objective for objective in objectives}
    last: dict[tuple[str, int | None], int | None] = {}
    step_of: dict[tuple[str, int | None], str] = {}
    for row in rows:
        if row.status == "diverged":
            run = (str(row.objective), row.seed)
            epochs = [epoch for epoch in (last.get(run), row.epoch) if epoch is not None]
            last[run] = max(epochs, default=None)
            step_of[run] = str(row.step)
    found = []
    for (spec, seed), epoch in last.items():
        label = labels[spec].label if spec in labels else plain(spec)
        found.append(Diverged(label, seed, epoch, reasons.pop(step_of[spec, seed], "")))
    for step, reason in reasons.items():
        name = step.removeprefix("train.").rpartition(".")[0] or step
        parts = re.fullmatch(r"(?P<slug>.*)-s(?P<seed>\d+)", name)
        slug, seed = (parts["slug"], int(parts["seed"])) if parts else (name, None)
        label = next((one.label for one in objectives if one.slug == slug), plain(slug))
        found.append(Diverged(label, seed, None, reason))
    return tuple(found)
