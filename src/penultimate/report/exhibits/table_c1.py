"""Table C.1: accuracy on the images trained on."""

from __future__ import annotations

from functools import partial

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Cell, Column, Exhibit, ExhibitTable, StudyResults
from penultimate.report.exhibits.cells import (
    bold_note,
    not_measured,
    printed,
    published_table,
    run_cell,
    run_rows,
)
from penultimate.report.exhibits.measurements import Measurements, Runs, admit
from penultimate.report.exhibits.numbers import best_of

SPLITS = {"train": "Training images", "test": "Test images"}
ACCURACIES = {"top1": "Top-1, %", "top5": "Top-5, %"}


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    tables: tuple[ExhibitTable, ...] = (_published(),)
    notes = [*measurements.notes()]
    if measurements.runs("top1", split="train"):
        tables = (_ours(measurements), *tables)
        notes = [bold_note(measurements), *notes]
    else:
        notes = [not_measured("Accuracy on the training images"), *notes]
    return Exhibit(
        "tableC1",
        "How well the networks know the images they were trained on",
        f"Accuracy of the finished networks on the training images of {card(measurements.source).title},"
        " seen without augmentation, and beside it on the test images. An objective can do worse on the first"
        " and better on the second: that is what regularization is for. ± is the standard error over runs.",
        tables,
        notes=tuple(notes),
        limited=measurements.limited,
    )


def _ours(measurements: Measurements) -> ExhibitTable:
    columns, cells, shown = [], [], []
    for split, group in SPLITS.items():
        for metric, heading in ACCURACIES.items():
            runs = measurements.runs(metric, split=split)
            if runs:
                columns.append(Column(f"{split}_{metric}_percent", heading, group, "%"))
                cells.append(partial(_accuracy, runs, best_of(runs)))
                shown.append(runs)
    rows = run_rows(measurements, cells, shown)
    return ExhibitTable("tableC1", "Accuracy in training and test", "Objective", tuple(columns), rows)


def _accuracy(runs: Runs, best: frozenset[str], spec: str) -> Cell:
    return run_cell(runs.get(spec), 2, scale=100, best=spec in best, shows_error=True)


def _published() -> ExhibitTable:
    columns = [
        (
            Column(f"train_{metric}_percent", heading, SPLITS["train"], "%"),
            printed(f"train_{metric}_percent", f"train_{metric}_se"),
        )
        for metric, heading in ACCURACIES.items()
    ]
    title = "The paper's Table C.1: ResNet-50, ImageNet"
    return published_table("tableC1", "tableC1_train_accuracy", title, columns)
