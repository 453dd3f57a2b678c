"""What a tuning leaves, as data: every cell with its runs, what was chosen, and what has to be said of it."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.errors import DamagedFileError

TUNING_FILE = "tuning.json"
SCHEMA = 1
Number = int | float


@dataclass(frozen=True)
class Run:
    """One training of a cell: its holdout top-1 (a fraction; None where it diverged, and why)."""

    seed: int
    accuracy: float | None
    step: str = ""
    reason: str = ""


def mean_accuracy(runs: Sequence[Run]) -> float:
    """By which cells are compared: the mean over seeds, minus infinity where any run diverged.

    >>> mean_accuracy([Run(0, 0.5), Run(1, 0.75)]), mean_accuracy([Run(0, 0.5), Run(1, None)])
    (0.625, -inf)
    """
    accuracies = [run.accuracy for run in runs if run.accuracy is not None]
    return math.fsum(accuracies) / len(runs) if len(accuracies) == len(runs) else -math.inf


@dataclass(frozen=True)
class Cell:
    """One setting of an objective, trained once a seed.

    `values` are those of the axes, in their order; `settings` what they change in the recipe. `phase` is what
    asked for the cell: "grid", "expansion" or "refinement". `peak_epoch` is the epoch in which the mean
    holdout accuracy was highest (the accuracy that counts is that of the weights kept).

    >>> str(Cell("dropout(keep=0.9)", (0.9, 2.0), (("learning_rate", 2.0),), "grid", ()))
    'dropout(keep=0.9) with recipe.learning_rate=2.0'
    """

    objective: str
    values: tuple[Number, ...]
    settings: tuple[tuple[str, Number], ...]
    phase: str
    runs: tuple[Run, ...]
    peak_epoch: int | None = None

    def __str__(self) -> str:
        changes = ", ".join(f"recipe.{name}={value!r}" for name, value in self.settings)
        return f"{self.objective} with {changes}" if changes else self.objective

    @property
    def diverged(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.accuracy is None)

    @property
    def mean(self) -> float:
        """The mean accuracy of the runs; minus infinity where any of them diverged."""
        return mean_accuracy(self.runs)

    @property
    def standard_error(self) -> float | None:
        """Of the mean over seeds; None for a single run and for a cell that diverged."""
        accuracies = [run.accuracy for run in self.runs if run.accuracy is not None]
        if len(accuracies) < 2 or self.diverged:
            return None
        return statistics.stdev(accuracies) / math.sqrt(len(accuracies))


@dataclass(frozen=True)
class TunedAxis:
    """A hyperparameter that was searched: the value it started from and the grid that was tried first.

    `edge` says, where the chosen value is the outermost that was tried, that it is so and why.
    """

    key: str
    symbol: str
    start: Number
    grid: tuple[Number, ...]
    from_above: bool = False
    edge: str = ""


@dataclass(frozen=True)
class Tuned:
    """An objective's search: its axes, every cell in the order of measuring, and the one that was chosen."""

    slug: str
    label: str
    start: str
    axes: tuple[TunedAxis, ...]
    cells: tuple[Cell, ...]
    chosen: int | None
    command: str = ""

    @property
    def best(self) -> Cell | None:
        return None if self.chosen is None else self.cells[self.chosen]

    @property
    def at_start(self) -> Cell | None:
        """The cell from which the search started, if it was measured."""
        found = (cell for cell in self.cells if cell.objective == self.start and not cell.settings)
        return next(found, None)

    def tried(self, axis: int) -> tuple[Number, ...]:
        """Every value that was tried on an axis, ascending."""
        return tuple(sorted({cell.values[axis] for cell in self.cells}))

    @property
    def unrefined(self) -> tuple[str, ...]:
        """The axes around whose best value no denser one was tried."""
        coarse = [
            {cell.values[i] for cell in self.cells if cell.phase != "refinement"}
            for i in range(len(self.axes))
        ]
        searched = [i for i, axis in enumerate(self.axes) if len(axis.grid) > 1]
        return tuple(self.axes[i].key for i in searched if set(self.tried(i)) <= coarse[i])

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the choice has to know: edges, diverged cells, nothing to choose from."""
        said = []
        if len(self.cells) == 1:
            said.append(f"{self.label}: one cell, so there was nothing to choose")
        if self.best is None:
            said.append(f"{self.label}: every cell diverged, so nothing is chosen")
        said += [f"{self.label}: {axis.edge}" for axis in self.axes if axis.edge]
        if self.best and self.unrefined:
            said.append(f"{self.label}: the budget held no denser values of {', '.join(self.unrefined)}")
        for cell in self.cells:
            for run in cell.diverged:
                why = f" ({run.reason})" if run.reason else ""
                said.append(f"diverged: {cell}, seed {run.seed}{why}")
        return tuple(said)


@dataclass(frozen=True)
class Tuning:
    """The searches of several objectives with one budget, on one source, recipe and set of seeds."""

    study: str
    source: str
    backbone: str
    draw: int | str
    seeds: tuple[int, ...]
    threads: int
    recipe: Mapping[str, Any]
    budget: int
    expansions: int
    limited: bool
    listed: tuple[str, ...]
    objectives: tuple[Tuned, ...]
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        return folder_name(self.study)

    @property
    def setting(self) -> tuple[Any, ...]:
        """What has to be equal for the choices of two tunings to stand beside each other."""
        fields = ("study", "source", "backbone", "draw", "seeds", "threads", "recipe", "budget", "expansions")
        return tuple(getattr(self, name) for name in fields)

    def of(self, slug: str) -> Tuned | None:
        return next((one for one in self.objectives if one.slug == slug), None)

    def steps(self) -> tuple[str, ...]:
        """The training steps of the chosen cells."""
        return tuple(run.step for one in self.objectives if one.best for run in one.best.runs)

    def to_json(self) -> str:
        content = {"schema": SCHEMA, **dataclasses.asdict(self)}
        return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def folder_name(study: str) -> str:
    """The name under which the tuning of a study is kept: a study of its own.

    >>> folder_name("quickstart")
    'tune-quickstart'
    """
    return f"tune-{study}"


def from_json(content: Mapping[str, Any]) -> Tuning:
    """The tuning that `to_json` wrote."""
    plain = {key: value for key, value in content.items() if key != "schema"}
    objectives = tuple(
        Tuned(
            **{
                **one,
                "axes": tuple(TunedAxis(**{**axis, "grid": tuple(axis["grid"])}) for axis in one["axes"]),
                "cells": tuple(_cell(cell) for cell in one["cells"]),
            }
        )
        for one in plain["objectives"]
    )
    seeds, listed = tuple(plain["seeds"]), tuple(plain["listed"])
    return Tuning(**{**plain, "seeds": seeds, "listed": listed, "objectives": objectives})


def _cell(content: Mapping[str, Any]) -> Cell:
    return Cell(
        content["objective"],
        tuple(content["values"]),
        tuple((name, value) for name, value in content["settings"]),
        content["phase"],
        tuple(Run(**run) for run in content["runs"]),
        content["peak_epoch"],
    )


def read_tuning(path: Path) -> Tuning | None:
    """The tuning kept at a path, or None where there is none; raises DamagedFileError where it is not one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DamagedFileError(f"'{path}' is not the record of a tuning: {error}") from None
    try:
        return from_json(content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"'{path}' is not the record of a tuning: {error!r}") from None
