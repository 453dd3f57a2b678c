"""The plan of a study: its steps, those that are done, and what the rest is expected to cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from penultimate.backbones.size import size_of
from penultimate.errors import DamagedFileError
from penultimate.graph import Step
from penultimate.measures.catalogue import measurement
from penultimate.store import Meta, Store
from penultimate.study.acceptance import accepted
from penultimate.study.foundation import SECONDS, VERSIONS
from penultimate.study.graph import Graph
from penultimate.study.selection import as_study
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe

FLOAT, LABELS = 4, 16
"""The bytes of a number, and of a label with its id."""
PICTURE, RENDERED = 72 * 72 * 3, 24 * 24 * 3
"""The bytes kept of an image on disk, and those of an image of the embedded world."""


class Costs:
    """The seconds that the steps of a graph still take; `done` has those of each finished step.

    A step takes as long as the finished ones of its kind, in proportion to its length (the batches of a
    training, the steps of a fine-tuning). Before any of its kind is done, it takes what is declared, times
    the pace of what is done; a declaration holds for the embedded world on one core. A step that is neither
    done nor declared has no known cost.
    """

    def __init__(self, graph: Graph, done: Mapping[str, float]) -> None:
        self.graph = graph
        images = graph.study.card(graph.study.source).sizes.get("train", 0)
        self._length = {step_id: _length(step, images) for step_id, step in graph.steps.items()}
        usual = graph.study.runs[0].recipe.steps_on(images) if graph.study.runs else 1
        self._declared = {
            step_id: _declared_seconds(step, graph.study, self._length[step_id] / usual)
            for step_id, step in graph.steps.items()
        }
        self._waiting = dict.fromkeys(graph.steps)
        self._finished: dict[str, tuple[float, float]] = {}
        self._took = self._expected = 0.0
        for step_id, seconds in done.items():
            self.ended(step_id, seconds)

    def ended(self, step_id: str, seconds: float, diverged: bool = False) -> None:
        """Count a step as done; if it `diverged`, what depends on it is left out."""
        self._waiting.pop(step_id, None)
        if diverged:
            for lost in self.graph.below({step_id}):
                self._waiting.pop(lost, None)
            return
        kind = self.graph.steps[step_id].name
        length, total = self._finished.get(kind, (0.0, 0.0))
        self._finished[kind] = length + self._length[step_id], total + seconds
        if (declared := self._declared[step_id]) is not None:
            self._took += seconds
            self._expected += declared

    def seconds(self, step_id: str) -> float | None:
        """Return the seconds that a step takes on one core, or None if nothing tells them."""
        length, total = self._finished.get(self.graph.steps[step_id].name, (0.0, 0.0))
        if length:
            return self._length[step_id] * total / length
        declared = self._declared[step_id]
        pace = self._took / self._expected if self._expected else 1.0
        return None if declared is None else declared * pace

    def left(self, processes: int) -> float:
        """Return the seconds left on some processes; infinite while the cost of a step is unknown."""
        known = [self.seconds(step_id) for step_id in self._waiting]
        total = sum(each for each in known if each is not None)
        return math.inf if None in known or not processes else total / processes


def _length(step: Step, images: int) -> float:
    if step.name == "train":
        return float(Recipe(**step.config["recipe"]).steps_on(images))
    return float(step.config.get("steps") or 1)


def _declared_seconds(step: Step, study: Study, longer: float) -> float | None:
    """Return what the study, or else the step's measurement, declares a step to take, or None.

    A training is `longer` than those of the study's first grid by that factor.
    """
    if step.name in study.expected_seconds:
        return study.expected_seconds[step.name] * (longer if step.name == "train" else 1.0)
    name = str(step.columns.get("target") or study.source)
    if study.is_on_disk(name):  # declarations are of the embedded world's small images
        return None
    if step.name in VERSIONS:
        return SECONDS.get(step.name)
    what = measurement(step.name)
    usual = next((setting.default for setting in what.settings if setting.name == "steps"), None)
    if usual is None or what.seconds is None:
        return what.seconds
    return float(what.seconds * step.config["steps"] / usual)


def bytes_left(graph: Graph, done: Collection[str]) -> int:
    """Return the bytes of the images, networks and features that are still to be written, as far as known.

    Architectures that state no size, and given networks, are not counted.
    """
    study, total = graph.study, 0
    classes = study.card(study.source).classes
    for step_id, step in graph.steps.items():
        if step_id in done:
            continue
        if step.name == "data":
            name = step.config["name"]
            total += study.card(name).images * (PICTURE if study.is_on_disk(name) else RENDERED)
        elif step.name == "train" and (size := size_of(step.config["backbone"])):
            every, epochs = step.config["recipe"]["snapshot_every"], step.config["recipe"]["epochs"]
            networks = 1 + ((epochs - 1) // every if every else 0)
            total += networks * FLOAT * (size.numbers + (size.features + 1) * classes)
        elif step.name == "extract":
            network, images = step.supplies
            rows = study.card(images.of).sizes[images.name]
            if network.network is not None and (size := size_of(network.network.backbone)):
                total += rows * (FLOAT * (size.features + classes) + LABELS)
    return total


@dataclass(frozen=True)
class StepCost:
    """The number of steps of one kind, the number of finished ones, and the seconds of each of the rest."""

    name: str
    total: int
    done: int
    seconds_each: float | None

    @property
    def seconds_left(self) -> float | None:
        return None if self.seconds_each is None else self.seconds_each * (self.total - self.done)


@dataclass(frozen=True)
class Plan:
    """A study's graph, its finished steps (or those left out after divergence), and the cost of the rest."""

    graph: Graph
    done: frozenset[str]
    costs: tuple[StepCost, ...]
    bytes_left: int

    @property
    def seconds_left(self) -> float:
        """The expected seconds of all remaining steps, one after another, without the `unknown` ones."""
        return sum(cost.seconds_left or 0.0 for cost in self.costs)

    @property
    def trainings(self) -> int:
        """The number of networks that remain to be trained."""
        return sum(cost.total - cost.done for cost in self.costs if cost.name == "train")

    @property
    def training_steps(self) -> int:
        """The number of their training steps, each on one batch."""
        study = self.graph.study
        images = study.card(study.source).sizes["train"]
        rest = (step for step_id, step in self.graph.steps.items() if step_id not in self.done)
        return int(sum(_length(step, images) for step in rest if step.name == "train"))

    @property
    def unknown(self) -> int:
        """The number of remaining steps with unknown cost."""
        return sum(cost.total - cost.done for cost in self.costs if cost.seconds_left is None)


