"""The rows of a study as exhibits need them: by objective and seed, without those of diverged runs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from penultimate.data.catalog import SHIFTS, card, remember, shifted
from penultimate.errors import RequestError
from penultimate.measures.catalogue import built_in_yields
from penultimate.records.table import Row, Table
from penultimate.report.base import StudyResults
from penultimate.report.diverged import DivergedRun, diverged_runs
from penultimate.report.networks import (
    StudyNetworks,
    StudyObjective,
    by_rank,
    facts_of_page,
    is_further,
    name_in,
)
from penultimate.report.quantity import SOURCE, TARGETS, Quantity
from penultimate.report.text import counted, plain

LARGEST = 1e150
"""The largest number that exhibits show: its square and sums of it are finite."""

Seed: TypeAlias = int | None
"""The seed of a run; None for a network that was not trained here."""
ByRun: TypeAlias = dict[str, dict[Seed, float]]
"""Values of the runs of each objective: {canonical spec: {seed: value}}."""
Series: TypeAlias = dict[Seed, list[tuple[float, float]]]
"""The points (epoch, value) of the runs of one objective, by seed."""
_Key = TypeVar("_Key", str, tuple[str, ...])
_Place: TypeAlias = tuple[str, str, str]
"""The place of a number: its metric, target and split."""


@dataclass(frozen=True)
class Measurements:
    """The rows of one architecture and one arm of a study, by default of the main ones.

    `objectives` are those that the arm compares with each other, in the study's order. `targets` are the data
    sets whose images have one class each, `several_labels` those whose images have several labels. Only
    `admit` makes one; `in_arm` and `with_backbone` return the rows of another arm or architecture.
    """

    results: StudyResults
    limited: bool
    source: str
    targets: tuple[str, ...]
    several_labels: tuple[str, ...] = ()
    backbone: str = ""
    arm: str = ""

    @cached_property
    def networks(self) -> StudyNetworks:
        """The networks that the study's description lists."""
        return StudyNetworks(self.results.description)

    @cached_property
    def objectives(self) -> tuple[StudyObjective, ...]:
        """The objectives of this arm in the order of the study, then any that only its rows name.

        Given networks are in the order of their ranking.
        """
        measured = dict.fromkeys(filter(None, self._of_arm.column("objective")))
        found = self.networks.objectives(self.arm, measured)
        return by_rank(found, self._of_arm, self.targets) if self.networks.are_given else found

    @property
    def baseline(self) -> str:
        """The spec of the paper's baseline in this arm; empty if the arm does not have it."""
        return next((each.spec for each in self.objectives if each.slug == self.networks.baseline), "")

    def objective(self, spec: str) -> StudyObjective:
        """Return the objective of a spec."""
        return next(objective for objective in self.objectives if objective.spec == spec)

    def in_arm(self, arm: str) -> Measurements:
        """Return the measurements of another arm of the study; they are empty if it has no such arm."""
        other_arms = self._other_arms
        return self if arm == self.arm else other_arms.setdefault(arm, dataclasses.replace(self, arm=arm))

    def or_in_arm(self, arm: str) -> Measurements:
        """Return the measurements of another arm if the study has it, and these otherwise."""
        return self.in_arm(arm) if arm in self.arms else self

    @cached_property
    def _other_arms(self) -> dict[str, Measurements]:
        return {}

    def with_backbone(self, backbone: str) -> Measurements:
        """Return the measurements of another architecture."""
        return dataclasses.replace(self, backbone=backbone)

    @property
    def further(self) -> tuple[str, ...]:
        """The architectures besides the main one, or the main one if it is alone and a further one."""
        return self.backbones[1:] or tuple(
            name for name in self.backbones if is_further(name, self.networks.page)
        )

    @property
    def of_others(self) -> tuple[Measurements, ...]:
        """The measurements of each further architecture, or of this one if the study has no other."""
        return tuple(map(self.with_backbone, self.further)) or (self,)

    def of_seeds(self, seeds: Collection[Seed]) -> Measurements:
        """Return the measurements of the networks of these seeds only."""
        kept = self.results.table.where(seed=(*seeds, None), seed_b=(*seeds, None))
        return dataclasses.replace(self, results=dataclasses.replace(self.results, table=kept))

    @cached_property
    def arms(self) -> tuple[str, ...]:
        """The arms of the study, the main one first, then any that only rows name."""
        measured = filter(None, dict.fromkeys(self.results.table.column("arm")))
        return tuple(dict.fromkeys((*self.networks.arms, *measured)))

    @cached_property
    def backbones(self) -> tuple[str, ...]:
        """The architectures of the study, the main one first."""
        listed = self.networks.backbones
        measured = tuple(filter(None, dict.fromkeys(self.results.table.column("backbone"))))
        # If the description names none of the measured architectures, the rows come from another study.
        return tuple(dict.fromkeys((*(listed if {*listed} & {*measured} or not measured else ()), *measured)))

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The recipe of the arm's first grid; empty if nothing was trained here."""
        return self.networks.recipe(self.arm)

    def recipe_of(self, objective: StudyObjective) -> Mapping[str, Any]:
        """Return the recipe that trained an objective of this arm; empty if it was not trained here."""
        return self.networks.recipe(self.arm, self.backbone, objective.spec)

    @property
    def title(self) -> str:
        """The name of the data set that the networks were trained on."""
        return card(self.source).title

    @property
    def words(self) -> dict[str, str]:
        """The words that captions and titles may hold in braces."""
        return {
            "source": self.title,
            "name": plain(self.networks.study),
            "backbone": plain(self.backbone),
            "runs": self.runs_phrase(),
        }

    def rows(self, metric: str, split: str = "test", target: str = "") -> Table:
        """Return all rows of a metric on a split of a target (default: the source), without diverged runs."""
        return self._rows.get((metric, target or self.source, split), Table())

    @cached_property
    def _rows(self) -> dict[_Place, Table]:
        # A row without an architecture belongs to a given network or to a set of images.
        shown = self._of_arm.where(status=("done", "limited"))
        shown = shown.where(backbone=(self.backbone, None)) if self.backbone else shown
        places: dict[_Place, Table] = {}
        for (metric, target, split), rows in shown.by("metric", "target", "split").items():
            place = (metric, target or self.source, split or "test")
            places[place] = Table((*places[place], *rows)) if place in places else rows
        return places

    @cached_property
    def _of_arm(self) -> Table:
        return self.results.table.where(arm=self.arm or None)

    def runs(self, metric: str, target: str = "", split: str = "test", setting: str = "") -> ByRun:
        """Return the final values under one condition for every objective that has any, in the study's order.

        Raises RequestError if there are two values of one quantity.
        """
        return self.conditions(metric, target, split).get(setting, {})

    def conditions(self, metric: str, target: str = "", split: str = "test") -> dict[str, ByRun]:
        """Return the final values of a metric under every condition, as rows write it ("" for none)."""
        return self._final(metric, target, split, lambda row: None if row.layer else row.setting or "")

    def layers(self, metric: str, target: str = "", split: str = "test") -> dict[str, ByRun]:
        """Return the final values of a metric in every layer, in the order of the rows."""
        return self._final(metric, target, split, lambda row: None if row.setting else row.layer)

    def _final(
        self, metric: str, target: str, split: str, key: Callable[[Row], _Key | None]
    ) -> dict[_Key, ByRun]:
        values: dict[_Key, ByRun] = {}
        for row in self.rows(metric, split, target):
            name = key(row)
            if name is None or row.epoch is not None or not self.is_own(row):
                continue
            of_objective = values.setdefault(name, {}).setdefault(str(row.objective), {})
            if of_objective.setdefault(row.seed, row.value) != row.value:
                raise RequestError(
                    f"two values of one quantity: {metric} of '{row.objective}', seed {row.seed}, on"
                    f" '{target or self.source}' ({split}): {of_objective[row.seed]} and {row.value}."
                    " Read one study's rows at a time."
                )
        return {name: self._in_order(runs) for name, runs in values.items()}

    def is_own(self, row: Row) -> bool:
        """Return whether a row holds a number of one network, and not a plug-in's under a built-in name."""
        of_plugin = measured_by(row) in self._plugin_steps
        return _is_number(row) and not (of_plugin and row.metric in built_in_yields())

    def _in_order(self, runs: ByRun) -> ByRun:
        return {
            objective.spec: dict(sorted(runs[objective.spec].items(), key=_by_seed))
            for objective in self.objectives
            if objective.spec in runs
        }

    def course(self, objective: StudyObjective, quantity: Quantity) -> Series:
        """Return the points of a quantity over the epochs; for "targets", the mean where all have a value."""
        if quantity.target != TARGETS:
            target = "" if quantity.target == SOURCE else quantity.target
            return self.curve(objective, quantity.metric_on(target or self.source), quantity.split, target)
        of_targets = [
            self.course(objective, dataclasses.replace(quantity, target=target)) for target in self.targets
        ]
        means: Series = {}
        for seed in of_targets[0] if of_targets else ():
            courses = [dict(series.get(seed, ())) for series in of_targets]
            shared = sorted(set.intersection(*map(set, courses)))
            if shared:
                values = [math.fsum(course[epoch] for course in courses) / len(courses) for epoch in shared]
                means[seed] = list(zip(shared, values, strict=True))
        return means

    def curve(self, objective: StudyObjective, metric: str, split: str, target: str = "") -> Series:
        """Return the points (epoch, value) of every run of an objective, by seed."""
        points: dict[Seed, dict[int, float]] = {}
        for row in self.rows(metric, split, target).where(objective=objective.spec):
            if row.epoch is not None and row.layer is None and self.is_own(row):
                points.setdefault(row.seed, {})[row.epoch] = row.value
        return {
            seed: [(float(epoch), value) for epoch, value in sorted(of_seed.items())]
            for seed, of_seed in sorted(points.items(), key=_by_seed)
        }

    def values(self, quantity: Quantity) -> ByRun:
        """Return the final values of a quantity by objective and seed, not scaled.

        For "targets" they are means over all targets, for the runs that were measured on each of them. A
        quantity under every value of a setting needs `by_setting`.
        """
        if quantity.target == "targets":
            return mean_of([self.on_target(quantity, target) for target in self.targets])
        places = {"source": self.source, **shifted(self.source)}
        if quantity.target in SHIFTS and quantity.target not in places:
            return {}
        return self.on_target(quantity, places.get(quantity.target, quantity.target))

    def by_setting(self, quantity: Quantity) -> dict[tuple[str, ...], ByRun]:
        """Return the final values of a quantity of the source for each value of its settings, ascending."""
        names = quantity.setting.split(", ")
        measurements = self.in_arm(quantity.arm)

        def value(row: Row) -> tuple[str, ...] | None:
            settings = row.settings if row.layer is None else {}
            return tuple(settings[name] for name in names) if settings.keys() == {*names} else None

        by_value = measurements._final(quantity.metric, "", quantity.split, value)
        return dict(sorted(by_value.items(), key=lambda item: [_natural(text) for text in item[0]]))

    def on_target(self, quantity: Quantity, target: str) -> ByRun:
        """Return the final values of a quantity on one data set."""
        of_arm = self.in_arm(quantity.arm)
        return of_arm.runs(quantity.metric_on(target), target, quantity.split, quantity.setting)

    @cached_property
    def _plugin_steps(self) -> frozenset[str]:
        return frozenset(map(name_in, self.networks.of_plugins))

    def plugin_values(self, text: str) -> dict[tuple[str, str, str, str], ByRun]:
        """Return all final values of a plug-in's measurement.

        The keys are (metric, target, split, layer or setting).
        """
        values: dict[tuple[str, str, str, str], ByRun] = {}
        for place, rows in self._rows.items():
            for row in rows:
                if measured_by(row) == name_in(text) and row.epoch is None and _is_number(row):
                    of_row = values.setdefault((*place, row.layer or row.setting or ""), {})
                    of_row.setdefault(str(row.objective), {})[row.seed] = row.value
        return {place: self._in_order(runs) for place, runs in values.items()}

    @cached_property
    def _seeds_of(self) -> dict[str, set[Seed]]:
        """The seeds of every objective for which anything was measured."""
        seeds: dict[str, set[Seed]] = {}
        for rows in self._rows.values():
            for row in rows.where(epoch=None, layer=None, setting=None):
                if self.is_own(row):
                    seeds.setdefault(str(row.objective), set()).add(row.seed)
        return seeds

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every seed for which anything was measured."""
        measured = {seed for of_objective in self._seeds_of.values() for seed in of_objective}
        return tuple(sorted(seed for seed in measured if seed is not None))

    def run_counts(self) -> tuple[int, ...]:
        """Return the number of measured runs of each objective that has any."""
        seeds = self._seeds_of
        return tuple(len(seeds[each.spec]) for each in self.objectives if each.spec in seeds)

    def runs_phrase(self, *arms: str) -> str:
        """Return the number of runs behind a mean of an objective, in this arm and others, in words."""
        grids = self.networks.grids(self.arm)
        planned = len(grids[0].get("seeds", ())) if grids else 0
        counts = [*self.run_counts(), *(count for arm in arms for count in self.in_arm(arm).run_counts())]
        least, most = min(counts, default=planned), max(counts, default=planned)
        return f"{counted(most, 'run') if least == most else f'{least} to {most} runs'} per objective"

    @cached_property
    def temperatures(self) -> tuple[tuple[float, StudyObjective], ...]:
        """The cosine softmax objectives of this arm with their temperatures, in ascending order."""
        from penultimate.objectives.sweeps import temperature_of

        pairs = [(temperature_of(objective.spec), objective) for objective in self.objectives]
        known = [(value, objective) for value, objective in pairs if value is not None]
        return tuple(sorted(known, key=lambda pair: pair[0]))

    @cached_property
    def diverged(self) -> tuple[DivergedRun, ...]:
        """The runs that ended as NaN: those that left rows, then those that the provenance names."""
        labels = {
            each.spec: each.label for arm in reversed(self.arms) for each in self.in_arm(arm).objectives
        }
        return diverged_runs(self.results, labels, self.backbone)


def admit(results: StudyResults, allow_limited: bool = False) -> Measurements:
    """Return the measurements of a study.

    Raises RequestError for a limited study unless `allow_limited`, because it is not evidence.
    """
    description = results.description
    for kept in description.get("cards", ()):
        remember(kept)
    limited = bool(description.get("limited")) or len(results.table.where(status="limited")) > 0
    if limited and not allow_limited:
        first = facts_of_page(StudyNetworks(description).page).get("first")
        raise RequestError(
            f"study '{plain(description.get('name', ''))}' is a limited run, too small to be evidence."
            f" Pass allow_limited=True (--allow-limited) to see it, marked as such, or run a full study"
            f"{f': penultimate run {first}' if first else ''}"
        )
    targets = [str(target) for target in description.get("targets", ())]
    several = [target for target in targets if card(target).has_several_labels]
    classes = [target for target in targets if target not in several]
    source = str(description["source"])
    measurements = Measurements(results, limited, source, tuple(classes), tuple(several))
    return measurements.with_backbone(next(iter(measurements.backbones), ""))


def _is_number(row: Row) -> bool:
    """Return whether a row holds a number of one network."""
    return row.objective is not None and row.objective_b is None and abs(row.value) <= LARGEST


def measured_by(row: Row) -> str:
    """Return the name of the measurement whose step left a row."""
    return str(row.step).partition(".")[0]


def run_name(seed: Seed) -> str:
    """Return the name of a run among those of its objective.

    >>> run_name(3), run_name(None)
    ('seed 3', 'not trained here')
    """
    return "not trained here" if seed is None else f"seed {seed}"


def _natural(text: str) -> tuple[float, str]:
    """Return a key that sorts numbers by their value, before words."""
    try:
        return float(text), ""
    except ValueError:
        return math.inf, text


def _by_seed(item: tuple[Seed, object]) -> int:
    return -1 if item[0] is None else item[0]


def mean_of(columns: Sequence[ByRun]) -> ByRun:
    """Return the mean over columns for the runs that have a value in each of them."""
    means: ByRun = {}
    for spec in columns[0] if columns else ():
        of_columns = [runs.get(spec, {}) for runs in columns]
        seeds = [seed for seed in of_columns[0] if all(seed in values for values in of_columns)]
        if seeds:
            means[spec] = {
                seed: math.fsum(values[seed] for values in of_columns) / len(columns) for seed in seeds
            }
    return means
