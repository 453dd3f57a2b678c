"""What an objective's strength changes: separation and transfer at each value of the search, on one seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penultimate.portrait import STRENGTHS
from penultimate.portrait.exhibits import shows
from penultimate.portrait.exhibits.place import LINEAR, R2, TOP1, frames
from penultimate.portrait.traits import subject_of
from penultimate.results.exhibit import Part
from penultimate.results.figure import Curve, Figure, Panel, Point
from penultimate.results.rows import Run
from penultimate.results.table import Column, table_of_cells
from penultimate.results.text import fixed
from penultimate.specs import parse_sum


@shows("portrait_strengths", "What its strength changes")
def portrait_strengths(run: Run) -> Iterator[Part]:
    """Networks at each value that the search tried, trained and measured as the one that was chosen, but on
    one seed. Faint: the other objectives on the same seed, at the strengths of their own searches."""
    subject, grids = subject_of(run), run.grids(STRENGTHS)
    if subject is None or not grids:
        return
    owner, _, name = str(grids[0].get("swept", "")).rpartition(".")
    (seed,), slug = grids[0]["seeds"], subject.slug
    found = {}
    for each in run.objectives(STRENGTHS):
        numbers = _at(frames(run, STRENGTHS), seed, each.slug)
        if numbers and each.spec in grids[0]["objectives"]:
            value = next(term.arguments[name] for term in parse_sum(each.spec) if term.name == owner)
            found[float(value)] = numbers
    if len(found) < 2:
        return
    found = dict(sorted(found.items()))
    details = {of: f"{fixed(x, R2.digits)}, {fixed(y, LINEAR.digits)} %" for of, (_, x, y) in found.items()}
    own = [Point(x, y, slug, f"{name} = {of:g}", details[of]) for of, (_, x, y) in found.items()]
    others = {other: _at(frames(run), seed, other) for other in run.labels() if other != slug}
    faint = [
        Point(at[1], at[2], other, run.labels()[other], f"seed {seed}", faint=True)
        for other, at in others.items()
        if at
    ]
    curve = Curve(tuple((point.x, point.y) for point in own), slug, f"from small to large {name}")
    title = "Class separation against transfer, as its strength changes"
    panel = Panel("portrait-strengths", title, R2.label, LINEAR.label, (*faint, *own), (curve,))
    yield Figure("portrait_strengths", "What its strength changes", (panel,))
    heads = (("accuracy", TOP1.label, 1), ("separation", "Class separation R²", 3))
    columns = [Column(key, label, digits=digits) for key, label, digits in heads]
    columns.append(Column("transfer", "Linear transfer, mean of the tasks, %"))
    rows = [(f"{name} = {value:g}", numbers) for value, numbers in found.items()]
    yield table_of_cells("portrait_strengths", "At each strength", columns, rows, corner="Strength")
    low, high = min(found), max(found)
    both = zip(found[low], found[high], (1, 3, 1), strict=True)
    top1, r2, linear = (f"from {fixed(a, digits)} to {fixed(b, digits)}" for a, b, digits in both)
    yield (
        f"From {name} = {low:g} to {high:g}, class separation goes {r2}, linear transfer {linear} % and test"
        f" accuracy {top1} % (seed {seed} alone)."
    )


def _at(of_each: Any, seed: int, slug: str) -> list[float]:
    """Return the numbers of one network in each frame [seed, objective]; nothing if one lacks it."""
    numbers = [float(frame.at[seed, slug]) for frame in of_each if slug in frame and seed in frame.index]
    return numbers if len(numbers) == len(of_each) and all(value == value for value in numbers) else []
