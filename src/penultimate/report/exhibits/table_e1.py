"""Table E.1: class separation under three distances."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Column, Exhibit, ExhibitTable, StudyResults
from penultimate.report.exhibits.cells import not_measured, printed, published_table, run_cell, run_rows
from penultimate.report.exhibits.measurements import Measurements, admit_compared

DISTANCES = {
    "class_separation": ("cosine_r2", "Cosine"),
    "class_separation_cosine_centered": ("cosine_mean_subtracted_r2", "Cosine, mean subtracted"),
    "class_separation_euclidean": ("euclidean_r2", "Euclidean, squared"),
}
"""Metric of our rows -> column of the paper's table, heading."""


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    missing = [heading for metric, (_, heading) in DISTANCES.items() if not _runs(measurements, metric)]
    notes = [not_measured(f"R² by the distance '{heading}'") for heading in missing]
    tables: tuple[ExhibitTable, ...] = (_published(),)
    if len(missing) < len(DISTANCES):
        tables = (_ours(measurements), *tables)
    return Exhibit(
        "tableE1",
        "Does the choice of distance matter?",
        "Class separation R² on the training images of the pretraining set by cosine distance (the one used"
        " everywhere else), by cosine distance after subtracting the mean of all features, and by squared"
        " Euclidean distance. ± is the standard error over runs.",
        tables,
        notes=(*notes, *measurements.notes()),
        limited=measurements.limited,
    )


def _runs(measurements: Measurements, metric: str) -> dict[str, dict[int, float]]:
    return measurements.runs(metric, split="train")


def _ours(measurements: Measurements) -> ExhibitTable:
    source = f"R² on {card(measurements.source).title}"
    columns = tuple(Column(key, heading, source) for key, heading in DISTANCES.values())
    shown = [_runs(measurements, metric) for metric in DISTANCES]
    cells = [lambda spec, runs=runs: run_cell(runs.get(spec), 3, shows_error=True) for runs in shown]
    rows = run_rows(measurements, cells, shown)
    return ExhibitTable("tableE1", "Class separation by three distances", "Objective", columns, rows)


def _published() -> ExhibitTable:
    columns = [
        (Column(key, heading.removesuffix(", squared"), "R² on ImageNet"), printed(key, f"{key}_se"))
        for key, heading in DISTANCES.values()
    ]
    note = "The paper does not say whether its Euclidean distance is squared; ours is."
    title = "The paper's Table E.1: ResNet-50, ImageNet"
    return published_table("tableE1", "tableE1_separation_indexes", title, columns, (note,))
