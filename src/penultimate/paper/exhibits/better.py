"""The search for an objective that is better than softmax in both accuracy and transfer."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.effects import Effect, Unit
from penultimate.paper.claims.filed import CHOOSING, SEARCHED, SEEN, STUDY
from penultimate.paper.claims.judging import judge, verdict_table
from penultimate.paper.claims.numbers import ACCURACY, BASELINE, KNN, LINEAR, SEPARATION, Numbers
from penultimate.paper.claims.rules import gain, other_of
from penultimate.paper.claims.stated import claims_of
from penultimate.records.references import references
from penultimate.results.exhibit import Part, exhibit
from penultimate.results.figure import Curve, Figure, Panel, Point
from penultimate.results.rows import Objective, Run, read_reference
from penultimate.results.table import MISSING, Column, Table, table_of_rows
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
    on the other four tasks, which the choice did not see. Gains are differences to softmax within seeds."""
    other, found = other_of(run), kept_candidates()
    if other is None or not is_of_the_search(run):
        return
    trials = {label: gain(Numbers(run), quantity) for label, quantity in ROWS.items()}
    accuracy, linear = (trials[label] for label in [*ROWS][:2])
    if accuracy is None or linear is None:
        return
    yield candidates_table(found, other.spec)
    yield confirmed_table(Numbers(run), other, trials)
    title = "The claims that an objective is better in both"
    yield verdict_table("better", title, judge(run, claims_of("better")))
    yield Figure(
        "better", "Gains on softmax in accuracy and in transfer", (panel(other, found, accuracy, linear),)
    )


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


def is_of_the_search(run: Run) -> bool:
    """Return whether a study tries the chosen objective, whatever its seeds."""
    return other_of(run) is not None and STUDY in (run.name, run.description.get("changed_from"))


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
    for text in SEARCHED[run.name]:
        spec = resolve(text).canonical
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
    rows, texts = list[tuple[str, list[Any]]](), list[list[str]]()
    for place, one in enumerate(found, 1):
        numbers = [*one.gains.mean(), one.score]
        choice = "chosen" if one.spec == chosen else MISSING
        rows.append((f"{place}. {one.label}", [*numbers, len(one.gains), one.study, choice]))
        # The dash of a candidate that was not chosen would say that something was not measured.
        texts.append([*(signed(number, 2) for number in numbers), choice.strip(MISSING)])
    keys = ["accuracy", "transfer", "score", "choice"]
    shown: dict[str, Any] = {
        "texts": pd.DataFrame(texts, [label for label, _ in rows], keys, dtype=object),
        "slugs": tuple(one.slug for one in found),
        "corner": "Candidate",
    }
    title = "The candidates, by score, on the tasks that the choice sees"
    return table_of_rows("better_candidates", title, columns, rows, **shown)


def confirmed_table(of: Numbers, other: Objective, trials: Mapping[str, Effect | None]) -> Table | None:
    """Return both objectives' means on the tasks that the choice did not see, with the gain on softmax."""
    columns = (
        Column("softmax", "Softmax", digits=2, with_error=True),
        Column("other", other.label, digits=2, with_error=True),
        Column("gain", "Gain, with its 95 % interval"),
        Column("least", "Counts from"),
    )
    frames = {
        label: of.frame(quantity).reindex(columns=[BASELINE, other.slug]) for label, quantity in ROWS.items()
    }
    rows, texts = [], []
    for (label, frame), trial in zip(frames.items(), trials.values(), strict=True):
        digits, cells = ROWS[label].unit.digits, [*frame.mean(), None, None]
        shown: list[str | None] = [None] * 4
        if trial:
            # No R² is too little to count, and a dash would say that something was not measured.
            least = MISSING if ROWS[label] is SEPARATION else trial.margin
            cells[2:] = [trial.estimate, least]
            ends = zip(frame.mean(), frame.sem(), strict=True)
            shown = [
                *(f"{fixed(mean, digits)} ± {fixed(error, digits + 1)}" for mean, error in ends),
                replace(trial, name="", unit=Unit("{}", digits)).text,
                "" if least is MISSING else fixed(trial.margin, digits),
            ]
        rows.append((label, cells))
        texts.append(shown)
    keys = [column.key for column in columns]
    sides = {"errors": pd.DataFrame.sem, "counts": pd.DataFrame.count}
    parts = {
        name: pd.DataFrame([[*read(frame)] for frame in frames.values()], [*ROWS], keys[:2])
        for name, read in sides.items()
    }
    parts["texts"] = pd.DataFrame(texts, [*ROWS], keys, dtype=object)
    title = "The chosen objective beside softmax, on the tasks that the choice did not see"
    return table_of_rows("better_confirmed", title, columns, rows, corner="Measure", **parts)


def panel(other: Objective, found: Sequence[Candidate], across: Effect, up: Effect) -> Panel:
    """Return gains in transfer against gains in accuracy, with softmax where the lines cross."""
    places = {one.spec: str(place) for place, one in enumerate(found, 1)}
    points = [
        Point(x, y, one.slug, places[one.spec], f"{one.label}, seed {seed}", faint=True)
        for one in found
        for seed, (x, y) in one.gains.iterrows()
    ]
    for one in found:
        across_mean, up_mean = one.gains.mean().tolist()
        detail = f"{one.label} ({one.study})"
        points.append(Point(across_mean, up_mean, one.slug, places[one.spec], detail))
    x, y, detail = across, up, f"{other.label}: {across.text}; {up.text}"
    name = f"{places.get(other.spec, 'chosen,')} on the other tasks"
    points.append(Point(x.estimate, y.estimate, other.slug, name, detail))
    ends = [((x.low, y.estimate), (x.high, y.estimate)), ((x.estimate, y.low), (x.estimate, y.high))]
    lines = ends if math.isfinite(across.low) and math.isfinite(up.low) else []
    every = [*points, *(Point(*end, "", "") for line in lines for end in line)]
    left, right = min(0.0, *(each.x for each in every)), max(0.0, *(each.x for each in every))
    low, high = min(0.0, *(each.y for each in every)), max(0.0, *(each.y for each in every))
    zero = (
        Curve(((0.0, low), (0.0, high)), BASELINE, "as accurate as softmax", True, True),
        Curve(((left, 0.0), (right, 0.0)), BASELINE, "transfers as softmax does", True, True),
    )
    return Panel(
        "better-gains",
        "Gains on softmax: accuracy and transfer",
        "Gain in test accuracy, points",
        "Gain in linear transfer, points",
        tuple(points),
        (*zero, *(Curve(line, other.slug, f"{other.label}, 95 %") for line in lines)),
        size=(640, 420),
        finding="numbers as in the table; upper right: better in both; faint: single seeds",
    )
