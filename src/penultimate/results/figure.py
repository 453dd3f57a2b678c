"""Figures: scatter plots, lines and maps of a run or of the paper, drawn as SVG by matplotlib.

Ink, rules and marks are drawn in reserved colours, which `restyle` turns into the page's custom properties
(so that one drawing serves paper and dark screen) or into concrete ones in a file of its own. Text stays
text, and the same input gives the same bytes.
"""

from __future__ import annotations

import functools
import io
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from penultimate.results.drawing import palette, placement
from penultimate.results.drawing.palette import HEAT_FLIP, HEAT_STEPS, SHAPES
from penultimate.results.drawing.placement import Box
from penultimate.results.drawing.restyle import HEAT, INK, MUTED, PAPER, RULE, Note, restyle
from penultimate.results.rows import UNTRAINED_HERE, both
from penultimate.results.table import TAGS, Source
from penultimate.results.text import MINUS, counted, fixed, p_value, plain, shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase

    from penultimate.results.rows import Run

MOST_RUNS = 50
"""The greatest number of runs of an objective in a panel, so that the page of a huge study still opens."""
WIDE, SMALL = (420.0, 340.0), (210.0, 176.0)
"""The sizes of a panel and of one among many."""
FEWEST_SMALL = 240.0
"""Panels narrower than this have smaller marks and type."""
WRITTEN, TICKS = 6, 12
"""The most columns of a map whose numbers are written in its cells, and whose rows are all labelled."""
EARLY = 0.4
"""The share of a line over epochs whose steep rise is outside the frame."""
MARGINS = {"left": 36.0, "right": 10.0, "top": 24.0, "bottom": 40.0}
MAP_MARGINS = {"left": 19.0, "right": 5.0, "top": 5.0, "bottom": 19.0}
LONGEST, LINE, DESCENT = 34, 12.0, 2.8
"""The most characters of a label inside a panel, its height, and its part below the baseline, in pixels."""
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "penultimate",
    "font.family": ["DejaVu Sans"],
    "font.size": 10.5,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.labelcolor": INK,
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "xtick.major.size": 3.5,
    "xtick.major.width": 0.8,
    "ytick.major.size": 0,
    "ytick.major.pad": 5,
    "text.color": INK,
    "text.parse_math": False,
}


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
        for point in self.points or along:
            numbers = (point.x, point.y, point.x_error, point.y_error)
            yield [
                self.name,
                point.label,
                *numbers,
                self.x_label,
                self.y_label,
                point.detail,
                self.source,
                None,
            ]
        if self.map is not None:
            for row, (name, values) in enumerate(
                zip(self.map.index, self.map.to_numpy().tolist(), strict=True), 1
            ):
                for column, (other, value) in enumerate(zip(self.map.columns, values, strict=True), 1):
                    label = " and ".join(filter(None, (str(name), str(other))))
                    yield [
                        self.name,
                        label,
                        column,
                        row,
                        *[None] * 5,
                        self.source,
                        None if value != value else value,
                    ]

    def objectives(self) -> list[str]:
        """Return the objectives that it draws."""
        drawn = [curve.slug for curve in self.curves] + [point.slug for point in self.points]
        return list(dict.fromkeys(filter(None, [*drawn, *self.slugs[0], *self.slugs[1]])))

    def text(self) -> str:
        """Return the means for a terminal."""
        head = (
            f"{plain(self.title)} [{TAGS[self.source]}]: {plain(self.y_label)} against {plain(self.x_label)}"
        )
        drawn: dict[str, list[Point]] = {}
        for point in self.points:
            if not point.faint:
                drawn.setdefault(point.label, []).append(point)
        lines = [
            f"  {plain(label)}: "
            + (
                plain(points[0].detail)
                if len(points) == 1
                else f"{_middle_of(points)} (mean of {len(points)} runs)"
            )
            for label, points in drawn.items()
        ]
        return "\n".join([head, *([plain(self.finding)] if self.finding else []), *lines])


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
        means.append(
            Point(float(across.mean()), float(up.mean()), slug, labels[slug], detail, errors[0], errors[1])
        )
    if not means:
        return None
    faint = runs if drawn == "both" and len(x) > 1 else []
    said = correlation(means, noun) + (
        " (means over runs)" if drawn == "runs" and len(runs) > len(means) else ""
    )
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
        reach = [error or 0.0 for error in errors]
        inside += [tuple(at + sign * by for at, by in zip(line[-1], reach, strict=True)) for sign in (-1, 1)]
    if not points:
        return None
    limits = [_framed(values) for values in zip(*inside, strict=True)]
    made = {"labelled": False, "x_limits": limits[0], "y_limits": limits[1], **panel}
    return Panel(name, title, x_label, axis.label, tuple(points), tuple(curves), **made)


