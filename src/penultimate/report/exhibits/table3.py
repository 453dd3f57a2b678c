"""Table 3: how far each objective separates the classes in the penultimate layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Cell, Column, Exhibit, ExhibitTable, StudyResults
from penultimate.report.exhibits.cells import beside_the_paper, printed, published_table, run_cell, run_rows
from penultimate.report.exhibits.measurements import Measurements, Runs, admit_compared
from penultimate.report.exhibits.numbers import best_of


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    ours = _ours(measurements) if measurements.runs("class_separation", split="train") else None
    words = (
        "table3",
        "How far the classes are pulled apart",
        "Class separation R² of the penultimate features on the training images of the pretraining set: the"
        " share of their spread (in cosine distance) that lies between classes. ± is the standard error over"
        " runs.",
    )
    return beside_the_paper(measurements, ours, _published(), "Class separation", words)


def _ours(measurements: Measurements) -> ExhibitTable:
    top1 = measurements.runs("top1")
    best = best_of(top1)
    source = card(measurements.source).title
    columns = [Column("test_top1_percent", "Test top-1, %", source, "%")]
    shown = [top1]
    for split, heading in (("train", "R² (training images)"), ("test", "R² (test images)")):
        runs = measurements.runs("class_separation", split=split)
        if runs:
            columns.append(Column(f"class_separation_r2_{split}", heading, source))
            shown.append(runs)
    cells: list[Callable[[str], Cell]] = [
        lambda spec: run_cell(top1.get(spec), 1, scale=100, best=spec in best, shows_error=True)
    ]
    for runs in shown[1:]:
        cells.append(partial(_separation, runs))
    rows = run_rows(measurements, cells, shown)
    return ExhibitTable("table3", "Accuracy and class separation", "Objective", tuple(columns), rows)


def _separation(runs: Runs, spec: str) -> Cell:
    return run_cell(runs.get(spec), 3, shows_error=True)


def _published() -> ExhibitTable:
    top1 = Column("imagenet_top1_percent", "Top-1, %", "ImageNet", "%")
    separation = Column("class_separation_r2", "R² (training images)", "ImageNet")
    return published_table(
        "table3",
        "table3_class_separation",
        "The paper's Table 3: ResNet-50, ImageNet, eight runs",
        [
            (top1, printed("imagenet_top1_percent", "imagenet_top1_se")),
            (separation, printed("class_separation_r2", "class_separation_r2_se")),
        ],
    )
