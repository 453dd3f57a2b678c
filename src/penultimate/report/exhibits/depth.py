"""Quantities over the layers of a network: a curve an objective, and the numbers behind it.

Rows have a layer: that of a block's output, or "penultimate". Layers stand in the order of the study's
description (`layers`), or of their names' numbers; the penultimate features come last. Where no row names
them, those of the features alone, which have no layer, stand in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from penultimate.report.exhibits.base import Column, Curve, ExhibitTable, Figure, Panel, StudyResults
from penultimate.report.exhibits.cells import run_cell, run_rows
from penultimate.report.exhibits.measurements import Measurements, Runs
from penultimate.report.exhibits.numbers import summarise
from penultimate.report.text import fixed, plain

PENULTIMATE = "Penultimate"
LONGEST_AXIS = 70
"""Characters of the names of layers below an axis; more, and it has numbers only."""


@dataclass(frozen=True)
class Quantity:
    """A metric of layers on a split, and how its numbers are shown."""

    metric: str
    split: str
    label: str
    unit: str = ""
    scale: float = 1.0
    digits: int = 3


def layers_of(results: StudyResults, measurements: Measurements, quantity: Quantity) -> dict[str, Runs]:
    """The measured layers, from the image to the penultimate features, each with its runs."""
    found: dict[str, Runs] = {}
    for row in results.table:
        if (
            (row.metric, row.split, row.target) == (quantity.metric, quantity.split, measurements.source)
            and row.layer is not None
            and row.objective is not None
            and row.seed is not None
            and row.epoch is None
            and row.status != "diverged"
            and measurements.shows(row)
        ):
            found.setdefault(row.layer, {}).setdefault(row.objective, {})[row.seed] = row.value
    last = found.pop(PENULTIMATE.lower(), None) or measurements.runs(quantity.metric, split=quantity.split)
    described = [str(name) for name in results.description.get("layers", ())]
    place = {name: index for index, name in enumerate(described)}
    order = sorted(found, key=lambda name: (place.get(name, len(place)), _natural(name)))
    layers = {name: dict(sorted(found[name].items())) for name in order}
    return {**layers, PENULTIMATE: last} if last else layers


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts block 2 before block 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def depth_panel(
    measurements: Measurements, layers: Mapping[str, Runs], quantity: Quantity, name: str, title: str
) -> Panel:
    """A line an objective over the layers: the means over runs."""
    return Panel(
        name,
        title,
        _axis(list(layers)),
        f"{quantity.label[0].upper()}{quantity.label[1:]}{', ' if quantity.unit else ''}{quantity.unit}",
        curves=tuple(
            Curve(points, objective.slug, f"{objective.label}: {said} at the end")
            for objective in measurements.compared
            if (points := _points(objective.spec, layers, quantity))
            and (said := f"{fixed(points[-1][1], quantity.digits)} {quantity.unit}".strip())
        ),
        labelled=False,
    )


def _axis(names: list[str]) -> str:
    said = f"Layer: {', '.join(f'{number} {plain(name)}' for number, name in enumerate(names, 1))}"
    if len(said) <= LONGEST_AXIS:
        return said
    return f"Layer, from the first block (1) to the last, {names[-1].lower()} ({len(names)})"


def _points(spec: str, layers: Mapping[str, Runs], quantity: Quantity) -> tuple[tuple[float, float], ...]:
    return tuple(
        (float(index), quantity.scale * summarise(list(runs[spec].values())).mean)
        for index, runs in enumerate(layers.values(), start=1)
        if spec in runs
    )


def depth_figure(panel: Panel, name: str, title: str, what: str) -> Figure:
    """The panel as a figure with the legend of objectives."""
    return Figure(name, title, f"{what} over the layers, a line an objective.", (panel,), legend=True)


def depth_table(
    measurements: Measurements,
    layers: Mapping[str, Runs],
    quantity: Quantity,
    name: str,
    title: str,
    group: str,
) -> ExhibitTable:
    """The means over runs, a column a layer."""
    key = "_percent" if quantity.unit == "%" else ""
    columns = tuple(Column(f"{layer}{key}", layer, group, quantity.unit) for layer in layers)
    shown = list(layers.values())
    cells = [
        lambda spec, runs=runs: run_cell(runs.get(spec), quantity.digits, scale=quantity.scale)
        for runs in shown
    ]
    return ExhibitTable(name, title, "Objective", columns, run_rows(measurements, cells, shown))


def spread(measurements: Measurements, runs: Runs, quantity: Quantity) -> tuple[float, float]:
    """The lowest and the highest of the compared objectives' means."""
    means = [
        quantity.scale * summarise(list(values.values())).mean
        for values in measurements.without(runs).values()
    ]
    return min(means), max(means)


def spread_sentence(measurements: Measurements, layers: Mapping[str, Runs], quantity: Quantity) -> str:
    """What the curves say: how far the objectives lie apart in the first layer, and in the last."""
    ends = [name for name in (next(iter(layers)), list(layers)[-1]) if measurements.without(layers[name])]
    parts = []
    for name in dict.fromkeys(ends):
        low, high = spread(measurements, layers[name], quantity)
        shown = f"{fixed(low, quantity.digits)} and {fixed(high, quantity.digits)} {quantity.unit}".strip()
        where = "the penultimate features" if name == PENULTIMATE else plain(name)
        parts.append(f"{shown} in {where}")
    return f"Ours, the lowest and the highest objective: {quantity.label} {', '.join(parts)}."