def _groups(there: pd.DataFrame, labels: Mapping[str, str]) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Yield each objective with the runs that make a line: all that share an epoch, or else each by
    itself."""
    measured = [run for run in there.columns if there[run].any()]
    for slug in labels:
        group = [run for run in measured if run[0] == slug]
        shares = bool(group) and there[group].all(axis=1).any()
        yield from ((slug, runs) for runs in ([group] if shares else [[run] for run in group]))


def _middle_of(points: Sequence[Point]) -> str:
    """Return the mean place of marks."""
    return ", ".join(
        f"{sum(of) / len(of):.4g}" for of in zip(*((point.x, point.y) for point in points), strict=True)
    )


def _framed(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def heat(name: str, title: str, values: pd.DataFrame, *, width: float = 210.0, **panel: Any) -> Panel:
    """Return a map of a frame of numbers, whose cells are squares."""
    cell = (width - MAP_MARGINS["left"] - MAP_MARGINS["right"]) / max(values.shape[1], 1)
    height = cell * len(values) + MAP_MARGINS["top"] + MAP_MARGINS["bottom"]
    return Panel(name, title, map=values, **{"labelled": False, "size": (width, round(height, 1)), **panel})


@dataclass(frozen=True)
class Drawing:
    """A panel as matplotlib drew it; `styled` prepares it for a page or for a separate file."""

    raw: str
    notes: tuple[Note, ...]
    description: str
    marks: Mapping[str, palette.Mark]

    def styled(self, prefix: str, page: bool = True) -> str:
        """Return one `<svg>` element whose ids begin with `prefix`, in the page's colours or in fixed
        ones."""
        return restyle(self.raw, self.notes, self.marks, prefix, self.description, page)


def draw(panel: Panel, marks: Mapping[str, palette.Mark]) -> Drawing:
    """Draw a panel, where `marks` gives every objective its colour and shape."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    width, height = panel.size
    small = width < FEWEST_SMALL
    defaults = {key: value for key, value in matplotlib.rcParamsDefault.items() if key != "backend"}
    sizes = {"font.size": 9.0, "xtick.labelsize": 9.0, "ytick.labelsize": 9.0} if small else {}
    with warnings.catch_warnings(), matplotlib.rc_context({**defaults, **SETTINGS, **sizes}):
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        canvas = Canvas(figsize=(width / 72, height / 72), dpi=72)
        renderer = FigureCanvasAgg(canvas).get_renderer()
        canvas.patch.set_visible(False)
        axes = canvas.add_axes(_frame(panel))
        axes.patch.set_visible(False)
        notes: list[Note] = []

        def noted(slug: str, text: str) -> str:
            notes.append(Note(slug, plain(text)))
            return f"note{len(notes) - 1}"

        if panel.map is not None:
            _fill_map(axes, panel, marks, noted)
        else:
            _fill(axes, panel, marks, small, noted)
            _scales(axes, panel, small)
            if panel.labelled:
                _label(axes, panel, renderer)
        file = io.StringIO()
        canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    about = " against ".join(filter(None, (panel.y_label, panel.x_label)))
    description = ". ".join(filter(None, (panel.title, about, panel.finding)))
    return Drawing(file.getvalue(), tuple(notes), plain(description), marks)


def _frame(panel: Panel) -> tuple[float, float, float, float]:
    """Return the frame of the axes in a panel, as shares of its size."""
    (width, height), margins = panel.size, dict(MARGINS if panel.map is None else MAP_MARGINS)
    if panel.map is None:
        margins["top"] = margins["top"] if panel.y_label else 8.0
        margins["bottom"] = margins["bottom"] if panel.x_label else 22.0
    inner = width - margins["left"] - margins["right"], height - margins["top"] - margins["bottom"]
    return margins["left"] / width, margins["bottom"] / height, inner[0] / width, inner[1] / height


