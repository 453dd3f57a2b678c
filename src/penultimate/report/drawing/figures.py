"""Panels drawn as SVG by matplotlib: text stays text, the same input gives the same bytes.

Ink, rules and marks are drawn in reserved colours, which `restyle` turns into the page's custom properties
(so that one drawing serves paper and dark screen) or into concrete ones in a file of its own.
"""

from __future__ import annotations

import io
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penultimate.report.base import Bar, Curve, Panel, Point
from penultimate.report.drawing import palette, rasters
from penultimate.report.drawing.palette import SHAPES, Mark
from penultimate.report.drawing.placement import Box, place
from penultimate.report.drawing.restyle import HEAT, INK, MUTED, PAPER, RULE, Note, restyle
from penultimate.report.text import plain, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase

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
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "xtick.major.size": 3.5,
    "xtick.major.width": 0.8,
    "ytick.major.size": 0,
    "ytick.major.pad": 5,
    "text.color": INK,
    "text.parse_math": False,
}
MARGINS = {"left": 36.0, "right": 10.0, "top": 24.0, "bottom": 40.0}
LONGEST = 34
"""The greatest number of characters in a label inside a panel."""
LINE, DESCENT = 12.0, 2.8
"""The height of a label and of its part below the baseline, in pixels."""
SMALL = 260.0
"""Panels narrower than this have smaller marks and type."""


@dataclass(frozen=True)
class Drawing:
    """A panel as matplotlib drew it; `styled` prepares it for a page or for a separate file."""

    raw: str
    notes: tuple[Note, ...]
    description: str
    marks: Mapping[str, Mark]

    def styled(self, prefix: str, page: bool = True) -> str:
        """Return one `<svg>` element whose ids begin with `prefix`.

        If `page`, its colours are the custom properties of the page; otherwise it has fixed colours for a
        file.
        """
        return restyle(self.raw, self.notes, self.marks, prefix, self.description, page)


