"""The choice of hyperparameters: grids, and the values that the holdout chose (A.1, ICLR table A.2)."""

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
from penultimate.paper.printed import figure
from penultimate.records.tuning import (
    GridCell,
    Tuned,
    TunedAxis,
    Tuning,
    accuracy_text,
    budget_text,
    searches_held,
)
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Curve, Panel, Point
from penultimate.results.means import printed, printed_label
from penultimate.results.rows import Objective, Run
from penultimate.results.table import Cell, Column, Table, table_of_rows
from penultimate.results.text import MINUS, fixed, listed

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
CELLS = Column("cells", "Cells", digits=0)


@exhibit("tableA1", "How the hyperparameters were chosen", section="A.1")
def tableA1(run: Run) -> Iterator[Part]:
    """The hyperparameters of every objective were chosen from grids of values, if a search is shown here;
    only the accuracy on images held out of the pretraining set decided: no test set, no transfer task. Of
    cells that the seeds cannot tell from the best, the middle one is chosen; the value of the highest mean
    stands beside it. Standard errors are over seeds."""
    searches = searches_of(run)
    tuned = [tuned for tuning in searches for tuned in tuning.objectives]
    yield search_table(run, searches) if searches else None
    yield from (f"{tuning.study}: {budget_text(tuning)}." for tuning in searches)
    yield from dict.fromkeys(f"{remark}." for one in tuned for remark in one.remarks)
    panels = (
        search_panel(f"tableA1-{index}-{place}", one, place, axis)
        for index, one in enumerate(tuned)
        if mark_of(run, one)
        for place, axis in enumerate(one.axes)
    )
    yield figure("tableA1_grid", "Every cell of the search", *panels)
    yield grids_in_paper()


@exhibit("iclr_tableA2", "Learning rate, weight decay and hyperparameters", section="A.1")
def iclr_tableA2(run: Run) -> Iterator[Part]:
    """The settings of every objective: of its best cell where they were searched. λ is the product of the
    learning rate and the weight decay."""
    rows, slugs, searches = [], list[str](), searches_of(run)
    for tuning in searches:
        for tuned in tuning.objectives:
            if tuned.best:
                recipe = {**tuning.recipe, **dict(tuned.best.settings)}
                cells = [*setting_cells(recipe, tuned.best.objective), short(len(tuned.cells))]
                rows.append((tuned.label, cells))
                slugs.append(mark_of(run, tuned))
    if not searches:
        used = in_use(run)
        rows = [(objective.label, setting_cells(recipe, objective.spec)) for objective, recipe in used]
        slugs = [objective.slug for objective, _ in used]
    backbones = listed(list(dict.fromkeys(tuning.backbone for tuning in searches)))
    title = f"Chosen on the holdout of {sources_of(searches)}, {backbones}"
    title = title if searches else f"The values that this study uses on {run.title}"
    columns = (*SETTINGS, CELLS) if searches else SETTINGS
    yield table_of_rows("iclr_tableA2", title, columns, rows, slugs=tuple(slugs))
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
        recipes = {spec: block["recipe"] for block in reversed(blocks) for spec in block["objectives"]}
        found += [
            (objective, recipes[objective.spec])
            for objective in run.objectives(arm)
            if objective.spec in recipes
        ]
    return found


def values_of(spec: str) -> list[tuple[str, Any]]:
    """Return the hyperparameters of a spec as (symbol in the paper, value); none for an unknown name."""
    from penultimate.tuning.axes import hyperparameters_of

    try:
        parameters = hyperparameters_of(spec)
    except RequestError:
        return []
    return [(parameter.symbol or parameter.name, value) for parameter, value in parameters.values()]


def search_table(run: Run, searches: Sequence[Tuning]) -> Table | None:
    """Return the grid of every hyperparameter, what was chosen, and its holdout accuracy."""
    ends = ("holdout_top1_percent", "start_top1_percent")
    columns = (
        Column("hyperparameter", "Hyperparameter"),
        Column("grid", "Values tried"),
        Column("chosen_value", "Chosen", "Value"),
        Column("highest_value", "Of the highest mean", "Value"),
        Column(ends[0], "After the search", "Holdout top-1, %", with_error=True),
        Column(ends[1], "At the start", "Holdout top-1, %", with_error=True),
        Column("epochs", "Trained", "Epochs"),
        Column("peak_epoch", "Best of the holdout", "Epochs"),
        CELLS,
    )
    rows, errors, counts, slugs = [], [], [], []
    for tuning in searches:
        for tuned in tuning.objectives:
            best, both = tuned.best, (tuned.best, tuned.at_start)
            epochs = dict(best.settings).get("epochs", tuning.recipe.get("epochs")) if best else None
            of_all = [epochs, best.peak_epoch if best else None, len(tuned.cells)]
            for place, axis in enumerate(tuned.axes or (None,)):
                values = ["none", None, None, None] if axis is None else axis_cells(tuned, place, axis)
                rows.append((tuned.label, [*values, *map(holdout, both), *map(short, of_all)]))
                errors.append([error_of(cell) for cell in both])
                counts.append([len(cell.accuracies) or None if cell else None for cell in both])
                slugs.append(mark_of(run, tuned))
    frames = (pd.DataFrame(of, [label for label, _ in rows], ends, dtype=object) for of in (errors, counts))
    parts = dict(zip(("errors", "counts"), frames, strict=True))
    title = f"The search on the holdout of {sources_of(searches)}"
    return table_of_rows("tableA1", title, columns, rows, slugs=tuple(slugs), **parts)


