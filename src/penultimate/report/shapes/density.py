"""Arrays that rows point to, drawn as curves: densities, and spectra of singular values.

The value of such a metric's row is the number of points. The points lie in its step's folder as
`METRIC.npz`, which `StudyResults.arrays(step, metric)` reads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from penultimate.report.base import Curve, Figure, Missing, Panel, Point
from penultimate.report.measurements import ByRun, Measurements, Seed
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.numbers import average
from penultimate.report.shapes.table import RunColumn, run_table
from penultimate.report.spec import Piece
from penultimate.report.text import percent

ArraysByRun: TypeAlias = dict[str, dict[Seed, list[float]]]
"""An array of the runs of each objective: {canonical spec: {seed: values}}."""

VISIBLE = 2e-3
"""The share of the highest density below which a curve lies on the axis."""
NEGLIGIBLE = 1e-12
"""The share of the largest singular value below which a singular value is a rounding error and not drawn."""
LOWEST = -4.0
"""The lower end of drawn spectra: features do not use directions of a ten-thousandth of the largest."""
MOST = 0.9
"""The share of the squared length that the counted directions of a spectrum hold."""


@dataclass(frozen=True)
class Densities:
    """A figure of a quantity's distribution: one line per objective, its mean density over runs.

    The first array of the one quantity holds the points of evaluation, and the others hold the densities: the
    first is drawn solid, a second dashed, and `words` distinguish them in the names of lines. The quantity's
    label is that of the horizontal axis. If `closer`, a second panel cuts off the sharpest peaks to show the
    lower curves.
    """

    name: str
    title: str
    description: str
    panel_title: str
    quantities: tuple[Quantity, ...]
    missing: str
    words: tuple[str, ...] = ("",)
    closer: bool = False

    def build(self, measurements: Measurements) -> Piece:
        (quantity,) = self.quantities
        places, *densities = arrays_of(measurements, quantity)
        curves = []
        for density, words in zip(densities, self.words, strict=True):
            for spec, runs in density.items():
                points = zip(_mean(places[spec]), _mean(runs), strict=True)
                curves.append(_curve(measurements, spec, points, words, density is not densities[0]))
        if not curves:
            return Piece(missing=(Missing(self.missing),))
        peaks = sorted(max(y for _, y in curve.points) for curve in curves)
        whole = Panel(
            f"{self.name}-{'whole' if self.closer else 'ours'}",
            self.panel_title.format_map(measurements.words),
            quantity.label,
            "Density",
            curves=trimmed(curves),
            labelled=False,
            size=(460 if self.closer else 420, 340),
            y_limits=(0.0, 1.05 * peaks[-1]),
        )
        title, low = "The same, its lower part", 1.1 * peaks[(len(peaks) - 1) // 2]
        lower = replace(whole, name=f"{self.name}-closer", title=title, y_limits=(0.0, low))
        panels = (whole, lower) if self.closer else (whole,)
        return Piece(figures=(Figure(self.name, self.title, self.description, panels, legend=True),))


@dataclass(frozen=True)
class Spectra:
    """Singular values in descending order, one panel per matrix, and the directions that hold most of each.

    `titles` are the titles of the quantity's arrays.
    """

    name: str
    title: str
    description: str
    quantities: tuple[Quantity, ...]
    titles: tuple[str, ...]
    missing: str

    def build(self, measurements: Measurements) -> Piece:
        (quantity,) = self.quantities
        column = replace(quantity, group="Directions", decimals=1, with_error=True)
        matrices = arrays_of(measurements, quantity)
        if not matrices[0]:
            return Piece(missing=(Missing(self.missing),))
        panels, columns = [], []
        for array, title, runs in zip(quantity.arrays, self.titles, matrices, strict=True):
            panel = _spectra_panel(measurements, f"{self.name}-{array}", title, runs)
            panels += [panel] if panel.curves else []
            counted = replace(column, label=title, key=f"directions_{array}")
            columns.append(RunColumn(counted, _counts(runs)))
        title = f"How many directions hold {percent(MOST, 0)} % of the squared length"
        table = run_table(measurements, self.name, title, columns)
        figure = Figure(self.name, self.title, self.description, tuple(panels), legend=True)
        return Piece((table,) if table else (), (figure,))


def directions(quantity: Quantity, array: str) -> Callable[[Measurements], ByRun]:
    """Return a reader of the number of directions that hold most of a spectrum, for every run."""
    return lambda measurements: _counts(arrays_of(measurements, replace(quantity, arrays=(array,)))[0])


def _counts(runs: ArraysByRun) -> ByRun:
    """Return the number of directions that hold most of each run's spectrum, except for spectra of zeros."""
    return {
        spec: {seed: _directions(values) for seed, values in spectra.items() if any(values)}
        for spec, spectra in runs.items()
    }


