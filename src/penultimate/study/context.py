"""What a step function is given, and what it gives back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.study.graph import Step
from penultimate.table import Row

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

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

    def row(self, metric: str, value: float, unit: str | None, **columns: Any) -> Row:
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


def sample(total: int, count: int) -> npt.NDArray[np.int64]:
    """The places of `count` of `total` examples, ascending: the same for all networks; all, if no more.

    >>> sample(3, 5).tolist(), len(sample(1000, 10))
    ([0, 1, 2], 10)
    """
    import numpy as np
    import torch

    from penultimate.data.seeding import derived_generator

    if count >= total:
        return np.arange(total)
    order = torch.randperm(total, generator=derived_generator("images compared"))
    places: npt.NDArray[np.int64] = order[:count].sort().values.numpy()
    return places