Noted = Callable[[str, str], str]


def _fill(axes: Axes, panel: Panel, marks: Mapping[str, palette.Mark], small: bool, noted: Noted) -> None:
    """Draw lines, whiskers, then marks, each with its tooltip."""
    from matplotlib.lines import Line2D

    for curve in panel.curves:
        line = Line2D(
            *zip(*curve.points, strict=True),
            color=MUTED if curve.faint else marks[curve.slug].light,
            linewidth=0.8 if curve.faint else 1.6,
            alpha=0.4 if curve.faint else 1,
            linestyle=(0, (3, 2)) if curve.dashed else "-",
            solid_capstyle="round",
            zorder=1 if curve.faint else 2,
            gid=noted("" if curve.faint else curve.slug, curve.label),
        )
        axes.add_artist(line)
    for point in panel.points:
        mark, shade = marks[point.slug], point.shade
        for x, y in _whiskers(point):
            axes.add_artist(Line2D(x, y, color=mark.light, linewidth=1, zorder=2))
        size = (3.4 if point.faint else 5.0) if small else (3.6 if point.faint else 6.0)
        line = Line2D(
            [point.x],
            [point.y],
            linestyle="none",
            marker=_shape(mark.shape),
            markersize=2 * size * _extent(mark.shape),
            markerfacecolor=mark.light if shade is None else HEAT[_step(shade, 0, 1)],
            markeredgecolor=PAPER if shade is None else mark.light,
            markeredgewidth=0.7 if shade is None else 1.4,
            alpha=0.55 if point.faint else 1,
            zorder=3 if point.faint else 4,
            gid=noted(point.slug, f"{point.label}: {point.detail}" if point.detail else point.label),
        )
        axes.add_artist(line)
    # Artists that are added one by one do not tell the axes their limits, which takes long for many.
    ends = [
        end for point in panel.points for whisker in _whiskers(point) for end in zip(*whisker, strict=True)
    ]
    ends += [(point.x, point.y) for point in panel.points]
    axes.update_datalim([*ends, *(point for curve in panel.curves for point in curve.points)])


def _whiskers(point: Point) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Yield the ends of a mark's whiskers: (x, y) of either end."""
    if point.x_error:
        yield (point.x - point.x_error, point.x + point.x_error), (point.y, point.y)
    if point.y_span or point.y_error:
        error = point.y_error or 0.0
        yield (point.x, point.x), point.y_span or (point.y - error, point.y + error)


@functools.cache
def _shape(name: str) -> Any:
    """Return the marker of a shape."""
    from matplotlib.markers import MarkerStyle
    from matplotlib.path import Path as Shape

    vertices, _ = SHAPES[name]
    return MarkerStyle(Shape([*vertices, vertices[0]], closed=True))


def _extent(name: str) -> float:
    """Return the factor by which a shape is drawn larger, so that the areas of shapes look alike."""
    vertices, scale = SHAPES[name]
    return scale * max(abs(value) for vertex in vertices for value in vertex)


def _scales(axes: Axes, panel: Panel, small: bool) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator

    for axis, limits, chosen, set_limits in (
        (axes.xaxis, axes.dataLim.intervalx, panel.x_limits, axes.set_xlim),
        (axes.yaxis, axes.dataLim.intervaly, panel.y_limits, axes.set_ylim),
    ):
        low, high = (float(limit) for limit in (chosen or limits))
        pad = 0.0 if chosen and low < high else 0.09 * (high - low) or 0.05 * (abs(high) or 1.0)
        set_limits(low - pad, high + pad)
        axis.set_major_locator(MaxNLocator(4 if small else 6, steps=[1, 2, 5, 10]))
    if not panel.numbered:
        axes.set_yticks([])
    if panel.x_log:
        low, high = (float(limit) for limit in (panel.x_limits or axes.dataLim.intervalx))
        room = (high / low) ** 0.06 if low < high else 2.0
        axes.set_xscale("log")
        axes.set_xlim(low / room, high * room)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(*_powers(low / room, high * room, small))
    axes.set_xlabel(plain(panel.x_label), loc="right" if small else "center", labelpad=3 if small else 6)
    axes.tick_params(axis="x", pad=3)
    if panel.y_label:
        offset = (-MARGINS["left"] + 2, 10 if small else 12)
        axes.annotate(plain(panel.y_label), (0, 1), offset, "axes fraction", "offset points")


