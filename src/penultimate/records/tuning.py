"""What a tuning leaves, as data: every cell with its runs, what was chosen, and what has to be said of it."""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from penultimate.errors import DamagedFileError, RequestError, counted
from penultimate.files import read_sealed, write_sealed
from penultimate.training.recipe import Recipe

TUNING_FILE = "tuning.json"
SCHEMA = 2
Number = int | float


@dataclass(frozen=True)
class CellRun:
    """One training of a cell: its holdout top-1 (a fraction; None where it diverged, and why)."""

    seed: int
    accuracy: float | None
    step: str = ""
    reason: str = ""


def accuracies(runs: Sequence[CellRun]) -> tuple[float, ...]:
    """Return the accuracy of each run; none at all where any of them diverged.

    >>> accuracies([CellRun(0, 0.5), CellRun(1, 0.75)]), accuracies([CellRun(0, 0.5), CellRun(1, None)])
    ((0.5, 0.75), ())
    """
    known = tuple(run.accuracy for run in runs if run.accuracy is not None)
    return known if len(known) == len(runs) else ()


@dataclass(frozen=True)
class GridCell:
    """One setting of an objective, trained once a seed.

    `values` are those of the axes, in their order; `settings` what they change in the recipe. `phase` is what
    asked for the cell: "grid", "expansion" or "refinement". `peak_epoch` is the epoch in which the mean
    holdout accuracy was highest (the accuracy that counts is that of the weights kept).

    >>> str(GridCell("dropout(keep=0.9)", (0.9, 2.0), (("learning_rate", 2.0),), "grid", ()))
    'dropout(keep=0.9) with recipe.learning_rate=2.0'
    """

    objective: str
    values: tuple[Number, ...]
    settings: tuple[tuple[str, Number], ...]
    phase: str
    runs: tuple[CellRun, ...]
    peak_epoch: int | None = None

    def __str__(self) -> str:
        changes = ", ".join(f"recipe.{name}={value!r}" for name, value in self.settings)
        return f"{self.objective} with {changes}" if changes else self.objective

    @property
    def diverged(self) -> tuple[CellRun, ...]:
        return tuple(run for run in self.runs if run.accuracy is None)

    @property
    def mean(self) -> float:
        """The mean accuracy of the runs; minus infinity where any of them diverged."""
        known = accuracies(self.runs)
        return math.fsum(known) / len(known) if known else -math.inf

    @property
    def standard_error(self) -> float | None:
        """Of the mean over seeds; None for a single run and for a cell that diverged."""
        known = accuracies(self.runs)
        return statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else None


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
    """An objective's search: its axes, every cell in the order of measuring, and the one that was chosen.

    `highest` is the cell of the highest mean, where it was not simply that one which was chosen; cells less
    than `margin` (a fraction) below it were tied with it (`penultimate.tuning.choice`). `at_chance` says
    that no cell is better than guessing, where that is so, and `at_the_end` that the epoch that was chosen is
    the last.
    """

    slug: str
    label: str
    start: str
    axes: tuple[TunedAxis, ...]
    cells: tuple[GridCell, ...]
    chosen: int | None
    command: str = ""
    highest: int | None = None
    margin: float | None = None
    at_chance: str = ""
    at_the_end: str = ""

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
        """What a reader of the choice has to know: edges, diverged cells, nothing to choose from."""
        said = ["one cell, so there was nothing to choose"] if len(self.cells) == 1 else []
        said += [] if self.best else ["every cell diverged, so nothing is chosen"]
        said += [remark for remark in (self.at_chance, self.at_the_end) if remark]
        if self.best and self.top and self.best is not self.top:
            lead = 100 * (self.top.mean - self.best.mean)
            said.append(
                f"the middle of the cells that the seeds cannot tell from the best is chosen; {self.top} has"
                f" the highest mean, {lead:.2f} points above it"
            )
        said += [axis.edge for axis in self.axes if axis.edge]
        coarse = [cell.values for cell in self.cells if cell.phase != "refinement"]
        unrefined = [
            axis.key
            for place, axis in enumerate(self.axes)
            if len(axis.grid) > 1 and set(self.tried(place)) <= {values[place] for values in coarse}
        ]
        if self.best and unrefined:
            said.append(f"no finer grid of {', '.join(unrefined)} was tried")
        diverged = [
            f"diverged: {cell}, seed {run.seed}{f' ({run.reason})' if run.reason else ''}"
            for cell in self.cells
            for run in cell.diverged
        ]
        return (*(f"{self.label}: {remark}" for remark in said), *diverged)


