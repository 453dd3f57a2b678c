"""Figure E.1: angular visual hardness, the angle to the own class's weights among those to all.

Rows: `hardness_density` (split test; its arrays `points` and `density`, of hardness times the number of
classes) and `angular_visual_hardness` (split test), the mean over examples.
"""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.exhibits.arrays import array_runs, density_curves, trimmed, upwards
from penultimate.report.exhibits.base import Column, Exhibit, ExhibitTable, Figure, Panel, StudyResults
from penultimate.report.exhibits.cells import not_measured, run_cell, run_rows
from penultimate.report.exhibits.measurements import Measurements, admit_compared

METRIC = "hardness_density"
MEAN = "angular_visual_hardness"


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    curves = trimmed(
        density_curves(measurements, array_runs(results, measurements, METRIC, "test"), "density")
    )
    panel = Panel(
        "figureE1-ours",
        f"{card(measurements.source).title}, test images",
        "Angular visual hardness, times the number of classes",
        "Density",
        curves=curves,
        labelled=False,
        y_limits=upwards(curves),
    )
    figure = Figure(
        "figureE1", "Angular visual hardness", "Densities of hardness, a line an objective.", (panel,), True
    )
    return Exhibit(
        "figureE1",
        "How far from their own class's weights do images lie?",
        "The angle between an image's features and the weights of its own class, as a share of the angles to"
        " all classes. 1: the own class is no nearer than the others; to the left: an image easier to tell.",
        _table(measurements),
        (figure,) if curves else (),
        notes=(
            *(() if curves else (not_measured("Densities of angular visual hardness"),)),
            "The paper prints its Figure E.1 (50,000 ImageNet validation images, bandwidth 5e-6 at 1000"
            " classes: 0.005 on this scale, which is ours too) as a drawing only. It says that the other"
            " objectives generally lower hardness against softmax, and that sigmoid does not.",
            *measurements.notes(),
        ),
        limited=measurements.limited,
    )


def _table(measurements: Measurements) -> tuple[ExhibitTable, ...]:
    hardness, accuracy = measurements.runs(MEAN), measurements.runs("top1")
    if not hardness:
        return ()
    classes = card(measurements.source).classes
    columns = (
        Column("hardness_times_classes", "Mean hardness × classes"),
        Column("top1_percent", "Top-1, %", unit="%"),
    )
    cells = [
        lambda spec: run_cell(hardness.get(spec), 3, scale=classes, shows_error=True),
        lambda spec: run_cell(accuracy.get(spec), 1, scale=100),
    ]
    title = f"Mean hardness on the test images of {card(measurements.source).title}"
    rows = run_rows(measurements, cells, [hardness])
    return (ExhibitTable("figureE1", title, "Objective", columns, rows),)
