"""Sorted estimates with their intervals, and below them a line of ticks for each way they were made.

The two parts share one horizontal axis, the place of an estimate among all. Each kind of stroke is one path
of the drawing, so that hundreds of estimates stay small.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

from penultimate.report.base import SortedEstimates
from penultimate.report.drawing.restyle import INK, MUTED, PAPER, RULE
from penultimate.report.text import fixed, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS, MEDIANS = 138.0, 38.0
"""The room for the words of strips at the left, and for medians at the right, in pixels."""
UPPER = 200.0
"""The height of the upper part with its label, in pixels."""
HEADING, LEVEL = 16.0, 13.0
"""The height of the line of a heading, and of a strip."""
FOOT = 8.0
TICK, LEAST = 0.72, 0.15
"""The length of a tick, as a share of a strip's height, and by how much it is widened at either side."""
Stroke: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""The x and the y of the ends of a line."""


def estimates_size(estimates: SortedEstimates, width: float = 420.0) -> tuple[float, float]:
    """Return the size of a panel of this width that has room for every strip."""
    choices = len({strip.choice for strip in estimates.strips})
    return width, UPPER + HEADING * choices + LEVEL * len(estimates.strips) + FOOT


def draw_estimates(axes: Axes, estimates: SortedEstimates, label: str, size: tuple[float, float]) -> None:
    """Draw the estimates into the upper part of the axes' figure, and the strips into the lower part."""
    width, height = size
    left, right = LABELS / width, 1 - MEDIANS / width
    lower = height - UPPER
    axes.set_position((left, (lower + 12) / height, right - left, (UPPER - 36) / height))
    _upper(axes, estimates, label)
    below = axes.figure.add_axes((0, 0, 1, lower / height))
    below.set_axis_off()
    below.set_xlim(0, width)
    below.set_ylim(lower, 0)
    _strips(below, estimates, width)


def _upper(axes: Axes, estimates: SortedEstimates, label: str) -> None:
    places = range(len(estimates.values))
    apart = [place for place in places if estimates.stands_out(place)]
    others = [place for place in places if not estimates.stands_out(place)]
    for chosen, colour, alpha in ((others, MUTED, 0.45), (apart, INK, 0.6)):
        spans = [((place, place), estimates.spans[place]) for place in chosen]
        axes.plot(*_joined(spans), color=colour, linewidth=0.5, alpha=alpha, solid_capstyle="butt", zorder=2)
    axes.axhline(estimates.zero, color=MUTED, linewidth=0.9, zorder=3)
    steps = [((place - 0.5, place + 0.5), (value, value)) for place, value in enumerate(estimates.values)]
    axes.plot(*_joined(steps), color=INK, linewidth=2.2, solid_capstyle="butt", zorder=4)
    if estimates.marked is not None:
        axes.plot(
            [estimates.marked],
            [estimates.values[estimates.marked]],
            marker="o",
            markersize=7,
            markerfacecolor=PAPER,
            markeredgecolor=INK,
            markeredgewidth=1.8,
            zorder=5,
        )
    axes.set_xlim(-1, max(len(estimates.values), 1))
    axes.set_xticks([])
    ends = [end for span in estimates.spans for end in span if math.isfinite(end)]
    low, high = min((*ends, *estimates.values), default=-1.0), max((*ends, *estimates.values), default=1.0)
    pad = 0.04 * (high - low) or 1.0
    axes.set_ylim(low - pad, high + pad)
    axes.annotate(
        plain(label), (0, 1), xycoords="axes fraction", xytext=(-LABELS + 2, 10), textcoords="offset points"
    )
    axes.annotate(
        "median",
        (1, 0),
        xycoords="axes fraction",
        xytext=(MEDIANS - 2, -10),
        textcoords="offset points",
        ha="right",
        va="center",
        color=MUTED,
        fontsize=9,
    )


def _strips(axes: Axes, estimates: SortedEstimates, width: float) -> None:
    """Draw every strip: its words at the left, its ticks, and the median of its estimates at the right."""
    room, count = width - LABELS - MEDIANS, len(estimates.values)
    scale = room / (count + 1)
    ticks: dict[bool, list[Stroke]] = {True: [], False: []}
    at = 0.0
    for choice, strips in itertools.groupby(estimates.strips, key=lambda strip: strip.choice):
        at += HEADING
        axes.text(2, at - 4, plain(choice), color=MUTED, fontsize=9, va="baseline")
        axes.plot([LABELS, width - MEDIANS], [at - 7, at - 7], color=RULE, linewidth=0.7, zorder=1)
        for strip in strips:
            middle = at + LEVEL / 2
            axes.text(10, middle + 3.4, plain(strip.level), color=INK, fontsize=9.5, va="baseline")
            for stands_out, first, last in _stretches(estimates, strip.places):
                x = LABELS + scale * (first + 0.5) - LEAST, LABELS + scale * (last + 1.5) + LEAST
                ticks[stands_out].append((x, (middle, middle)))
            own = fixed(median(estimates.values[place] for place in strip.places), 2)
            axes.text(width - 2, middle + 3.4, own, color=MUTED, fontsize=9.5, va="baseline", ha="right")
            at += LEVEL
    for stands_out, strokes in ticks.items():
        axes.plot(
            *_joined(strokes),
            color=INK if stands_out else MUTED,
            linewidth=TICK * LEVEL,
            solid_capstyle="butt",
            alpha=1 if stands_out else 0.55,
            zorder=2,
        )


def _stretches(estimates: SortedEstimates, places: Iterable[int]) -> list[tuple[bool, int, int]]:
    """Return the first and last place of each stretch of neighbours that stand out, or do not.

    >>> estimates = SortedEstimates((-0.9, -0.8, 0.1), ((-1, -0.5), (-1, -0.2), (-0.5, 0.6)), ())
    >>> _stretches(estimates, (0, 1, 2))
    [(True, 0, 1), (False, 2, 2)]
    """
    found: list[tuple[bool, int, int]] = []
    for place in sorted(places):
        stands_out = estimates.stands_out(place)
        if found and found[-1][0] == stands_out and found[-1][2] == place - 1:
            found[-1] = (stands_out, found[-1][1], place)
        else:
            found.append((stands_out, place, place))
    return found


def _joined(strokes: Iterable[Stroke]) -> tuple[list[float], list[float]]:
    """Return strokes as one broken line: their coordinates, with a gap after each."""
    x: list[float] = []
    y: list[float] = []
    for across, up in strokes:
        x += [*across, math.nan]
        y += [*up, math.nan]
    return x, y
