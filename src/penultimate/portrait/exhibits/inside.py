"""What an objective does inside: in which traits it is unusual, and which other objective it resembles."""

from __future__ import annotations

from penultimate.portrait.traits import Trait, likeness, subject_of, traits, within_sentence
from penultimate.report.base import Cell, Column, ExhibitTable, Figure, Panel, Raster, TableRow
from penultimate.report.drawing.rasters import raster_size
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.spec import OURS, PORTRAIT, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, listed, p_value, signed

MOST = 12
"""The greatest number of traits in the map, those farthest from the others' mean."""
WIDE = 3.0
"""The ends of the map's scale, in standard deviations."""
MOST_NAMED = 3


def _farthest(found: list[Trait]) -> list[Trait]:
    return sorted(found, key=lambda one: -abs(one.steps(one.value)))[:MOST]


def _map(measurements: Measurements, subject: StudyObjective, found: list[Trait]) -> Figure:
    shown = _farthest(found)
    others = [one for one in measurements.objectives if one.spec in shown[0].means]
    columns = [subject, *others]
    values = tuple(
        tuple(
            one.steps(one.value if other is subject else one.means[other.spec])
            if other is subject or other.spec in one.means
            else None
            for other in columns
        )
        for one in shown
    )
    marks = tuple(one.slug for one in columns)
    names = tuple(one.label for one in columns)
    raster = Raster(
        tuple(str(place) for place in range(1, len(shown) + 1)),
        names,
        values,
        column_marks=marks,
        row_marks=(),
        low=-WIDE,
        high=WIDE,
    )
    panel = Panel(
        "portrait-inside",
        "Each trait, in the others' standard deviations from their mean",
        "",
        "",
        labelled=False,
        raster=raster,
        size=raster_size(len(shown), len(columns), 420),
        finding="Dark: high; pale: low. The table below names the rows, the legend the marks.",
    )
    return Figure(
        "portrait_inside",
        "What it does inside",
        "A map: a row for each trait, a column for each objective, darker where the trait is higher.",
        (panel,),
        legend=True,
    )


def _unusual(found: list[Trait]) -> ExhibitTable:
    rows = []
    for place, one in enumerate(_farthest(found), 1):
        beyond = one.beyond
        told = (
            "within the others' range"
            if not one.is_outside
            else "beyond all others"
            if beyond is None
            else f"beyond all others, {p_value(beyond.p)}"
        )
        low, high = min(one.means.values()), max(one.means.values())
        cells = (
            Cell(one.text(one.value), one.quantity.scale * one.value),
            Cell(f"{one.text(low)} to {one.text(high)}"),
            Cell(signed(one.steps(one.value), 1), one.steps(one.value)),
            Cell(told),
        )
        rows.append(TableRow(f"{place}. {one.name}", cells))
    columns = (
        Column("value", "Its value"),
        Column("others", "The others"),
        Column("steps", "Standard deviations"),
        Column("told", "Unusual?"),
    )
    notes = (
        "p: of the difference from the nearest other objective, within seeds. It is not corrected for the"
        " number of traits.",
    )
    return ExhibitTable(
        "portrait_inside", "What is unusual about it", "Trait", columns, tuple(rows), notes=notes
    )


def _alike(measurements: Measurements, found: list[Trait]) -> ExhibitTable:
    near = sorted(likeness(found).items(), key=lambda item: item[1])
    rows = tuple(
        TableRow(
            measurements.objective(spec).label,
            (Cell(fixed(distance, 2), distance),),
            measurements.objective(spec).slug,
        )
        for spec, distance in near
    )
    columns = (Column("distance", "Distance"),)
    notes = (
        f"The root mean square over {counted(len(found), 'trait')} of the difference, each in the standard"
        " deviations of the other objectives' means.",
    )
    return ExhibitTable("portrait_alike", "What it resembles", "Objective", columns, rows, notes=notes)


def unusual_words(found: list[Trait]) -> str:
    """Return a sentence on the traits in which the objective lies beyond all others."""
    outside = [one for one in _farthest(found) if one.is_outside]
    if not outside:
        return f"In none of {counted(len(found), 'trait')} does it lie beyond the others."
    every = sum(one.is_outside for one in found)
    shown = outside[:MOST_NAMED]
    short = [one.name.partition(", ")[0] for one in shown]
    named = listed(
        [
            f"{name} ({where}{one.text(one.value)}, others {one.text(min(one.means.values()))}"
            f" to {one.text(max(one.means.values()))})"
            for name, one in zip(short, shown, strict=True)
            # The images are named where the same trait stands out on two sets of them.
            for where in [one.name.partition(", ")[2] + ": " if short.count(name) > 1 else ""]
        ]
    )
    return f"It lies beyond all others in {every} of {counted(len(found), 'trait')}, farthest in {named}."


def resembles_words(measurements: Measurements, found: list[Trait]) -> str:
    """Return a sentence on the objective that is nearest, or "" if there is none."""
    near = sorted(likeness(found).items(), key=lambda item: item[1])
    if len(near) < MOST_NAMED - 1:
        return ""
    first, second = (within_sentence(measurements.objective(spec).label) for spec, _ in near[:2])
    one, two = (fixed(distance, 2) for _, distance in near[:2])
    return f"It resembles {first} most (distance {one}), then {second} ({two})."


def _inside(measurements: Measurements) -> Piece:
    subject = subject_of(measurements)
    if subject is None:
        return Piece(wanted=False)
    found = traits(measurements, subject.spec)
    if not found:
        return Piece()
    said = f"{unusual_words(found)} {resembles_words(measurements, found)}".strip()
    return Piece(
        (_unusual(found), _alike(measurements, found)),
        (_map(measurements, subject, found),),
        notes=(f"{OURS}: {said[0].lower()}{said[1:]}",),
    )


INSIDE = Exhibit(
    name="portrait_inside",
    title="What it does inside",
    caption="Every number that both this objective and the others have, of features, final layer and"
    " predictions: how far it lies from the others' mean, counted in the standard deviations of their means.",
    parts=(Bespoke(_inside),),
    page="portrait",
    measured_by=PORTRAIT,
    place=3,
    of_given=False,
    summary="Of a portrait: what is unusual about the objective, and what it resembles",
    short="What it does inside",
)
