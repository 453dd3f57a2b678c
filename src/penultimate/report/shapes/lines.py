"""Quantities over the epochs of training: one curve per objective, with a mark at its end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from penultimate.data.catalog import card
from penultimate.report.base import Curve, Figure, Missing, Panel, Point
from penultimate.report.measurements import Measurements, Seed, run_name
from penultimate.report.quantity import Quantity
from penultimate.report.sets import name_on
from penultimate.report.shapes.numbers import error_of, summarise
from penultimate.report.spec import Piece
from penultimate.report.text import counted, fixed

RunOf: TypeAlias = tuple[str, Seed]
"""A run's objective (its canonical spec) and seed."""
Track: TypeAlias = dict[float, tuple[float, float]]
"""The position of a run after each epoch: {epoch: (x, y)}."""


@dataclass(frozen=True)
class OverEpochs:
    """A panel of the epochs of training: `y` over them, or against `x`, epoch by epoch.

    A line is the mean over an objective's runs in the epochs that all of them have. If they have no epoch in
    common, each line is a run.

    early       the share of each line whose steep rise is outside the frame
    relative    whether values are in per cent of a run's first epoch
    note        the note on it if it replaces another panel
    """

    name: str
    title: str
    y: Quantity
    x: Quantity | None = None
    early: float = 0.4
    relative: bool = False
    note: str = ""

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        axes = (self.x, self.y) if self.x else (self.y,)
        return tuple(replace(quantity, over="epochs") for quantity in axes)

    def tracks(self, measurements: Measurements) -> dict[RunOf, Track]:
        """Return the points of every run, by epoch, for the epochs that have both coordinates."""
        upwards = _series(measurements, self.y)
        if self.relative:
            upwards = {
                run: {epoch: 100 * value / first for epoch, value in series.items()}
                for run, series in upwards.items()
                if (first := next(iter(series.values()))) > 0
            }
        epochs = {run: {epoch: epoch for epoch in series} for run, series in upwards.items()}
        tracks = {
            run: {epoch: (x, upwards[run][epoch]) for epoch, x in series.items() if epoch in upwards[run]}
            for run, series in (_series(measurements, self.x) if self.x else epochs).items()
            if run in upwards
        }
        return {run: track for run, track in tracks.items() if track}

    def panel(self, measurements: Measurements) -> Panel:
        """Return the panel of the runs that have points for it; there must be at least one."""
        curves, points = [], []
        in_frame: list[tuple[float, float]] = []
        for spec, tracks in _lines(self.tracks(measurements)):
            objective = measurements.objective(spec)
            means = [
                [summarise([track[epoch][axis] for track in tracks.values()]) for axis in (0, 1)]
                for epoch in sorted(_shared(tracks))
            ]
            line = tuple((x.mean, y.mean) for x, y in means)
            x, y = line[-1]
            # A standard error of zero (the epochs themselves) is not drawn.
            x_error, y_error = (error_of(summary) or None for summary in means[-1])
            detail = self._detail(list(tracks), y, y_error)
            curves.append(Curve(line, objective.slug, f"{objective.label}, {detail}"))
            points.append(Point(x, y, objective.slug, objective.label, detail, x_error, y_error))
            in_frame += line[min(round(self.early * len(line)), len(line) - 1) :]
            reach_x, reach_y = x_error or 0.0, y_error or 0.0
            in_frame += [(x - reach_x, y - reach_y), (x + reach_x, y + reach_y)]
        x_limits, y_limits = map(_framed, zip(*in_frame, strict=True))
        return Panel(
            self.name,
            self.title.format_map(measurements.words),
            self.x.label if self.x else "Epoch",
            self.y.label,
            tuple(points),
            tuple(curves),
            labelled=False,
            x_limits=x_limits,
            y_limits=y_limits,
        )

    def _detail(self, seeds: list[Seed], y: float, y_error: float | None) -> str:
        runs = f"mean of {counted(len(seeds), 'run')}" if len(seeds) > 1 else run_name(seeds[0])
        error = "" if y_error is None else f" ± {fixed(y_error, self.y.digits + 1)}"
        unit = f" {self.y.unit}" if self.y.unit else ""
        return f"{runs}: {fixed(y, self.y.digits)}{error}{unit} at the end"


