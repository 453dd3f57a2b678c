"""What each network's accuracy costs: a table and a scatter plot."""

from __future__ import annotations

import math
from collections.abc import Mapping

from penultimate.evaluation.boards import boards_of, tasks_of
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, Figure, Panel, Point, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.spec import EVALUATE, Bespoke, Exhibit, Piece
from penultimate.report.text import fixed
from penultimate.report.text import percent as in_percent

MULTIPLY_ADDS = Quantity("multiply_adds")
SIZES = (MULTIPLY_ADDS, Quantity("parameters", optional=True), Quantity("width", optional=True))
BYTES = 4
"""Bytes of a number of the features that are kept."""
METHOD = (
    "Multiply-adds: of convolutions and matrix products, for one image at the network's own size, up to its"
    " features; half of what PyTorch's FlopCounterMode counts. Parameters and bytes (float32) are of the"
    " features too. On the front: no other network is as accurate at fewer multiply-adds; whether a"
    " lead is beyond chance does not count here."
)
SPEED = (
    "Images a second: from the median forward pass over {batch} images in memory, float32, {device},"
    " {threads}, on {machine}, beside whatever else ran there. No table of results has it, because it differs"
    " from machine to machine."
)


def _cost(measurements: Measurements) -> Piece:
    """Return what each network takes beside its accuracy, and accuracy against multiply-adds."""
    found = {quantity.metric: _of_networks(measurements, quantity.metric) for quantity in SIZES}
    speeds = measurements.results.provenance.get("speed", {})
    if not found["multiply_adds"] and not speeds:
        return Piece(wanted=False)
    boards = boards_of(tasks_of(measurements))
    accuracy = {each.network.spec: each.interval.value for each in boards[0].standings} if boards else {}
    adds = found["multiply_adds"]
    front = {spec for spec in accuracy if spec in adds and not _is_beaten(spec, accuracy, adds)}
    rows = []
    for network in measurements.objectives:
        spec = network.spec
        speed = speeds.get(spec, {}).get("images_a_second")
        cells = [
            _scaled(accuracy.get(spec), 100, 1, best=spec in front),
            _scaled(found["parameters"].get(spec), 1e-6, 2),
            _giga(adds.get(spec)),
            *([_scaled(speed, 1, 0)] if speeds else []),
            _scaled(found["width"].get(spec), BYTES, 0),
        ]
        rows.append(TableRow(network.label, tuple(cells), network.slug))
    where = boards[0].title if boards and boards[0].name else "mean"
    columns = (
        Column("linear_percent", f"Linear probe ({where}), %", "", "%"),
        Column("parameters_million", "Parameters, million"),
        Column("multiply_adds_billion", "Multiply-adds, billion"),
        *([Column("images_a_second", "Images a second")] if speeds else []),
        Column("bytes", "Bytes of features, an image"),
    )
    table = ExhibitTable("cost", "Accuracy and what it takes", "Network", columns, tuple(rows))
    points = tuple(
        Point(
            math.log10(adds[each.spec] / 1e9),
            100 * accuracy[each.spec],
            each.slug,
            each.label,
            f"{adds[each.spec] / 1e9:.3g} billion, {in_percent(accuracy[each.spec])} %",
        )
        for each in measurements.objectives
        if each.spec in adds and each.spec in accuracy
    )
    figures = _figure(points) if len({point.x for point in points}) > 1 else ()
    told = [SPEED.format(machine=_machine(measurements), **_counted(of)) for of in [*speeds.values()][:1]]
    return Piece((table,), figures, method=(METHOD, *told))


def _is_beaten(spec: str, accuracy: Mapping[str, float], adds: Mapping[str, float]) -> bool:
    """Return whether another network is no worse in accuracy and cost, and better in one of them."""
    own = accuracy[spec], -adds[spec]
    others = [(accuracy[other], -adds[other]) for other in accuracy.keys() & adds.keys()]
    return any(each != own and each[0] >= own[0] and each[1] >= own[1] for each in others)


def _figure(points: tuple[Point, ...]) -> tuple[Figure, ...]:
    panel = Panel(
        "cost",
        "Linear probe against multiply-adds",
        "Billion multiply-adds an image, log10",
        "Linear probe, %",
        points,
    )
    said = "The accuracy of the linear probe against the logarithm of the multiply-adds of each network."
    return (Figure("cost", "Accuracy against cost", said, (panel,), legend=True),)


def _of_networks(measurements: Measurements, metric: str) -> dict[str, float]:
    return {str(row.objective): row.value for row in measurements.rows(metric) if row.objective is not None}


def _scaled(value: float | None, factor: float, digits: int, *, best: bool = False) -> Cell:
    if value is None:
        return Cell(MISSING, detail="not measured")
    text = f"{factor * value:,.0f}" if digits == 0 else fixed(factor * value, digits)
    return Cell(text, factor * value, best=best)


def _giga(value: float | None) -> Cell:
    if value is None:
        return Cell(MISSING, detail="not counted")
    return Cell(f"{value / 1e9:.3g}", value / 1e9)


def _counted(speed: dict[str, object]) -> dict[str, object]:
    threads = speed["threads"]
    return {**speed, "threads": "one thread" if threads == 1 else f"{threads} threads"}


def _machine(measurements: Measurements) -> str:
    return str(measurements.results.provenance.get("processor", "")) or "this machine"


COST = Exhibit(
    name="cost",
    title="What the accuracy costs",
    caption="Parameters, multiply-adds and bytes of features of each network (and, with --speed, images a"
    " second), beside the accuracy of the linear probe; bold: on the front of accuracy against"
    " multiply-adds.",
    parts=(Bespoke(_cost, SIZES),),
    place=14,
    measured_by=EVALUATE,
    summary="Accuracy of networks of your own against parameters, multiply-adds and speed",
    short="What it costs",
)