def plan(study: Study | str | Path, out: Path | str = "runs") -> Plan:
    """Return the steps of a study, those that are finished in `out`, and the expected cost of the rest.

    >>> plan("smoke", out="no-such-folder").graph.study.name
    'smoke'
    """
    store, study = Store(out), as_study(study)
    graph = unfold(study, accepted(store, study.name))
    metas = {step_id: meta for step_id in graph.steps if (meta := _finished(store, step_id)) is not None}
    lost = graph.below({step_id for step_id, meta in metas.items() if meta.status == "diverged"})
    costs = Costs(graph, {step_id: meta.content["seconds"] for step_id, meta in metas.items()})
    kinds: dict[str, list[str]] = {}
    for step_id, step in graph.steps.items():
        if step_id not in lost:
            kinds.setdefault(step.name, []).append(step_id)
    counted = []
    for name, ids in kinds.items():
        rest = [costs.seconds(step_id) for step_id in ids if step_id not in metas]
        done = [metas[step_id].content["seconds"] for step_id in ids if step_id in metas]
        known = [seconds for seconds in rest or done if seconds is not None]
        counted.append(StepCost(name, len(ids), len(done), statistics.mean(known) if known else None))
    over = frozenset({*metas, *lost})
    return Plan(graph, over, tuple(counted), bytes_left(graph, over))


def _finished(store: Store, step_id: str) -> Meta | None:
    try:
        return store.finished(step_id)
    except DamagedFileError:
        return None
