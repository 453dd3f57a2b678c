"""A study's rows as exhibits ask for them: by objective and seed; limited and diverged runs kept apart."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penultimate.data.catalog import card, remember
from penultimate.errors import RequestError
from penultimate.objectives.sweeps import compared, temperature_sweep
from penultimate.registry import parse_sum
from penultimate.report.exhibits.base import StudyResults
from penultimate.report.text import counted, plain
from penultimate.table import Row

PROBES = {"linear": "linear", "knn": "kNN"}
PLUGIN_STEPS = ("metric.", "probe.")
"""How the steps are called that run a plug-in."""
MEASURED_BY = "quickstart"
"""The built-in study that measures everything the exhibits of this package ask for."""

Key = tuple[str, str, str, str]
Runs = dict[str, dict[int, float]]
"""Values of the runs of each objective: {canonical spec: {seed: value}}."""
_Run = tuple[str, int | None, str]
"""A run's objective, seed and, unless it is the one shown, architecture."""


@dataclass(frozen=True)
class Objective:
    """An objective of the study: its short name, its label for people, its canonical spec string."""

    slug: str
    label: str
    spec: str


@dataclass(frozen=True)
class Diverged:
    """A run whose loss turned NaN: excluded from every mean, named wherever its numbers would stand.

    `backbone` is empty for the architecture that exhibits show.
    """

    objective: str
    seed: int | None
    epoch: int | None
    reason: str
    backbone: str = ""

    def __str__(self) -> str:
        run = self.objective if self.seed is None else f"{self.objective}, seed {self.seed}"
        run += f" with {self.backbone}" if self.backbone else ""
        when = "" if self.epoch is None else f" after epoch {self.epoch}"
        return f"{run}{when}" + (f" ({self.reason})" if self.reason else "")


@dataclass
class Measurements:
    """The rows of a study, indexed: those of its first architecture, `backbone`. Made by `admit` only."""

    results: StudyResults
    limited: bool
    objectives: tuple[Objective, ...]
    source: str
    targets: tuple[str, ...]
    diverged: tuple[Diverged, ...] = ()
    finals: dict[Key, dict[int, float]] = field(default_factory=dict)
    plugged: dict[Key, dict[int, float]] = field(default_factory=dict)
    series: dict[Key, dict[int, dict[int, float]]] = field(default_factory=dict)
    backbone: str = ""
    other_backbones: tuple[str, ...] = ()
    set_aside: int = 0

    def shows(self, row: Row) -> bool:
        """Whether a row is of the architecture that is shown, or of none (an image set's)."""
        return not self.backbone or row.backbone in (None, self.backbone)

    def runs(self, metric: str, target: str | None = None, split: str | None = None) -> Runs:
        """The final values of every objective that has any, in the study's order."""
        return self._runs(self.finals, (metric, target or self.source, split or "test"))

    def plugin_runs(self, metric: str, target: str, split: str) -> Runs:
        """The same of a plug-in's metric or probe, whose name may be that of a number of the study's own."""
        return self._runs(self.plugged, (metric, target, split))

    def of_plugins(self, kind: str) -> list[tuple[str, str, str]]:
        """What plug-ins have measured, (metric, target, split): metrics on the source, probes elsewhere."""
        found = dict.fromkeys((metric, target, split) for metric, target, split, _ in self.plugged)
        return [one for one in found if (one[1] == self.source) == (kind == "metric")]

    def _runs(self, values_of: Mapping[Key, dict[int, float]], what: tuple[str, str, str]) -> Runs:
        runs = {one.spec: values_of.get((*what, one.spec)) for one in self.objectives}
        return {spec: dict(sorted(values.items())) for spec, values in runs.items() if values}

    def curve(self, objective: Objective, metric: str, split: str) -> dict[int, list[tuple[float, float]]]:
        """The points (epoch, value) of every run of an objective, by seed."""
        own = self.series.get((metric, self.source, split, objective.spec), {})
        return {
            seed: sorted((float(e), v) for e, v in points.items()) for seed, points in sorted(own.items())
        }

    def transfer(self, probe: str, target: str) -> Runs:
        """A probe's accuracy on a target, by the measure that is official there."""
        name = f"{probe}_{measure(target)}"
        return self.runs(name, target) if probe in PROBES else self.plugin_runs(name, target, "test")

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

    def run_counts(self, objectives: Iterable[Objective]) -> tuple[int, ...]:
        """Of how many seeds each of these objectives has been measured; those of none are left out."""
        seeds = [
            {seed for (*_, of), values in self.finals.items() if of == one.spec for seed in values}
            for one in objectives
        ]
        return tuple(len(own) for own in seeds if own)

    @property
    def temperature_sweep(self) -> tuple[tuple[float, Objective], ...]:
        """Cosine softmax alone at three or more temperatures: (temperature, objective), ascending.

        `objectives.sweeps` says what belongs to it. Empty without a sweep.
        """
        return tuple((value, self.objective(spec)) for value, spec in temperature_sweep(self._specs))

    @property
    def compared(self) -> tuple[Objective, ...]:
        """The objectives that are compared with each other: of a sweep none, or its first in place of it."""
        return tuple(self.objective(spec) for spec in compared(self._specs))

    @property
    def _specs(self) -> list[str]:
        return [objective.spec for objective in self.objectives]

    def without(self, runs: Runs) -> Runs:
        """Runs restricted to the objectives that are compared."""
        specs = {objective.spec for objective in self.compared}
        return {spec: values for spec, values in runs.items() if spec in specs}

    def notes(self) -> tuple[str, ...]:
        """What every exhibit of this study must say of its runs.

        An architecture with some of the objectives is there for figure B.1, as the page's regime says.
        """
        said = [f"Diverged, and left out of every mean: {run}." for run in self.diverged]
        aside = self.results.description.get("objectives_of", {})
        others = ", ".join(plain(name) for name in self.other_backbones if name not in aside)
        if others:
            said.append(
                f"Only the first architecture, {plain(self.backbone)}, is shown; also measured: {others}"
                " (Figure B.1)."
            )
        if self.set_aside:
            count = counted(self.set_aside, "further temperature")
            said.append(f"Cosine softmax at {count} is compared in Table 4, not here.")
        return tuple(said)


