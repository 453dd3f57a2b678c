"""Table A.1: the hyperparameters that were searched, the grids, and what the holdout chose."""

from __future__ import annotations

import math
from collections.abc import Mapping

from penultimate.data.catalog import card
from penultimate.errors import RequestError
from penultimate.report.exhibits.base import (
    MISSING,
    Cell,
    Column,
    Curve,
    Exhibit,
    ExhibitTable,
    Figure,
    Panel,
    Point,
    StudyResults,
    TableRow,
)
from penultimate.report.exhibits.cells import published_cell, published_table
from penultimate.report.exhibits.measurements import Measurements, admit
from penultimate.report.text import fixed, listed, plain
from penultimate.study import tuning_record
from penultimate.study.tuning_axes import hyperparameters_of
from penultimate.study.tuning_record import Number, Tuned, TunedAxis, Tuning
from penultimate.study.tuning_words import accuracy_text, budget_text

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


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    tuning = tuning_of(results)
    if tuning is None:
        ours = _in_use(measurements)
        notes = [not_tuned(results)]
        figures: tuple[Figure, ...] = ()
    else:
        ours = _chosen(measurements, tuning)
        notes = _notes(measurements, tuning)
        figures = _figures(measurements, tuning)
    return Exhibit(
        "tableA1",
        "How the hyperparameters were chosen",
        UNTUNED if tuning is None else TUNED,
        (ours, _published()) if ours.rows else (_published(),),
        figures,
        tuple(notes),
        measurements.limited,
    )


def tuning_of(results: StudyResults) -> Tuning | None:
    """The search behind a study's hyperparameters, if its description holds one."""
    content = results.description.get("tuning")
    return None if content is None else tuning_record.from_json(content)


def not_tuned(results: StudyResults) -> str:
    """The sentence that stands where no search was made."""
    name = plain(results.description.get("tunes", results.description.get("name", "")))
    return f"The search for hyperparameters: not measured: run `penultimate tune all --study {name}`"


def known_slug(measurements: Measurements, slug: str) -> str:
    """The slug where the study has this objective, so that it has a mark; else nothing."""
    return slug if slug in {one.slug for one in measurements.objectives} else ""


def values_of(spec: str) -> tuple[tuple[str, Number], ...]:
    """The hyperparameters of a spec in the paper's letters: (symbol, value); none for an unknown name."""
    try:
        found = hyperparameters_of(spec)
    except RequestError:
        return ()
    return tuple((parameter.symbol or parameter.name, value) for parameter, value in found.values())


def number(value: Number | None) -> Cell:
    """A hyperparameter's value, as short as it can be."""
    return Cell(MISSING) if value is None else Cell(f"{value:.6g}", float(value))


def _chosen(measurements: Measurements, tuning: Tuning) -> ExhibitTable:
    columns = (
        Column("hyperparameter", "Hyperparameter"),
        Column("grid", "Values tried"),
        Column("chosen_value", "Chosen"),
        Column("holdout_top1_percent", "Chosen", "Holdout top-1, %", "%"),
        Column("start_top1_percent", "At the start", "Holdout top-1, %", "%"),
        Column("epochs", "Trained", "Epochs"),
        Column("peak_epoch", "Best of the holdout", "Epochs"),
        Column("cells", "Cells"),
    )
    rows = []
    for one in tuning.objectives:
        slug = known_slug(measurements, one.slug)
        for place, axis in enumerate(one.axes or (None,)):
            own = _axis_cells(one, place, axis)
            rows.append(TableRow(one.label, (*own, *_common_cells(tuning, one)), slug))
    note = f"The budget: {budget_text(tuning)}. Standard errors are over seeds."
    title = f"The search on the holdout of {card(tuning.source).title}"
    return ExhibitTable("tableA1", title, "Objective", columns, tuple(rows), notes=(note,))


def _axis_cells(one: Tuned, place: int, axis: TunedAxis | None) -> tuple[Cell, ...]:
    if axis is None:
        return Cell("none"), Cell(MISSING), Cell(MISSING)
    tried = ", ".join(f"{value:.6g}" for value in one.tried(place))
    first = f"first {', '.join(f'{value:.6g}' for value in axis.grid)}"
    chosen = number(one.best.values[place]) if one.best else Cell(MISSING, detail="every cell diverged")
    return Cell(axis.symbol, detail=axis.key), Cell(tried, detail=first), chosen


def _common_cells(tuning: Tuning, one: Tuned) -> tuple[Cell, ...]:
    shown = []
    for cell in (one.best, one.at_start):
        if cell is None or not math.isfinite(cell.mean):
            shown.append(Cell(accuracy_text(cell)))
            continue
        error = cell.standard_error
        shown.append(
            Cell(
                accuracy_text(cell),
                100 * cell.mean,
                None if error is None else 100 * error,
                len(cell.runs),
            )
        )
    epochs = dict(one.best.settings).get("epochs") if one.best else None
    return (
        *shown,
        number(tuning.recipe["epochs"] if epochs is None else epochs),
        number(one.best.peak_epoch if one.best else None),
        Cell(f"{len(one.cells)} of {tuning.budget}", float(len(one.cells))),
    )


