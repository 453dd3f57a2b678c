"""Table A.2 of the paper's ICLR version: learning rate, weight decay and hyperparameters by objective."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from penultimate import published
from penultimate.data.catalog import card
from penultimate.objectives.presets import PRESETS
from penultimate.report.exhibits.base import (
    MISSING,
    Cell,
    Column,
    Exhibit,
    ExhibitTable,
    StudyResults,
    TableRow,
)
from penultimate.report.exhibits.cells import published_cell
from penultimate.report.exhibits.measurements import Measurements, admit
from penultimate.report.exhibits.table_a1 import (
    SYMBOLS,
    known_slug,
    not_tuned,
    number,
    tuning_of,
    values_of,
)
from penultimate.report.text import fixed
from penultimate.study.tuning_record import Tuning
from penultimate.study.tuning_words import budget_text

DATASETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
COLUMNS = (
    Column("learning_rate", "η", "Learning rate"),
    Column("learning_rate_log10", "log₁₀ η", "Learning rate"),
    Column("lr_times_weight_decay", "λ", "η × weight decay"),
    Column("lr_times_weight_decay_log10", "log₁₀ λ", "η × weight decay"),
    Column("hyperparameters", "Hyperparameters"),
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    tuning = tuning_of(results)
    ours = _in_use(measurements) if tuning is None else _chosen(measurements, tuning)
    notes = [not_tuned(results)] if tuning is None else [f"The budget: {budget_text(tuning)}."]
    if tuning is not None and not any(_searched_recipe(tuning)):
        notes.append(
            "Learning rate and weight decay were common to all objectives, as in the paper's ImageNet runs;"
            " to search them too: `--grid recipe.learning_rate=...`."
        )
    printed = tuple(_published(dataset) for dataset in DATASETS)
    return Exhibit(
        "iclr_tableA2",
        "Learning rate, weight decay and hyperparameters",
        "The settings of every objective: of its best cell where they were searched. λ is the product of"
        " the learning rate and the weight decay.",
        (ours, *printed) if ours.rows else printed,
        notes=tuple(notes),
        limited=measurements.limited,
    )


def _searched_recipe(tuning: Tuning) -> list[bool]:
    return [axis.key.startswith("recipe.") for one in tuning.objectives for axis in one.axes]


def _chosen(measurements: Measurements, tuning: Tuning) -> ExhibitTable:
    rows = tuple(
        TableRow(
            one.label,
            _cells({**tuning.recipe, **dict(one.best.settings)}, one.best.objective),
            known_slug(measurements, one.slug),
        )
        for one in tuning.objectives
        if one.best is not None
    )
    title = f"Chosen on the holdout of {card(tuning.source).title}, {tuning.backbone}"
    return ExhibitTable("iclr_tableA2", title, "Objective", COLUMNS, rows)


def _in_use(measurements: Measurements) -> ExhibitTable:
    """Without a search: the values that the study has."""
    recipe = measurements.results.description.get("recipe", {})
    rows = tuple(TableRow(one.label, _cells(recipe, one.spec), one.slug) for one in measurements.objectives)
    title = f"The values that this study uses on {card(measurements.source).title}"
    return ExhibitTable("iclr_tableA2", title, "Objective", COLUMNS, rows)


def _cells(recipe: Mapping[str, Any], spec: str) -> tuple[Cell, ...]:
    rate, decay = recipe.get("learning_rate"), recipe.get("weight_decay")
    product = None if rate is None or decay is None else rate * decay
    told = ", ".join(f"{symbol} = {value:.6g}" for symbol, value in values_of(spec))
    return number(rate), _logarithm(rate), number(product), _logarithm(product), Cell(told or MISSING)


def _logarithm(value: float | None) -> Cell:
    if not value:
        return Cell(MISSING)
    return Cell(fixed(math.log10(value), 2), math.log10(value))


def _published(dataset: str) -> ExhibitTable:
    rows = [
        row for row in published.printed("iclr_tableA2_cifar_hyperparameters") if row["dataset"] == dataset
    ]
    return ExhibitTable(
        f"iclr_tableA2_{dataset}_published",
        f"The paper's ICLR Table A.2: {DATASETS[dataset]}, {rows[0]['architecture']}",
        "Objective",
        (*COLUMNS, Column("note", "Note")),
        tuple(
            TableRow(
                PRESETS[row["objective"]].label,
                (
                    *(published_cell(row[column.key]) for column in COLUMNS[:-1]),
                    _told(row),
                    Cell(row["note"]),
                ),
                row["objective"],
            )
            for row in rows
        ),
        "published",
    )


def _told(row: Mapping[str, str]) -> Cell:
    """The printed hyperparameters in the paper's letters."""
    told = [
        f"{SYMBOLS[row[f'hyperparameter_{place}']]} = {row[f'hyperparameter_{place}_value']}"
        for place in (1, 2)
        if row[f"hyperparameter_{place}"]
    ]
    return Cell(", ".join(told) or MISSING)