@dataclass(frozen=True)
class Tuning:
    """The searches of several objectives with one budget, on one source, recipe and set of seeds.

    Where it `stops`, a cell's accuracy is that of its `peak_epoch`, which is chosen with it; `by_mean`, the
    cell of the highest mean is chosen.
    """

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
    refine: bool = True
    product: bool = False
    stops: bool = False
    by_mean: bool = False

    @property
    def name(self) -> str:
        return folder_name(self.study)

    @property
    def setting(self) -> tuple[Any, ...]:
        """What has to be equal for the choices of two tunings to stand beside each other."""
        searched = ("budget", "expansions", "refine", "product", "stops", "by_mean")
        fields = ("study", "source", "backbone", "draw", "seeds", "threads", *searched)
        return Recipe(**self.recipe), *(getattr(self, name) for name in fields)

    def steps(self) -> tuple[str, ...]:
        """Return the training steps of the chosen cells."""
        return tuple(run.step for tuned in self.objectives if tuned.best for run in tuned.best.runs)


def folder_name(study: str) -> str:
    """Return the name under which the tuning of a study is kept: a study of its own.

    >>> folder_name("nine")
    'tune-nine'
    """
    return f"tune-{study}"


def from_json(content: Mapping[str, Any]) -> Tuning:
    """Return the tuning whose fields these are, as JSON gives them back."""
    tuning: Tuning = _typed(Tuning, content)
    return tuning


_hints = functools.cache(get_type_hints)


def _typed(kind: Any, content: Any) -> Any:
    """JSON as the type it was written from: objects as dataclasses, lists as tuples, all else unchanged."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return kind(**{name: _typed(_hints(kind)[name], value) for name, value in content.items()})
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


def write_tuning(path: Path, tuning: Tuning) -> None:
    """Keep a tuning at a path."""
    write_sealed(path, dataclasses.asdict(tuning), SCHEMA)


WRITTEN_AGAIN = "the command that tuned writes it again, from the trainings that are kept"


def read_tuning(path: Path) -> Tuning | None:
    """Return the tuning kept at a path, None where there is none.

    Raises DamagedFileError for what is not the record that was written.
    """
    try:
        content = read_sealed(path, SCHEMA)
        return from_json(content)
    except FileNotFoundError:
        return None
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; {WRITTEN_AGAIN}") from None
    except RequestError:
        raise
    except (ValueError, TypeError) as error:
        raise DamagedFileError(f"'{path}' is no record of a tuning: {error}; {WRITTEN_AGAIN}") from None


def accuracy_text(cell: GridCell | None) -> str:
    """Return the mean holdout top-1 of a cell in per cent, with its standard error where there is one."""
    if cell is None:
        return "–"
    if not math.isfinite(cell.mean):
        return "diverged"
    error = cell.standard_error
    return f"{100 * cell.mean:.2f}" + ("" if error is None else f" ± {100 * error:.2f}")


def budget_text(tuning: Tuning) -> str:
    """Return what every objective was given."""
    seeds = f"{'seed' if len(tuning.seeds) == 1 else 'seeds'} {', '.join(map(str, tuning.seeds))}"
    cells = f"at most {counted(tuning.budget, 'cell')} an objective"
    combined = ", every combination of the grids' values among them" if tuning.product else ""
    return f"{cells}{combined}, each trained with {seeds}"
