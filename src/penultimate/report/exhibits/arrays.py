"""Arrays that rows point to: densities and spectra, which a table of single numbers cannot hold.

A row whose metric is in an exhibit's care has the number of points as its value; the points themselves lie
in its step's folder as `METRIC.npz`. `StudyResults.arrays(step, metric)` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from penultimate.report.exhibits.base import Curve, StudyResults
from penultimate.report.exhibits.measurements import Measurements, Objective
from penultimate.report.text import percent

Arrays: TypeAlias = Mapping[str, npt.NDArray[np.float64]]
ArrayReader: TypeAlias = Callable[[str, str], Arrays]
"""(step, metric) -> the arrays of `METRIC.npz` in that step's folder."""
ArrayRuns: TypeAlias = dict[str, dict[int, Arrays]]
"""Arrays of the runs of each objective: {canonical spec: {seed: arrays}}."""

VISIBLE = 2e-3
"""Of the highest density: below that a curve lies on the axis."""


def array_runs(results: StudyResults, measurements: Measurements, metric: str, split: str) -> ArrayRuns:
    """The arrays of every run that left any: compared objectives only, and the first architecture's."""
    read: ArrayReader | None = results.arrays
    if read is None:
        return {}
    rows: dict[str, dict[int, str]] = {}
    for row in results.table:
        if (
            (row.metric, row.split, row.target) == (metric, split, measurements.source)
            and row.status != "diverged"
            and measurements.shows(row)
            and row.objective is not None
            and row.step is not None
            and row.seed is not None
        ):
            rows.setdefault(row.objective, {})[row.seed] = row.step
    return {
        one.spec: {seed: read(step, metric) for seed, step in sorted(rows[one.spec].items())}
        for one in measurements.compared
        if one.spec in rows
    }


def mean_of(runs: Iterable[Arrays], name: str) -> npt.NDArray[np.float64]:
    """The mean over runs of one array, as long as the shortest run's."""
    columns = [np.asarray(arrays[name], float) for arrays in runs]
    shortest = min(len(column) for column in columns)
    mean: npt.NDArray[np.float64] = np.mean([column[:shortest] for column in columns], axis=0)
    return mean


def density_curves(
    measurements: Measurements, runs: ArrayRuns, name: str, words: str = "", dashed: bool = False
) -> tuple[Curve, ...]:
    """A curve an objective: the mean density over its runs, at the points that all share."""
    return tuple(
        curve(
            measurements.objective(spec),
            mean_of(own.values(), "points"),
            mean_of(own.values(), name),
            f"{label(measurements, spec)}{words}",
            dashed,
        )
        for spec, own in runs.items()
    )


def curve(
    objective: Objective,
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    words: str,
    dashed: bool = False,
) -> Curve:
    """A line through (x, y), to six digits."""
    points = tuple((float(f"{a:.6g}"), float(f"{b:.6g}")) for a, b in zip(x, y, strict=True))
    return Curve(points, objective.slug, words, dashed=dashed)


def trimmed(curves: Sequence[Curve]) -> tuple[Curve, ...]:
    """The curves where any of them can be told from zero."""
    heights = {x: 0.0 for one in curves for x, _ in one.points}
    for one in curves:
        for x, y in one.points:
            heights[x] = max(heights[x], y)
    shown = [x for x, y in heights.items() if y > VISIBLE * max(heights.values())]
    if not shown:
        return tuple(curves)
    low, high = min(shown), max(shown)
    return tuple(
        Curve(tuple((x, y) for x, y in one.points if low <= x <= high), one.objective, one.label, one.dashed)
        for one in curves
    )


def upwards(curves: Sequence[Curve]) -> tuple[float, float]:
    """From 0 to a little above the highest of the curves."""
    return 0.0, 1.05 * max((y for one in curves for _, y in one.points), default=1.0)


def label(measurements: Measurements, spec: str) -> str:
    """An objective with its test accuracy, as the paper's legends have it.

    The mean over runs, in per cent; without an accuracy, the name alone.
    """
    name = measurements.objective(spec).label
    runs: Mapping[int, Any] = measurements.runs("top1").get(spec, {})
    return f"{name} ({percent(sum(runs.values()) / len(runs))} %)" if runs else name
