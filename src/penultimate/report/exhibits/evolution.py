"""Quantities over the epochs of training: a curve an objective, the mean of its runs, a mark at its end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from penultimate.report.exhibits.base import Curve, Panel, Point
from penultimate.report.exhibits.measurements import Measurements
from penultimate.report.exhibits.numbers import error_of, summarise
from penultimate.report.text import counted, fixed

Run = tuple[str, int]
"""A run's objective (its canonical spec) and seed."""
Path = dict[float, tuple[float, float]]
"""Where a run stands after each epoch: {epoch: (x, y)}."""
EARLY = 0.4
"""The part of training that is left out of the frame: its steep rise would leave no room for the rest."""


def paths(measurements: Measurements, metric: str, split: str) -> dict[Run, Path]:
    """The points (epoch, value) of every run, by epoch."""
    return {
        (objective.spec, seed): {epoch: (epoch, value) for epoch, value in points}
        for objective in measurements.objectives
        for seed, points in measurements.curve(objective, metric, split).items()
    }


def lines(runs: Collection[Run]) -> str:
    """What a line is, as a caption says it.

    >>> lines([("softmax", 0), ("sigmoid", 0)])
    'Each line is a run.'
    >>> lines([("softmax", 0), ("softmax", 1)])
    "Each line is the mean of an objective's runs; the whiskers at its end are standard errors."
    """
    if len({spec for spec, _ in runs}) == len(runs):
        return "Each line is a run."
    return "Each line is the mean of an objective's runs; the whiskers at its end are standard errors."


def path_panel(
    measurements: Measurements,
    found: Mapping[Run, Path],
    name: str,
    titles: tuple[str, str, str],
    unit: str = " %",
    decimals: int = 1,
    early: float = EARLY,
) -> Panel:
    """A panel of paths, the share `early` of each left out; `titles` are its own and those of its axes.

    A line is the mean over an objective's runs, of the epochs that all of them have; where they have none in
    common, a line is a run.
    """
    curves, points, shown = [], [], []
    for spec, runs in _lines(found):
        objective = measurements.objective(spec)
        epochs = sorted(_shared(runs.values()))
        along = [
            [_summary([run[epoch][axis] for run in runs.values()]) for axis in (0, 1)] for epoch in epochs
        ]
        path = [(x, y) for (x, _), (y, _) in along]
        (x, x_error), (y, y_error) = along[-1]
        who = f"mean of {counted(len(runs), 'run')}" if len(runs) > 1 else f"seed {min(runs)}"
        error = "" if y_error is None else f" ± {fixed(y_error, decimals + 1)}"
        detail = f"{who}: {fixed(y, decimals)}{error}{unit} at the end"
        curves.append(Curve(tuple(path), objective.slug, f"{objective.label}, {detail}"))
        points.append(Point(x, y, objective.slug, objective.label, detail, x_error, y_error))
        shown += path[min(round(early * len(path)), len(path) - 1) :]
        reach_x, reach_y = x_error or 0.0, y_error or 0.0
        shown += [(x - reach_x, y - reach_y), (x + reach_x, y + reach_y)]
    x_limits, y_limits = (_framed([point[axis] for point in shown]) for axis in (0, 1))
    title, x_label, y_label = titles
    return Panel(
        name,
        title,
        x_label,
        y_label,
        tuple(points),
        tuple(curves),
        labelled=False,
        x_limits=x_limits,
        y_limits=y_limits,
    )


def in_percent(found: Mapping[Run, Path]) -> dict[Run, Path]:
    """The paths with their values times 100."""
    return {run: {epoch: (x, 100 * y) for epoch, (x, y) in path.items()} for run, path in found.items()}


def _lines(found: Mapping[Run, Path]) -> list[tuple[str, dict[int, Path]]]:
    """The runs that make one line, by seed, and their objective."""
    groups: dict[str, dict[int, Path]] = {}
    for (spec, seed), path in found.items():
        groups.setdefault(spec, {})[seed] = path
    return [
        (spec, together)
        for spec, runs in groups.items()
        for together in ([runs] if _shared(runs.values()) else [{seed: run} for seed, run in runs.items()])
    ]


def _shared(runs: Iterable[Path]) -> set[float]:
    return set.intersection(*(set(run) for run in runs))


def _summary(values: list[float]) -> tuple[float, float | None]:
    """The mean, and its standard error where there is one to draw."""
    found = summarise(values)
    return found.mean, error_of(found) or None


def _framed(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin
