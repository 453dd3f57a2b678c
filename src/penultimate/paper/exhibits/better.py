"""The search for an objective that is better than softmax in both accuracy and transfer."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.effects import Effect, Unit
from penultimate.paper.claims.filed import CHOOSING, SEARCHED, SEEN, STUDY
from penultimate.paper.claims.judging import judge, verdict_table
from penultimate.paper.claims.numbers import ACCURACY, BASELINE, KNN, LINEAR, SEPARATION, Numbers
from penultimate.paper.claims.rules import gain, other_of
from penultimate.paper.claims.stated import claims_of
from penultimate.paper.printed import figure
from penultimate.records.references import references
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Curve, Panel, Point
from penultimate.results.rows import Objective, Run, read_reference
from penultimate.results.table import MISSING, Cell, Column, Table, table_of_rows
from penultimate.results.text import fixed, signed

ROWS = {
    "Test accuracy, %": ACCURACY,
    "Linear transfer, %": LINEAR,
    "kNN transfer, %": KNN,
    "Class separation R²": SEPARATION,
}


@exhibit(
    "better",
    "Better than softmax in both? Twelve candidates, and the chosen one on other tasks",
    section="claims",
    study=STUDY,
)
def better(run: Run) -> Iterator[Part]:
    """Candidates are compared with softmax by test accuracy and by linear transfer to four of eight tasks.
    The one whose smaller gain is the largest is chosen. It is trained again with seeds of its own and tried
    on the other four tasks, which the choice did not see. Gains are differences to softmax within seeds. In
    the figure, numbers are as in the table, single seeds are faint, and upper right is better in both."""
    other = other_of(run)
    if other is None or STUDY not in (run.name, run.description.get("changed_from")):
        return
    gains = {label: gain(Numbers(run), quantity) for label, quantity in ROWS.items()}
    accuracy, linear, *_ = gains.values()
    if accuracy and linear:
        found = kept_candidates()
        yield candidates_table(found, other.spec)
        yield confirmed_table(Numbers(run), other, gains)
        title = "The claims that an objective is better in both"
        yield verdict_table("better", title, judge(run, claims_of("better")))
        title = "Gains on softmax in accuracy and in transfer"
        yield figure("better", title, panel(other, found, accuracy, linear))


class Candidate(NamedTuple):
    """A candidate of a search: its spec, the study, and its gains on softmax [seed, (accuracy, transfer)]."""

    spec: str
    study: str
    gains: pd.DataFrame

    @property
    def label(self) -> str:
        """Its name with its hyperparameters."""
        return resolve(self.spec).detailed_label

    @property
    def slug(self) -> str:
        """The objective whose mark it has."""
        return resolve(self.spec).preset or self.spec

    @property
    def score(self) -> float:
        """The smaller one of its mean gains, by which it is chosen."""
        return float(self.gains.mean().min())


@functools.cache
def kept_candidates() -> list[Candidate]:
    """Return the candidates of the searches that come with the package, the highest score first."""
    kept = [read_reference(name) for name in SEARCHED if name in references()]
    return sorted((each for run in kept for each in candidates(run)), key=lambda one: -one.score)


def candidates(run: Run) -> Iterator[Candidate]:
    """Yield every candidate that a search measured beside softmax, by the seeds that the choice saw."""
    measured: dict[str, pd.DataFrame] = {}
    for arm in run.arms:
        of = Numbers(run, arm)
        frames = [of.frame(ACCURACY), *(of.frame(LINEAR, task) for task in CHOOSING)]
        for slug, _, spec in run.objectives(arm):
            if all(slug in frame for frame in frames):
                accuracy, *tasks = (frame[slug] for frame in frames)
                values = pd.DataFrame({"accuracy": accuracy, "transfer": sum(tasks) / len(tasks)})
                measured.setdefault(spec, values.dropna())
    for spec in (resolve(text).canonical for text in SEARCHED[run.name]):
        if {spec, BASELINE} <= {*measured}:
            gains = (measured[spec] - measured[BASELINE]).dropna()
            gains = gains[gains.index.isin(SEEN.get(run.name, gains.index))]
            if len(gains):
                yield Candidate(spec, run.name, gains)


def candidates_table(found: Sequence[Candidate], chosen: str) -> Table | None:
    """Return the candidates with their gains."""
    columns = (
        Column("accuracy", "Test accuracy", "Gain on softmax, points", 2),
        Column("transfer", "Linear transfer", "Gain on softmax, points", 2),
        Column("score", "Score: the smaller gain", digits=2),
        Column("seeds", "Seeds", digits=0),
        Column("study", "Study"),
        Column("choice", "Choice"),
    )
    rows = []
    for place, one in enumerate(found, 1):
        numbers = [Cell(number, signed(number, 2)) for number in (*one.gains.mean(), one.score)]
        # The dash of a candidate that was not chosen would say that something was not measured.
        choice = "chosen" if one.spec == chosen else Cell(MISSING, "")
        rows.append((f"{place}. {one.label}", [*numbers, len(one.gains), one.study, choice]))
    title = "The candidates, by score, on the tasks that the choice sees"
    slugs = tuple(one.slug for one in found)
    return table_of_rows("better_candidates", title, columns, rows, slugs=slugs, corner="Candidate")


def confirmed_table(of: Numbers, other: Objective, gains: Mapping[str, Effect | None]) -> Table | None:
    """Return both objectives' means on the tasks that the choice did not see, with the gain on softmax."""
    columns = (
        Column("softmax", "Softmax", digits=2, with_error=True),
        Column("other", other.label, digits=2, with_error=True),
        Column("gain", "Gain, with its 95 % interval"),
        Column("least", "Counts from"),
    )
    rows, errors, counts = [], [], []
    for (label, quantity), effect in zip(ROWS.items(), gains.values(), strict=True):
        digits, frame = quantity.unit.digits, of.frame(quantity).reindex(columns=[BASELINE, other.slug])
        cells: list[Cell | float | None] = [*frame.mean(), None, None]
        if effect:
            ends = zip(frame.mean(), frame.sem(), strict=True)
            shown = [
                Cell(mean, f"{fixed(mean, digits)} ± {fixed(error, digits + 1)}") for mean, error in ends
            ]
            gained = Cell(effect.estimate, replace(effect, name="", unit=Unit("{}", digits)).text)
            # No R² is too little to count, and a dash would say that something was not measured.
            is_counted = quantity is not SEPARATION
            least = Cell(effect.margin, fixed(effect.margin, digits)) if is_counted else Cell(MISSING, "")
            cells = [*shown, gained, least]
        rows.append((label, cells))
        errors.append([*frame.sem()])
        counts.append([*frame.count()])
    keys = [column.key for column in columns[:2]]
    return table_of_rows(
        "better_confirmed",
        "The chosen objective beside softmax, on the tasks that the choice did not see",
        columns,
        rows,
        corner="Measure",
        errors=pd.DataFrame(errors, [*ROWS], keys),
        counts=pd.DataFrame(counts, [*ROWS], keys),
    )


