"""The choice of hyperparameters: grids, search, and the values that the holdout chose (section A.1)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penultimate.data.augmentation.settings import Augmentation
from penultimate.records.tuning import (
    GridCell,
    Number,
    Tuned,
    TunedAxis,
    Tuning,
    accuracy_text,
)
from penultimate.report.base import (
    MISSING,
    Cell,
    Column,
    Curve,
    ExhibitTable,
    Figure,
    Panel,
    Point,
    TableRow,
)
from penultimate.report.measurements import Measurements
from penultimate.report.searches import (
    CELLS,
    SYMBOLS,
    budgets,
    cells_cell,
    each_of,
    in_use,
    mark_of,
    not_searched,
    number_cell,
    searches_of,
    sources_of,
    values_of,
)
from penultimate.report.shapes.numbers import printed_rows
from penultimate.report.shapes.table import Printed, PrintedRow, PrintedTable
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, listed
from penultimate.training.recipe import Recipe

SIZE = (210.0, 160.0)
LOOKS = ("evaluate_every", "snapshot_every")
"""Settings of a recipe that say when something is recorded, and that change no network."""
TUNED = (
    "The hyperparameters of every objective were chosen from grids of values, and only the accuracy on images"
    " held out of the pretraining set decided: no test set, no transfer task."
)
UNTUNED = (
    "The hyperparameters that each objective was trained with here. This study took them as they are; a"
    " search on images held out of the pretraining set has not been run beside it."
)


def _search(measurements: Measurements) -> Piece:
    """Return the search, or the values in use if there was none."""
    searches = searches_of(measurements)
    missing = not_searched(measurements, searches)
    if not searches:
        table = _values_table(measurements)
        return Piece((table,) if table.rows else (), missing=missing, words={"how": UNTUNED})
    notes = tuple(_notes(measurements, searches))
    panels = tuple(
        panel
        for index, (_, tuned) in enumerate(each_of(searches))
        if mark_of(measurements, tuned)
        for place, axis in enumerate(tuned.axes)
        if (panel := _panel(f"tableA1-{index}-{place}", tuned, place, axis))
    )
    caption = "Holdout accuracy of every cell against the values of one hyperparameter, a panel each."
    title = f"Every cell of the {'search' if len(searches) == 1 else 'searches'}"
    figures = (Figure("tableA1_grid", title, caption, panels),) if panels else ()
    return Piece((_search_table(measurements, searches),), figures, notes, missing, words={"how": TUNED})


def _values_table(measurements: Measurements) -> ExhibitTable:
    columns = (
        Column("hyperparameter", "Hyperparameter"),
        Column("value", "Value"),
        Column("epochs", "Epochs"),
    )
    rows = tuple(
        TableRow(
            objective.label,
            (Cell(symbol), number_cell(value), number_cell(recipe.get("epochs"))),
            objective.slug,
        )
        for objective, recipe in in_use(measurements)
        for symbol, value in values_of(objective.spec) or (("none", None),)
    )
    return ExhibitTable("tableA1", "The values that this study uses", "Objective", columns, rows)


def _search_table(measurements: Measurements, searches: Sequence[Tuning]) -> ExhibitTable:
    columns = (
        Column("hyperparameter", "Hyperparameter"),
        Column("grid", "Values tried"),
        Column("chosen_value", "Chosen", "Value"),
        Column("highest_value", "Of the highest mean", "Value"),
        Column("holdout_top1_percent", "After the search", "Holdout top-1, %", "%"),
        Column("start_top1_percent", "At the start", "Holdout top-1, %", "%"),
        Column("epochs", "Trained", "Epochs"),
        Column("peak_epoch", "Best of the holdout", "Epochs"),
        CELLS,
    )
    rows = [
        TableRow(
            tuned.label,
            (*_axis_cells(tuned, place, axis), *_common_cells(tuning, tuned)),
            mark_of(measurements, tuned),
        )
        for tuning, tuned in each_of(searches)
        for place, axis in enumerate(tuned.axes or (None,))
    ]
    chosen_by_mean = all(tuning.by_mean for tuning in searches)
    note = "Standard errors are over seeds. " + (
        "The cell of the highest mean is chosen."
        if chosen_by_mean
        else "Of cells that the seeds cannot tell from the best, the middle one is chosen; the value of the"
        " highest mean stands beside it."
    )
    if any(tuning.stops for tuning in searches):
        note += (
            " The accuracy of a cell is that of the epoch in which its mean over seeds is highest, and"
            " training is to stop at that epoch, which stands under Best of the holdout."
        )
    several = "The search" if len(searches) == 1 else "The searches"
    title = f"{several} on the holdout of {sources_of(searches)}"
    return ExhibitTable("tableA1", title, "Objective", columns, tuple(rows), notes=(*budgets(searches), note))


def _axis_cells(tuned: Tuned, place: int, axis: TunedAxis | None) -> tuple[Cell, ...]:
    if axis is None:
        return Cell("none"), Cell(MISSING), Cell(MISSING), Cell(MISSING)
    tried = ", ".join(f"{value:.6g}" for value in tuned.tried(place))
    first = f"first {', '.join(f'{value:.6g}' for value in axis.grid)}"
    values = (
        number_cell(cell.values[place]) if cell else Cell(MISSING, detail="every cell diverged")
        for cell in (tuned.best, tuned.top)
    )
    return Cell(axis.symbol, detail=axis.key), Cell(tried, detail=first), *values


def _common_cells(tuning: Tuning, tuned: Tuned) -> tuple[Cell, ...]:
    epochs = dict(tuned.best.settings).get("epochs") if tuned.best else None
    return (
        _accuracy_cell(tuned.best),
        _accuracy_cell(tuned.at_start),
        number_cell(tuning.recipe.get("epochs") if epochs is None else epochs),
        number_cell(tuned.best.peak_epoch if tuned.best else None),
        cells_cell(tuned),
    )


def _accuracy_cell(cell: GridCell | None) -> Cell:
    if cell is None or not math.isfinite(cell.mean):
        return Cell(accuracy_text(cell))
    error = None if cell.standard_error is None else 100 * cell.standard_error
    return Cell(accuracy_text(cell), 100 * cell.mean, error, len(cell.runs))


def _notes(measurements: Measurements, searches: Sequence[Tuning]) -> list[str]:
    """Return the remarks on the choices, and on where this study does not follow them."""
    every = [tuned for _, tuned in each_of(searches)]
    notes = _gathered(remark for tuned in every for remark in tuned.remarks)
    if measurements.results.description.get("name") in {tuning.name for tuning in searches}:
        return notes
    used = {objective.slug: objective.spec for objective, _ in reversed(in_use(measurements))}
    recipes = {objective.spec: recipe for objective, recipe in reversed(in_use(measurements))}
    chosen = {tuned.best.objective for tuned in every if tuned.best}
    for tuned in every:
        spec = used.get(tuned.slug)
        if spec is None or tuned.best is None:
            continue
        if spec not in chosen:
            notes.append(f"This study uses {spec}; the search chose {tuned.best.objective}.")
        notes += _other_settings(tuned, tuned.best, recipes)
    known = {tuned.slug for tuned in every}
    unknown = [objective.spec for objective in measurements.objectives if objective.slug not in known]
    if unknown:
        notes.append(f"Not searched, and used as they are: {listed(unknown)}.")
    by_difference: dict[str, list[str]] = {}
    for tuning in searches if measurements.recipe else ():
        by_difference.setdefault(_difference(tuning, measurements.recipe), []).append(tuning.study)
    for difference, studies in by_difference.items():
        if difference:
            several = (
                f"The searches {listed(studies)} were" if len(studies) > 1 else f"The search {studies[0]} was"
            )
            which = several if len(searches) > 1 else "The search was"
            notes.append(f"{which} made with another recipe: {difference}.")
    return notes


def _other_settings(tuned: Tuned, best: GridCell, recipes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return where this study trains a choice with other settings of the recipe than were chosen with it."""
    recipe = recipes.get(best.objective, {})
    chosen = {axis.key: value for axis, value in zip(tuned.axes, best.values, strict=True)}
    return [
        f"This study trains {best.objective} with {name} = {used}; the search chose {chosen[key]}."
        for name, used in recipe.items()
        if (key := f"recipe.{name}") in chosen and used != chosen[key]
    ]