def _in_use(measurements: Measurements) -> ExhibitTable:
    """Without a search: the values that the study has."""
    columns = (
        Column("hyperparameter", "Hyperparameter"),
        Column("value", "Value"),
        Column("epochs", "Epochs"),
    )
    epochs = number(measurements.results.description.get("recipe", {}).get("epochs"))
    rows = tuple(
        TableRow(one.label, (Cell(symbol), number(value), epochs), one.slug)
        for one in measurements.objectives
        for symbol, value in values_of(one.spec) or (("none", None),)
    )
    return ExhibitTable("tableA1", "The values that this study uses", "Objective", columns, rows)


def _published() -> ExhibitTable:
    columns = [
        (Column("hyperparameter", "Hyperparameter"), _symbol),
        (Column("grid", "Grid"), lambda row: Cell(row["grid"].replace(";", ", ") or MISSING)),
        (Column("chosen_value", "Chosen"), lambda row: published_cell(row["chosen_value"])),
        (Column("epochs", "Epochs"), lambda row: published_cell(row["epochs"])),
        (Column("note", "Note"), lambda row: Cell(row["note"])),
    ]
    title = "The paper's Table A.1: ResNet-50, ImageNet"
    return published_table("tableA1", "tableA1_hyperparameters", title, columns)


def _symbol(row: Mapping[str, str]) -> Cell:
    return Cell(SYMBOLS[row["hyperparameter"]], detail=row["hyperparameter"])


def _notes(measurements: Measurements, tuning: Tuning) -> list[str]:
    """What has to be said of the choices, and where this study does not follow them."""
    said = [f"{remark[:1].upper()}{remark[1:]}." for one in tuning.objectives for remark in one.remarks]
    description = measurements.results.description
    if description.get("name") != tuning.name:
        for one in tuning.objectives:
            used = [objective for objective in measurements.objectives if objective.slug == one.slug]
            if used and one.best is not None and used[0].spec != one.best.objective:
                said.append(f"This study uses {used[0].spec}; the search chose {one.best.objective}.")
        known = {one.slug for one in tuning.objectives}
        unknown = [one.spec for one in measurements.compared if one.slug not in known]
        if unknown:
            said.append(f"Not searched, and used as they are: {listed(unknown)}.")
        recipe = description.get("recipe", {})
        differing = sorted(
            name
            for name in recipe
            if name in tuning.recipe and name not in LOOKS and recipe[name] != tuning.recipe[name]
        )
        if differing:
            was = ", ".join(f"{name} = {tuning.recipe[name]} (here {recipe[name]})" for name in differing)
            said.append(f"The search was made with another recipe: {was}.")
    return said


def _figures(measurements: Measurements, tuning: Tuning) -> tuple[Figure, ...]:
    panels = tuple(
        panel
        for index, one in enumerate(tuning.objectives)
        if known_slug(measurements, one.slug)
        for place, axis in enumerate(one.axes)
        if (panel := _panel(f"tableA1-{index}-{place}", one, place, axis)) is not None
    )
    if not panels:
        return ()
    description = "Holdout accuracy of every cell against the values of one hyperparameter, a panel each."
    return (Figure("tableA1_grid", "Every cell of the search", description, panels),)


def _panel(name: str, one: Tuned, place: int, axis: TunedAxis) -> Panel | None:
    """Holdout accuracy against one axis; the line joins the best cell of every value."""
    shown = [(place_on(axis, cell.values[place]), cell) for cell in one.cells if math.isfinite(cell.mean)]
    if len({x for x, _ in shown}) < 2:
        return None
    best: dict[float, float] = {}
    for x, cell in shown:
        best[x] = max(best.get(x, -math.inf), 100 * cell.mean)
    points = tuple(
        Point(
            x,
            100 * cell.mean,
            one.slug,
            one.label,
            f"{cell}: {accuracy_text(cell)} %",
            y_error=None if cell.standard_error is None else 100 * cell.standard_error,
            faint=cell is not one.best,
        )
        for x, cell in shown
    )
    chosen = f"{axis.symbol} = {one.best.values[place]:.6g}" if one.best else "nothing chosen"
    return Panel(
        name,
        f"{one.label}: {axis.symbol}",
        _axis_label(axis),
        "",
        points,
        (Curve(tuple(sorted(best.items())), one.slug, f"{one.label}: the best at each {axis.symbol}"),),
        labelled=False,
        finding=f"Chosen: {chosen}, holdout {fixed(100 * one.best.mean, 1)} %" if one.best else chosen,
        size=SIZE,
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
