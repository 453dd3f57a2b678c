"""The graph of a study: its steps, in an order in which parents come before their children."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from penultimate.graph import Step
from penultimate.study.spec import Study


@dataclass(frozen=True)
class Graph:
    """The steps of a study, in an order in which parents come first.

    `arms` holds the arms of each step's rows; there are several if these arms train the same network.
    """

    study: Study
    steps: dict[str, Step]
    arms: Mapping[str, Collection[str]] = field(default_factory=dict)

    def children(self) -> dict[str, list[str]]:
        children: dict[str, list[str]] = {step_id: [] for step_id in self.steps}
        for step_id, step in self.steps.items():
            for parent in step.parents:
                children[parent].append(step_id)
        return children

    def below(self, diverged: Collection[str]) -> list[str]:
        """Return the steps that cannot be done because they depend on diverged trainings.

        Steps that gather are not among them, since they do without the missing parents.
        """
        lost: dict[str, None] = {}
        for step_id, step in self.steps.items():
            if not step.gathers and any(parent in diverged or parent in lost for parent in step.parents):
                lost[step_id] = None
        return list(lost)
