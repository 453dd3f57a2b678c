"""Quantities over the layers of a network."""

from __future__ import annotations

import re
from collections.abc import Iterable

from penultimate.report.measurements import ByRun, Measurements
from penultimate.report.quantity import Quantity

PENULTIMATE = "Penultimate"


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
