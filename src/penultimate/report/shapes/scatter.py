"""Scatter plots of one quantity against another, ours and the paper's; a mark is a run or an objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from penultimate.objectives.sweeps import swept
from penultimate.report.base import Figure, Missing, Panel, Point
from penultimate.report.measurements import ByRun, Measurements, run_name
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.numbers import (
    Reader,
    error_of,
    printed_rows,
    rank_correlation,
    read_printed,
    summarise,
    without_two,
)
from penultimate.report.shapes.table import noun_of, printed_label
from penultimate.report.spec import Piece
from penultimate.report.text import counted, fixed, p_value

if TYPE_CHECKING:
    from penultimate.statistics import Correlation

Marks: TypeAlias = Literal["runs", "means", "both"]
FEWEST = 3
"""The least number of temperatures in a sweep that is drawn."""
MOST_RUNS = 50
"""The greatest number of runs of an objective in a panel, so that the page of a huge study still opens."""


@dataclass(frozen=True)
class ScatterPanel:
    """Our runs or objectives, one quantity against another.

    marks        a mark for each run, for each mean over runs (with its standard errors), or for both
    over         the arm of the sweep over temperatures to draw; by default, the objectives of the main arm
    missing      the name of the gap if there is nothing to draw
    measured_by  the study that measures it, if not the exhibit's
    chosen       a function that chooses the quantity for `x` in a study
    instead      the other candidates for `x`, shown in the same way
    """

    name: str
    title: str
    x: Quantity
    y: Quantity
    missing: str
    marks: Marks = "both"
    over: str = ""
    measured_by: str = ""
    chosen: Callable[[Measurements], Quantity] | None = None
    instead: tuple[Quantity, ...] = ()

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return tuple(quantity.of_arm(self.over) for quantity in (self.x, self.y, *self.instead))

    def values(self, measurements: Measurements) -> tuple[ByRun, ByRun]:
        """Return the horizontal and the vertical values."""
        x, y, *_ = self.quantities
        if self.chosen is not None:
            x = self.chosen(measurements).of_arm(x.arm)
        return measurements.values(x), measurements.values(y)

    def means(self, measurements: Measurements) -> tuple[Point, ...]:
        """Return a mark for each objective, or for each temperature."""
        x, y = self.values(measurements)
        if not self.over:
            return mean_points(measurements, x, y, self.x, self.y)
        sweep = measurements.in_arm(self.over)
        return tuple(
            replace(point, label=f"τ = {temperature:g}")
            for temperature, objective in sweep.temperatures
            if objective.spec in x
            for point in mean_points(sweep, {objective.spec: x[objective.spec]}, y, self.x, self.y)
        )

    def panel(self, measurements: Measurements) -> Panel | None:
        """Return the panel, or None without any mark or with fewer than three temperatures."""
        means = self.means(measurements)
        if len(means) < (FEWEST if self.over else 1):
            return None
        x, y = self.values(measurements)
        arm = measurements.in_arm(self.quantities[0].arm)
        runs = run_points(arm, x, y, self.x, self.y, faint=self.marks == "both")
        several = len(runs) > len(means)
        faint = runs if self.marks == "both" and len(measurements.seeds) > 1 else ()
        said = finding(means, noun_of(self.over))
        return Panel(
            self.name,
            self.title.format_map(measurements.words),
            self.x.label,
            self.y.label,
            runs if self.marks == "runs" else (*faint, *means),
            finding=f"{said} (means over runs)" if self.marks == "runs" and several else said,
        )


@dataclass(frozen=True)
class PrintedPanel:
    """The paper's means: one printed column against another.

    x, y   (printed table, column of it or what reads its rows)
    """

    name: str
    title: str
    x: tuple[str, str | Reader]
    y: tuple[str, str | Reader]
    x_label: str
    y_label: str
    x_digits: int = 1
    over: str = ""
    needs_ours: bool = False
    quantities: tuple[Quantity, ...] = ()

    def points(self) -> tuple[Point, ...]:
        """Return a mark for each objective, or for each temperature."""
        points = []
        across = {printed_label(row): row for row in printed_rows(self.x[0])}
        for row in printed_rows(self.y[0]):
            label = printed_label(row)
            x, y = read_printed(across[label], self.x[1]), read_printed(row, self.y[1])
            if "temperature" in row:
                label = f"τ = {float(row['temperature']):g}"
            slug = row.get("objective") or swept(float(row["temperature"]))
            points.append(Point(x, y, slug, label, f"{fixed(x, self.x_digits)}, {fixed(y, 1)} %"))
        return tuple(points)

    def panel(self) -> Panel:
        points = self.points()
        said = finding(points, noun_of(self.over))
        return Panel(
            self.name, self.title, self.x_label, self.y_label, points, source="published", finding=said
        )


@dataclass(frozen=True)
class Scatter:
    """A figure of scatter panels; in captions, {behind} describes the runs behind our marks.

    A printed panel that `needs_ours` is drawn only after a panel of ours.
    """

    name: str
    title: str
    description: str
    panels: tuple[ScatterPanel | PrintedPanel, ...]

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return tuple(quantity for panel in self.panels for quantity in panel.quantities)

    def build(self, measurements: Measurements) -> Piece:
        panels: list[Panel] = []
        gaps: list[Missing] = []
        shown: list[ScatterPanel] = []
        drawn = False
        for shape in self.panels:
            if isinstance(shape, PrintedPanel):
                panels += [shape.panel()] if drawn or not shape.needs_ours else []
                continue
            panel = shape.panel(measurements)
            drawn = panel is not None
            if panel is None:
                gap = Missing(shape.missing)
                gaps.append(gap.run_by(shape.measured_by) if shape.measured_by else gap)
            else:
                panels.append(panel)
                shown.append(shape)
        figure = Figure(self.name, self.title, self.description, tuple(panels))
        of_runs = any(panel.marks != "means" for panel in shown)
        notes = first_runs(measurements) if of_runs else ()
        words = {"behind": _runs_behind(measurements, shown)}
        return Piece(figures=(figure,), notes=notes, missing=tuple(gaps), words=words)


def _runs_behind(measurements: Measurements, panels: Sequence[ScatterPanel]) -> str:
    """Return a description of the runs behind our marks, in brackets; an empty string without marks."""
    if not panels:
        return ""
    arms = {quantity.arm for panel in panels for quantity in panel.quantities} - {measurements.arm}
    several = len(measurements.seeds) > 1 and any(panel.marks == "both" for panel in panels)
    marks = "; whiskers: standard errors; faint: single runs" if several else ""
    return f" ({measurements.runs_phrase(*sorted(arms))}{marks})"


def first_runs(measurements: Measurements) -> tuple[str, ...]:
    """Return the note that `run_points` needs if there are more runs than are drawn."""
    said = f"Of each objective the first {MOST_RUNS} runs are drawn; every mean is over all of its runs."
    return (said,) if len(measurements.seeds) > MOST_RUNS else ()


def run_points(
    measurements: Measurements, x: ByRun, y: ByRun, across: Quantity, up: Quantity, faint: bool = False
) -> tuple[Point, ...]:
    """Return a mark for every run that has both values, or for the first ones of many."""
    points = []
    for spec in x:
        objective = measurements.objective(spec)
        for seed in [seed for seed in x[spec] if seed in y.get(spec, {})][:MOST_RUNS]:
            right, above = across.scale * x[spec][seed], up.scale * y[spec][seed]
            detail = f"{run_name(seed)}: {_detail(right, above, across, up)}"
            points.append(Point(right, above, objective.slug, objective.label, detail, faint=faint))
    return tuple(points)


def mean_points(
    measurements: Measurements, x: ByRun, y: ByRun, across: Quantity, up: Quantity
) -> tuple[Point, ...]:
    """Return a mark for every objective: means over the runs that have both values, with standard errors."""
    points = []
    for spec in x:
        seeds = [seed for seed in x[spec] if seed in y.get(spec, {})]
        if not seeds:
            continue
        right = summarise([across.scale * x[spec][seed] for seed in seeds])
        above = summarise([up.scale * y[spec][seed] for seed in seeds])
        objective = measurements.objective(spec)
        detail = f"{_detail(right.mean, above.mean, across, up)} (mean of {counted(len(seeds), 'run')})"
        errors = error_of(right), error_of(above)
        points.append(Point(right.mean, above.mean, objective.slug, objective.label, detail, *errors))
    return tuple(points)


def _detail(x: float, y: float, across: Quantity, up: Quantity) -> str:
    return f"{fixed(x, across.digits)}, {fixed(y, up.digits)} {up.unit}".rstrip()


def correlation_of(points: Sequence[Point]) -> Correlation | None:
    """Return Spearman's rank correlation of a panel's means; None for fewer than three or a constant axis."""
    return rank_correlation([point.x for point in points], [point.y for point in points])


def leaning_on(points: Sequence[Point], named: bool = True) -> str:
    """Return a phrase for how much the rank correlation of a panel's means depends on any two of them."""
    labels = [point.label for point in points] if named else []
    return without_two([point.x for point in points], [point.y for point in points], labels)


def finding(points: Sequence[Point], noun: str = "objective") -> str:
    """Return the correlation of a panel's means in words.

    >>> finding([Point(x, y, "", "") for x, y in ((1, 9), (2, 7), (3, 8), (4, 5))])
    'Spearman ρ = −0.80, p = 0.33, four objectives'
    >>> finding([])
    'Too few different values for a rank correlation'
    """
    correlation = correlation_of(points)
    if correlation is None:
        return "Too few different values for a rank correlation"
    rho = fixed(correlation.rho, 2)
    said = f"Spearman ρ = {rho}, {p_value(correlation.p)}, {counted(correlation.n, noun)}"
    return said + leaning_on(points)