def admit(results: StudyResults, allow_limited: bool = False) -> Measurements:
    """The measurements of a study, if they may be shown as evidence.

    Raises RequestError for a limited study unless `allow_limited`, and for two values of one quantity.
    """
    description = results.description
    for kept in description.get("cards", ()):
        remember(kept)
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
    # The study's first, also before it has rows; rows that the description does not know are their own.
    told = backbones if set(backbones) & {*present} or not present else present
    first = next(iter(told), "")
    measurements = Measurements(
        results,
        limited,
        objectives,
        str(description["source"]),
        tuple(str(target) for target in description.get("targets", ())),
        _diverged(rows, objectives, results.provenance, first),
        backbone=first,
        other_backbones=tuple(name for name in present if name != first),
    )
    for row in rows:
        if row.status != "diverged" and measurements.shows(row):
            _index(measurements, row)
    return measurements


def admit_compared(results: StudyResults, allow_limited: bool = False) -> Measurements:
    """As `admit`, of the objectives that are compared with each other: a sweep of temperatures set aside."""
    measurements = admit(results, allow_limited)
    compared = measurements.compared
    set_aside = len(measurements.objectives) - len(compared)
    return dataclasses.replace(measurements, objectives=compared, set_aside=set_aside)


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
    sweep = {spec for _, spec in temperature_sweep(objective.spec for objective in found)}
    labels = [objective.label for objective in found if objective.spec not in sweep]
    return tuple(
        dataclasses.replace(one, label=f"{one.label} ({_arguments(one.spec)})")
        if labels.count(one.label) > 1 or (one.spec in sweep and "(" not in one.label)
        else one
        for one in found
    )


def _arguments(spec: str) -> str:
    """The hyperparameters of a spec, which tell objectives of one label apart."""
    try:
        terms = parse_sum(spec)
    except RequestError:
        return plain(spec)
    return ", ".join(f"{key} = {value}" for term in terms for key, value in term.arguments.items())


def _index(measurements: Measurements, row: Row) -> None:
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
        plugged = str(row.step).startswith(PLUGIN_STEPS)
        values = measurements.plugged if plugged else measurements.finals
        own: dict[int, float] = values.setdefault(key, {})
        slot = row.seed
    else:
        own = measurements.series.setdefault(key, {}).setdefault(row.seed, {})
        slot = row.epoch
    if own.setdefault(slot, float(row.value)) != float(row.value):
        raise RequestError(
            f"two values of one quantity: {row.metric} of '{row.objective}', seed {row.seed}, on '{key[1]}'"
            f" ({key[2]}): {own[slot]} and {row.value}. Read one study's rows at a time."
        )


def _diverged(
    rows: Iterable[Row], objectives: tuple[Objective, ...], provenance: Mapping[str, Any], first: str
) -> tuple[Diverged, ...]:
    """The runs that ended as NaN: from the rows they left, and the steps that provenance names.

    A step's name holds a preset, which several objectives may share, and no architecture; `diverged_runs` has
    [spec, seed, backbone].
    """
    told = provenance.get("diverged")
    reasons: dict[str, str] = {str(k): plain(v) for k, v in told.items()} if isinstance(told, Mapping) else {}
    labels = {objective.spec: objective.label for objective in objectives}

    def run_of(spec: object, seed: int | None, backbone: object = None) -> _Run:
        return str(spec), seed, "" if backbone in (None, first) else str(backbone)

    runs = {str(step): run_of(*run) for step, run in provenance.get("diverged_runs", {}).items()}
    steps = {run: step for step, run in runs.items()}
    last: dict[_Run, int | None] = {}
    step_of: dict[_Run, str] = {}
    for row in rows:
        if row.status == "diverged":
            run = run_of(row.objective, row.seed, row.backbone)
            epochs = [epoch for epoch in (last.get(run), row.epoch) if epoch is not None]
            last[run] = max(epochs, default=None)
            step_of[run] = str(row.step)

    def named(run: _Run, epoch: int | None, reason: str) -> Diverged:
        spec, seed, backbone = run
        return Diverged(labels.get(spec, plain(spec)), seed, epoch, reason, plain(backbone))

    found = [named(run, epoch, reasons.pop(steps.get(run, step_of[run]), "")) for run, epoch in last.items()]
    for step, reason in reasons.items():
        if step in runs:
            found.append(named(runs[step], None, reason))
            continue
        name = step.removeprefix("train.").rpartition(".")[0] or step
        parts = re.fullmatch(r"(?P<slug>.*)-s(?P<seed>\d+)", name)
        slug, seed = (parts["slug"], int(parts["seed"])) if parts else (name, None)
        label = next((one.label for one in objectives if one.slug == slug), plain(slug))
        found.append(Diverged(label, seed, None, reason))
    return tuple(found)
