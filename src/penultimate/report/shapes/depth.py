"""Quantities over the layers of a network: a curve per objective, and the numbers behind it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from penultimate.report.base import Curve, Figure, Missing, Panel, Point
from penultimate.report.measurements import ByRun, Measurements, Seed
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.asked import Asked, already
from penultimate.report.shapes.findings import ends
from penultimate.report.shapes.numbers import summarise
from penultimate.report.shapes.table import RunColumn, run_table
from penultimate.report.spec import Piece
from penultimate.report.text import fixed, plain

PENULTIMATE = "Penultimate"
LONGEST_AXIS = 70
"""The greatest number of characters of layer names on an axis; a longer axis has numbers only."""
SPLITS = {"train": "training images", "test": "test images"}


@dataclass(frozen=True)
class OverLayers:
    """A figure and a table of a quantity in every layer, from the first block to the penultimate features.

    The first measured quantity is shown. Its label, worded for a sentence, stands on the axis and in the
    finding, and its group above the table. The word {images} names its split in titles and captions.
    """

    name: str
    title: str
    figure_title: str
    description: str
    quantities: tuple[Quantity, ...]
    missing: str

    def build(self, measurements: Measurements) -> Piece:
        of_each = {quantity: layers_of(measurements, quantity) for quantity in self.quantities}
        measured = (quantity for quantity, layers in of_each.items() if len(layers) > 1)
        quantity = next(measured, self.quantities[-1])
        layers, words = of_each[quantity], {"images": SPLITS[quantity.split]}
        if len(layers) < 2:
            return Piece(missing=(Missing(self.missing),), words=words)
        key = "_percent" if quantity.unit == "%" else ""
        columns = [
            RunColumn(replace(quantity, label=layer, key=f"{layer}{key}"), runs)
            for layer, runs in layers.items()
        ]
        table = run_table(measurements, self.name, self.title.format(**measurements.words, **words), columns)
        panel = self._panel(measurements, quantity, layers)
        figure = Figure(self.name, self.figure_title, self.description, (panel,), legend=True)
        at_ends = (next(iter(layers)), list(layers)[-1])
        finding = ends(*(_in_layer(quantity, layer, layers[layer]) for layer in at_ends))
        return Piece((table,) if table else (), (figure,), (finding(measurements),), words=words)

    def _panel(self, measurements: Measurements, quantity: Quantity, layers: Mapping[str, ByRun]) -> Panel:
        curves, marks = [], []
        for objective in measurements.objectives:
            points = tuple(
                (float(place), _mean(quantity, runs[objective.spec]))
                for place, runs in enumerate(layers.values(), start=1)
                if objective.spec in runs
            )
            if points:
                end = f"{fixed(points[-1][1], quantity.digits)} {quantity.unit}".strip()
                curves.append(Curve(points, objective.slug, f"{objective.label}: {end} at the end"))
                marks.append(Point(*points[-1], objective.slug, objective.label))
        name, title = f"{self.name}-ours", f"{measurements.title}, {SPLITS[quantity.split]}"
        upwards = (
            f"{quantity.label[0].upper()}{quantity.label[1:]}{', ' if quantity.unit else ''}{quantity.unit}"
        )
        return Panel(name, title, _axis(list(layers)), upwards, tuple(marks), tuple(curves), labelled=False)


def _in_layer(quantity: Quantity, layer: str, runs: ByRun) -> Asked:
    """Return a quantity in one layer, worded for a sentence."""
    where = "the penultimate features" if layer == PENULTIMATE else plain(layer)
    return Asked(f"in {where} the {quantity.label}", quantity, read=already(runs))


def layers_of(measurements: Measurements, quantity: Quantity, target: str = "") -> dict[str, ByRun]:
    """Return the layers measured on a target (by default, on the source), each with its runs.

    They are in the study's order, with the penultimate features last. Layers that the study does not list
    follow in the order of the numbers in their names.
    """
    metric = quantity.metric_on(target or measurements.source)
    layers = measurements.layers(metric, target, quantity.split)
    penultimate = layers.pop(PENULTIMATE.lower(), {})
    ordered = {name: layers[name] for name in in_order(layers, measurements)}
    return {**ordered, PENULTIMATE: penultimate} if penultimate else ordered


def in_order(layers: Iterable[str], measurements: Measurements) -> list[str]:
    """Return layers in the study's order, then unlisted layers, and the penultimate features last."""
    listed = [str(name) for name in measurements.results.description.get("layers", ())]
    place = {name: index for index, name in enumerate(listed)}
    last = PENULTIMATE.lower()
    return sorted(layers, key=lambda name: (name == last, place.get(name, len(place)), _natural(name)))


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts block 2 before block 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _mean(quantity: Quantity, runs: Mapping[Seed, float]) -> float:
    return quantity.scale * summarise(list(runs.values())).mean


def numbered(layers: Iterable[str]) -> str:
    """Return the layers with the numbers that stand for them on axes and maps."""
    return ", ".join(f"{number} {plain(layer)}" for number, layer in enumerate(layers, 1))


def _axis(names: list[str]) -> str:
    axis = f"Layer: {numbered(names)}"
    if len(axis) <= LONGEST_AXIS:
        return axis
    return f"Layer, from the first block (1) to the last, {names[-1].lower()} ({len(names)})"