def draw_panel(panel: Panel, marks: Mapping[str, Mark]) -> Drawing:
    """Draw a panel, where `marks` gives every objective its colour and shape."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    width, height = panel.size
    small = width < SMALL
    defaults = {key: value for key, value in matplotlib.rcParamsDefault.items() if key != "backend"}
    sizes = {"font.size": 9.0, "xtick.labelsize": 9.0, "ytick.labelsize": 9.0} if small else {}
    with warnings.catch_warnings(), matplotlib.rc_context({**defaults, **SETTINGS, **sizes}):
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        canvas = Canvas(figsize=(width / 72, height / 72), dpi=72)
        renderer = FigureCanvasAgg(canvas).get_renderer()
        canvas.patch.set_visible(False)
        axes = canvas.add_axes(_frame(panel, width, height))
        axes.patch.set_visible(False)
        notes = _fill(axes, panel, marks, small)
        if panel.raster is None:
            _scales(axes, panel, small)
        bar = _bar(axes, panel.bar, renderer) if panel.bar else ()
        if panel.labelled:
            _label(axes, panel, renderer, bar)
        buffer = io.StringIO()
        canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    axes_words = " against ".join(label for label in (panel.y_label, panel.x_label) if label)
    description = ". ".join(words for words in (panel.title, axes_words, panel.finding) if words)
    return Drawing(buffer.getvalue(), tuple(notes), plain(description), marks)


def _frame(panel: Panel, width: float, height: float) -> tuple[float, float, float, float]:
    if panel.raster is not None:
        return rasters.frame(width, height)
    top = MARGINS["top"] if panel.y_label else 8.0
    bottom = MARGINS["bottom"] if panel.x_label else 22.0
    inner = width - MARGINS["left"] - MARGINS["right"], height - top - bottom
    return MARGINS["left"] / width, bottom / height, inner[0] / width, inner[1] / height


def _fill(axes: Axes, panel: Panel, marks: Mapping[str, Mark], small: bool) -> list[Note]:
    """Draw lines, whiskers, then marks, and return the meaning of each mark in drawing order."""
    from matplotlib.path import Path as Shape

    notes: list[Note] = []

    def noted(objective: str, text: str) -> str:
        notes.append(Note(objective, plain(text)))
        return f"note{len(notes) - 1}"

    if panel.raster is not None:
        rasters.fill_raster(axes, panel.raster, marks, noted)
    for curve in panel.curves:
        colour = MUTED if curve.faint else marks[curve.objective].light
        axes.plot(
            [x for x, _ in curve.points],
            [y for _, y in curve.points],
            color=colour,
            linewidth=0.8 if curve.faint else 1.6,
            alpha=0.4 if curve.faint else 1,
            linestyle=(0, (3, 2)) if curve.dashed else "-",
            solid_capstyle="round",
            zorder=1 if curve.faint else 2,
            gid=noted("" if curve.faint else curve.objective, curve.label),
        )
    for point in panel.points:
        mark = marks[point.objective]
        if point.x_error or point.y_error or point.y_span:
            low, high = point.y_span or (point.y, point.y)
            axes.errorbar(
                point.x,
                point.y,
                xerr=point.x_error or None,
                yerr=[[point.y - low], [high - point.y]] if point.y_span else point.y_error or None,
                color=mark.light,
                elinewidth=1,
                zorder=2,
            )
        shade = point.shade
        vertices, scale = SHAPES[mark.shape]
        size = (3.4 if point.faint else 5.0) if small else (3.6 if point.faint else 6.0)
        axes.plot(
            [point.x],
            [point.y],
            linestyle="none",
            marker=Shape([*vertices, vertices[0]], closed=True),
            markersize=2 * size * scale * max(abs(v) for vertex in vertices for v in vertex),
            markerfacecolor=mark.light if shade is None else HEAT[rasters.step_of(shade, 0, 1)],
            markeredgecolor=PAPER if shade is None else mark.light,
            markeredgewidth=0.7 if shade is None else 1.4,
            alpha=0.55 if point.faint else 1,
            zorder=3 if point.faint else 4,
            gid=noted(point.objective, f"{point.label}: {point.detail}" if point.detail else point.label),
        )
    return notes


def _scales(axes: Axes, panel: Panel, small: bool) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator

    for axis, limits, chosen, set_limits in (
        (axes.xaxis, axes.dataLim.intervalx, panel.x_limits, axes.set_xlim),
        (axes.yaxis, axes.dataLim.intervaly, panel.y_limits, axes.set_ylim),
    ):
        low, high = (float(limit) for limit in (chosen or limits))
        pad = 0.0 if chosen and low < high else 0.09 * (high - low) or 0.5 * (abs(high) or 1.0) * 0.1
        set_limits(low - pad, high + pad)
        axis.set_major_locator(MaxNLocator(4 if small else 6, steps=[1, 2, 5, 10]))
    if panel.x_log:
        low, high = (float(limit) for limit in (panel.x_limits or axes.dataLim.intervalx))
        axes.set_xscale("log")
        room = (high / low) ** 0.06 if low < high else 2.0
        axes.set_xlim(low / room, high * room)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(*_powers(low / room, high * room, small))
    if not panel.numbered:
        axes.yaxis.set_ticks([])
    axes.set_xlabel(plain(panel.x_label), loc="right" if small else "center", labelpad=3 if small else 6)
    axes.tick_params(axis="x", pad=3)
    if panel.y_label:
        offset = (-MARGINS["left"] + 2, 10 if small else 12)
        axes.annotate(
            plain(panel.y_label), (0, 1), xycoords="axes fraction", xytext=offset, textcoords="offset points"
        )


def _powers(low: float, high: float, small: bool) -> tuple[list[float], list[str]]:
    """Return the ticks of a logarithmic axis and their labels: 1, 2, 5, 10, ..., or powers of ten alone.

    >>> _powers(0.8, 24, small=False)
    ([1.0, 2.0, 5.0, 10.0, 20.0], ['1', '2', '5', '10', '20'])
    """
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades < (1.3 if small else 3.5) else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    ticks = [tick for tick in ticks if low <= tick <= high]
    return ticks, [f"{tick:,g}" if tick < 1 else f"{tick:,.0f}" for tick in ticks]


def _bar(axes: Axes, bar: Bar, renderer: RendererBase) -> tuple[Box, ...]:
    """Draw a vertical scale bar at the lower left, where no mark lies, and return its box."""
    low, high = axes.get_ylim()
    foot = low + 0.03 * (high - low)
    beside = axes.get_yaxis_transform()
    axes.plot(
        [0.02, 0.02],
        [foot, foot + bar.length],
        color=INK,
        linewidth=2.2,
        solid_capstyle="butt",
        transform=beside,
        zorder=5,
        scalex=False,
        scaley=False,
    )
    text = axes.annotate(
        bar.label,
        (0.02, foot + bar.length),
        xycoords=beside,
        xytext=(0, 4),
        textcoords="offset points",
        rotation=90,
        ha="center",
        va="bottom",
        fontsize=8.5,
        color=MUTED,
    )
    drawn = text.get_window_extent(renderer)
    bottom = float(axes.transData.transform((0, foot))[1])
    return (Box(float(drawn.x0), bottom, float(drawn.x1), float(drawn.y1)),)


def _label(axes: Axes, panel: Panel, renderer: RendererBase, taken: Sequence[Box] = ()) -> None:
    """Label every objective once, beside the run (or mean) nearest to the middle of its marks."""
    from matplotlib.transforms import IdentityTransform

    def pixels(x: float, y: float) -> tuple[float, float]:
        across, up = axes.transData.transform((x, y))
        return float(across), float(up)

    named = list(dict.fromkeys(point.label for point in panel.points))
    chosen = [_middle([point for point in panel.points if point.label == label], pixels) for label in named]
    texts = [axes.text(0, 0, shortened(point.label, LONGEST), fontsize=10) for point in chosen]
    sizes = [(float(text.get_window_extent(renderer).width), LINE) for text in texts]
    anchors = [pixels(point.x, point.y) for point in chosen]
    obstacles = [(_reach(point, pixels), named.index(point.label)) for point in panel.points]
    obstacles += [(box, -1) for box in taken]
    owner = {point.objective: named.index(point.label) for point in panel.points}
    for curve in panel.curves:
        obstacles += [(box, owner.get(curve.objective, -1)) for box in _bars(curve, pixels)]
    bounds = axes.get_window_extent(renderer)
    frame = Box(bounds.x0, bounds.y0 + 3, bounds.x1 + MARGINS["right"], bounds.y1 + 4)
    for text, placed in zip(texts, place(anchors, sizes, obstacles, frame), strict=True):
        text.set_transform(IdentityTransform())
        text.set_position((placed.box.left, placed.box.bottom + DESCENT))
        if placed.leader is not None:
            (line,) = axes.plot(
                placed.leader[::2], placed.leader[1::2], color=MUTED, linewidth=0.6, zorder=1.5, clip_on=False
            )
            line.set_transform(IdentityTransform())


def _middle(points: Sequence[Point], pixels: Callable[[float, float], tuple[float, float]]) -> Point:
    """Return the mark of an objective nearest to the middle of its marks (or of its means, if it has any)."""
    drawn = [point for point in points if not point.faint] or list(points)
    centre = pixels(
        sum(point.x for point in drawn) / len(drawn),
        sum(point.y for point in drawn) / len(drawn),
    )
    return min(drawn, key=lambda point: math.dist(pixels(point.x, point.y), centre))


def _reach(point: Point, pixels: Callable[[float, float], tuple[float, float]]) -> Box:
    """Return the box of a mark and its whiskers."""
    x, y = pixels(point.x, point.y)
    half = 3.0 if point.faint else 5.0
    reach_x = max(half, pixels(point.x + (point.x_error or 0), point.y)[0] - x)
    reach_y = max(half, pixels(point.x, point.y + (point.y_error or 0))[1] - y)
    return Box(x - reach_x, y - reach_y, x + reach_x, y + reach_y)


def _bars(curve: Curve, pixels: Callable[[float, float], tuple[float, float]]) -> Iterator[Box]:
    """Yield the boxes of a line's upright and level parts, such as intervals."""
    if curve.faint:
        return  # a label may lie on what is set back
    for (left, low), (right, high) in itertools.pairwise(itertools.starmap(pixels, curve.points)):
        if left == right or low == high:
            yield Box(min(left, right) - 1, min(low, high) - 1, max(left, right) + 1, max(low, high) + 1)


def mark_icon(mark: Mark) -> str:
    """Return the mark as a small inline SVG for tables, legends and running text."""
    size = 14
    path = mark.svg_path(size * 0.38, size / 2)
    return (
        f'<svg class="mark" viewBox="0 0 {size} {size}" width="{size}" height="{size}" aria-hidden="true">'
        f'<path d="{path}" style="fill: var({mark.variable}, {mark.light})"/></svg>'
    )


def mark_variables(marks: Mapping[str, Mark], dark: bool) -> str:
    """Return the custom properties that give every mark its colour in one of the two themes."""
    ground = int(dark)
    fixed = {
        "--paper": palette.PAPER[ground],
        "--ink": palette.INK[ground],
        "--muted": palette.MUTED[ground],
        "--rule": palette.RULE[ground],
    }
    fixed |= {f"--heat-{step}": colour for step, colour in enumerate(palette.HEAT[ground])}
    of_marks = {mark.variable: mark.dark if dark else mark.light for mark in marks.values()}
    return " ".join(f"{name}: {value};" for name, value in {**fixed, **of_marks}.items())