def _powers(low: float, high: float, small: bool) -> tuple[list[float], list[str]]:
    """Return the ticks of a logarithmic axis and their labels: 1, 2, 5, 10, ..., or powers of ten alone.

    >>> _powers(0.8, 24, small=False)
    ([1.0, 2.0, 5.0, 10.0, 20.0], ['1', '2', '5', '10', '20'])
    """
    steps = (1, 2, 5) if math.log10(high / low) < (1.3 if small else 3.5) else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    ticks = [tick for tick in ticks if low <= tick <= high]
    return ticks, [f"{tick:,g}" if tick < 1 else f"{tick:,.0f}" for tick in ticks]


def _label(axes: Axes, panel: Panel, renderer: RendererBase) -> None:
    """Label every objective once, beside the run (or mean) nearest to the middle of its marks."""
    from matplotlib.transforms import IdentityTransform

    def pixels(x: float, y: float) -> tuple[float, float]:
        across, up = axes.transData.transform((x, y))
        return float(across), float(up)

    named = list(dict.fromkeys(point.label for point in panel.points))
    chosen = [_middle([point for point in panel.points if point.label == label], pixels) for label in named]
    texts = [axes.text(0, 0, shortened(point.label, LONGEST), fontsize=10) for point in chosen]
    sizes = [(float(text.get_window_extent(renderer).width), LINE) for text in texts]
    obstacles = [(_reach(point, pixels), named.index(point.label)) for point in panel.points]
    owner = {point.slug: named.index(point.label) for point in panel.points}
    for curve in panel.curves:
        obstacles += [(box, owner.get(curve.slug, -1)) for box in _bars(curve, pixels)]
    bounds = axes.get_window_extent(renderer)
    frame = Box(bounds.x0, bounds.y0 + 3, bounds.x1 + MARGINS["right"], bounds.y1 + 4)
    anchors = [pixels(point.x, point.y) for point in chosen]
    for text, placed in zip(texts, placement.place(anchors, sizes, obstacles, frame), strict=True):
        text.set_transform(IdentityTransform())
        text.set_position((placed.box.left, placed.box.bottom + DESCENT))
        if placed.leader is not None:
            ends = placed.leader[::2], placed.leader[1::2]
            (line,) = axes.plot(*ends, color=MUTED, linewidth=0.6, zorder=1.5, clip_on=False)
            line.set_transform(IdentityTransform())


Pixels = Callable[[float, float], tuple[float, float]]


def _middle(points: Sequence[Point], pixels: Pixels) -> Point:
    """Return the mark of an objective nearest to the middle of its marks, or of its means if it has any."""
    drawn = [point for point in points if not point.faint] or list(points)
    centre = pixels(
        *(sum(of) / len(drawn) for of in zip(*((point.x, point.y) for point in drawn), strict=True))
    )
    return min(drawn, key=lambda point: math.dist(pixels(point.x, point.y), centre))


def _reach(point: Point, pixels: Pixels) -> Box:
    """Return the box of a mark and its whiskers."""
    x, y = pixels(point.x, point.y)
    half = 3.0 if point.faint else 5.0
    right = max(half, pixels(point.x + (point.x_error or 0), point.y)[0] - x)
    up = max(half, pixels(point.x, point.y + (point.y_error or 0))[1] - y)
    return Box(x - right, y - up, x + right, y + up)


def _bars(curve: Curve, pixels: Pixels) -> Iterator[Box]:
    """Yield the boxes of a line's upright and level parts, such as intervals."""
    for (left, low), (right, high) in itertools.pairwise(itertools.starmap(pixels, curve.points)):
        if not curve.faint and (left == right or low == high):  # a label may lie on what is set back
            yield Box(min(left, right) - 1, min(low, high) - 1, max(left, right) + 1, max(low, high) + 1)


def _step(value: float, low: float, high: float) -> int:
    """Return the step of the colour scale for a value, limited to the ends of the scale."""
    share = (value - low) / (high - low) if high > low else 0.0
    return min(max(round(share * (HEAT_STEPS - 1)), 0), HEAT_STEPS - 1)


