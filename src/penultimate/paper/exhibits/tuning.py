"""The choice of hyperparameters: grids, and the values that the holdout chose (section A.1, ICLR table
A.2)."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

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
    searches_held,
)
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Curve, Figure, Panel, Point
from penultimate.results.means import printed, printed_label
from penultimate.results.rows import Objective, Run
from penultimate.results.table import Column, Table, table_of_rows
from penultimate.results.text import fixed, listed

SIZE = (210.0, 160.0)
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
CIFAR = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
SETTINGS = (
    Column("learning_rate", "η", "Learning rate"),
    Column("learning_rate_log10", "log₁₀ η", "Learning rate"),
    Column("lr_times_weight_decay", "λ", "η × weight decay"),
    Column("lr_times_weight_decay_log10", "log₁₀ λ", "η × weight decay"),
    Column("hyperparameters", "Hyperparameters"),
)
CELLS = Column("cells", "Cells")


@exhibit("tableA1", "How the hyperparameters were chosen", section="A.1")
def tableA1(run: Run) -> Iterator[Part]:
    """The hyperparameters of every objective were chosen from grids of values, if a search is shown here;
    only the accuracy on images held out of the pretraining set decided: no test set, no transfer task.
    Without a search, the table has the values that the study takes as they are."""
    searches = searches_of(run)
    yield search_table(run, searches) if searches else values_table(run)
    if searches:
        yield from (f"{tuning.study}: {budget_text(tuning)}." for tuning in searches)
        yield from dict.fromkeys(f"{remark}." for _, tuned in each_of(searches) for remark in tuned.remarks)
        yield (
            "Standard errors are over seeds. Of cells that the seeds cannot tell from the best, the"
            " middle one is chosen; the value of the highest mean stands beside it."
        )
        found = (
            search_panel(f"tableA1-{index}-{place}", tuned, place, axis)
            for index, (_, tuned) in enumerate(each_of(searches))
            if mark_of(run, tuned)
            for place, axis in enumerate(tuned.axes)
        )
        panels = tuple(filter(None, found))
        yield Figure("tableA1_grid", "Every cell of the search", panels) if panels else None
    yield grids_in_paper()


@exhibit("iclr_tableA2", "Learning rate, weight decay and hyperparameters", section="A.1")
def iclr_tableA2(run: Run) -> Iterator[Part]:
    """The settings of every objective: of its best cell where they were searched. λ is the product of the
    learning rate and the weight decay."""
    searches = searches_of(run)
    if searches:
        backbones = listed(list(dict.fromkeys(tuning.backbone for tuning in searches)))
        title = f"Chosen on the holdout of {sources_of(searches)}, {backbones}"
        chosen = [
            (tuning, tuned, tuned.best) for tuning, tuned in each_of(searches) if tuned.best is not None
        ]
        rows = [
            (
                tuned.label,
                [*setting_cells({**tuning.recipe, **dict(best.settings)}, best.objective), len(tuned.cells)],
            )
            for tuning, tuned, best in chosen
        ]
        slugs = [mark_of(run, tuned) for _, tuned, _ in chosen]
    else:
        title = f"The values that this study uses on {run.title}"
        used = in_use(run)
        rows = [(objective.label, setting_cells(recipe, objective.spec)) for objective, recipe in used]
        slugs = [objective.slug for objective, _ in used]
    columns = (*SETTINGS, dataclasses.replace(CELLS, digits=0)) if searches else SETTINGS
    keys = [column.key for column in columns]
    texts = pd.DataFrame(
        [[short(cell) for cell in cells] for _, cells in rows],
        [label for label, _ in rows],
        keys,
        dtype=object,
    )
    yield table_of_rows("iclr_tableA2", title, columns, rows, slugs=tuple(slugs), texts=texts)
    for dataset in CIFAR:
        yield settings_in_paper(dataset)


def searches_of(run: Run) -> list[Tuning]:
    """Return the searches behind the hyperparameters; labels that several have are told apart by the
    search."""
    held = searches_held(run.description)
    labels = Counter(tuned.label for tuning in held for tuned in tuning.objectives)

    def named(tuning: Tuning, tuned: Tuned) -> Tuned:
        label = f"{tuned.label} ({tuning.study})" if labels[tuned.label] > 1 else tuned.label
        return dataclasses.replace(tuned, label=label)

    return [
        dataclasses.replace(tuning, objectives=tuple(named(tuning, tuned) for tuned in tuning.objectives))
        for tuning in held
    ]


def each_of(searches: Sequence[Tuning]) -> list[tuple[Tuning, Tuned]]:
    """Return every objective of some searches, with its search."""
    return [(tuning, tuned) for tuning in searches for tuned in tuning.objectives]


def sources_of(searches: Sequence[Tuning]) -> str:
    """Return the titles of the data sets whose holdout images were used."""
    return listed(list(dict.fromkeys(card(tuning.source).title for tuning in searches)))


def mark_of(run: Run, tuned: Tuned) -> str:
    """Return the slug of a tuned objective if the study has it, and so a mark, or an empty string."""
    return tuned.slug if tuned.slug in run.labels(*run.arms) else ""


def in_use(run: Run) -> list[tuple[Objective, Mapping[str, Any]]]:
    """Return every objective of any arm that was trained with the main architecture, and its recipe."""
    found = []
    for arm in run.arms:
        blocks = [block for block in run.grids(arm, run.backbone) if "recipe" in block]
        for objective in run.objectives(arm):
            recipe = next(
                (block["recipe"] for block in blocks if objective.spec in block["objectives"]), None
            )
            if recipe:
                found.append((objective, recipe))
    return found


def values_of(spec: str) -> list[tuple[str, Number | None]]:
    """Return the hyperparameters of a spec as (symbol in the paper, value); none for an unknown name."""
    from penultimate.tuning.axes import hyperparameters_of

    try:
        parameters = hyperparameters_of(spec)
    except RequestError:
        return []
    return [(parameter.symbol or parameter.name, value) for parameter, value in parameters.values()]


def values_table(run: Run) -> Table | None:
    """Return the values in use, where nothing was searched."""
    columns = (
        Column("hyperparameter", "Hyperparameter"),
        Column("value", "Value"),
        Column("epochs", "Epochs"),
    )
    rows = [
        (objective, [symbol, value, recipe.get("epochs")])
        for objective, recipe in in_use(run)
        for symbol, value in [*values_of(objective.spec)] or [("none", None)]
    ]
    return table_of_rows(
        "tableA1",
        "The values that this study uses",
        columns,
        [(objective.label, cells) for objective, cells in rows],
        slugs=tuple(objective.slug for objective, _ in rows),
        texts=shortened([(objective.label, cells) for objective, cells in rows], columns),
    )


def search_table(run: Run, searches: Sequence[Tuning]) -> Table | None:
    """Return the grid of every hyperparameter, what was chosen, and its holdout accuracy."""
    columns = (
        Column("hyperparameter", "Hyperparameter"),
        Column("grid", "Values tried"),
        Column("chosen_value", "Chosen", "Value"),
        Column("highest_value", "Of the highest mean", "Value"),
        Column("holdout_top1_percent", "After the search", "Holdout top-1, %", 1, with_error=True),
        Column("start_top1_percent", "At the start", "Holdout top-1, %", 1, with_error=True),
        Column("epochs", "Trained", "Epochs"),
        Column("peak_epoch", "Best of the holdout", "Epochs"),
        CELLS,
    )
    rows, errors, counts, slugs = [], [], [], []
    for tuning, tuned in each_of(searches):
        best = tuned.best
        epochs = dict(best.settings).get("epochs", tuning.recipe.get("epochs")) if best else None
        for place, axis in enumerate(tuned.axes or (None,)):
            values = ["none", None, None, None] if axis is None else axis_cells(tuned, place, axis)
            of_all = [epochs, best.peak_epoch if best else None, len(tuned.cells)]
            ends = tuned.best, tuned.at_start
            rows.append((tuned.label, [*values, *map(percent_of, ends), *of_all]))
            errors.append([error_of(cell) for cell in ends])
            counts.append(
                [len(cell.runs) if percent_of(cell) is not None and cell else None for cell in ends]
            )
            slugs.append(mark_of(run, tuned))
    labels, keys = [label for label, _ in rows], [column.key for column in columns[4:6]]
    texts = shortened(rows, columns)
    for key, end in zip(keys, ("best", "at_start"), strict=True):
        of_rows = [getattr(tuned, end) for _, tuned in each_of(searches) for _ in tuned.axes or (None,)]
        texts[key] = [None if percent_of(cell) is not None else accuracy_text(cell) for cell in of_rows]
    return table_of_rows(
        "tableA1",
        f"The search on the holdout of {sources_of(searches)}",
        columns,
        rows,
        errors=pd.DataFrame(errors, labels, keys, dtype=object),
        counts=pd.DataFrame(counts, labels, keys, dtype=object),
        slugs=tuple(slugs),
        texts=texts,
    )


def axis_cells(tuned: Tuned, place: int, axis: TunedAxis) -> list[Any]:
    """Return the symbol of a hyperparameter, the values tried, the chosen one and that of the highest
    mean."""
    tried = ", ".join(f"{value:.6g}" for value in tuned.tried(place))
    return [axis.symbol, tried, *(cell.values[place] if cell else None for cell in (tuned.best, tuned.top))]


def percent_of(cell: GridCell | None) -> float | None:
    """Return the mean holdout accuracy of a cell in per cent, if it is a number."""
    return 100 * cell.mean if cell is not None and math.isfinite(cell.mean) else None


def error_of(cell: GridCell | None) -> float | None:
    """Return the standard error of a cell's accuracy in per cent."""
    known = percent_of(cell) is not None and cell is not None and cell.standard_error is not None
    return 100 * cell.standard_error if known else None  # type: ignore[operator, union-attr]


