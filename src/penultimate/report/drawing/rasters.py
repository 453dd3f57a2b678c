"""A map of numbers as coloured cells: low numbers are close to the background, high ones to the ink.

The steps of the scale are reserved colours, and the page has a custom property for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from penultimate.report.base import Raster
from penultimate.report.drawing.palette import HEAT_FLIP, HEAT_STEPS, SHAPES, Mark
from penultimate.report.drawing.restyle import HEAT, INK, PAPER, RULE
from penultimate.report.text import MINUS, fixed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WRITTEN = 6
"""The greatest number of columns with which the numbers are written into the cells."""
TICKS = 12
"""The greatest number of rows or columns with which each has its label."""
LEFT, RIGHT, TOP, BOTTOM = 19.0, 5.0, 5.0, 19.0
"""The margins around the cells, for labels of one or two characters or marks."""


def raster_size(rows: int, columns: int, width: float = 210.0) -> tuple[float, float]:
    """Return the size of a panel of this width whose cells are squares.

    >>> raster_size(5, 5)
    (210.0, 210.0)
    """
    cell = (width - LEFT - RIGHT) / columns
    return width, round(cell * rows + TOP + BOTTOM, 1)


def frame(width: float, height: float) -> tuple[float, float, float, float]:
    """Return the frame of the cells in a panel, as shares of its size."""
    inner = width - LEFT - RIGHT, height - TOP - BOTTOM
    return LEFT / width, BOTTOM / height, inner[0] / width, inner[1] / height


def step_of(value: float, low: float, high: float) -> int:
    """Return the step of the colour scale for a value, limited to the ends of the scale.

    >>> step_of(0.5, 0, 1), step_of(-0.02, 0, 1), step_of(1, 0, 1)
    (10, 0, 20)
    """
    share = (value - low) / (high - low) if high > low else 0.0
    return min(max(round(share * (HEAT_STEPS - 1)), 0), HEAT_STEPS - 1)


def fill_raster(
    axes: Axes, raster: Raster, marks: Mapping[str, Mark], noted: Callable[[str, str], str]
) -> None:
    """Draw the cells with their tooltips, and the names of rows and columns."""
    from matplotlib.patches import Rectangle

    written = len(raster.columns) <= WRITTEN
    for top, (row, values) in enumerate(zip(raster.rows, raster.values, strict=True)):
        for left, (column, value) in enumerate(zip(raster.columns, values, strict=True)):
            step = None if value is None else step_of(value, raster.low, raster.high)
            said = "no number" if value is None else fixed(value, 3)
            cell = Rectangle(
                (left, top),
                1,
                1,
                facecolor="none" if step is None else HEAT[step],
                edgecolor=RULE if step is None else PAPER,
                linewidth=0.7,
                clip_on=False,
                gid=noted("", f"{cell_name(row, column)}: {said}"),
            )
            axes.add_patch(cell)
            if written:
                ink = INK if step is None or step < HEAT_FLIP else PAPER
                text = "–" if value is None else short(value)
                axes.text(left + 0.5, top + 0.53, text, color=ink, ha="center", va="center")
    axes.set_xlim(0, len(raster.columns))
    axes.set_ylim(len(raster.rows), 0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    _name(axes, raster, marks)


def cell_name(row: str, column: str) -> str:
    """Return the name of a cell.

    >>> cell_name("softmax", "sigmoid"), cell_name("CKA", "")
    ('softmax and sigmoid', 'CKA')
    """
    return " and ".join(name for name in (row, column) if name)


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


def _name(axes: Axes, raster: Raster, marks: Mapping[str, Mark]) -> None:
    from matplotlib.transforms import ScaledTranslation

    axes.tick_params(length=0, pad=3)
    off = -LEFT / 2 / 72  # inches from the edge of the cells to the middle of a mark
    left = axes.get_yaxis_transform() + ScaledTranslation(off, 0, axes.figure.dpi_scale_trans)
    below = axes.get_xaxis_transform() + ScaledTranslation(0, off, axes.figure.dpi_scale_trans)
    for axis, names, slugs in (
        (axes.yaxis, raster.rows, raster.row_marks),
        (axes.xaxis, raster.columns, raster.column_marks),
    ):
        every = -(-len(names) // TICKS)
        places = range(0, len(names), every)
        axis.set_ticks([place + 0.5 for place in places])
        axis.set_ticklabels([] if slugs else [names[place] for place in places])
        for place, slug in enumerate(slugs):
            upright = axis is axes.yaxis
            vertices, scale = SHAPES[marks[slug].shape]
            axes.plot(
                [0] if upright else [place + 0.5],
                [place + 0.5] if upright else [0],
                transform=left if upright else below,
                linestyle="none",
                marker=[(x, y) for x, y in vertices],
                markersize=8 * scale * max(abs(v) for vertex in vertices for v in vertex),
                markerfacecolor=marks[slug].light,
                markeredgecolor=PAPER,
                markeredgewidth=0.5,
                clip_on=False,
            )
