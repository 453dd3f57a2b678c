"""The record of a search for hyperparameters: every cell with its runs, and what was chosen.

A search is an ordinary study, one network for each cell and seed (`penultimate.tuning.grid`). Its description
holds this record without the runs' accuracies, which `records.choice.choose` adds from the study's rows.
Kept runs hold the whole record; fields of earlier versions are ignored.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

from penultimate.errors import counted
from penultimate.training.recipe import Recipe

Number: TypeAlias = int | float
Point: TypeAlias = tuple[Number, ...]
"""A value for every axis."""
Network: TypeAlias = tuple[str, str, int]
"""The objective, arm and seed of a network."""


@dataclass(frozen=True)
class CellRun:
    """One training of a cell: its holdout top-1 (a fraction; None if it diverged, and why)."""

    seed: int
    accuracy: float | None
    reason: str = ""


@dataclass(frozen=True)
class GridCell:
    """One setting of an objective, trained once per seed.

    `values` are those of the axes, in their order; `settings` are the changes to the recipe, and `arm` is the
    arm of the search's study in which the cell was trained. `peak_epoch` is the epoch in which the mean
    holdout accuracy was highest (the accuracy that counts is that of the weights kept).

    >>> str(GridCell("dropout(keep=0.9)", (0.9, 2.0), (("learning_rate", 2.0),)))
    'dropout(keep=0.9) with recipe.learning_rate=2.0'
    """

    objective: str
    values: Point
    settings: tuple[tuple[str, Number], ...]
    runs: tuple[CellRun, ...] = ()
    peak_epoch: int | None = None
    arm: str = ""

    def __str__(self) -> str:
        changes = ", ".join(f"recipe.{name}={value!r}" for name, value in self.settings)
        return f"{self.objective} with {changes}" if changes else self.objective

    @property
    def diverged(self) -> tuple[CellRun, ...]:
        return tuple(run for run in self.runs if run.accuracy is None)

    @property
    def accuracies(self) -> tuple[float, ...]:
        """The accuracy of each run; none at all if any run diverged."""
        known = tuple(run.accuracy for run in self.runs if run.accuracy is not None)
        return known if len(known) == len(self.runs) else ()

    @property
    def mean(self) -> float:
        """The mean accuracy of the runs; minus infinity if any of them diverged."""
        known = self.accuracies
        return math.fsum(known) / len(known) if known else -math.inf

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean over seeds; None for a single run and for a cell that diverged."""
        known = self.accuracies
        return statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else None


@dataclass(frozen=True)
class TunedAxis:
    """A hyperparameter that was searched: the value it started from, and its grid in ascending order.

    Distances are measured on a scale on which equal steps are equal ratios of the value or, `from_above`, of
    its distance from 1. If the grid contains a value of zero or less, the scale is arithmetic.
    """

    key: str
    symbol: str
    start: Number
    grid: tuple[Number, ...]
    from_above: bool = False

    def __str__(self) -> str:
        return f"{self.key} from {', '.join(map(repr, self.grid))}"

    @property
    def centre(self) -> Number:
        """The value of the grid that is nearest to the start, around which a search is laid."""
        return min(self.grid, key=lambda value: (abs(value - self.start), value))

    def position(self, value: Number) -> float:
        """Return the position of a value on the scale.

        >>> keep = TunedAxis("keep", "ρ", 0.8, (0.6, 0.8, 0.9), from_above=True)
        >>> round(keep.position(0.9) - keep.position(0.8), 6) == round(math.log(2), 6)
        True
        """
        if self.from_above and self.grid[-1] < 1:
            return -math.log(1 - value)
        if not self.from_above and self.grid[0] > 0:
            return math.log(value)
        return float(value)

    @property
    def step(self) -> float:
        """The smallest step of the grid on the scale; 1 for a grid of one value."""
        return min((b - a for a, b in itertools.pairwise(map(self.position, self.grid))), default=1.0)