def short(value: Any) -> str | None:
    """Return a setting in its shortest form; words stay as they are."""
    return f"{value:.6g}" if isinstance(value, int | float) else None


def shortened(rows: Sequence[tuple[str, Sequence[Any]]], columns: Sequence[Column]) -> pd.DataFrame:
    """Return the texts of the cells of rows, in which numbers are in their shortest form."""
    keys = [column.key for column in columns]
    cells = [[short(cell) for cell in line] for _, line in rows]
    return pd.DataFrame(cells, [label for label, _ in rows], keys, dtype=object)


def setting_cells(recipe: Mapping[str, Any], spec: str) -> list[Any]:
    """Return the learning rate, its product with the weight decay, their logarithms, and hyperparameters."""
    rate, decay = recipe.get("learning_rate"), recipe.get("weight_decay")
    product = None if rate is None or decay is None else rate * decay
    values = ", ".join(f"{symbol} = {value:.6g}" for symbol, value in values_of(spec))
    logarithms = [math.log10(value) if value else None for value in (rate, product)]
    return [rate, logarithms[0], product, logarithms[1], values or None]


def search_panel(name: str, tuned: Tuned, place: int, axis: TunedAxis) -> Panel | None:
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
            y_error=error_of(cell),
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
    shown = {"labelled": False, "finding": finding, "size": SIZE}
    return Panel(name, title, axis_label(axis), "", points, (line,), **shown)  # type: ignore[arg-type]


