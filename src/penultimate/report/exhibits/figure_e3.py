"""Figure E.3: cosine distances between images of one class and of different ones.

Rows: `cosine_distance_density` (split train; its arrays `points`, `within` and `between`), and the means
`cosine_distance_within` and `cosine_distance_between` (split train).
"""

from __future__ import annotations

import dataclasses

from penultimate.data.catalog import card
from penultimate.report.exhibits.arrays import array_runs, density_curves, trimmed, upwards
from penultimate.report.exhibits.base import Column, Exhibit, ExhibitTable, Figure, Panel, StudyResults
from penultimate.report.exhibits.cells import not_measured, run_cell, run_rows
from penultimate.report.exhibits.measurements import Measurements, admit_compared

METRIC = "cosine_distance_density"
MEANS = {"cosine_distance_within": "Within a class", "cosine_distance_between": "Between classes"}


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    runs = array_runs(results, measurements, METRIC, "train")
    within = density_curves(measurements, runs, "within", ", within a class")
    between = density_curves(measurements, runs, "between", ", between classes", dashed=True)
    curves = trimmed((*within, *between))
    figures: tuple[Figure, ...] = ()
    if curves:
        whole = Panel(
            "figureE3-whole",
            f"{card(measurements.source).title}, training images",
            "Cosine distance",
            "Density",
            curves=curves,
            labelled=False,
            size=(460, 340),
            y_limits=upwards(curves),
        )
        # The paper's lower plot: without the sharpest peaks, what lies beneath them can be told apart.
        peaks = sorted(max(y for _, y in one.points) for one in curves)
        low = 1.1 * peaks[(len(peaks) - 1) // 2]
        closer = dataclasses.replace(
            whole, name="figureE3-closer", title="The same, its lower part", y_limits=(0.0, low)
        )
        description = "Densities of cosine distances: within a class (solid) and between classes (dashed)."
        figures = (Figure("figureE3", "Cosine distances", description, (whole, closer), legend=True),)
    return Exhibit(
        "figureE3",
        "Are images of one class closer than images of two?",
        "How the cosine distances between the features of two images are distributed: solid, of one class;"
        " dashed, of different ones. The less the two overlap, the further the classes lie apart.",
        _table(measurements),
        figures,
        notes=(
            *(() if curves else (not_measured("Distributions of cosine distances"),)),
            "The paper prints its Figure E.3 (10,000 ImageNet training images) as a drawing only, and does"
            " not say its bandwidth; ours is 0.01.",
            *measurements.notes(),
        ),
        limited=measurements.limited,
    )


def _table(measurements: Measurements) -> tuple[ExhibitTable, ...]:
    shown = [measurements.runs(metric, split="train") for metric in MEANS]
    if not any(shown):
        return ()
    columns = tuple(Column(metric, heading, "Mean cosine distance") for metric, heading in MEANS.items())
    cells = [lambda spec, runs=runs: run_cell(runs.get(spec), 3, shows_error=True) for runs in shown]
    note = (
        "Every pair of images counts once; in class separation R² every class counts the same, and an image"
        " with itself counts as well."
    )
    title = f"Mean distances on {card(measurements.source).title}"
    rows = run_rows(measurements, cells, shown)
    return (ExhibitTable("figureE3", title, "Objective", columns, rows, notes=(note,)),)
