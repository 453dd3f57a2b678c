"""How the hyperparameters were chosen: the grids, the search, and what the holdout chose (section A.1)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from penultimate.data.augmentation import Augmentation
from penultimate.data.catalog import card
from penultimate.errors import RequestError
from penultimate.objectives.presets import PRESETS
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
from penultimate.report.shapes.cells import published_cell
from penultimate.report.shapes.numbers import printed_rows
from penultimate.report.shapes.table import Printed, PrintedRow, PrintedTable
from penultimate.report.spec import Bespoke, Exhibit, Piece
from penultimate.report.text import fixed, listed
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


def _tuning_of(measurements: Measurements) -> Tuning | None:
    """The search behind a study's hyperparameters, if its description holds one."""
    content = measurements.results.description.get("tuning")
    return None if content is None else from_json(content)


def _not_tuned(measurements: Measurements) -> Missing:
    """That no search was made, and how to make it."""
    return Missing(
        "The search for hyperparameters", f"penultimate tune all --study {measurements.words['name']}"
    )


def _in_use(measurements: Measurements) -> list[tuple[StudyObjective, Mapping[str, Any]]]:
    """Every objective of the study, of whichever arm, and the recipe that it was trained with."""
    arms = [measurements.in_arm(arm) for arm in measurements.arms]
    return [(objective, of_arm.recipe_of(objective)) for of_arm in arms for objective in of_arm.objectives]


def _mark(measurements: Measurements, tuned: Tuned) -> str:
    """The slug of an objective that the study has, so that it has a mark; else nothing."""
    return tuned.slug if tuned.slug in {objective.slug for objective, _ in _in_use(measurements)} else ""


def _values_of(spec: str) -> tuple[tuple[str, Number], ...]:
    """The hyperparameters of a spec in the paper's letters: (symbol, value); none for an unknown name."""
    from penultimate.tuning.axes import hyperparameters_of

    try:
        parameters = hyperparameters_of(spec)
    except RequestError:
        return ()
    return tuple((parameter.symbol or parameter.name, value) for parameter, value in parameters.values())


def _number(value: Number | None) -> Cell:
    """A hyperparameter's value, as short as it can be."""
    return Cell(MISSING) if value is None else Cell(f"{value:.6g}", float(value))


def _search(measurements: Measurements) -> Piece:
    """The search, or the values in use where none was made."""
    tuning = _tuning_of(measurements)
    if tuning is None:
        table = _values_table(measurements)
        missing = (_not_tuned(measurements),)
        return Piece((table,) if table.rows else (), missing=missing, words={"how": UNTUNED})
    notes = tuple(_notes(measurements, tuning))
    panels = tuple(
        panel
        for index, tuned in enumerate(tuning.objectives)
        if _mark(measurements, tuned)
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
            objective.label, (Cell(symbol), _number(value), _number(recipe.get("epochs"))), objective.slug
        )
        for objective, recipe in _in_use(measurements)
        for symbol, value in _values_of(objective.spec) or (("none", None),)
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
            _mark(measurements, tuned),
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
        _number(cell.values[place]) if cell else Cell(MISSING, detail="every cell diverged")
        for cell in (tuned.best, tuned.top)
    )
    return Cell(axis.symbol, detail=axis.key), Cell(tried, detail=first), *values


def _common_cells(tuning: Tuning, tuned: Tuned) -> tuple[Cell, ...]:
    epochs = dict(tuned.best.settings).get("epochs") if tuned.best else None
    return (
        _accuracy_cell(tuned.best),
        _accuracy_cell(tuned.at_start),
        _number(tuning.recipe["epochs"] if epochs is None else epochs),
        _number(tuned.best.peak_epoch if tuned.best else None),
        Cell(f"{len(tuned.cells)} of {tuning.budget}", float(len(tuned.cells))),
    )


def _accuracy_cell(cell: GridCell | None) -> Cell:
    if cell is None or not math.isfinite(cell.mean):
        return Cell(accuracy_text(cell))
    error = None if cell.standard_error is None else 100 * cell.standard_error
    return Cell(accuracy_text(cell), 100 * cell.mean, error, len(cell.runs))


