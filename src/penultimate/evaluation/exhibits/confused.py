"""The confusions of each network: the classes and pairs that it gets wrong most, with pictures."""

from __future__ import annotations

import io
import itertools
from collections.abc import Mapping
from typing import Any

from penultimate.data.catalog import card
from penultimate.evaluation.boards import arrays_of
from penultimate.report.base import Cell, Column, ExhibitTable, Gallery, Pictures, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.spec import EVALUATE, Bespoke, Exhibit, Piece
from penultimate.report.text import as_name, listed, plain, shortened
from penultimate.report.text import percent as in_percent

LONGEST = 40
"""The greatest number of characters in a class's name."""
PAIRS = 3
"""The number of pairs with pictures, for a network on a task."""


def _build(measurements: Measurements) -> Piece:
    tables: list[ExhibitTable] = []
    galleries: list[Gallery] = []
    notes: list[str] = []
    for target in measurements.targets:
        rows = {str(row.objective): row for row in measurements.rows("confusions", "test", target)}
        made = [
            (network, arrays_of(measurements, rows[network.spec]))
            for network in measurements.objectives
            if network.spec in rows
        ]
        made = [(network, arrays) for network, arrays in made if arrays]
        if not made:
            continue
        wrong = [(network, arrays) for network, arrays in made if len(arrays["counts"])]
        right = [network.label for network, arrays in made if not len(arrays["counts"])]
        if right:
            notes.append(f"On {card(target).title} no test image is got wrong by {listed(right)}.")
        galleries += [_gallery(target, network, arrays) for network, arrays in wrong]
        tables += [_classes(target, wrong)] if wrong else []
    return Piece(tuple(tables), galleries=tuple(galleries), notes=tuple(notes))


def _gallery(target: str, network: StudyObjective, arrays: Mapping[str, Any]) -> Gallery:
    """Return the confused pairs of a network on a task, each with its pictures."""
    groups = []
    names = zip(arrays["truth"].tolist(), arrays["predicted"].tolist(), strict=True)
    for number, (truth, predicted) in enumerate(itertools.islice(names, PAIRS)):
        count, of = int(arrays["counts"][number]), int(arrays["of"][number])
        pictures = arrays["thumbnails"][arrays["pictured"] == number]
        groups.append(
            Pictures(
                _name(truth),
                _name(predicted),
                f"{count} of {of}",
                in_percent(count / of, 0),
                tuple(_png(picture) for picture in pictures),
            )
        )
    return Gallery(
        as_name("confusions", target, network.slug),
        card(target).title,
        network.label,
        network.slug,
        tuple(groups),
    )


def _classes(target: str, made: list[tuple[StudyObjective, Mapping[str, Any]]]) -> ExhibitTable:
    """Return a table of the classes that any network gets wrong most, with the error rates."""
    rates: dict[str, dict[str, tuple[int, int]]] = {}
    for network, arrays in made:
        for name, errors, size in zip(
            arrays["classes"].tolist(),
            arrays["class_errors"].tolist(),
            arrays["class_sizes"].tolist(),
            strict=True,
        ):
            rates.setdefault(name, {})[network.spec] = errors, size
    worst = sorted(rates, key=lambda name: -max(errors / size for errors, size in rates[name].values()))
    columns = tuple(Column(network.slug, network.label, "Wrong, %", "%") for network, _ in made)
    rows = tuple(
        TableRow(_name(name), tuple(_rate(rates[name].get(network.spec)) for network, _ in made))
        for name in worst[:10]
    )
    title = f"{card(target).title}: the classes that are got wrong most"
    return ExhibitTable(as_name("confusions", target), title, "Class", columns, rows)


def _rate(counts: tuple[int, int] | None) -> Cell:
    if counts is None:
        return Cell("fewer", detail="not among the classes that this network gets wrong most")
    errors, size = counts
    return Cell(in_percent(errors / size, 0), 100 * errors / size, detail=f"{errors} of {size} test images")


def _name(text: str) -> str:
    return shortened(plain(text) or "(no name)", LONGEST)


def _png(pixels: Any) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).quantize(96).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


CONFUSIONS = Exhibit(
    name="confusions",
    title="What each network confuses",
    caption="The classes that the linear probe on each network's features confuses most often, with test"
    " images that it gets wrong: what they show, and what they were taken for.",
    parts=(Bespoke(_build),),
    place=13,
    measured_by=EVALUATE,
    summary="The classes that networks of your own confuse most, with pictures",
    short="What they confuse",
)
