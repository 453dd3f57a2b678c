"""What an objective does inside: in which traits it is unusual, and which other objective it resembles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from penultimate.portrait.exhibits import shows
from penultimate.portrait.traits import Trait, likeness, subject_of, traits
from penultimate.results.exhibit import Part
from penultimate.results.figure import Figure, heat
from penultimate.results.rows import Run
from penultimate.results.table import Cell, Column, table_of_rows
from penultimate.results.text import counted, fixed, listed, p_value, signed

MOST, MOST_NAMED = 12, 3
"""The most traits in the map, those farthest from the others' mean, and in a sentence."""
ENDS: dict[str, Any] = {"low": -3.0, "high": 3.0, "width": 420.0}
"""The ends of the map's scale, in standard deviations, and its width."""


@shows("portrait_inside", "What it does inside")
def portrait_inside(run: Run) -> Iterator[Part]:
    """Every number that both this objective and the others have, of features, final layer and predictions:
    how far it lies from the others' mean, counted in the standard deviations of their means."""
    subject = subject_of(run)
    found = traits(run, subject) if subject else []
    if not found:
        return
    shown, labels = farthest(found), run.labels()
    slugs = (found[0].own, *(slug for slug in labels if slug in shown[0].others))
    numbers = [str(place) for place in range(1, len(shown) + 1)]
    steps = [one.steps.reindex(slugs).to_list() for one in shown]
    matrix = pd.DataFrame(steps, numbers, [labels[slug] for slug in slugs])
    title = "Each trait, in the others' standard deviations from their mean"
    legend = "Dark: high; pale: low. The table below names the rows, the legend the marks."
    panel = heat("portrait-inside", title, matrix, slugs=((), slugs), finding=legend, **ENDS)
    yield Figure("portrait_inside", "What it does inside", (panel,), legend=True)
    heads = {"value": "Its value", "others": "The others", "steps": "Standard deviations", "told": "Unusual?"}
    yield table_of_rows(
        "portrait_inside",
        "What is unusual about it",
        [Column(key, label) for key, label in heads.items()],
        [(f"{place}. {one.name}", _cells(one)) for place, one in enumerate(shown, 1)],
        corner="Trait",
        notes=("p: of the difference from the nearest other objective, within seeds, not corrected.",),
    )
    near = likeness(found)
    yield table_of_rows(
        "portrait_alike",
        "What it resembles",
        [Column("distance", "Distance", digits=2)],
        [(labels[slug], [distance]) for slug, distance in near.items()],
        slugs=tuple(near),
        notes=(f"The root mean square over {counted(len(found), 'trait')} of the standardised difference.",),
    )
    yield inside_words(run, found)


def farthest(found: Sequence[Trait]) -> list[Trait]:
    """Return the traits in which the objective is farthest from the others' mean."""
    return sorted(found, key=lambda one: -abs(one.steps[one.own]))[:MOST]


def _cells(one: Trait) -> list[Any]:
    gap, steps = one.minus(str((one.others - one.value).abs().idxmin())), float(one.steps[one.own])
    p = f", {p_value(gap.p)}" if gap else ""
    words = f"beyond all others{p}" if one.is_outside else "within the others' range"
    return [Cell(one.value, one.text()), one.span(), Cell(steps, signed(steps, 1)), words]


def inside_words(run: Run, found: list[Trait]) -> str:
    """Return a sentence on the traits in which the objective is unusual, and one on what it resembles."""
    outside = [one for one in farthest(found) if one.is_outside][:MOST_NAMED]
    named = [f"{one.name} ({one.text()}, others {one.span()})" for one in outside]
    every = sum(one.is_outside for one in found)
    sentence = f"It lies beyond all others in {every} of {counted(len(found), 'trait')}"
    sentence += f", farthest in {listed(named)}." if named else "."
    labels, near = run.labels(), [*likeness(found).items()][:2]
    like = [f"{labels[slug][:1].lower()}{labels[slug][1:]} ({fixed(far, 2)})" for slug, far in near]
    return f"{sentence} It resembles most, by their distance, {listed(like)}." if like else sentence
