"""Learning rate, weight decay and hyperparameters of every objective (table A.2 of the ICLR version)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from penultimate.objectives.presets import PRESETS
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, TableRow
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
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import MINUS, counted, fixed, listed

DATASETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
DOUBTFUL = {
    "cifar10": ("The print of sigmoid's η is damaged: it may be 0.1.",),
    "cifar100": (),
}
"""Remarks on printed values that cannot be read with certainty."""
SETTINGS = (
    Column("learning_rate", "η", "Learning rate"),
    Column("learning_rate_log10", "log₁₀ η", "Learning rate"),
    Column("lr_times_weight_decay", "λ", "η × weight decay"),
    Column("lr_times_weight_decay_log10", "log₁₀ λ", "η × weight decay"),
    Column("hyperparameters", "Hyperparameters"),
)


def _settings(measurements: Measurements) -> Piece:
    """Return the settings of every objective: those of its best cell if it was searched, or those in use."""
    searches = searches_of(measurements)
    notes = budgets(searches)
    if not searches:
        title = f"The values that this study uses on {measurements.title}"
        rows = [
            TableRow(objective.label, _setting_cells(recipe, objective.spec), objective.slug)
            for objective, recipe in in_use(measurements)
        ]
    else:
        if not any(axis.key.startswith("recipe.") for _, tuned in each_of(searches) for axis in tuned.axes):
            notes.append(
                "Learning rate and weight decay were common to all objectives, as in the paper's ImageNet"
                " runs; to search them too: `--grid recipe.learning_rate=...`."
            )
        backbones = dict.fromkeys(tuning.backbone for tuning in searches)
        title = f"Chosen on the holdout of {sources_of(searches)}, {listed(list(backbones))}"
        rows = [
            TableRow(
                tuned.label,
                (
                    *_setting_cells({**tuning.recipe, **dict(tuned.best.settings)}, tuned.best.objective),
                    cells_cell(tuned),
                ),
                mark_of(measurements, tuned),
            )
            for tuning, tuned in each_of(searches)
            if tuned.best is not None
        ]
    columns = (*SETTINGS, CELLS) if searches else SETTINGS
    ours = (ExhibitTable("iclr_tableA2", title, "Objective", columns, tuple(rows)),) if rows else ()
    missing = not_searched(measurements, searches)
    return Piece((*ours, *map(_printed_settings, DATASETS)), notes=tuple(notes), missing=missing)


def _setting_cells(recipe: Mapping[str, Any], spec: str) -> tuple[Cell, ...]:
    rate, decay = recipe.get("learning_rate"), recipe.get("weight_decay")
    product = None if rate is None or decay is None else rate * decay
    values = ", ".join(f"{symbol} = {value:.6g}" for symbol, value in values_of(spec))
    return (
        number_cell(rate),
        _logarithm(rate),
        number_cell(product),
        _logarithm(product),
        Cell(values or MISSING),
    )


def _logarithm(value: float | None) -> Cell:
    return Cell(fixed(math.log10(value), 2), math.log10(value)) if value else Cell(MISSING)


def _printed_settings(dataset: str) -> ExhibitTable:
    """Return the paper's table of one data set, with hyperparameters in the paper's letters."""
    rows = [row for row in printed_rows("iclr_tableA2_cifar_hyperparameters") if row["dataset"] == dataset]
    table_rows = []
    for row in rows:
        values = [
            f"{SYMBOLS[row[f'hyperparameter_{place}']]} = {float(row[f'hyperparameter_{place}_value']):.3g}"
            for place in (1, 2)
            if row[f"hyperparameter_{place}"]
        ]
        numbers = [_short(float(row[column.key])) for column in SETTINGS[:-1]]
        cells = (*numbers, Cell(", ".join(values) or MISSING))
        table_rows.append(TableRow(PRESETS[row["objective"]].label, cells, row["objective"]))
    name = f"iclr_tableA2_{dataset}_published"
    title = f"The paper's ICLR Table A.2: {DATASETS[dataset]}, {rows[0]['architecture']}"
    return ExhibitTable(name, title, "Objective", SETTINGS, tuple(table_rows), "published", DOUBTFUL[dataset])


def _short(value: float) -> Cell:
    """Return a number to three digits, because the paper prints powers of ten."""
    return Cell(f"{value:.3g}".replace("-", MINUS) if value < 0 else f"{value:.3g}", value)


def _rates(measurements: Measurements) -> str:
    """Return the learning rates that were used, or chosen, from the lowest to the highest."""
    searches = searches_of(measurements)
    used = [(objective.slug, recipe) for objective, recipe in in_use(measurements)]
    chosen = [
        (tuned.slug, {**tuning.recipe, **dict(tuned.best.settings)})
        for tuning, tuned in each_of(searches)
        if tuned.best
    ]
    recipes = [
        (slug, recipe) for slug, recipe in (chosen if searches else used) if recipe.get("learning_rate")
    ]
    rates = [float(recipe["learning_rate"]) for _, recipe in recipes]
    if not rates:
        return ""
    theirs = [float(row["learning_rate"]) for row in printed_rows("iclr_tableA2_cifar_hyperparameters")]
    count = counted(len({slug for slug, _ in recipes}), "objective")
    return (
        f"{OURS}: {count} with {_from_to(rates)}; in the paper's CIFAR runs each has its own, of"
        f" {min(theirs):.3g} to {max(theirs):.3g}."
    )


def _from_to(rates: list[float]) -> str:
    low, high = min(rates), max(rates)
    return f"one learning rate, {low:.3g}" if low == high else f"learning rates of {low:.3g} to {high:.3g}"


ICLR_TABLE_A2 = Exhibit(
    name="iclr_tableA2",
    title="Learning rate, weight decay and hyperparameters",
    caption="The settings of every objective: of its best cell where they were searched. λ is the product of"
    " the learning rate and the weight decay.",
    parts=(Bespoke(_settings),),
    findings=(_rates,),
    section="A.1",
    summary="Learning rate, weight decay and hyperparameters",
    short="Learning rates",
)
