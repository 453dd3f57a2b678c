"""Table C.1: accuracy on the images trained on."""

from __future__ import annotations

from functools import partial

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Cell, Column, Exhibit, ExhibitTable, StudyResults
from penultimate.report.exhibits.cells import beside_the_paper, printed, published_table, run_cell, run_rows
from penultimate.report.exhibits.measurements import Measurements, Runs, admit_compared
from penultimate.report.exhibits.numbers import best_of

SPLITS = {"train": "Training images", "test": "Test images"}
ACCURACIES = {"top1": "Top-1, %", "top5": "Top-5, %"}


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    ours = _ours(measurements) if measurements.runs("top1", split="train") else None
    words = (
        "tableC1",
        "How well the networks know the images they were trained on",
        f"Accuracy of the finished networks on the training images of {card(measurements.source).title},"
        " seen without augmentation, and beside it on the test images. An objective can do worse on the first"
        " and better on the second: that is what regularization is for. ± is the standard error over runs.",
    )
    return beside_the_paper(measurements, ours, _published(), "Accuracy on the training images", words)


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
