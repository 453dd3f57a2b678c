"""What an objective's strength changes: separation and transfer at each value of the search, on one seed."""

from __future__ import annotations

import dataclasses

from penultimate.portrait import STRENGTHS
from penultimate.portrait.exhibits.place import LINEAR, R2, TOP1
from penultimate.portrait.traits import subject_of
from penultimate.report.base import Cell, Column, Curve, ExhibitTable, Figure, Panel, Point, TableRow
from penultimate.report.measurements import Measurements, run_name
from penultimate.report.spec import OURS, PORTRAIT, Bespoke, Exhibit, Piece
from penultimate.report.text import fixed
from penultimate.specs import parse_sum

QUANTITIES = (TOP1, R2, LINEAR)
COLUMNS = (
    Column("accuracy", "Test accuracy where trained, %"),
    Column("separation", "Class separation R²"),
    Column("transfer", "Linear transfer, mean of the tasks, %"),
)


def values_at_strengths(measurements: Measurements) -> tuple[str, dict[float, tuple[float, ...]]]:
    """Return the hyperparameter that is varied, and the QUANTITIES at each of its values, as shown."""
    grids = measurements.networks.grids(STRENGTHS)
    if not grids:
        return "", {}
    owner, _, name = str(grids[0].get("swept", "")).rpartition(".")
    (seed,) = grids[0]["seeds"]
    columns = [measurements.values(dataclasses.replace(of, arm=STRENGTHS)) for of in QUANTITIES]
    found = {}
    for spec in grids[0]["objectives"]:
        if all(seed in column.get(spec, {}) for column in columns):
            value = next(term.arguments[name] for term in parse_sum(spec) if term.name == owner)
            scaled = (of.scale * column[spec][seed] for of, column in zip(QUANTITIES, columns, strict=True))
            found[float(value)] = tuple(scaled)
    return name, dict(sorted(found.items()))


def strengths_words(name: str, found: dict[float, tuple[float, ...]], seed: int) -> str:
    """Return a sentence on what changes from the smallest value to the largest."""
    (low, first), (high, last) = next(iter(found.items())), [*found.items()][-1]
    parts = [
        f"{words} from {fixed(first[place], of.digits)} to {fixed(last[place], of.digits)}{unit}"
        for place, of, words, unit in (
            (1, R2, "class separation goes", ""),
            (2, LINEAR, "linear transfer", " %"),
            (0, TOP1, "test accuracy", " %"),
        )
    ]
    return (
        f"From {name} = {low:g} to {high:g}, {parts[0]}, {parts[1]} and {parts[2]} ({run_name(seed)} alone)."
    )


def _strengths(measurements: Measurements) -> Piece:
    subject = subject_of(measurements)
    if subject is None:
        return Piece(wanted=False)
    name, found = values_at_strengths(measurements)
    if len(found) < 2:
        return Piece(wanted=False)
    (seed,) = measurements.networks.grids(STRENGTHS)[0]["seeds"]
    own = tuple(
        Point(
            x, y, subject.slug, f"{name} = {value:g}", f"{fixed(x, R2.digits)}, {fixed(y, LINEAR.digits)} %"
        )
        for value, (_, x, y) in found.items()
    )
    across, up = measurements.values(R2), measurements.values(LINEAR)
    others = tuple(
        Point(
            R2.scale * across[one.spec][seed],
            LINEAR.scale * up[one.spec][seed],
            one.slug,
            one.label,
            run_name(seed),
            faint=True,
        )
        for one in measurements.objectives
        if one.spec != subject.spec and seed in across.get(one.spec, {}) and seed in up.get(one.spec, {})
    )
    curve = Curve(tuple((point.x, point.y) for point in own), subject.slug, f"from small to large {name}")
    title = "Class separation against transfer, as its strength changes"
    panel = Panel("portrait-strengths", title, R2.label, LINEAR.label, (*others, *own), (curve,))
    rows = tuple(
        TableRow(
            f"{name} = {value:g}",
            tuple(
                Cell(fixed(number, of.digits), number) for number, of in zip(numbers, QUANTITIES, strict=True)
            ),
        )
        for value, numbers in found.items()
    )
    table = ExhibitTable("portrait_strengths", "At each strength", "Strength", COLUMNS, rows)
    said = strengths_words(name, found, seed)
    description = "Class separation against linear transfer, a mark a strength, joined from weak to strong."
    return Piece(
        (table,),
        (Figure("portrait_strengths", "What its strength changes", description, (panel,)),),
        notes=(f"{OURS}: {said[0].lower()}{said[1:]}",),
    )


STRENGTH = Exhibit(
    name="portrait_strengths",
    title="What its strength changes",
    caption="Networks at each value that the search tried, trained and measured as the one that was chosen,"
    " but on one seed. Faint: the other objectives on the same seed, at the strengths of their own searches.",
    parts=(Bespoke(_strengths),),
    page="portrait",
    measured_by=PORTRAIT,
    place=2,
    of_given=False,
    summary="Of a portrait: class separation and transfer at each strength of the search",
    short="What its strength changes",
)
