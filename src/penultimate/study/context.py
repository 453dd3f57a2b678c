"""What a step function is given, and what it gives back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.study.graph import Step
from penultimate.table import Row

ROWS = "rows.jsonl"
Progress = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Context:
    """What a step function is given."""

    step: Step
    folder: Path
    parents: dict[str, Path]
    progress: Progress

    @property
    def config(self) -> dict[str, Any]:
        return self.step.config

    def row(self, metric: str, value: float, unit: str, **columns: Any) -> Row:
        about = {key: value for key, value in self.step.about.items() if key != "slug"}
        return Row(
            **{"step": self.step.id, **about, "metric": metric, "value": value, "unit": unit, **columns}
        )


@dataclass(frozen=True)
class Outcome:
    """The rows of a step, its status, and what meta.json should say besides."""

    rows: list[Row]
    status: str = "done"
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
