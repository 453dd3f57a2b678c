"""Table 4: the temperature of cosine softmax, against accuracy, class separation and linear transfer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Cell, Column, Exhibit, ExhibitTable, StudyResults, TableRow
from penultimate.report.exhibits.cells import DATASET_TITLES, not_measured, printed, run_cell
from penultimate.report.exhibits.measurements import (
    Measurements,
    Runs,
    admit,
    measure,
    short_title,
)
from penultimate.report.exhibits.numbers import mean_of_printed, published_rows
from penultimate.report.text import fixed

MEAN_PER_CLASS = "†"
MEASURED_BY = "glyphs"
"""The built-in study that measures the temperature sweep and relearned heads."""


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    ours = _ours(measurements)
    notes = [] if ours else [not_measured("Cosine softmax at three temperatures or more", MEASURED_BY)]
    if ours and any(measure(target) == "mean_per_class" for target in measurements.targets):
        notes.append(f"{MEAN_PER_CLASS} mean per-class accuracy; all others top-1.")
    return Exhibit(
        "table4",
        "What the temperature of cosine softmax trades",
        "Cosine softmax at rising temperatures τ, its loss scaled by τ so that every τ trains alike:"
        " accuracy on the classes trained on, class separation R² on the training images, and transfer by"
        " linear classifiers (test accuracy in per cent). Means over runs.",
        (ours, _published()) if ours else (_published(),),
        notes=(*notes, *measurements.notes()),
        limited=measurements.limited,
    )


def _ours(measurements: Measurements) -> ExhibitTable | None:
    source = card(measurements.source).title
    columns = [Column("top1_percent", "Top-1", source, "%"), Column("class_separation_r2", "R²", source)]
    shown: list[tuple[Runs, int, float]] = [
        (measurements.runs("top1"), 1, 100),
        (measurements.runs("class_separation", split="train"), 3, 1),
    ]
    group = "Transfer by linear classifiers"
    for target in measurements.targets:
        mark = MEAN_PER_CLASS if measure(target) == "mean_per_class" else ""
        columns.append(Column(f"{target}_percent", short_title(target) + mark, group, "%"))
        shown.append((measurements.transfer("linear", target), 1, 100))
    columns.append(Column("mean_percent", "Mean", group, "%"))
    shown.append((measurements.mean_transfer("linear"), 1, 100))
    rows = tuple(
        TableRow(
            f"τ = {temperature:g}",
            tuple(run_cell(runs.get(objective.spec), digits, scale) for runs, digits, scale in shown),
        )
        for temperature, objective in measurements.temperature_sweep
        if any(objective.spec in runs for runs, _, _ in shown)
    )
    if not rows:
        return None
    return ExhibitTable("table4", "Cosine softmax, by temperature", "Temperature", tuple(columns), rows)


def _published() -> ExhibitTable:
    columns: list[tuple[Column, Callable[[Mapping[str, str]], Cell]]] = [
        (Column("imagenet_top1_percent", "Top-1", "ImageNet", "%"), printed("imagenet_top1_percent")),
        (Column("class_separation_r2", "R²", "ImageNet"), printed("class_separation_r2")),
    ]
    group = "Transfer by linear classifiers"
    for name, label in DATASET_TITLES.items():
        mark = MEAN_PER_CLASS if name in ("pets", "flowers") else ""
        columns.append((Column(f"{name}_percent", label + mark, group, "%"), printed(f"{name}_percent")))
    columns.append((Column("mean_percent", "Mean*", group, "%"), _mean))
    return ExhibitTable(
        "table4_published",
        "The paper's Table 4: ResNet-50, ImageNet",
        "Temperature",
        tuple(column for column, _ in columns),
        tuple(
            TableRow(f"τ = {row['temperature']}", tuple(cell(row) for _, cell in columns))
            for row in published_rows("table4_temperature")
        ),
        "published",
        (
            "* Not printed: the mean of the eight printed values. At τ = 0.05 this is not the cosine softmax"
            " of the paper's Tables 1 and 3, whose loss was not scaled by τ.",
        ),
    )


def _mean(row: Mapping[str, str]) -> Cell:
    value = mean_of_printed(row)
    return Cell(fixed(value, 1), value, detail="the mean of the printed values")