def _difference(tuning: Tuning, recipe: Mapping[str, Any]) -> str:
    """Return the settings in which the recipe of a search differs from one of this study."""
    searched, used_here = _set_in(tuning.recipe), _set_in(recipe)
    return ", ".join(
        f"{name} = {_in_short(searched[name])} (here {_in_short(used_here[name])})"
        for name in sorted(searched.keys() & used_here.keys())
        if name not in LOOKS and searched[name] != used_here[name]
    )


def _in_short(setting: Any) -> str:
    return f"{setting:.3g}" if isinstance(setting, float) else str(setting)


def _gathered(remarks: Iterable[str]) -> list[str]:
    """Return remarks as sentences; those that say the same of several objectives become one.

    >>> _gathered(["A: one cell", "A: edge", "B: one cell"])
    ['A, B: one cell.', 'A: edge.']
    """
    labels: dict[str, list[str]] = {}
    for remark in remarks:
        label, _, text = remark.partition(": ")
        labels.setdefault(text, []).append(label)
    lines = (f"{', '.join(of)}: {text}." for text, of in labels.items())
    return [line[:1].upper() + line[1:] for line in lines]


def _set_in(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a recorded recipe, with those of its augmentation and with later defaults."""
    settings = {**dataclasses.asdict(Recipe()), **recipe}
    augmentation = {**dataclasses.asdict(Augmentation()), **settings.pop("augmentation")}
    return {**settings, **augmentation}


def _panel(name: str, tuned: Tuned, place: int, axis: TunedAxis) -> Panel | None:
    """Return a panel of holdout accuracy along one axis; the line joins the best cell of every value."""
    trained = [(place_on(axis, cell.values[place]), cell) for cell in tuned.cells if math.isfinite(cell.mean)]
    if len({x for x, _ in trained}) < 2:
        return None
    best: dict[float, float] = {}
    for x, cell in trained:
        best[x] = max(best.get(x, -math.inf), 100 * cell.mean)
    points = tuple(
        Point(
            x,
            100 * cell.mean,
            tuned.slug,
            tuned.label,
            f"{cell}: {accuracy_text(cell)} %",
            y_error=None if cell.standard_error is None else 100 * cell.standard_error,
            faint=cell is not tuned.best,
        )
        for x, cell in trained
    )
    finding = "Nothing chosen"
    if tuned.best:
        chosen = f"{axis.symbol} = {tuned.best.values[place]:.6g}"
        finding = f"Chosen: {chosen}, holdout {fixed(100 * tuned.best.mean, 1)} %"
    line = Curve(tuple(sorted(best.items())), tuned.slug, f"{tuned.label}: the best at each {axis.symbol}")
    title = f"{tuned.label}: {axis.symbol}"
    return Panel(
        name, title, _axis_label(axis), "", points, (line,), labelled=False, finding=finding, size=SIZE
    )


def place_on(axis: TunedAxis, value: Number) -> float:
    """Return the place of a value on the drawn axis: its logarithm, if every value of the grid has one."""
    if axis.from_above and axis.grid[-1] < 1:
        return math.log10(1 - value)
    return math.log10(value) if axis.grid[0] > 0 and not axis.from_above else float(value)


def _axis_label(axis: TunedAxis) -> str:
    if axis.from_above and axis.grid[-1] < 1:
        return f"log₁₀(1 − {axis.symbol})"
    return f"log₁₀ {axis.symbol}" if axis.grid[0] > 0 and not axis.from_above else axis.symbol


def _symbol(row: PrintedRow) -> Cell:
    return Cell(SYMBOLS[row["hyperparameter"]], detail=row["hyperparameter"])


def _at_edges(measurements: Measurements) -> str:
    """Return a sentence on the objectives whose chosen value is the lowest or the highest tried."""
    searches = searches_of(measurements)
    if not searches:
        count = counted(len(measurements.objectives), "objective")
        return f"{OURS}: {count} with the values that the study gives them; nothing was searched."
    searched = [tuned for _, tuned in each_of(searches) if tuned.axes and tuned.best]
    if not searched:
        return f"{OURS}: no hyperparameter was chosen by a search."
    edge = {
        tuned.slug
        for tuned in searched
        for place in range(len(tuned.axes))
        if tuned.best
        and len(tuned.tried(place)) > 1
        and tuned.best.values[place] in (min(tuned.tried(place)), max(tuned.tried(place)))
    }
    grids = [
        (float(row["chosen_value"]), [float(value) for value in row["grid"].split(";")])
        for row in printed_rows("neurips_tableA1_hyperparameters")
        if row["grid"]
    ]
    count = counted(len({tuned.slug for tuned in searched}), "objective")
    theirs = sum(chosen in (min(grid), max(grid)) for chosen, grid in grids)
    return (
        f"{OURS}: of {count} whose hyperparameters were searched,"
        f" {in_words(len(edge), 'none')} {'has' if len(edge) == 1 else 'have'} the lowest or highest value"
        f" that was tried, so that a better one may lie beyond; in the paper {in_words(theirs, 'none')} of"
        f" the {in_words(len(grids))} whose grid it prints."
    )


TABLE_A1 = Exhibit(
    name="tableA1",
    title="How the hyperparameters were chosen",
    caption="{how}",
    parts=(
        Bespoke(_search),
        PrintedTable(
            "tableA1",
            "neurips_tableA1_hyperparameters",
            "The paper's Table A.1: ResNet-50, ImageNet",
            (
                Printed("hyperparameter", "Hyperparameter", read=_symbol),
                Printed("grid", "Grid", read=lambda row: Cell(row["grid"].replace(";", ", ") or MISSING)),
                Printed("chosen_value", "Chosen"),
                Printed("epochs", "Epochs"),
                Printed("note", "Note", read=lambda row: Cell(row["note"])),
            ),
        ),
    ),
    findings=(_at_edges,),
    section="A.1",
    summary="How the hyperparameters were chosen",
    short="Hyperparameters",
)
