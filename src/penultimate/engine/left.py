"""How long the steps of a running study still take: what is known of their costs, and what others took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from penultimate.engine.forecast.estimates import expected_seconds, guessed_seconds
from penultimate.engine.forecast.timings import Timings
from penultimate.graph import Step
from penultimate.study.graph import Graph
from penultimate.training.recipe import Recipe


@dataclass(frozen=True)
class _Cost:
    """A step's kind, its length beside others of the kind, and its seconds as declared, if they are.

    It is `unsure` if what is declared holds for the embedded world alone.
    """

    kind: str
    length: float
    declared: float | None
    unsure: bool = False


class TimeLeft:
    """The time that the steps of a graph still need, side by side on a number of `processes`.

    A step takes as long as those of its kind that are done, in proportion to its length (the batches of a
    training, or what `penultimate plan` found out of it). Before one of its kind is done, it takes what is
    declared, times the pace of all that is done. Nothing is timed for this. `done` has the seconds of each
    finished step.
    """

    def __init__(self, graph: Graph, done: Mapping[str, float], processes: int) -> None:
        self.graph, self.processes = graph, processes
        kept = Timings(may_take=False)
        guesses = guessed_seconds(graph, {}, kept)
        kinds: dict[str, list[Step]] = {}
        for step in graph.steps.values():
            kinds.setdefault(step.name, []).append(step)
        each = {name: expected_seconds(graph.study, name, steps, kept) for name, steps in kinds.items()}
        self.waiting: dict[str, _Cost] = {}
        for step_id, step in graph.steps.items():
            guess, unsure = guesses.get(step_id), step_id in guesses and guesses[step_id] is None
            declared = each[step.name] if guess is None else guess
            self.waiting[step_id] = _Cost(step.name, guess or self._length(step), declared, unsure)
        self.past: dict[str, list[float]] = {name: [0.0, 0.0] for name in kinds}
        self.took = self.declared = 0.0
        for step_id, seconds in done.items():
            self.ended(step_id, seconds)

    def _length(self, step: Step) -> float:
        if step.name != "train":
            return float(step.config.get("steps") or 1)
        images = self.graph.study.card(self.graph.study.source).sizes["train"]
        return float(Recipe(**step.config["recipe"]).steps_on(images))

    def ended(self, step_id: str, seconds: float, diverged: bool = False) -> None:
        """Count a step as done; if it `diverged`, what depends on it is left out."""
        cost = self.waiting.pop(step_id, None)
        if diverged:
            for lost in self.graph.below({step_id}):
                self.waiting.pop(lost, None)
        elif cost is not None:
            self.past[cost.kind][0] += cost.length
            self.past[cost.kind][1] += seconds
            if cost.declared is not None:
                self.took += seconds
                self.declared += cost.declared

    @property
    def seconds(self) -> float:
        """The seconds that are left, about; infinite while the cost of a step is unknown."""
        if not self.processes:
            return math.inf
        pace = self.took / self.declared if self.declared else 1.0
        total = 0.0
        for cost in self.waiting.values():
            lengths, seconds = self.past[cost.kind]
            if lengths:
                total += cost.length * seconds / lengths
            elif cost.declared is not None and (self.declared or not cost.unsure):
                total += cost.declared * pace
            else:
                return math.inf
        return total / self.processes
