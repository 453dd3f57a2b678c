"""Panels as SVG by matplotlib, for a page or a file of their own.

Ink, rules and cells are drawn in reserved colours, which `styled` turns into the page's custom properties (so
that one drawing serves paper and dark screen) or into concrete ones. Text stays text, marks have tooltips,
and the same input gives the same bytes.
"""

from __future__ import annotations

import functools
import io
import math
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree import ElementTree

from penultimate.results import palette, placement
from penultimate.results.figure import FEWEST_SMALL, MAP_MARGINS
from penultimate.results.palette import HEAT_FLIP, HEAT_STEPS, SHAPES, Mark
from penultimate.results.placement import Box
from penultimate.results.text import fixed, plain, short, shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase

    from penultimate.results.figure import Panel, Point

    Titled: TypeAlias = Callable[[str, Sequence[str]], str]

WRITTEN, TICKS = 6, 12
"""The most columns of a map whose numbers are written in its cells, and whose rows are all labelled."""
MARGINS = {"left": 36.0, "right": 10.0, "top": 24.0, "bottom": 40.0}
LONGEST, LINE, DESCENT = 34, 12.0, 2.8
"""The most characters of a label inside a panel, its height, and its part below the baseline, in pixels."""
INK, MUTED, RULE, PAPER = "#010101", "#020202", "#030303", "#040404"
HEAT = tuple(f"#0505{step:02x}" for step in range(HEAT_STEPS))
"""Colours that stand for the page's colours in a drawing; no mark has them."""
ON_PAGE = {INK: "currentColor", MUTED: "var(--muted)", RULE: "var(--rule)", PAPER: "var(--paper)"}
ON_PAGE |= {reserved: f"var(--heat-{step})" for step, reserved in enumerate(HEAT)}
GROUNDS = (palette.INK, palette.MUTED, palette.RULE, palette.PAPER, *zip(*palette.HEAT, strict=True))
IN_FILE = dict(zip(ON_PAGE, (light for light, _ in GROUNDS), strict=True))
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
SMALLER = {"font.size": 9.0, "xtick.labelsize": 9.0, "ytick.labelsize": 9.0}
SVG = "http://www.w3.org/2000/svg"
FONT, COLOUR = re.compile(r"font-family: [^;]*;?\s*"), re.compile(r"#[0-9a-f]{6}\b")
LONG_NUMBER, UNTURNED = re.compile(r"-?\d+\.\d{3,}"), re.compile(r"rotate[(]-?0 [^)]*[)]")
XLINK = "{http://www.w3.org/1999/xlink}href"
GROUP, DEFINITIONS, TITLE, PATH, USE, TEXT, METADATA, STYLE = (
    f"{{{SVG}}}{name}" for name in ("g", "defs", "title", "path", "use", "text", "metadata", "style")
)
ElementTree.register_namespace("svg", SVG)


@dataclass(frozen=True)
class Drawing:
    """A panel as matplotlib drew it; `titles` are the slug and the tooltips of groups of marks, by id."""

    raw: str
    titles: Mapping[str, tuple[str, Sequence[str]]]
    description: str
    marks: Mapping[str, Mark]

    def styled(self, prefix: str, page: bool = True) -> str:
        """Return one `<svg>` element with a prefix of its ids, in the page's colours or in fixed ones."""
        root = ElementTree.fromstring(self.raw)
        for group in root.iter(GROUP):
            slug, titles = self.titles.get(group.get("id", ""), ("", ()))
            shapes = [shape for shape in group.iter() if shape.tag in (USE, PATH) and "style" in shape.attrib]
            for shape, text in zip(shapes, titles, strict=False):
                ElementTree.SubElement(shape, TITLE).text = text
            if slug and page:
                group.set("data-mark", self.marks[slug].key)
        colours = dict(ON_PAGE if page else IN_FILE)
        if page:
            colours |= {mark.light: f"var({mark.variable}, {mark.light})" for mark in self.marks.values()}
        links = (element.get(key, "") for element in root.iter() for key in (XLINK, "clip-path"))
        _tidy(root, prefix, colours, {found for link in links for found in re.findall(r"#([^)]+)", link)})
        for size in ("width", "height"):
            del root.attrib[size]
        style = "stroke-linejoin: round; stroke-linecap: butt"
        root.attrib |= {"role": "img", "aria-label": self.description, "style": style}
        root.attrib |= {} if page else {"font-family": "sans-serif"}
        text = ElementTree.tostring(root, encoding="unicode")
        return re.sub(r"<(/?)svg:", r"<\1", text.replace("xmlns:svg=", "xmlns="))


def _tidy(
    element: ElementTree.Element, prefix: str, colours: Mapping[str, str], referred: Collection[str]
) -> None:
    """Restyle an element and all in it: ids with a prefix, the page's colours, no idle groups and blanks."""
    found = element.attrib
    if found.get("id") in referred:
        found["id"] = f"{prefix}-{found['id']}"
    else:
        found.pop("id", None)
    if XLINK in found:
        found["href"] = f"#{prefix}-{found.pop(XLINK).removeprefix('#')}"
    if "clip-path" in found:
        found["clip-path"] = found["clip-path"].replace("#", f"#{prefix}-")
    if UNTURNED.fullmatch(found.get("transform", "")):
        del found["transform"]
    for key in {"d", "x", "y", "transform"} & found.keys():
        found[key] = LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", found[key])
    if "style" in found:
        style = FONT.sub("", found["style"])
        found["style"] = COLOUR.sub(lambda colour: colours.get(colour[0], colour[0]), style)
    children: list[ElementTree.Element] = []
    for child in element:
        if child.tag not in (METADATA, STYLE):
            _tidy(child, prefix, colours, referred)
            is_idle = child.tag == DEFINITIONS and not len(child)
            children += [*child] if child.tag == GROUP and not child.attrib else [] if is_idle else [child]
    element[:] = children
    if element.tag not in (TEXT, TITLE):
        element.text = None
        for child in children:
            child.tail = None


def draw(panel: Panel, marks: Mapping[str, Mark]) -> Drawing:
    """Draw a panel, where `marks` gives every objective its colour and shape."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width, height = panel.size
    small = width < FEWEST_SMALL
    defaults = {key: value for key, value in matplotlib.rcParamsDefault.items() if key != "backend"}
    titles: dict[str, tuple[str, Sequence[str]]] = {}

    def titled(slug: str, texts: Sequence[str]) -> str:
        name = f"note{len(titles)}"
        titles[name] = slug, [plain(text) for text in texts]
        return name

    with warnings.catch_warnings(), matplotlib.rc_context(defaults | SETTINGS | (SMALLER if small else {})):
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        canvas = Figure(figsize=(width / 72, height / 72), dpi=72)
        renderer = FigureCanvasAgg(canvas).get_renderer()
        axes = canvas.add_axes(_frame(panel))
        if panel.map is not None:
            _fill_map(axes, panel, panel.map, marks, titled)
        else:
            _fill(axes, panel, marks, small, titled)
            _scale(axes, panel, small)
            if panel.labelled:
                _label(axes, panel, renderer)
        file = io.StringIO()
        canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    about = " against ".join(filter(None, (panel.y_label, panel.x_label)))
    description = ". ".join(filter(None, (panel.title, about, panel.finding)))
    return Drawing(file.getvalue(), titles, plain(description), marks)


def _frame(panel: Panel) -> tuple[float, float, float, float]:
    """Return the frame of the axes in a panel, as shares of its size."""
    (width, height), margins = panel.size, MARGINS if panel.map is None else MAP_MARGINS
    left, right, top, bottom = margins.values()
    if panel.map is None:
        top, bottom = top if panel.y_label else 8.0, bottom if panel.x_label else 22.0
    return left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height


def _fill(axes: Axes, panel: Panel, marks: Mapping[str, Mark], small: bool, titled: Titled) -> None:
    """Draw lines, whiskers, then marks: all runs of an objective together, and all its means."""
    from matplotlib.collections import LineCollection, PathCollection
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
            gid=titled("" if curve.faint else curve.slug, [curve.label]),
        )
        axes.add_artist(line)
    groups: dict[tuple[str, bool], list[Point]] = {}
    for point in panel.points:
        groups.setdefault((point.slug, point.faint), []).append(point)
    ends = [end for curve in panel.curves for end in curve.points]
    for (slug, faint), points in groups.items():
        mark, places = marks[slug], [(point.x, point.y) for point in points]
        whiskers = [whisker for point in points for whisker in _whiskers(point)]
        axes.add_artist(LineCollection(whiskers, colors=mark.light, linewidths=1, zorder=2))
        ends += [*places, *(end for whisker in whiskers for end in whisker)]
        radius = (3.4 if faint else 5.0) if small else (3.6 if faint else 6.0)
        shades = [point.shade for point in points]
        drawn = PathCollection(
            [_shape(mark.shape, radius)],
            (1,),
            offsets=places,
            offset_transform=axes.transData,
            facecolors=[mark.light if shade is None else HEAT[_step(shade, 0, 1)] for shade in shades],
            edgecolors=[PAPER if shade is None else mark.light for shade in shades],
            linewidths=[0.7 if shade is None else 1.4 for shade in shades],
            alpha=0.55 if faint else 1,
            zorder=3 if faint else 4,
            gid=titled(slug, [": ".join(filter(None, (point.label, point.detail))) for point in points]),
        )
        drawn.set_transform(axes.figure.dpi_scale_trans.frozen().scale(1 / 72))
        axes.add_artist(drawn).set_clip_on(bool(panel.x_limits or panel.y_limits))
    # Artists that are added one by one do not tell the axes their limits, which takes long for many.
    axes.update_datalim(ends)


def _whiskers(point: Point) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Yield the two ends of each whisker of a mark."""
    if point.x_error:
        yield (point.x - point.x_error, point.y), (point.x + point.x_error, point.y)
    if point.y_span or point.y_error:
        error = point.y_error or 0.0
        low, high = point.y_span or (point.y - error, point.y + error)
        yield (point.x, low), (point.x, high)


@functools.cache
def _shape(name: str, radius: float) -> Any:
    """Return a shape in pixels."""
    from matplotlib.path import Path

    vertices, scale = SHAPES[name]
    points = [(radius * scale * x, radius * scale * y) for x, y in (*vertices, vertices[0])]
    return Path(points, closed=True)


def _scale(axes: Axes, panel: Panel, small: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    for axis, limits, chosen, set_limits in (
        (axes.xaxis, axes.dataLim.intervalx, panel.x_limits, axes.set_xlim),
        (axes.yaxis, axes.dataLim.intervaly, panel.y_limits, axes.set_ylim),
    ):
        low, high = (float(limit) for limit in (chosen or limits))
        if axis is axes.xaxis and panel.x_log:
            room = (high / low) ** 0.06 if low < high else 2.0
            axes.set_xscale("log")
            set_limits(low / room, high * room)
            is_narrow = math.log10(high / low) < (1.3 if small else 3.5)
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if is_narrow else (1,), numticks=99))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axis.set_minor_locator(NullLocator())
        else:
            pad = 0.0 if chosen and low < high else 0.09 * (high - low) or 0.05 * (abs(high) or 1.0)
            set_limits(low - pad, high + pad)
            axis.set_major_locator(MaxNLocator(4 if small else 6, steps=[1, 2, 5, 10]))
    if not panel.numbered:
        axes.set_yticks([])
    axes.set_xlabel(plain(panel.x_label), loc="right" if small else "center", labelpad=3 if small else 6)
    axes.tick_params(axis="x", pad=3)
    if panel.y_label:
        offset = (-MARGINS["left"] + 2, 10 if small else 12)
        axes.annotate(plain(panel.y_label), (0, 1), offset, "axes fraction", "offset points")


def _label(axes: Axes, panel: Panel, renderer: RendererBase) -> None:
    """Label every objective once, beside the run (or mean) nearest to the middle of its marks."""
    from matplotlib.transforms import IdentityTransform

    def pixels(x: float, y: float) -> tuple[float, float]:
        across, up = axes.transData.transform((x, y))
        return float(across), float(up)

    drawn: dict[str, list[Point]] = {}
    for point in panel.points:
        drawn.setdefault(point.label, []).append(point)
    named, anchors = [*drawn], []
    for points in drawn.values():
        places = [pixels(point.x, point.y) for point in points if not point.faint]
        places = places or [pixels(point.x, point.y) for point in points]
        centre = tuple(sum(of) / len(places) for of in zip(*places, strict=True))
        anchors.append(min(places, key=lambda place: math.dist(place, centre)))
    texts = [axes.text(0, 0, shortened(label, LONGEST), fontsize=10) for label in named]
    sizes = [(float(text.get_window_extent(renderer).width), LINE) for text in texts]
    obstacles = []
    for point in panel.points:
        (x, y), half = pixels(point.x, point.y), 3.0 if point.faint else 5.0
        across, up = pixels(point.x + (point.x_error or 0), point.y + (point.y_error or 0))
        right, above = max(half, across - x), max(half, up - y)
        obstacles.append((Box(x - right, y - above, x + right, y + above), named.index(point.label)))
    for curve in panel.curves:  # a label may lie on what is set back
        owner = next((named.index(point.label) for point in panel.points if point.slug == curve.slug), -1)
        ends = [pixels(*end) for end in curve.points if not curve.faint]
        obstacles += [(Box(x - 1, y - 1, x + 1, y + 1), owner) for x, y in ends]
    bounds = axes.get_window_extent(renderer)
    frame = Box(bounds.x0, bounds.y0 + 3, bounds.x1 + MARGINS["right"], bounds.y1 + 4)
    for text, placed in zip(texts, placement.place(anchors, sizes, obstacles, frame), strict=True):
        text.set_transform(IdentityTransform())
        text.set_position((placed.box.left, placed.box.bottom + DESCENT))
        if placed.leader is not None:
            (line,) = axes.plot(
                placed.leader[::2], placed.leader[1::2], color=MUTED, linewidth=0.6, zorder=1.5, clip_on=False
            )
            line.set_transform(IdentityTransform())


def _step(value: float, low: float, high: float) -> int:
    """Return the step of the colour scale for a value, limited to the ends of the scale."""
    share = (value - low) / (high - low) if high > low else 0.0
    return min(max(round(share * (HEAT_STEPS - 1)), 0), HEAT_STEPS - 1)


def _fill_map(
    axes: Axes, panel: Panel, values: pd.DataFrame, marks: Mapping[str, Mark], titled: Titled
) -> None:
    """Draw the cells of a map with their tooltips, and the names or marks of its rows and columns."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path

    rows, columns = values.shape
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=3)
    side = (panel.size[0] - MAP_MARGINS["left"] - MAP_MARGINS["right"]) / max(columns, 1)
    corners, steps, texts = [], list[int | None](), []
    for top, (row, of_row) in enumerate(zip(values.index, values.to_numpy().tolist(), strict=True)):
        for left, (column, value) in enumerate(zip(values.columns, of_row, strict=True)):
            steps.append(None if value != value else _step(value, panel.low, panel.high))
            said = "no number" if value != value else fixed(value, 3)
            texts.append(f"{' and '.join(filter(None, (str(row), str(column))))}: {said}")
            corners.append((left, top + 1))
            if columns <= WRITTEN:
                ink = INK if steps[-1] is None or steps[-1] < HEAT_FLIP else PAPER
                shown = "–" if value != value else short(value)
                axes.text(left + 0.5, top + 0.53, shown, color=ink, ha="center", va="center")
    pixels = axes.figure.dpi_scale_trans.frozen().scale(1 / 72)

    def add(shapes: list[Path], offsets: Sequence[Any], **style: Any) -> None:
        drawn = PathCollection(shapes, (1,), offsets=offsets, offset_transform=axes.transData, **style)
        drawn.set_transform(pixels)
        axes.add_artist(drawn).set_clip_on(False)

    add(
        [Path([(0, 0), (side, 0), (side, side), (0, side), (0, 0)], closed=True)],
        corners,
        facecolors=["none" if step is None else HEAT[step] for step in steps],
        edgecolors=[RULE if step is None else PAPER for step in steps],
        linewidths=0.7,
        gid=titled("", texts),
    )
    off = MAP_MARGINS["left"] / 2 / side  # from the edge of the cells to the middle of a mark
    for axis, names, slugs in zip(
        (axes.yaxis, axes.xaxis), (values.index, values.columns), panel.slugs, strict=True
    ):
        places = [] if slugs else range(0, len(names), -(-len(names) // TICKS) or 1)
        axis.set_ticks([place + 0.5 for place in places], labels=[str(names[place]) for place in places])
        if slugs:
            at = [
                (-off, place + 0.5) if axis is axes.yaxis else (place + 0.5, rows + off)
                for place in range(len(slugs))
            ]
            shapes = [_shape(marks[slug].shape, 4.0) for slug in slugs]
            add(
                shapes, at, facecolors=[marks[slug].light for slug in slugs], edgecolors=PAPER, linewidths=0.5
            )


def mark_icon(mark: Mark) -> str:
    """Return the mark as a small inline SVG for tables, legends and running text."""
    size = 14
    path = mark.svg_path(size * 0.38, size / 2)
    return (
        f'<svg class="mark" data-mark="{mark.key}" viewBox="0 0 {size} {size}" width="{size}" height="{size}"'
        f' aria-hidden="true"><path d="{path}" style="fill: var({mark.variable}, {mark.light})"/></svg>'
    )


def mark_variables(marks: Mapping[str, Mark], dark: bool) -> str:
    """Return the custom properties that give every mark its colour in one of the two themes."""
    names = ("ink", "muted", "rule", "paper", *(f"heat-{step}" for step in range(HEAT_STEPS)))
    colours = {f"--{name}": pair[dark] for name, pair in zip(names, GROUNDS, strict=True)}
    colours |= {mark.variable: mark.dark if dark else mark.light for mark in marks.values()}
    return " ".join(f"{name}: {value};" for name, value in colours.items())
