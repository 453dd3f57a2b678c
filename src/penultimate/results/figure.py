"""Figures as data: scatter plots, lines and maps of a run or of the paper, which `drawing` draws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from penultimate.results.rows import UNTRAINED_HERE, both
from penultimate.results.table import TAGS, Source
from penultimate.results.text import counted, fixed, p_value, plain

if TYPE_CHECKING:
    import pandas as pd

    from penultimate.results.rows import Run

MOST_RUNS = 50
"""The greatest number of runs of an objective in a panel, so that the page of a huge study still opens."""
WIDE, SMALL = (420.0, 340.0), (210.0, 176.0)
"""The sizes of a panel and of one among many."""
FEWEST_SMALL = 240.0
"""Panels narrower than this have smaller marks and type."""
EARLY = 0.4
"""The share of a line over epochs whose steep rise is outside the frame."""
MAP_MARGINS = {"left": 19.0, "right": 5.0, "top": 5.0, "bottom": 19.0}
"""The space around the cells of a map, in pixels."""


class Point(NamedTuple):
    """A mark: a single run (faint where a mean is drawn too) or a mean with its standard errors.

    `slug` gives it the mark of an objective. A `shade` from 0 to 1 fills it with a third number, and `y_span`
    are the ends of an interval that is drawn in place of errors.
    """

    x: float
    y: float
    slug: str
    label: str
    detail: str = ""
    x_error: float | None = None
    y_error: float | None = None
    faint: bool = False
    shade: float | None = None
    y_span: tuple[float, float] | None = None


class Curve(NamedTuple):
    """A line through (x, y); `dashed` and `faint` set it back behind the others."""

    points: tuple[tuple[float, float], ...]
    slug: str
    label: str
    dashed: bool = False
    faint: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes; several make a figure. With a `map`, a frame of numbers, its cells are coloured.

    `low` and `high` are the ends of the colours of a map. If `labelled`, the marks have labels beside them.
    `slugs` are the objectives that name the rows and columns of a map. `finding` is the line below the title.
    If not `numbered`, the vertical axis has an order but no numbers.
    """

    name: str
    title: str
    x_label: str = ""
    y_label: str = ""
    points: tuple[Point, ...] = ()
    curves: tuple[Curve, ...] = ()
    map: pd.DataFrame | None = None
    source: Source = "ours"
    finding: str = ""
    labelled: bool = True
    x_limits: tuple[float, float] | None = None
    y_limits: tuple[float, float] | None = None
    size: tuple[float, float] = WIDE
    low: float = 0.0
    high: float = 1.0
    slugs: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    x_log: bool = False
    numbered: bool = True

    def records(self) -> Iterator[list[Any]]:
        """Yield a row of `exhibit.POINTS` for each mark, or point of a line, and for each cell of a map."""
        along = (Point(x, y, curve.slug, curve.label) for curve in self.curves for x, y in curve.points)
        heads = self.x_label, self.y_label
        for point in self.points or along:
            numbers = point.x, point.y, point.x_error, point.y_error
            yield [self.name, point.label, *numbers, *heads, point.detail, self.source, None]
        if self.map is None:
            return
        for row, (name, values) in enumerate(
            zip(self.map.index, self.map.to_numpy().tolist(), strict=True), 1
        ):
            for column, (other, value) in enumerate(zip(self.map.columns, values, strict=True), 1):
                label = " and ".join(filter(None, (str(name), str(other))))
                cell = None if value != value else value
                yield [self.name, label, column, row, *[None] * 5, self.source, cell]

    def objectives(self) -> list[str]:
        """Return the objectives that it draws."""
        drawn = [curve.slug for curve in self.curves] + [point.slug for point in self.points]
        return list(dict.fromkeys(filter(None, [*drawn, *self.slugs[0], *self.slugs[1]])))

    def text(self) -> str:
        """Return the means for a terminal."""
        drawn: dict[str, list[Point]] = {}
        for point in self.points:
            if not point.faint:
                drawn.setdefault(point.label, []).append(point)
        lines = [plain(f"{self.title} [{TAGS[self.source]}]: {self.y_label} against {self.x_label}")]
        lines += [plain(self.finding)] if self.finding else []
        for label, points in drawn.items():
            middle = (math.fsum(of) / len(points) for of in zip(*((p.x, p.y) for p in points), strict=True))
            mean = f"{', '.join(f'{value:.4g}' for value in middle)} (mean of {len(points)} runs)"
            lines.append(f"  {plain(label)}: {plain(points[0].detail) if len(points) == 1 else mean}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Figure:
    """Panels side by side; with a legend where labels do not stand beside the marks."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    legend: bool = False

    @property
    def is_small(self) -> bool:
        """Whether its panels are small and share one heading."""
        return all(panel.size[0] < FEWEST_SMALL for panel in self.panels)


class Axis(NamedTuple):
    """What an axis shows: its label, the digits and the unit of its numbers in tooltips."""

    label: str
    digits: int = 1
    unit: str = ""


def scatter(
    run: Run,
    name: str,
    title: str,
    x: pd.DataFrame,
    y: pd.DataFrame,
    axes: tuple[Axis, Axis],
    *,
    drawn: Literal["runs", "means", "both"] = "both",
    labels: Mapping[str, str] | None = None,
    noun: str = "objective",
    **panel: Any,
) -> Panel | None:
    """Return a panel of two frames [seed, objective] of a run; None if no run has both values.

    A mark is a run, or the mean over the runs that have both values, with standard errors. The finding is the
    rank correlation of the means.
    """
    x, y = both(x, y)
    labels = labels or run.labels(*run.arms)
    runs, means = [], []
    for slug in [slug for slug in labels if slug in x.columns]:
        across, up = x[slug].dropna(), y[slug].dropna()
        for seed in across.index[:MOST_RUNS]:
            point = float(across[seed]), float(up[seed])
            which = "not trained here" if seed == UNTRAINED_HERE else f"seed {seed}"
            detail = f"{which}: {_detail(*point, axes)}"
            runs.append(Point(*point, slug, labels[slug], detail, faint=drawn == "both"))
        detail = f"{_detail(across.mean(), up.mean(), axes)} (mean of {counted(len(across), 'run')})"
        errors = [float(of.sem()) if len(of) > 1 else None for of in (across, up)]
        point = float(across.mean()), float(up.mean())
        means.append(Point(*point, slug, labels[slug], detail, errors[0], errors[1]))
    if not means:
        return None
    said = correlation(means, noun)
    if drawn == "runs" and len(runs) > len(means):
        said += " (means over runs)"
    faint = runs if drawn == "both" and len(x) > 1 else []
    shown = runs if drawn == "runs" else [*faint, *means]
    return Panel(name, title, axes[0].label, axes[1].label, tuple(shown), **{"finding": said, **panel})


def scatter_printed(
    name: str,
    title: str,
    x: pd.Series,
    y: pd.Series,
    axes: tuple[Axis, Axis],
    *,
    noun: str = "objective",
    **panel: Any,
) -> Panel:
    """Return a panel of printed means by objective, or by temperature, in the order of y."""
    from penultimate.objectives.sweeps import swept
    from penultimate.results.means import printed_label

    points = []
    for row in y.index:
        slug = swept(float(row)) if y.index.name == "temperature" else str(row)
        point = float(x[row]), float(y[row])
        points.append(Point(*point, slug, printed_label(row), _detail(*point, axes)))
    made: dict[str, Any] = {"finding": correlation(points, noun), "source": "published", **panel}
    return Panel(name, title, axes[0].label, axes[1].label, tuple(points), **made)


def _detail(x: float, y: float, axes: tuple[Axis, Axis]) -> str:
    return f"{fixed(x, axes[0].digits)}, {fixed(y, axes[1].digits)} {axes[1].unit}".rstrip()


def correlation(points: Sequence[Point], noun: str = "objective") -> str:
    """Return Spearman's rank correlation of marks in words."""
    from penultimate.statistics import leave_two_out, spearman

    x, y = [point.x for point in points], [point.y for point in points]
    found = spearman(x, y) if len(x) >= 3 else None
    if found is None or math.isnan(found.rho):
        return "Too few different values for a rank correlation"
    said = f"Spearman ρ = {fixed(found.rho, 2)}, {p_value(found.p)}, {counted(found.n, noun)}"
    two = leave_two_out(x, y)
    if two is None or two.low == two.high:
        return said
    return f"{said}; with any two left out {fixed(two.low, 2)} to {fixed(two.high, 2)}"


def lines(
    run: Run,
    name: str,
    title: str,
    y: pd.DataFrame,
    axis: Axis,
    x: pd.DataFrame | None = None,
    x_label: str = "Epoch",
    *,
    early: float = EARLY,
    labels: Mapping[str, str] | None = None,
    **panel: Any,
) -> Panel | None:
    """Return a panel of runs over the epochs, or against another course.

    The frames are [epoch, (objective, seed)]. A line is the mean over an objective's runs in the epochs that
    all of them have, or else a run each; the mark at its end has standard errors. None without any point.
    """
    labels = labels or run.labels(*run.arms)
    there = y.notna() if x is None else (y.notna() & x.reindex_like(y).notna())
    curves, points, inside = [], [], list[tuple[float, float]]()
    for slug, group in _groups(there, labels):
        epochs = there.index[there[group].all(axis=1)]
        up = y.loc[epochs, group]
        across = (
            up.apply(lambda column: column.index.to_series().astype(float))
            if x is None
            else x.loc[epochs, group]
        )
        line = tuple(zip(across.mean(axis=1).tolist(), up.mean(axis=1).tolist(), strict=True))
        errors = [float(of.iloc[-1].sem()) or None if len(group) > 1 else None for of in (across, up)]
        runs = f"mean of {counted(len(group), 'run')}" if len(group) > 1 else f"seed {group[0][1]}"
        beside = f" ± {fixed(errors[1], axis.digits + 1)}" if errors[1] is not None else ""
        detail = f"{runs}: {fixed(line[-1][1], axis.digits)}{beside} {axis.unit}".rstrip() + " at the end"
        curves.append(Curve(line, slug, f"{labels[slug]}, {detail}"))
        points.append(Point(*line[-1], slug, labels[slug], detail, errors[0], errors[1]))
        inside += line[min(round(early * len(line)), len(line) - 1) :]
        (last_x, last_y), (by_x, by_y) = line[-1], (error or 0.0 for error in errors)
        inside += [(last_x - by_x, last_y - by_y), (last_x + by_x, last_y + by_y)]
    if not points:
        return None
    limits = []
    for values in zip(*inside, strict=True):
        margin = 0.05 * (max(values) - min(values)) or 1.0
        limits.append((min(values) - margin, max(values) + margin))
    made = {"labelled": False, "x_limits": limits[0], "y_limits": limits[1], **panel}
    return Panel(name, title, x_label, axis.label, tuple(points), tuple(curves), **made)


def _groups(there: pd.DataFrame, labels: Mapping[str, str]) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Yield each objective with the runs of a line: all if they share an epoch, or else each by itself."""
    measured = [run for run in there.columns if there[run].any()]
    for slug in labels:
        group = [run for run in measured if run[0] == slug]
        shares = bool(group) and there[group].all(axis=1).any()
        yield from ((slug, runs) for runs in ([group] if shares else [[run] for run in group]))


def heat(name: str, title: str, values: pd.DataFrame, *, width: float = 210.0, **panel: Any) -> Panel:
    """Return a map of a frame of numbers, whose cells are squares."""
    cell = (width - MAP_MARGINS["left"] - MAP_MARGINS["right"]) / max(values.shape[1], 1)
    height = cell * len(values) + MAP_MARGINS["top"] + MAP_MARGINS["bottom"]
    return Panel(name, title, map=values, **{"labelled": False, "size": (width, round(height, 1)), **panel})
