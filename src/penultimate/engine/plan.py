"""The plan of a study: its steps, those that are done, and what the rest is expected to cost."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from penultimate.engine.costs import Costs, bytes_left
from penultimate.errors import DamagedFileError
from penultimate.store import Meta, Store
from penultimate.study.acceptance import accepted
from penultimate.study.graph import Graph
from penultimate.study.selection import as_study
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe


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
        return sum(
            Recipe(**step.config["recipe"]).steps_on(images)
            for step_id, step in self.graph.steps.items()
            if step.name == "train" and step_id not in self.done
        )

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
        each = statistics.mean(known) if known else None
        counted.append(StepCost(name, len(ids), len(done), each))
    over = frozenset({*metas, *lost})
    return Plan(graph, over, tuple(counted), bytes_left(graph, over))


def _finished(store: Store, step_id: str) -> Meta | None:
    try:
        return store.finished(step_id)
    except DamagedFileError:
        return None