def place_on(axis: TunedAxis, value: Number) -> float:
    """Return the place of a value on the drawn axis: its logarithm, if every value of the grid has one."""
    if axis.from_above and axis.grid[-1] < 1:
        return math.log10(1 - value)
    return math.log10(value) if axis.grid[0] > 0 and not axis.from_above else float(value)


def axis_label(axis: TunedAxis) -> str:
    """Return the label of the drawn axis."""
    if axis.from_above and axis.grid[-1] < 1:
        return f"log₁₀(1 − {axis.symbol})"
    return f"log₁₀ {axis.symbol}" if axis.grid[0] > 0 and not axis.from_above else axis.symbol


def grids_in_paper() -> Table | None:
    """Return the paper's Table A.1."""
    rows = printed("neurips_tableA1_hyperparameters", numbers=False).reset_index().to_dict("records")
    columns = (
        Column("hyperparameter", "Hyperparameter"),
        Column("grid", "Grid"),
        Column("chosen_value", "Chosen"),
        Column("epochs", "Epochs"),
        Column("note", "Note"),
    )
    cells = [
        [
            SYMBOLS[row["hyperparameter"]],
            row["grid"].replace(";", ", ") or None,
            float(row["chosen_value"]) if row["chosen_value"] else None,
            float(row["epochs"]),
            row["note"],
        ]
        for row in rows
    ]
    labels = [printed_label(row["objective"]) for row in rows]
    texts = [[None, None, row["chosen_value"] or None, row["epochs"], None] for row in rows]
    return table_of_rows(
        "tableA1_published",
        "The paper's Table A.1: ResNet-50, ImageNet",
        columns,
        list(zip(labels, cells, strict=True)),
        source="published",
        slugs=tuple(row["objective"] for row in rows),
        texts=pd.DataFrame(texts, labels, [column.key for column in columns], dtype=object),
    )


def settings_in_paper(dataset: str) -> Table | None:
    """Return the paper's table of one data set, with hyperparameters in the paper's letters."""
    every = printed("iclr_tableA2_cifar_hyperparameters", numbers=False).reset_index().to_dict("records")
    rows = [row for row in every if row["dataset"] == dataset]
    cells, texts = [], []
    for row in rows:
        values = [
            f"{SYMBOLS[row[f'hyperparameter_{place}']]} = {float(row[f'hyperparameter_{place}_value']):.3g}"
            for place in (1, 2)
            if row[f"hyperparameter_{place}"]
        ]
        numbers = [float(row[column.key]) for column in SETTINGS[:-1]]
        cells.append([*numbers, ", ".join(values) or None])
        texts.append([*(f"{number:.3g}".replace("-", "−") for number in numbers), None])
    labels = [PRESETS[row["objective"]].label for row in rows]
    damaged = "The print of sigmoid's η is damaged: it may be 0.1."
    return table_of_rows(
        f"iclr_tableA2_{dataset}_published",
        f"The paper's ICLR Table A.2: {CIFAR[dataset]}, {rows[0]['architecture']}",
        SETTINGS,
        list(zip(labels, cells, strict=True)),
        source="published",
        slugs=tuple(row["objective"] for row in rows),
        notes=(damaged,) if dataset == "cifar10" else (),
        texts=pd.DataFrame(texts, labels, [column.key for column in SETTINGS], dtype=object),
    )