@dataclass(frozen=True)
class Lines:
    """A figure of quantities over the epochs of training, one panel each.

    Each panel comes with those that replace it if no run has points. `missing` names a quantity without a
    panel. In captions, {lines} says what a line is, and {shown} what the vertical axis shows.
    """

    name: str
    title: str
    description: str
    panels: tuple[tuple[OverEpochs, ...], ...]
    missing: str

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return tuple(quantity for panels in self.panels for panel in panels for quantity in panel.quantities)

    def build(self, measurements: Measurements) -> Piece:
        drawn = [panel for panels in self.panels if (panel := first_measured(panels, measurements))]
        runs = max((panel.tracks(measurements) for panel in drawn), key=len, default={})
        words = {"lines": lines(runs), "shown": (drawn or self.panels[0])[0].y.label}
        if not drawn:
            return Piece(missing=(Missing(self.missing),), words=words)
        panels = tuple(panel.panel(measurements) for panel in drawn)
        figure = Figure(self.name, self.title, self.description, panels, legend=True)
        notes = tuple(panel.note for panel in drawn if panel.note)
        return Piece(figures=(figure,), notes=notes, words=words)


@dataclass(frozen=True)
class LinesByTarget:
    """A figure of one quantity of the targets over the epochs: their mean, then a panel for each of them."""

    name: str
    title: str
    description: str
    mean: OverEpochs
    missing: str

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return self.mean.quantities

    def build(self, measurements: Measurements) -> Piece:
        of_each = [
            replace(
                self.mean,
                name=name_on(self.name, target),
                title=card(target).title,
                y=replace(self.mean.y, target=target),
            )
            for target in measurements.targets
        ]
        panels = tuple((panel,) for panel in (self.mean, *of_each))
        return Lines(self.name, self.title, self.description, panels, self.missing).build(measurements)


def first_measured(panels: Iterable[OverEpochs], measurements: Measurements) -> OverEpochs | None:
    """Return the first of some panels that any run has points for."""
    return next((panel for panel in panels if panel.tracks(measurements)), None)


def lines(runs: Collection[RunOf]) -> str:
    """Return the meaning of a line, worded for a caption.

    >>> lines([("softmax", 0), ("sigmoid", 0)])
    'Each line is a run.'
    >>> lines([("softmax", 0), ("softmax", 1)])
    "Each line is the mean of an objective's runs; the whiskers at its end are standard errors."
    """
    if len({spec for spec, _ in runs}) == len(runs):
        return "Each line is a run."
    return "Each line is the mean of an objective's runs; the whiskers at its end are standard errors."


def _series(measurements: Measurements, quantity: Quantity) -> dict[RunOf, dict[float, float]]:
    """Return the values of every run by epoch, scaled."""
    of_arm = measurements.in_arm(quantity.arm)
    return {
        (objective.spec, seed): {epoch: quantity.scale * value for epoch, value in points}
        for objective in of_arm.objectives
        for seed, points in of_arm.course(objective, quantity).items()
    }


def _lines(tracks: Mapping[RunOf, Track]) -> list[tuple[str, dict[Seed, Track]]]:
    """Return the objective of each line, and the runs that make it, by seed."""
    by_objective: dict[str, dict[Seed, Track]] = {}
    for (spec, seed), track in tracks.items():
        by_objective.setdefault(spec, {})[seed] = track
    return [
        (spec, together)
        for spec, runs in by_objective.items()
        for together in ([runs] if _shared(runs) else [{seed: run} for seed, run in runs.items()])
    ]


def _shared(tracks: Mapping[Seed, Track]) -> set[float]:
    """Return the epochs that all of these runs have."""
    return set.intersection(*map(set, tracks.values()))


def _framed(values: Collection[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin
