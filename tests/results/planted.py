"""A small run that is made up: two objectives, three seeds, two tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penultimate.records.table import frame_of
from penultimate.results.rows import Run

LABELS = {"softmax": "Softmax", "sigmoid": "Sigmoid"}


def row(objective: str, seed: int, metric: str, value: float, **cells: Any) -> dict[str, Any]:
    """Return a row about a network of the main arm."""
    of_network = {"objective": objective, "seed": seed, "backbone": "glyphnet", "source": "glyphs"}
    about = {"target": "glyphs", "split": "test", "unit": "fraction", "status": "done"}
    return {**of_network, **about, "metric": metric, "value": value, **cells}


def rows() -> list[dict[str, Any]]:
    """Return accuracies: softmax is clearly worse where trained, and both transfer alike."""
    found = []
    for seed in range(3):
        for objective, ahead in (("softmax", 0.0), ("sigmoid", 0.05 + 0.001 * seed)):
            found.append(row(objective, seed, "top1", 0.7 + 0.01 * seed + ahead))
            found += [
                row(
                    objective,
                    seed,
                    "linear_top1",
                    0.5 + 0.01 * ((seed + 2 * (objective == "sigmoid")) % 3),
                    target=task,
                )
                for task in ("digits", "maths")
            ]
    return found


def run(
    cells: Sequence[Mapping[str, Any]] | None = None, labels: Mapping[str, str] = LABELS, **card: Any
) -> Run:
    """Return the run of some rows."""
    description = {
        "name": "planted",
        "title": "A planted study",
        "source": "glyphs",
        "targets": ["digits", "maths"],
        "objectives": [{"spec": spec, "slug": spec, "label": label} for spec, label in labels.items()],
        "networks": [{"objectives": [*labels], "backbones": ["glyphnet"], "seeds": [0, 1, 2], "recipe": {}}],
        **card,
    }
    return Run(
        frame_of(rows() if cells is None else cells), description, {"command": "penultimate run planted"}
    )