def axis_cells(tuned: Tuned, place: int, axis: TunedAxis) -> list[Any]:
    """Return a hyperparameter's symbol, the values tried, the chosen one and that of the highest mean."""
    tried = ", ".join(f"{value:.6g}" for value in tuned.tried(place))
    return [
        axis.symbol,
        tried,
        *(short(cell.values[place]) if cell else None for cell in (tuned.best, tuned.top)),
    ]


def holdout(cell: GridCell | None) -> Cell:
    """Return the mean holdout accuracy of a cell in per cent, or why there is none."""
    return Cell(100 * cell.mean) if cell and cell.accuracies else Cell(None, accuracy_text(cell))


def error_of(cell: GridCell | None) -> float | None:
    """Return the standard error of a cell's accuracy in per cent."""
    return 100 * cell.standard_error if cell and cell.standard_error is not None else None


def short(value: Any) -> Any:
    """Return a setting in its shortest form; words stay as they are."""
    return Cell(value, f"{value:.6g}") if isinstance(value, int | float) else value


def setting_cells(recipe: Mapping[str, Any], spec: str) -> list[Any]:
    """Return the learning rate, its product with the weight decay, their logarithms, and hyperparameters."""
    rate, decay = recipe.get("learning_rate"), recipe.get("weight_decay")
    product = None if rate is None or decay is None else rate * decay
    values = ", ".join(f"{symbol} = {value:.6g}" for symbol, value in values_of(spec))
    pairs = [(value, math.log10(value) if value else None) for value in (rate, product)]
    return [*(short(number) for pair in pairs for number in pair), values or None]


def search_panel(name: str, tuned: Tuned, place: int, axis: TunedAxis) -> Panel | None:
    """Return a panel of holdout accuracy along one axis; the line joins the best cell of every value."""
    from_above = axis.from_above and axis.grid[-1] < 1
    is_log = from_above or (axis.grid[0] > 0 and not axis.from_above)
    label = f"log₁₀(1 − {axis.symbol})" if from_above else f"log₁₀ {axis.symbol}" if is_log else axis.symbol
    points, best = [], dict[float, float]()
    for cell in (cell for cell in tuned.cells if cell.accuracies):
        value = 1 - cell.values[place] if from_above else cell.values[place]
        x, y = math.log10(value) if is_log else float(value), 100 * cell.mean
        best[x] = max(best.get(x, y), y)
        detail, faint = f"{cell}: {accuracy_text(cell)} %", cell is not tuned.best
        points.append(Point(x, y, tuned.slug, tuned.label, detail, y_error=error_of(cell), faint=faint))
    if len(best) < 2:
        return None
    finding = "Nothing chosen"
    if tuned.best:
        chosen = f"{axis.symbol} = {tuned.best.values[place]:.6g}"
        finding = f"Chosen: {chosen}, holdout {fixed(100 * tuned.best.mean, 1)} %"
    line = Curve(tuple(sorted(best.items())), tuned.slug, f"{tuned.label}: the best at each {axis.symbol}")
    shown: dict[str, Any] = {"labelled": False, "finding": finding, "size": SIZE}
    return Panel(name, f"{tuned.label}: {axis.symbol}", label, "", tuple(points), (line,), **shown)


def grids_in_paper() -> Table | None:
    """Return the paper's Table A.1."""
    heads = {"hyperparameter": "Hyperparameter", "grid": "Grid", "chosen_value": "Chosen"}
    columns = [Column(key, label) for key, label in {**heads, "epochs": "Epochs", "note": "Note"}.items()]
    rows, slugs = [], []
    for row in printed("neurips_tableA1_hyperparameters", numbers=False).reset_index().to_dict("records"):
        grid = row["grid"].replace(";", ", ") or None
        numbers = [
            Cell(float(row[key]), row[key]) if row[key] else None for key in ("chosen_value", "epochs")
        ]
        cells = [SYMBOLS[row["hyperparameter"]], grid, *numbers, row["note"]]
        rows.append((printed_label(row["objective"]), cells))
        slugs.append(row["objective"])
    title = "The paper's Table A.1: ResNet-50, ImageNet"
    of_paper: dict[str, Any] = {"source": "published", "slugs": tuple(slugs)}
    return table_of_rows("tableA1_published", title, columns, rows, **of_paper)


def settings_in_paper(dataset: str) -> Table | None:
    """Return the paper's table of one data set, with hyperparameters in the paper's letters."""
    every = printed("iclr_tableA2_cifar_hyperparameters", numbers=False).reset_index().to_dict("records")
    of_set = [row for row in every if row["dataset"] == dataset]
    rows = []
    for row in of_set:
        values = [
            f"{SYMBOLS[row[f'hyperparameter_{place}']]} = {float(row[f'hyperparameter_{place}_value']):.3g}"
            for place in (1, 2)
            if row[f"hyperparameter_{place}"]
        ]
        numbers = [float(row[column.key]) for column in SETTINGS[:-1]]
        cells = [Cell(number, f"{number:.3g}".replace("-", MINUS)) for number in numbers]
        rows.append((PRESETS[row["objective"]].label, [*cells, ", ".join(values) or None]))
    damaged = "The print of sigmoid's η is damaged: it may be 0.1."
    return table_of_rows(
        f"iclr_tableA2_{dataset}_published",
        f"The paper's ICLR Table A.2: {CIFAR[dataset]}, {of_set[0]['architecture']}",
        SETTINGS,
        rows,
        source="published",
        slugs=tuple(row["objective"] for row in of_set),
        notes=(damaged,) if dataset == "cifar10" else (),
    )