def panel(other: Objective, found: Sequence[Candidate], x: Effect, y: Effect) -> Panel:
    """Return gains in transfer against gains in accuracy, with softmax where the lines cross."""
    places = {one.spec: str(place) for place, one in enumerate(found, 1)}
    points = [
        Point(across, up, one.slug, places[one.spec], f"{one.label}, seed {seed}", faint=True)
        for one in found
        for seed, (across, up) in one.gains.iterrows()
    ]
    points += [
        Point(across, up, one.slug, places[one.spec], f"{one.label} ({one.study})")
        for one in found
        for across, up in [one.gains.mean()]
    ]
    name = f"{places.get(other.spec, 'chosen,')} on the other tasks"
    points.append(Point(x.estimate, y.estimate, other.slug, name, f"{other.label}: {x.text}; {y.text}"))
    ends = [((x.low, y.estimate), (x.high, y.estimate)), ((x.estimate, y.low), (x.estimate, y.high))]
    lines = ends if math.isfinite(x.low) and math.isfinite(y.low) else []
    every = [(0.0, 0.0), *((point.x, point.y) for point in points), *(end for line in lines for end in line)]
    (left, right), (low, high) = ((min(side), max(side)) for side in zip(*every, strict=True))
    zero = (
        Curve(((0.0, low), (0.0, high)), BASELINE, "as accurate as softmax", True, True),
        Curve(((left, 0.0), (right, 0.0)), BASELINE, "transfers as softmax does", True, True),
    )
    axes = "Gain in test accuracy, points", "Gain in linear transfer, points"
    curves = *zero, *(Curve(line, other.slug, f"{other.label}, 95 %") for line in lines)
    title, drawn = "Gains on softmax: accuracy and transfer", (tuple(points), tuple(curves))
    return Panel("better-gains", title, *axes, *drawn, size=(640.0, 420.0))