def arrays_of(measurements: Measurements, quantity: Quantity) -> list[ArraysByRun]:
    """Return each of a quantity's arrays for every run that has them, in the study's order."""
    read = measurements.results.arrays
    arrays: list[ArraysByRun] = [{} for _ in quantity.arrays]
    if read is None:
        return arrays
    for objective in measurements.objectives:
        rows = measurements.rows(quantity.metric, quantity.split).where(objective=objective.spec)
        for row in sorted(rows, key=lambda row: -1 if row.seed is None else row.seed):
            values = read(str(row.step), quantity.metric)
            for array, name in zip(arrays, quantity.arrays, strict=True):
                array.setdefault(objective.spec, {})[row.seed] = [float(value) for value in values[name]]
    return arrays


def _curve(
    measurements: Measurements, spec: str, points: Iterable[tuple[float, float]], words: str, dashed: bool
) -> Curve:
    """Return a line through points, to six digits, named as in the paper's legends.

    The name of the objective is followed by its mean test accuracy over runs, in per cent, if it is known.
    """
    objective = measurements.objective(spec)
    accuracies = measurements.runs("top1").get(spec, {}).values()
    of_test = f" ({percent(sum(accuracies) / len(accuracies))} %)" if accuracies else ""
    rounded = tuple((float(f"{x:.6g}"), float(f"{y:.6g}")) for x, y in points)
    return Curve(rounded, objective.slug, f"{objective.label}{of_test}{words}", dashed)


def trimmed(curves: Sequence[Curve]) -> tuple[Curve, ...]:
    """Return the curves within the range where any of them is visibly above zero."""
    points = [point for curve in curves for point in curve.points]
    highest = max((y for _, y in points), default=0.0)
    visible = [x for x, y in points if y > VISIBLE * highest] or [x for x, _ in points]
    low, high = min(visible, default=0.0), max(visible, default=0.0)
    return tuple(
        replace(curve, points=tuple((x, y) for x, y in curve.points if low <= x <= high)) for curve in curves
    )


def _mean(runs: Mapping[Seed, Sequence[float]]) -> list[float]:
    """Return the mean over runs, with the length of the shortest run."""
    return [average(values) for values in zip(*runs.values(), strict=False)]


def _spectra_panel(measurements: Measurements, name: str, title: str, runs: ArraysByRun) -> Panel:
    curves = []
    for spec, spectra in runs.items():
        heights = _mean({seed: _falling(values) for seed, values in spectra.items() if any(values)})
        curves += [_curve(measurements, spec, enumerate(heights, 1), "", False)] if heights else []
    lowest = min((y for curve in curves for _, y in curve.points), default=LOWEST)
    return Panel(
        name,
        title,
        "Index of the singular value",
        "log₁₀ of the singular value over the largest",
        tuple(Point(*curve.points[-1], curve.objective, curve.label) for curve in curves),
        tuple(curves),
        labelled=False,
        y_limits=(max(LOWEST, 1.05 * lowest), 0.05),
    )


def _falling(values: Sequence[float]) -> list[float]:
    """Return the logarithms of singular values over the largest, without those within rounding error."""
    return [math.log10(value / values[0]) for value in values if value > NEGLIGIBLE * values[0]]


def _directions(values: Sequence[float]) -> float:
    """Return the least number of singular values whose squares sum to `MOST` of the sum of all."""
    totals = list(itertools.accumulate(value**2 for value in values))
    return float(sum(total < MOST * totals[-1] for total in totals) + 1)