def _fill_map(axes: Axes, panel: Panel, marks: Mapping[str, palette.Mark], noted: Noted) -> None:
    """Draw the cells of a map with their tooltips, and the names or marks of its rows and columns."""
    from matplotlib.patches import Rectangle

    values = panel.map
    assert values is not None
    for top, (row, of_row) in enumerate(zip(values.index, values.to_numpy().tolist(), strict=True)):
        for left, (column, value) in enumerate(zip(values.columns, of_row, strict=True)):
            step = None if value != value else _step(value, panel.low, panel.high)
            said = "no number" if step is None else fixed(value, 3)
            name = " and ".join(filter(None, (str(row), str(column))))
            cell = Rectangle(
                (left, top),
                1,
                1,
                facecolor="none" if step is None else HEAT[step],
                edgecolor=RULE if step is None else PAPER,
                linewidth=0.7,
                clip_on=False,
                gid=noted("", f"{name}: {said}"),
            )
            axes.add_artist(cell)
            if len(values.columns) <= WRITTEN:
                ink = INK if step is None or step < HEAT_FLIP else PAPER
                text = "–" if step is None else short(value)
                axes.text(left + 0.5, top + 0.53, text, color=ink, ha="center", va="center")
    axes.set_xlim(0, len(values.columns))
    axes.set_ylim(len(values), 0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    _name_map(axes, panel, marks)


def short(value: float) -> str:
    """Return a number with two decimals and without the zero before the point.

    >>> short(0.934), short(1.0), short(-0.02)
    ('.93', '1', '−.02')
    """
    rounded = f"{abs(value):.2f}"
    if float(rounded) == 0:
        return "0"
    sign = MINUS if value < 0 else ""
    return sign + (rounded.removeprefix("0") if abs(value) < 0.995 else rounded.rstrip("0").rstrip("."))


def _name_map(axes: Axes, panel: Panel, marks: Mapping[str, palette.Mark]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    values = panel.map
    assert values is not None
    axes.tick_params(length=0, pad=3)
    off = -MAP_MARGINS["left"] / 2 / 72  # inches from the edge of the cells to the middle of a mark
    scale = axes.figure.dpi_scale_trans
    left = axes.get_yaxis_transform() + ScaledTranslation(off, 0, scale)
    below = axes.get_xaxis_transform() + ScaledTranslation(0, off, scale)
    for axis, names, slugs in (
        (axes.yaxis, list(values.index), panel.slugs[0]),
        (axes.xaxis, list(values.columns), panel.slugs[1]),
    ):
        places = range(0, len(names), -(-len(names) // TICKS) or 1)
        axis.set_ticks([place + 0.5 for place in places])
        axis.set_ticklabels([] if slugs else [str(names[place]) for place in places])
        upright = axis is axes.yaxis
        for place, slug in enumerate(slugs):
            icon = Line2D(
                [0] if upright else [place + 0.5],
                [place + 0.5] if upright else [0],
                transform=left if upright else below,
                linestyle="none",
                marker=_shape(marks[slug].shape),
                markersize=8 * _extent(marks[slug].shape),
                markerfacecolor=marks[slug].light,
                markeredgecolor=PAPER,
                markeredgewidth=0.5,
                clip_on=False,
            )
            axes.add_artist(icon)
            icon.set_clip_on(False)


def mark_icon(mark: palette.Mark) -> str:
    """Return the mark as a small inline SVG for tables, legends and running text."""
    size = 14
    path = mark.svg_path(size * 0.38, size / 2)
    return (
        f'<svg class="mark" viewBox="0 0 {size} {size}" width="{size}" height="{size}" aria-hidden="true">'
        f'<path d="{path}" style="fill: var({mark.variable}, {mark.light})"/></svg>'
    )


def mark_variables(marks: Mapping[str, palette.Mark], dark: bool) -> str:
    """Return the custom properties that give every mark its colour in one of the two themes."""
    ground = int(dark)
    colours = {"paper": palette.PAPER, "ink": palette.INK, "muted": palette.MUTED, "rule": palette.RULE}
    fixed_ones = {f"--{name}": pair[ground] for name, pair in colours.items()}
    fixed_ones |= {f"--heat-{step}": colour for step, colour in enumerate(palette.HEAT[ground])}
    of_marks = {mark.variable: mark.dark if dark else mark.light for mark in marks.values()}
    return " ".join(f"{name}: {value};" for name, value in {**fixed_ones, **of_marks}.items())
