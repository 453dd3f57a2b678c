"""The confusions of each network: the classes and pairs that it gets wrong most, with pictures."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from penultimate.data.catalog import card
from penultimate.evaluation.exhibits import shows
from penultimate.results.exhibit import Gallery, Part, Pictures
from penultimate.results.rows import Run, arrays_of
from penultimate.results.table import Column, Table, table_of_cells
from penultimate.results.text import as_name, listed, percent, plain, shortened

ARRAYS = ["counts", "of", "truth", "predicted", "thumbnails", "pictured"]
ARRAYS += ["classes", "class_errors", "class_sizes"]
LONGEST, PAIRS, WORST = 40, 3, 10
"""The most characters of a class's name, pairs with pictures, and classes of a table."""


@shows("confusions", "What each network confuses", section="confusions")
def confusions(run: Run) -> Iterator[Part]:
    """The classes that the linear probe on each network's features confuses most often, with test images
    that it gets wrong: what they show, and what they were taken for."""
    labels = run.labels()
    for task in run.targets:
        made = {slug: held for slug, _, held in arrays_of(run, "confusions", ARRAYS, target=task)}
        wrong = {slug: held for slug, held in made.items() if len(held["counts"])}
        for slug, held in wrong.items():
            yield Gallery(f"{labels[slug]} on {card(task).title}", slug, _pictures(held))
        yield _classes(run, task, wrong)
        if right := [labels[slug] for slug in made if slug not in wrong]:
            yield f"On {card(task).title} no test image is got wrong by {listed(right)}."


def _pictures(held: Mapping[str, Any]) -> tuple[Pictures, ...]:
    """Return the pairs of classes that are confused most, each with its pictures."""
    groups = []
    names = zip(held["truth"].tolist(), held["predicted"].tolist(), strict=True)
    for number, (truth, predicted) in enumerate(itertools.islice(names, PAIRS)):
        count, of = int(held["counts"][number]), int(held["of"][number])
        images = tuple(_png(pixels) for pixels in held["thumbnails"][held["pictured"] == number])
        told = f"{count} of {of}, {percent(count / of, 0)} %"
        groups.append(Pictures(f"{_name(truth)} taken for {_name(predicted)}", told, images))
    return tuple(groups)


def _classes(run: Run, task: str, wrong: Mapping[str, Mapping[str, Any]]) -> Table | None:
    """Return the error rates of the classes that any network gets wrong most."""
    rates: dict[str, dict[str, float]] = {}
    for slug, held in wrong.items():
        for name, share in zip(
            held["classes"].tolist(), held["class_errors"] / held["class_sizes"], strict=True
        ):
            rates.setdefault(name, {})[slug] = 100 * float(share)
    worst = sorted(rates, key=lambda name: -max(rates[name].values()))[:WORST]
    rows = [(_name(name), [rates[name].get(slug, "fewer") for slug in wrong]) for name in worst]
    columns = [Column(slug, run.labels()[slug], "Wrong, %", digits=0) for slug in wrong]
    title = f"{card(task).title}: the classes that are got wrong most"
    return table_of_cells(as_name("confusions", task), title, columns, rows, corner="Class")


def _name(text: str) -> str:
    return shortened(plain(text) or "(no name)", LONGEST)


def _png(pixels: Any) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).quantize(96).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
