"""The display of a running tuning: that of a study, with every cell's setting and accuracy."""

from __future__ import annotations

import dataclasses
from typing import Any

from rich.markup import escape

from penultimate.engine.display import Display
from penultimate.graph import Step
from penultimate.records.table import ROWS, read_rows
from penultimate.store import Store
from penultimate.study.graph import Graph
from penultimate.tuning.run import holdout_curve


class TuningDisplay(Display):
    """An observer that names cells by their hyperparameters and shows each one's holdout accuracy."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.round = 0

    def _about(self) -> str:
        about = super()._about()
        return f"{about} of this round" if about else ""

    def _opening(self, graph: Graph, cached: int) -> str:
        self.round += 1
        trainings = [step for step in graph.steps.values() if step.name == "train"]
        left = sum(self.store.meta(step.id) is None for step in trainings)
        done = f", {len(trainings) - left} done before" if left < len(trainings) else ""
        return f"[bold]{escape(graph.study.name)}[/], round {self.round}: {left} runs{done}"

    def _who(self, step: Step) -> str:
        """Return the whole setting: the objective with its hyperparameters, and the changes to the recipe."""
        assert self.graph is not None
        usual: dict[str, Any] = dataclasses.asdict(self.graph.study.main.recipe)
        changed = [
            f"recipe.{name}={value!r}"
            for name, value in step.config["recipe"].items()
            if value != usual[name]
        ]
        words = " ".join([step.columns["objective"], *changed, f"seed {step.columns['seed']}"])
        return f"[bold]{escape(words)}[/]"

    def _trained(self, step: Step, meta: dict[str, Any]) -> str:
        accuracy = holdout_curve(read_rows(self.store.folder(step.id) / ROWS))[meta["epoch"]]
        return f"{self._who(step)} holdout {100 * accuracy:.1f} %, trained"
