"""Quantities over the epochs of training: a curve a run, a mark at its end."""

from __future__ import annotations

from penultimate.report.exhibits.base import Curve, Panel, Point
from penultimate.report.exhibits.measurements import Measurements
from penultimate.report.text import fixed

PATH = list[tuple[float, float]]
EARLY = 0.4
"""The part of training that is left out of the frame: its steep rise would leave no room for the rest."""


def paths(measurements: Measurements, metric: str, split: str) -> dict[tuple[str, int], PATH]:
    """The points (epoch, value) of every run, by (canonical spec, seed)."""
    return {
        (objective.spec, seed): points
        for objective in measurements.objectives
        for seed, points in measurements.curve(objective, metric, split).items()
    }


def path_panel(
    measurements: Measurements,
    found: dict[tuple[str, int], PATH],
    name: str,
    titles: tuple[str, str, str],
    unit: str = " %",
    decimals: int = 1,
    early: float = EARLY,
) -> Panel:
    """A panel of paths, the share `early` of each left out; `titles` are its own and those of its axes."""
    curves, points, shown = [], [], []
    for (spec, seed), path in found.items():
        objective = measurements.objective(spec)
        detail = f"seed {seed}: {fixed(path[-1][1], decimals)}{unit} at the end"
        curves.append(Curve(tuple(path), objective.slug, f"{objective.label}, {detail}"))
        points.append(Point(*path[-1], objective.slug, objective.label, detail))
        shown += path[min(round(early * len(path)), len(path) - 1) :]
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


def _framed(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def in_percent(found: dict[tuple[str, int], PATH]) -> dict[tuple[str, int], PATH]:
    """The paths with their values times 100."""
    return {run: [(x, 100 * y) for x, y in path] for run, path in found.items()}
