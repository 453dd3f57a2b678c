"""Unfolding of a study into its graph.

    data --> train (or given) --> extract --> measurements, stage by stage where they have stages

Whatever the graph holds beyond the first three follows from the declarations of the measurements alone: for
which networks each is called (`per`), what it needs, and which of its settings hold several values (`each`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from penultimate.errors import RequestError
from penultimate.graph import LATER, NOW, Step, Supply
from penultimate.measures import declaration as needs
from penultimate.measures.catalogue import Requested, measurement, several
from penultimate.measures.declaration import Measurement, Scope
from penultimate.networks.key import NetworkKey
from penultimate.plugins import Accepted
from penultimate.study.blocks import Given
from penultimate.study.foundation import Foundation, Group, filled
from penultimate.study.graph import Graph
from penultimate.study.spec import Study


def unfold(study: Study, accepted: Accepted = MappingProxyType({})) -> Graph:
    """Return the graph of a study; `accepted` changes of plug-ins leave the identities of its steps alone.

    >>> from penultimate.study import load_study
    >>> graph = unfold(load_study("smoke"))
    >>> [step.name for step in graph.steps.values()][:5]
    ['data', 'data', 'data', 'data', 'sheet']
    """
    base = Foundation(study, accepted)
    base.pictures()
    unfolding = _Unfolding(base)
    for key, requests in unfolding.measured.items():
        base.network(key)
        for request in requests:
            if request.measurement.scope == "network":
                unfolding.measure(request, (key,))
    for text, request in unfolding.requests.items():
        if request.measurement.scope != "network":
            for networks in unfolding.groups(text, request.measurement.scope).values():
                unfolding.measure(request, networks)
    return Graph(study, base.steps, base.arms)


@dataclass(frozen=True)
class _Place:
    """Place of a step within a request: networks that belong together, a target, and values of settings."""

    request: Requested
    networks: tuple[NetworkKey, ...]
    target: str
    cell: tuple[tuple[str, Any], ...] = ()


class _Unfolding:
    """Derivation of the steps of measurements from what the measurements need."""

    def __init__(self, base: Foundation) -> None:
        self.base, self.study = base, base.study
        self.measured = self.study.measured()
        self.requests = {request.text: request for asked in self.measured.values() for request in asked}
        self._asking: dict[str, list[NetworkKey]] = {}
        for key, requests in self.measured.items():
            for request in requests:
                self._asking.setdefault(request.text, []).append(key)
        self._groups: dict[tuple[str, Scope], dict[Group, tuple[NetworkKey, ...]]] = {}
        self._stages: dict[tuple[Any, ...], str | None] = {}
        self._settings: dict[tuple[str, str], dict[str, Any]] = {}

    def groups(self, text: str, scope: Scope) -> dict[Group, tuple[NetworkKey, ...]]:
        """Return the networks of a request, grouped as a step of this scope takes them together."""
        if (text, scope) not in self._groups:
            asking = self._asking[text]
            groups: dict[Group, tuple[NetworkKey, ...]] = {}
            if scope == "pair":
                groups = {pair: pair for pair in itertools.combinations(asking, 2) if self._alike(pair)}
            else:
                for key in asking:
                    group = self.base.group(key, scope)
                    groups[group] = (*groups.get(group, ()), key)
            self._groups[text, scope] = groups
        return self._groups[text, scope]

    def _alike(self, networks: tuple[NetworkKey, ...]) -> bool:
        """Return whether networks tell the same number of classes apart."""
        return len({getattr(self.base.blocks[key], "classes", 0) for key in networks}) == 1

    def measure(self, request: Requested, networks: tuple[NetworkKey, ...]) -> None:
        """Add the steps of a measurement for networks that it takes together."""
        for target in self._targets(request.measurement):
            for cell in _cells(request.measurement, request.settings):
                self._step(request.measurement, _Place(request, networks, target, cell))

    def _targets(self, what: Measurement) -> tuple[str, ...]:
        """Return the data sets to measure on: the source, or the targets with labels of the right kind.

        A source whose images have several labels is left out if features are needed, because measurements of
        features on a source take one class for each image.
        """
        if what.per == "outside":
            return self.study.outside or self.study.targets
        if not what.of_targets:
            several = self.study.card(self.study.source).has_several_labels
            takes_classes = any(isinstance(need, needs.Features) for need in what.needs)
            return () if several and takes_classes else (self.study.source,)
        return tuple(
            target
            for target in self.study.targets
            if what.several_labels in (None, self.study.card(target).has_several_labels)
        )

    def _step(self, what: Measurement, place: _Place) -> str | None:
        """Return the id of a step of a measurement or stage, or None if something it needs is missing."""
        if any(self._lacks(place.networks, need, what) for need in what.needs):
            return None
        supplies: dict[tuple[str, str, str], Supply] = {}
        runs_networks = what.runs_networks
        for need in what.needs:
            met = self._supplies(need, what, place)
            if met is None:
                return None
            runs_networks |= isinstance(need, needs.Shown) and bool(met)
            supplies.update({(supply.kind, supply.name, supply.parent): supply for supply in met})
        values = {**self._bound(what, place.request), **dict(place.cell)}
        plugins = self.base.plugin("measurement", what.name)
        extra: dict[str, Any] = {}
        if what.of_targets and what.per != "outside":
            extra["accuracy"] = self.study.card(place.target).accuracy
        if needs.ClassNames() in what.needs:
            told = self.study.counterparts.get(place.target, {})
            extra |= filled(counterparts={name: list(names) for name, names in told.items()})
        if needs.ClassOrder() in what.needs and any(
            isinstance(self.base.blocks[key], Given) for key in place.networks
        ):
            extra |= filled(class_order=self.study.source_classes)
        if needs.Trained() in what.needs:
            extra |= self.base.training(place.networks[0])
        elif what.of_targets and what.runs_networks:
            extra |= self.base.of_transfer(place.networks[0], place.target)
        if what.scope == "study":  # the seeds of the whole group, though the step may be given fewer networks
            extra["seeds"] = sorted({key.seed for key in place.networks if key.seed is not None})
        step = Step(
            what.name,
            what.version,
            {**values, **extra, **filled(plugins=plugins)},
            {**what.changed(values), **extra, **filled(plugins=self.base.counted(plugins))},
            tuple(dict.fromkeys(supply.parent for supply in supplies.values())),
            tuple(supplies.values()),
            self.base.columns(place.networks, what.scope, place.target),
            self.base.label(place.networks, what.scope, place.target, place.cell),
            NOW if what.first else LATER,
            gathers=what.scope in ("study", "objective"),
            resources=self.base.with_network if runs_networks else self.base.on_cpu,
        )
        return self.base.add(step)

    def _bound(self, what: Measurement, request: Requested) -> dict[str, Any]:
        """Return the settings that a request gives a measurement or stage; all its steps share them."""
        if (what.name, request.text) not in self._settings:
            known = {setting.name for setting in what.settings}
            asked = {name: value for name, value in request.settings.items() if name in known}
            self._settings[what.name, request.text] = what.bound(asked)
        return self._settings[what.name, request.text]

    def _supplies(self, need: Any, what: Measurement, place: _Place) -> list[Supply] | None:
        draw = self.base.draw_of(place.networks[0])
        match need:
            case needs.Features():
                return self._banks(need, what, place)
            case needs.Pixels():
                of = self._of(need, place)
                self._expect_split(of, need.split, what)
                data = self.base.data_of(place.networks[0], of, draw)
                return [Supply("images", data, need.split, of)]
            case needs.Shown():
                if need.split not in self.base.card_of(place.networks[0], place.target).sizes:
                    return []
                data = self.base.data_of(place.networks[0], place.target, draw)
                images = Supply("images", data, need.split, place.target)
                networks = [Supply("network", self.base.network(key), network=key) for key in place.networks]
                return [images, *networks]
            case needs.ClassNames():
                places = dict.fromkeys((self.study.source, place.target))
                sets = {name: self.base.data_of(place.networks[0], name, draw) for name in places}
                return [Supply("images", data, "train", name) for name, data in sets.items()]
            case needs.Shifted():
                name = self.study.shifts.get(need.shift, "")
                self._expect_own_classes(place.networks, what)
                lies_nowhere = self.study.source in self.study.data and name not in self.study.data
                if not name or lies_nowhere:
                    return []
                return [Supply("images", self.base.data(name, draw), "test", name)]
            case needs.Layers() | needs.Weights() | needs.Head() | needs.Snapshots():
                keys = _first_seeds(place.networks, need.seeds if isinstance(need, needs.Layers) else 0)
                return [Supply("network", self.base.network(key), network=key) for key in keys]
            case needs.Made():
                return self._made(need, place)
            case needs.Trained():
                self._expect_preparation(place.target, what)
                return []
            case needs.ClassOrder():
                return []
        raise RequestError(f"the measurement '{what.name}' needs {need!r}, which no study can give it")

    def _banks(self, need: needs.Features, what: Measurement, place: _Place) -> list[Supply] | None:
        of = self._of(need, place)
        if need.optional and need.split not in self.base.card_of(place.networks[0], of).sizes:
            return []
        self._expect_split(of, need.split, what)
        supplies = []
        priority = NOW if what.first else LATER
        for key in place.networks:
            if self.base.gives(key, need):
                draw = self.base.first_draw if need.common else self.base.draw_of(key)
                bank = self.base.bank(key, of, need.split, draw, priority)
                supplies.append(Supply("features", bank, need.split, of, key))
        return supplies or None

    def _of(self, need: needs.Features | needs.Pixels, place: _Place) -> str:
        """Return the data set whose images or features are needed."""
        return self.study.source if need.of_source else place.target

    def _made(self, need: needs.Made, place: _Place) -> list[Supply] | None:
        """Return the results of a stage that concern these networks, or groups that contain one of them."""
        stage = measurement(need.stage)
        target = place.target if stage.of_targets else self.study.source
        settings = {**place.request.settings, **dict(place.cell)}
        some = _first_seeds(place.networks, settings[need.seeds] if need.seeds else 0)
        supplies = []
        for group in dict.fromkeys(self.base.group(key, stage.scope) for key in some):
            networks = self.groups(place.request.text, stage.scope)[group]
            for cell in _cells(stage, settings):
                known = (place.request.text, need.stage, group, target, cell)
                if known not in self._stages:
                    there = _Place(place.request, networks, target, cell)
                    self._stages[known] = self._step(stage, there)
                step = self._stages[known]
                if step is not None:
                    key = networks[0] if stage.scope == "network" else None
                    supplies.append(Supply("made", step, need.stage, target, key, dict(cell)))
        return supplies if supplies or need.optional else None

    def _lacks(self, networks: tuple[NetworkKey, ...], need: Any, what: Measurement) -> bool:
        """Return whether networks cannot provide what is needed; for features of a group, any one will do."""
        given = [self.base.gives(key, need) for key in networks]
        any_will_do = isinstance(need, needs.Features) and what.scope not in ("network", "pair")
        return not (any(given) if any_will_do else all(given))

    def _expect_preparation(self, name: str, what: Measurement) -> None:
        """Raise RequestError for images on disk if no network says how they are resized and cropped."""
        if self.study.is_on_disk(name) and not any(isinstance(need, needs.Layers) for need in what.needs):
            raise RequestError(
                f"study '{self.study.name}' measures {what.name} on '{name}', whose images lie on disk; a"
                " network that starts from random weights does not say how to resize and crop them: leave"
                " it out"
            )

    def _expect_own_classes(self, networks: tuple[NetworkKey, ...], what: Measurement) -> None:
        """Raise RequestError for networks that were trained on fewer classes than shifted test sets have."""
        every = self.study.card(self.study.source).classes
        if any(getattr(self.base.blocks[key], "classes", 0) not in (0, every) for key in networks):
            raise RequestError(
                f"study '{self.study.name}' measures {what.name} on shifted test sets, which have all"
                f" {every} classes of '{self.study.source}'; leave it out of grids with fewer"
            )

    def _expect_split(self, name: str, split: str, what: Measurement) -> None:
        sizes = self.study.card(name).sizes
        if split not in sizes:
            raise RequestError(
                f"study '{self.study.name}' measures {what.name}, which needs the split '{split}' of"
                f" '{name}'; it has {', '.join(sizes)}"
            )


def _cells(what: Measurement, settings: Mapping[str, Any]) -> list[tuple[tuple[str, Any], ...]]:
    """Return the combinations of values for which a measurement is repeated, or one that is empty."""
    usual = {setting.name: setting.default for setting in what.settings}
    held = {name: several(what.name, name, settings.get(name, usual[name])) for name in what.each}
    axes = [[(name, value) for value in values] for name, values in held.items()]
    return list(itertools.product(*axes))


def _first_seeds(keys: tuple[NetworkKey, ...], most: int) -> tuple[NetworkKey, ...]:
    """Return the first `most` networks of each objective and architecture, or all of them for 0."""
    if not most:
        return keys
    counts: dict[tuple[str, str], int] = {}
    kept = []
    for key in keys:
        counts[key.objective, key.backbone] = counts.get((key.objective, key.backbone), 0) + 1
        if counts[key.objective, key.backbone] <= most:
            kept.append(key)
    return tuple(kept)
