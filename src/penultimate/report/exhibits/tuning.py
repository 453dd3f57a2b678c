"""How the hyperparameters were chosen: the grids, the search, and what the holdout chose (section A.1)."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from penultimate.data.augmentation import Augmentation
from penultimate.data.catalog import card
from penultimate.errors import RequestError
from penultimate.records.tuning import (
    GridCell,
    Number,
    Tuned,
    TunedAxis,
    Tuning,
    accuracy_text,
    budget_text,
    from_json,
)
from penultimate.report.base import (
    MISSING,
    Cell,
    Column,
    Curve,
    ExhibitTable,
    Figure,
    Missing,
    Panel,
    Point,
    TableRow,
)
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.shapes.numbers import printed_rows
from penultimate.report.shapes.table import Printed, PrintedRow, PrintedTable
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, listed
from penultimate.training.recipe import Recipe

SIZE = (210.0, 160.0)
LOOKS = ("evaluate_every", "snapshot_every")
"""Settings of a recipe that say when to look, and change no network."""
SYMBOLS = {
    "none": "none",
    "alpha": "α",
    "lambda_final": "λ",
    "keep_probability_rho": "ρ",
    "beta": "β",
    "temperature_tau": "τ",
    "kappa": "κ",
    "target_magnitude_m": "M",
    "loss_scale": "scale",
}
"""The paper's letters by the names of the printed tables."""
TUNED = (
    "Every objective was given the same number of trainings to find its hyperparameters, and only the"
    " accuracy on images held out of the pretraining set decided: no test set, no transfer task."
)
UNTUNED = (
    "The hyperparameters that each objective was trained with here. This study took them as they are; a"
    " search on images held out of the pretraining set has not been run beside it."
)


def tuning_of(measurements: Measurements) -> Tuning | None:
    """The search behind a study's hyperparameters, if its description holds one."""
    content = measurements.results.description.get("tuning")
    return None if content is None else from_json(content)


def not_tuned(measurements: Measurements) -> Missing:
    """That no search was made, and how to make it."""
    return Missing(
        "The search for hyperparameters", f"penultimate tune all --study {measurements.words['name']}"
    )


def in_use(measurements: Measurements) -> list[tuple[StudyObjective, Mapping[str, Any]]]:
    """Every objective of the study, of whichever arm, and the recipe that it was trained with.

    Those trained in other architectures alone are not among them.
    """
    arms = [measurements.in_arm(arm) for arm in measurements.arms]
    every = [(objective, of_arm.recipe_of(objective)) for of_arm in arms for objective in of_arm.objectives]
    return [(objective, recipe) for objective, recipe in every if recipe]


def mark_of(measurements: Measurements, tuned: Tuned) -> str:
    """The slug of an objective that the study has, so that it has a mark; else nothing."""
    return tuned.slug if tuned.slug in {objective.slug for objective, _ in in_use(measurements)} else ""


def values_of(spec: str) -> tuple[tuple[str, Number], ...]:
    """The hyperparameters of a spec in the paper's letters: (symbol, value); none for an unknown name."""
    from penultimate.tuning.axes import hyperparameters_of

    try:
        parameters = hyperparameters_of(spec)
    except RequestError:
        return ()
    return tuple((parameter.symbol or parameter.name, value) for parameter, value in parameters.values())


def number_cell(value: Number | None) -> Cell:
    """A hyperparameter's value, as short as it can be."""
    return Cell(MISSING) if value is None else Cell(f"{value:.6g}", float(value))


def _search(measurements: Measurements) -> Piece:
    """The search, or the values in use where none was made."""
    tuning = tuning_of(measurements)
    if tuning is None:
        table = _values_table(measurements)
        missing = (not_tuned(measurements),)
        return Piece((table,) if table.rows else (), missing=missing, words={"how": UNTUNED})
    notes = tuple(_notes(measurements, tuning))
    panels = tuple(
        panel
        for index, tuned in enumerate(tuning.objectives)
        if mark_of(measurements, tuned)
        for place, axis in enumerate(tuned.axes)
        if (panel := _panel(f"tableA1-{index}-{place}", tuned, place, axis))
    )
    caption = "Holdout accuracy of every cell against the values of one hyperparameter, a panel each."
    figures = (Figure("tableA1_grid", "Every cell of the search", caption, panels),) if panels else ()
    return Piece((_search_table(measurements, tuning),), figures, notes, words={"how": TUNED})


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


