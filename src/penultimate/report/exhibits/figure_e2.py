"""Figure E.2: singular values of activations, weights and class centroids.

Rows: `singular_values` (split train), with the arrays `activations`, `weights` and `centroids`, falling.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penultimate.data.catalog import card
from penultimate.report.exhibits.arrays import ArrayRuns, array_runs, curve, label
from penultimate.report.exhibits.base import (
    Column,
    Curve,
    Exhibit,
    ExhibitTable,
    Figure,
    Panel,
    StudyResults,
)
from penultimate.report.exhibits.cells import not_measured, run_cell, run_rows
from penultimate.report.exhibits.measurements import Measurements, admit_compared

METRIC = "singular_values"
MATRICES = {
    "activations": "Penultimate activations",
    "weights": "Weights of the final layer",
    "centroids": "Class centroids",
}
NOTHING = 1e-12
"""Of the largest: singular values below are rounding, and have no logarithm worth a point."""
LOWEST = -4.0
"""Drawn down to here: a ten-thousandth of the largest is no direction that features use."""
MOST = 0.9


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    runs = array_runs(results, measurements, METRIC, "train")
    drawn = (_panel(measurements, runs, name, title) for name, title in MATRICES.items())
    panels = tuple(panel for panel in drawn if panel.curves)
    description = "Singular values over the largest, in falling order, a line an objective."
    figure = Figure("figureE2", "Singular value spectra", description, panels, legend=True)
    return Exhibit(
        "figureE2",
        "In how many directions do the features spread?",
        f"Singular values, the largest first and at 0, on a scale of powers of ten (training images of"
        f" {card(measurements.source).title}). A line that falls early: most directions are hardly used.",
        tables=_table(measurements, runs),
        figures=(figure,) if panels else (),
        notes=(
            *(() if panels else (not_measured("Singular value spectra"),)),
            "The paper prints its Figure E.2 as a drawing only. It says that activations and weights fail to"
            " tell sigmoid from softmax, and that the class centroids tell them apart. It does not say"
            " whether it centres; here nothing is centred.",
            *measurements.notes(),
        ),
        limited=measurements.limited,
    )


def _table(measurements: Measurements, runs: ArrayRuns) -> tuple[ExhibitTable, ...]:
    """In how many directions most of the squared length lies, of each matrix."""
    if not runs:
        return ()
    columns = tuple(Column(f"directions_{name}", title, "Directions") for name, title in MATRICES.items())
    shown = [
        {
            spec: {seed: _directions(arrays[name]) for seed, arrays in own.items()}
            for spec, own in runs.items()
        }
        for name in MATRICES
    ]
    cells = [lambda spec, counts=counts: run_cell(counts.get(spec), 1, shows_error=True) for counts in shown]
    title = f"How many directions hold {MOST:.0%} of the squared length"
    rows = run_rows(measurements, cells, shown)
    return (ExhibitTable("figureE2", title.replace("%", " %"), "Objective", columns, rows),)


def _directions(values: npt.NDArray[np.float64]) -> float:
    """The least number of singular values whose squares sum to `MOST` of the sum of all."""
    shares = np.cumsum(values**2)
    return float(np.searchsorted(shares, MOST * shares[-1]) + 1) if len(values) else 0.0


def _panel(measurements: Measurements, runs: ArrayRuns, name: str, title: str) -> Panel:
    drawn = (
        _spectrum(measurements, spec, [arrays[name] for arrays in own.values()]) for spec, own in runs.items()
    )
    curves = tuple(one for one in drawn if one)
    lowest = min((y for one in curves for _, y in one.points), default=LOWEST)
    return Panel(
        f"figureE2-{name}",
        title,
        "Index of the singular value",
        "log₁₀ of the singular value over the largest",
        curves=curves,
        labelled=False,
        size=(320, 300),
        y_limits=(max(LOWEST, 1.05 * lowest), 0.05),
    )


def _spectrum(measurements: Measurements, spec: str, values: list[npt.NDArray[np.float64]]) -> Curve | None:
    """The mean of the logarithms over runs, as far as every run has a singular value above rounding."""
    relative = [one / one[0] for one in values if len(one) and one[0] > 0]
    if not relative:
        return None
    shown = min(int((one > NOTHING).sum()) for one in relative)
    heights = np.mean([np.log10(one[:shown]) for one in relative], axis=0)
    return curve(measurements.objective(spec), np.arange(1.0, shown + 1), heights, label(measurements, spec))