def _notes(measurements: Measurements, tuning: Tuning) -> list[str]:
    """What has to be said of the choices, and where this study does not follow them."""
    notes = [f"{remark[:1].upper()}{remark[1:]}." for tuned in tuning.objectives for remark in tuned.remarks]
    if measurements.results.description.get("name") == tuning.name:
        return notes
    used = {objective.slug: objective.spec for objective, _ in reversed(_in_use(measurements))}
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
    section="A.1",
    summary="How the hyperparameters were chosen",
    short="Hyperparameters",
)

DATASETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
SETTINGS = (
    Column("learning_rate", "η", "Learning rate"),
    Column("learning_rate_log10", "log₁₀ η", "Learning rate"),
    Column("lr_times_weight_decay", "λ", "η × weight decay"),
    Column("lr_times_weight_decay_log10", "log₁₀ λ", "η × weight decay"),
    Column("hyperparameters", "Hyperparameters"),
)


def _settings(measurements: Measurements) -> Piece:
    """The settings of every objective: of its best cell where they were searched, else those in use."""
    tuning = _tuning_of(measurements)
    missing: tuple[Missing, ...] = ()
    notes = []
    if tuning is None:
        missing = (_not_tuned(measurements),)
        title = f"The values that this study uses on {measurements.title}"
        rows = [
            TableRow(objective.label, _setting_cells(recipe, objective.spec), objective.slug)
            for objective, recipe in _in_use(measurements)
        ]
    else:
        notes.append(f"The budget: {budget_text(tuning)}.")
        if not any(axis.key.startswith("recipe.") for tuned in tuning.objectives for axis in tuned.axes):
            notes.append(
                "Learning rate and weight decay were common to all objectives, as in the paper's ImageNet"
                " runs; to search them too: `--grid recipe.learning_rate=...`."
            )
        title = f"Chosen on the holdout of {card(tuning.source).title}, {tuning.backbone}"
        rows = [
            TableRow(
                tuned.label,
                _setting_cells({**tuning.recipe, **dict(tuned.best.settings)}, tuned.best.objective),
                _mark(measurements, tuned),
            )
            for tuned in tuning.objectives
            if tuned.best is not None
        ]
    ours = (ExhibitTable("iclr_tableA2", title, "Objective", SETTINGS, tuple(rows)),) if rows else ()
    return Piece((*ours, *map(_printed_settings, DATASETS)), notes=tuple(notes), missing=missing)


def _setting_cells(recipe: Mapping[str, Any], spec: str) -> tuple[Cell, ...]:
    rate, decay = recipe.get("learning_rate"), recipe.get("weight_decay")
    product = None if rate is None or decay is None else rate * decay
    values = ", ".join(f"{symbol} = {value:.6g}" for symbol, value in _values_of(spec))
    return _number(rate), _logarithm(rate), _number(product), _logarithm(product), Cell(values or MISSING)


def _logarithm(value: float | None) -> Cell:
    return Cell(fixed(math.log10(value), 2), math.log10(value)) if value else Cell(MISSING)


def _printed_settings(dataset: str) -> ExhibitTable:
    """The paper's table of one data set, its hyperparameters in the paper's letters."""
    rows = [row for row in printed_rows("iclr_tableA2_cifar_hyperparameters") if row["dataset"] == dataset]
    table_rows = []
    for row in rows:
        values = [
            f"{SYMBOLS[row[f'hyperparameter_{place}']]} = {row[f'hyperparameter_{place}_value']}"
            for place in (1, 2)
            if row[f"hyperparameter_{place}"]
        ]
        numbers = [published_cell(row[column.key]) for column in SETTINGS[:-1]]
        cells = (*numbers, Cell(", ".join(values) or MISSING), Cell(row["note"]))
        table_rows.append(TableRow(PRESETS[row["objective"]].label, cells, row["objective"]))
    name = f"iclr_tableA2_{dataset}_published"
    title = f"The paper's ICLR Table A.2: {DATASETS[dataset]}, {rows[0]['architecture']}"
    columns = (*SETTINGS, Column("note", "Note"))
    return ExhibitTable(name, title, "Objective", columns, tuple(table_rows), "published")


ICLR_TABLE_A2 = Exhibit(
    name="iclr_tableA2",
    title="Learning rate, weight decay and hyperparameters",
    caption="The settings of every objective: of its best cell where they were searched. λ is the product of"
    " the learning rate and the weight decay.",
    parts=(Bespoke(_settings),),
    section="A.1",
    summary="Learning rate, weight decay and hyperparameters",
    short="Learning rates",
)