def _search_table(measurements: Measurements, tuning: Tuning) -> ExhibitTable:
    columns = (
        Column("hyperparameter", "Hyperparameter"),
        Column("grid", "Values tried"),
        Column("chosen_value", "Chosen", "Value"),
        Column("highest_value", "Of the highest mean", "Value"),
        Column("holdout_top1_percent", "After the search", "Holdout top-1, %", "%"),
        Column("start_top1_percent", "At the start", "Holdout top-1, %", "%"),
        Column("epochs", "Trained", "Epochs"),
        Column("peak_epoch", "Best of the holdout", "Epochs"),
        Column("cells", "Cells"),
    )
    rows = [
        TableRow(
            tuned.label,
            (*_axis_cells(tuned, place, axis), *_common_cells(tuning, tuned)),
            mark_of(measurements, tuned),
        )
        for tuned in tuning.objectives
        for place, axis in enumerate(tuned.axes or (None,))
    ]
    note = (
        f"The budget: {budget_text(tuning)}. Standard errors are over seeds. Of cells that the seeds cannot"
        " tell from the best, the middle one is chosen; the value of the highest mean stands beside it."
    )
    title = f"The search on the holdout of {card(tuning.source).title}"
    return ExhibitTable("tableA1", title, "Objective", columns, tuple(rows), notes=(note,))


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
        number_cell(tuning.recipe["epochs"] if epochs is None else epochs),
        number_cell(tuned.best.peak_epoch if tuned.best else None),
        Cell(f"{len(tuned.cells)} of {tuning.budget}", float(len(tuned.cells))),
    )


def _accuracy_cell(cell: GridCell | None) -> Cell:
    if cell is None or not math.isfinite(cell.mean):
        return Cell(accuracy_text(cell))
    error = None if cell.standard_error is None else 100 * cell.standard_error
    return Cell(accuracy_text(cell), 100 * cell.mean, error, len(cell.runs))


def _notes(measurements: Measurements, tuning: Tuning) -> list[str]:
    """What has to be said of the choices, and where this study does not follow them."""
    notes = _gathered(remark for tuned in tuning.objectives for remark in tuned.remarks)
    if measurements.results.description.get("name") == tuning.name:
        return notes
    used = {objective.slug: objective.spec for objective, _ in reversed(in_use(measurements))}
    for tuned in tuning.objectives:
        spec = used.get(tuned.slug)
        if spec is not None and tuned.best is not None and spec != tuned.best.objective:
            notes.append(f"This study uses {spec}; the search chose {tuned.best.objective}.")
    known = {tuned.slug for tuned in tuning.objectives}
    unknown = [objective.spec for objective in measurements.objectives if objective.slug not in known]
    if unknown:
        notes.append(f"Not searched, and used as they are: {listed(unknown)}.")
    if measurements.recipe:
        searched, used_here = _set_in(tuning.recipe), _set_in(measurements.recipe)
        differing = [
            f"{name} = {searched[name]} (here {used_here[name]})"
            for name in sorted(searched.keys() & used_here.keys())
            if name not in LOOKS and searched[name] != used_here[name]
        ]
        if differing:
            notes.append(f"The search was made with another recipe: {', '.join(differing)}.")
    return notes


def _gathered(remarks: Iterable[str]) -> list[str]:
    """Remarks as sentences: those that say the same of several objectives in one.

    >>> _gathered(["A: no finer grid of k was tried", "A: edge", "B: no finer grid of m was tried"])
    ['A, B: no finer grid was tried.', 'A: edge.']
    """
    of: dict[str, list[str]] = {}
    for remark in remarks:
        label, _, said = remark.partition(": ")
        of.setdefault(re.sub(r"^(no finer grid) of .*(?= was tried)", r"\1", said), []).append(label)
    lines = (f"{', '.join(labels)}: {said}." for said, labels in of.items())
    return [line[:1].upper() + line[1:] for line in lines]


def _set_in(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """What a recorded recipe sets, its augmentation's settings among it; what came later has its default."""
    settings = {**dataclasses.asdict(Recipe()), **recipe}
    augmentation = {**dataclasses.asdict(Augmentation()), **settings.pop("augmentation")}
    return {**settings, **augmentation}


def _panel(name: str, tuned: Tuned, place: int, axis: TunedAxis) -> Panel | None:
    """Holdout accuracy against one axis; the line joins the best cell of every value."""
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
    """Where a value stands on the drawn axis: its logarithm, where all of the grid has one."""
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
    """Of how many objectives a chosen value is the lowest or the highest tried."""
    tuning = tuning_of(measurements)
    if tuning is None:
        count = counted(len(measurements.objectives), "objective")
        return f"{OURS}: {count} with the values that the study gives them; nothing was searched."
    searched = [tuned for tuned in tuning.objectives if tuned.axes and tuned.best]
    if not searched:
        return f"{OURS}: no hyperparameter was chosen by a search."
    edge = [
        any(
            tuned.best.values[place] in (min(tuned.tried(place)), max(tuned.tried(place)))
            for place in range(len(tuned.axes))
            if len(tuned.tried(place)) > 1
        )
        for tuned in searched
        if tuned.best
    ]
    grids = [
        (float(row["chosen_value"]), [float(value) for value in row["grid"].split(";")])
        for row in printed_rows("neurips_tableA1_hyperparameters")
        if row["grid"]
    ]
    theirs = sum(chosen in (min(grid), max(grid)) for chosen, grid in grids)
    return (
        f"{OURS}: of {counted(len(searched), 'objective')} whose hyperparameters were searched,"
        f" {in_words(sum(edge), 'none')} {'has' if sum(edge) == 1 else 'have'} the lowest or highest value"
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