@dataclass(frozen=True)
class Tuned:
    """An objective's search: its axes, its cells (the one at the start first), and the one that was chosen.

    `highest` is the cell of the highest mean. Cells less than `margin` (a fraction) below it were tied with
    it.
    """

    slug: str
    label: str
    start: str
    axes: tuple[TunedAxis, ...]
    cells: tuple[GridCell, ...]
    chosen: int | None = None
    highest: int | None = None
    margin: float | None = None

    @property
    def best(self) -> GridCell | None:
        """The cell that was chosen."""
        return None if self.chosen is None else self.cells[self.chosen]

    @property
    def top(self) -> GridCell | None:
        """The cell of the highest mean."""
        return self.best if self.highest is None else self.cells[self.highest]

    @property
    def at_start(self) -> GridCell | None:
        """The cell from which the search started, if it was measured."""
        start = tuple(axis.start for axis in self.axes)
        return next((cell for cell in self.cells if cell.values == start), None)

    def tried(self, axis: int) -> tuple[Number, ...]:
        """Return every value that was tried on an axis, ascending."""
        return tuple(sorted({cell.values[axis] for cell in self.cells}))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the choice has to know: ties, edges, diverged cells, nothing to choose from."""
        notes = ["one cell, so there was nothing to choose"] if len(self.cells) == 1 else []
        if self.best is None:
            notes.append("every cell diverged, so nothing is chosen")
        elif self.top and self.best is not self.top:
            lead = 100 * (self.top.mean - self.best.mean)
            notes.append(
                f"the middle of the cells that the seeds cannot tell from the best is chosen; {self.top} has"
                f" the highest mean, {lead:.2f} points above it"
            )
        for place, axis in enumerate(self.axes if self.best else ()):
            tried, value = self.tried(place), self.best.values[place] if self.best else 0
            if len(tried) > 1 and value in (tried[0], tried[-1]):
                notes.append(
                    f"{axis.key} = {value!r} is at the edge of what was tried ({tried[0]!r} to"
                    f" {tried[-1]!r}); a wider --grid may find a better one"
                )
        diverged = [
            f"diverged: {cell}, seed {run.seed}{f' ({run.reason})' if run.reason else ''}"
            for cell in self.cells
            for run in cell.diverged
        ]
        return (*(f"{self.label}: {note}" for note in notes), *diverged)


@dataclass(frozen=True)
class Tuning:
    """The searches of several objectives on one source, with one recipe and one set of seeds.

    `listed` holds the objectives of the study as it has them. `product`: whether every combination of the
    grids' values was tried. If it `stops`, a cell's accuracy is that of its `peak_epoch`, which is chosen
    with it; `by_mean`, the cell of the highest mean is chosen.
    """

    study: str
    source: str
    backbone: str
    seeds: tuple[int, ...]
    recipe: Mapping[str, Any]
    limited: bool
    listed: tuple[str, ...]
    objectives: tuple[Tuned, ...]
    product: bool = False
    stops: bool = False
    by_mean: bool = False
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return folder_name(self.study)

    def recipe_of(self, cell: GridCell) -> Recipe:
        """Return the recipe of a cell's trainings."""
        return Recipe.of_record(self.recipe).changed(dict(cell.settings))


def folder_name(study: str) -> str:
    """Return the name of the study that searches for the hyperparameters of another.

    >>> folder_name("nine")
    'tune-nine'
    """
    return f"tune-{study}"


def from_json(content: Mapping[str, Any]) -> Tuning:
    """Return the record whose fields these are, as JSON gives them back."""
    tuning: Tuning = _typed(Tuning, content)
    return tuning


_hints = functools.cache(get_type_hints)


def _typed(kind: Any, content: Any) -> Any:
    """Return JSON as the type it was written from: objects as dataclasses, lists as tuples."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: _typed(hints[name], content[name]) for name in hints.keys() & content.keys()})
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        kinds = kinds[:1] * len(content) if Ellipsis in kinds else kinds
        return tuple(map(_typed, kinds, content))
    return content


def searches_named(description: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the studies by whose searches a described study is tuned; older descriptions name one, as text.

    >>> searches_named({"tuned_by": ["first", "second"]}), searches_named({"tuned_by": "rehearsal"})
    (('first', 'second'), ('rehearsal',))
    """
    named = description.get("tuned_by") or ()
    return (named,) if isinstance(named, str) else tuple(named)


def searches_held(description: Mapping[str, Any]) -> tuple[Tuning, ...]:
    """Return the searches that the description of a study holds; older descriptions hold one, in no list."""
    held = description.get("tuning") or ()
    return tuple(map(from_json, (held,) if isinstance(held, Mapping) else held))


def accuracy_text(cell: GridCell | None) -> str:
    """Return the mean holdout top-1 of a cell in per cent, with its standard error if there is one."""
    if cell is None:
        return "–"
    if not math.isfinite(cell.mean):
        return "diverged"
    error = cell.standard_error
    return f"{100 * cell.mean:.2f}" + ("" if error is None else f" ± {100 * error:.2f}")


def budget_text(tuning: Tuning) -> str:
    """Return in words how many cells and seeds an objective had."""
    counts = sorted({len(tuned.cells) for tuned in tuning.objectives})
    cells = counted(counts[-1], "cell") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} cells"
    combined = ", every combination of the grids' values" if tuning.product else ""
    seeds = f"{'seed' if len(tuning.seeds) == 1 else 'seeds'} {', '.join(map(str, tuning.seeds))}"
    return f"{cells} an objective{combined}, each trained with {seeds}"
