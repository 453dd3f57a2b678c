"""What each network's accuracy costs: a table and a scatter plot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from penultimate.evaluation.exhibits import shows
from penultimate.evaluation.standings import boards
from penultimate.evaluation.warnings import of_networks
from penultimate.results.exhibit import Part
from penultimate.results.figure import Figure, Panel, Point
from penultimate.results.rows import Run
from penultimate.results.table import Cell, Column, Mark, table_of_cells
from penultimate.results.text import counted, fixed, percent

BYTES = 4
"""Bytes of a number of the features that are kept."""


@shows("cost", "What the accuracy costs", section="cost")
def cost(run: Run) -> Iterator[Part]:
    """Parameters, multiply-adds and bytes of features of each network (and, with --speed, images a second),
    beside the accuracy of the linear probe; bold: on the front of accuracy against multiply-adds."""
    adds, parameters, width = (of_networks(run, name) for name in ("multiply_adds", "parameters", "width"))
    speeds = run.provenance.get("speed", {})
    if not adds and not speeds:
        return
    found = boards(run)[:1]
    accuracy: dict[str, float] = found[0].standings["accuracy"].to_dict() if found else {}
    rows = []
    for each in run.objectives():
        count, speed = adds.get(each.slug), speeds.get(each.spec, {}).get("images_a_second")
        mark: Mark = "best" if each.slug in accuracy and _is_on_front(each.slug, accuracy, adds) else ""
        cells = [
            _scaled(accuracy.get(each.slug), 100)._replace(mark=mark),
            _scaled(parameters.get(each.slug), 1e-6, 2),
            Cell(count / 1e9, f"{count / 1e9:.3g}") if count is not None else None,
            *([_scaled(speed, 1, 0)] if speeds else []),
            _scaled(width.get(each.slug), BYTES, 0),
        ]
        rows.append((each.label, cells))
    where = found[0].title if found and found[0].task else "mean"
    columns = [
        Column("linear_percent", f"Linear probe ({where}), %"),
        Column("parameters_million", "Parameters, million"),
        Column("multiply_adds_billion", "Multiply-adds, billion"),
        *([Column("images_a_second", "Images a second")] if speeds else []),
        Column("bytes", "Bytes of features, an image"),
    ]
    slugs = tuple(each.slug for each in run.objectives())
    title = "Accuracy and what it takes"
    yield table_of_cells("cost", title, columns, rows, corner="Network", slugs=slugs, own_marks=True)
    points = [
        Point(
            math.log10(adds[each.slug] / 1e9),
            100 * accuracy[each.slug],
            each.slug,
            each.label,
            f"{adds[each.slug] / 1e9:.3g} billion, {percent(accuracy[each.slug])} %",
        )
        for each in run.objectives()
        if each.slug in adds and each.slug in accuracy
    ]
    if len({point.x for point in points}) > 1:
        heads = (
            "Linear probe against multiply-adds",
            "Billion multiply-adds an image, log10",
            "Linear probe, %",
        )
        yield Figure("cost", "Accuracy against cost", (Panel("cost", *heads, tuple(points)),), legend=True)
    yield (
        "Multiply-adds: of convolutions and matrix products, for one image at the network's own size, up to"
        " its features; half of what PyTorch's FlopCounterMode counts."
    )
    for of in [*speeds.values()][:1]:
        machine = run.provenance.get("processor") or "this machine"
        yield (
            f"Images a second: from the median forward pass over {of['batch']} images in memory, float32,"
            f" {of['device']}, {counted(of['threads'], 'thread')}, on {machine}. It differs"
            " from machine to machine."
        )


def _is_on_front(network: str, accuracy: Mapping[str, float], adds: Mapping[str, float]) -> bool:
    """Return whether no other network is at least as good in accuracy and cost, and better in one of them."""
    if network not in adds:
        return False
    own = accuracy[network], -adds[network]
    others = [(accuracy[other], -adds[other]) for other in accuracy.keys() & adds.keys()]
    return not any(each != own and each[0] >= own[0] and each[1] >= own[1] for each in others)


def _scaled(value: Any, factor: float, digits: int = 1) -> Cell:
    if value is None:
        return Cell()
    text = f"{factor * value:,.0f}" if digits == 0 else fixed(factor * value, digits)
    return Cell(factor * value, text)
