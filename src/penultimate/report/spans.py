"""Scale bars and a sentence for our panels beside the paper's if their scales differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from penultimate.report.base import Bar, Figure, Panel
from penultimate.report.text import fixed

ALIKE = 1.5
"""Spans that differ by less than this factor can be compared by eye."""
LONGEST = 0.5
"""The greatest share of the smallest span that the bar may take; its length is a round number."""


def with_bars(figures: Sequence[Figure]) -> tuple[tuple[Figure, ...], str]:
    """Return the figures with a bar of one length in each panel, and a sentence on it (may be empty).

    A bar is drawn if a panel of ours and one of the paper's have the same vertical unit, and the spans of
    their marks differ by the factor ALIKE or more.
    """
    panels = [panel for figure in figures for panel in figure.panels]
    spans = {panel.name: span for panel in panels if (span := _span(panel)) > 0}
    ours, theirs = (
        [spans[panel.name] for panel in panels if panel.source == source and panel.name in spans]
        for source in ("ours", "published")
    )
    units = {_unit(panel) for panel in panels if panel.name in spans}
    if not ours or not theirs or len(units) != 1:
        return tuple(figures), ""
    every = (*ours, *theirs)
    if max(every) < ALIKE * min(every):
        return tuple(figures), ""
    (unit,) = units
    length = _round_below(LONGEST * min(every))
    bar = Bar(length, _in_words(length, unit))
    said = (
        f"The panels' scales differ: ours {_reach(ours, unit)} upwards, and the paper's"
        f" {_reach(theirs, unit)}. The bar at the left is {bar.label} long in each."
    )
    return tuple(_with(figure, bar, spans) for figure in figures), said


def _with(figure: Figure, bar: Bar, spans: Iterable[str]) -> Figure:
    panels = (replace(panel, bar=bar) if panel.name in spans else panel for panel in figure.panels)
    return replace(figure, panels=tuple(panels))


def _span(panel: Panel) -> float:
    """Return the vertical span of a panel's marks; 0 for a map, and if numbers are not comparable."""
    if panel.raster is not None or not panel.numbered:
        return 0.0
    values = [point.y for point in panel.points]
    values += [y for curve in panel.curves for _, y in curve.points]
    finite = [value for value in values if math.isfinite(value)]
    return max(finite) - min(finite) if finite else 0.0


def _unit(panel: Panel) -> str:
    """Return the vertical unit: per cent, or the quantity itself, which no other axis shares."""
    return panel.y_unit or ("%" if panel.y_label.rstrip().endswith("%") else panel.y_label)


def _round_below(value: float) -> float:
    """Return the largest of ..., 0.5, 1, 2, 5, 10, ... that is not above a value.

    >>> [_round_below(value) for value in (1.05, 0.3, 14)]
    [1.0, 0.2, 10.0]
    """
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (5.0, 2.0, 1.0) if step * power <= value * (1 + 1e-9))


def _in_words(length: float, unit: str) -> str:
    if unit != "%":
        return f"{length:g}"
    return "1 point" if length == 1 else f"{length:g} points"


def _reach(spans: Sequence[float], unit: str) -> str:
    """Put the spans of panels into words: "span 2.1 points", or "span 1.1 to 5.8 points"."""
    low, high = (fixed(value, 1) if unit == "%" else f"{value:.2g}" for value in (min(spans), max(spans)))
    points = " points" if unit == "%" else ""
    return f"span {low} to {high}{points}" if low != high else f"span {low}{points}"
