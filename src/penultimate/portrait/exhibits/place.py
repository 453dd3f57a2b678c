"""Where an objective stands: accuracy and class separation against transfer, its ranks, its strengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penultimate.data.catalog import shifted
from penultimate.portrait import STRENGTHS
from penultimate.portrait.exhibits import shows
from penultimate.portrait.traits import Trait, subject_of, trait, values
from penultimate.results.exhibit import Part
from penultimate.results.figure import Axis, Curve, Figure, Panel, Point, scatter
from penultimate.results.rows import Objective, Run
from penultimate.results.table import Cell, Column, table_of_rows
from penultimate.results.text import fixed
from penultimate.specs import parse_sum
from penultimate.statistics.comparison import LEVEL

if TYPE_CHECKING:
    import pandas as pd

TOP1 = Axis("Test accuracy where trained, %", unit="%")
LINEAR = Axis("Mean linear transfer accuracy, %", unit="%")
R2 = Axis("Class separation R² on the training images", 3)


def frames(run: Run, arm: str = "") -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return test accuracy, class separation and linear transfer [seed, objective] of an arm."""
    return (
        values(run, "top1", scale=100, arm=arm),
        values(run, "class_separation", "train", arm=arm),
        values(run, "linear_{accuracy}", scale=100, arm=arm),
    )


@shows("portrait_place", "Where it stands")
def portrait_place(run: Run) -> Iterator[Part]:
    """Accuracy on the classes trained on, and what the frozen features are worth on new tasks. All objectives
    are shown by the same seeds, each with its own draw of the images, and differences are tested within
    seeds."""
    subject = subject_of(run)
    if subject is None:
        return
    top1, r2, linear = frames(run)
    panels = (
        scatter(run, "portrait-accuracy", "Accuracy against transfer", top1, linear, (TOP1, LINEAR)),
        scatter(run, "portrait-separation", "Class separation against transfer", r2, linear, (R2, LINEAR)),
    )
    if any(panels):
        yield Figure("portrait_place", "Where it stands", tuple(filter(None, panels)))
    asked = {
        TOP1.label: top1,
        "Training accuracy, %": values(run, "top1", "train", 100),
        "Linear transfer, mean of the tasks, %": linear,
        "kNN transfer, mean of the tasks, %": values(run, "knn_{accuracy}", scale=100),
        "Class separation R²": r2,
        "Calibration error (ECE), %": values(run, "ece", scale=100),
    }
    if nearest := shifted(run.source).get("v2"):
        found = values(run, "top1", scale=100, target=nearest)
        asked["Test accuracy on the nearest shifted set, %"] = found
    rows, alone = [], []
    for name, runs in asked.items():
        digits = 3 if runs is r2 else 1
        if one := trait(name, runs, subject.slug, digits):
            rows.append((name, _cells(one, run.baseline)))
        if subject.slug in runs:
            alone.append((name, [_own(runs[subject.slug], digits)]))
    minus = f"Minus {run.labels().get(run.baseline, 'the first').lower()} (95 %)"
    heads = {"value": "Its value", "difference": minus, "rank": "Its place", "range": "The others"}
    columns = [Column(key, label) for key, label in {**heads, "told": "Beyond chance"}.items()]
    yield table_of_rows(
        "portrait_place",
        "Its ranks, beside the others" if rows else "Its own numbers",
        columns if rows else columns[:1],
        rows or alone,
        corner="Quantity",
        notes=("Places are from the highest value. The others: their lowest and highest mean.",) * bool(rows),
    )
    yield standing(run, subject)


def _own(runs: pd.Series, digits: int) -> Cell:
    error = f" ± {fixed(runs.sem(), digits)}" if runs.count() > 1 else ""
    return Cell(float(runs.mean()), f"{fixed(runs.mean(), digits)}{error}")


def _cells(one: Trait, baseline: str) -> list[Any]:
    gap, place = one.minus(baseline), 1 + int((one.others > one.value).sum())
    difference = Cell(gap.mean, one.change(gap)) if gap else None
    of = f"{place} of {len(one.others) + 1}"
    own = _own(one.runs[one.own], one.digits)
    return [own, difference, of, one.span(), gap.beyond_chance if gap else None]


def standing(run: Run, subject: Objective) -> str | None:
    """Return a sentence on accuracy and transfer, against the baseline if it can be compared with it."""
    top1, _, linear = frames(run)
    compared, alone = [], []
    for runs, verb, words, own in (
        (
            top1,
            "is {} points {} accurate where it was trained",
            ("more", "less"),
            "is {} % accurate where it was trained",
        ),
        (linear, "transfers {} points {}", ("better", "worse"), "transfers at {} %"),
    ):
        one = trait("", runs, subject.slug)
        if one is not None and run.baseline in one.others:
            gap, size = one.minus(run.baseline), one.value - float(one.others[run.baseline])
            sure = "beyond chance" if gap and gap.p <= LEVEL else "not beyond chance"
            compared.append(f"{verb.format(fixed(abs(size), 1), words[size < 0])} ({sure})")
        if subject.slug in runs:
            alone.append(own.format(fixed(runs[subject.slug].mean(), 1)))
    if compared:
        label = run.labels()[run.baseline].lower()
        return f"Compared with {label}, {subject.label} {' and '.join(compared)}."
    end = " No other objective stands beside it." if len(run.objectives()) == 1 else ""
    return f"{subject.label} {' and '.join(alone)}.{end}" if alone else None


@shows("portrait_strengths", "What its strength changes")
def portrait_strengths(run: Run) -> Iterator[Part]:
    """Networks at each value that the search tried, trained and measured as the one that was chosen, but on
    one seed. Faint: the other objectives on the same seed, at the strengths of their own searches."""
    subject, grids = subject_of(run), run.grids(STRENGTHS)
    if subject is None or not grids:
        return
    owner, _, name = str(grids[0].get("swept", "")).rpartition(".")
    (seed,), slug = grids[0]["seeds"], subject.slug
    of_arm, found = frames(run, STRENGTHS), dict[float, list[float]]()
    for each in run.objectives(STRENGTHS):
        numbers = _at(of_arm, seed, each.slug)
        if numbers and each.spec in grids[0]["objectives"]:
            value = next(term.arguments[name] for term in parse_sum(each.spec) if term.name == owner)
            found[float(value)] = numbers
    if len(found) < 2:
        return
    own, rows = [], []
    for value in sorted(found):
        label, (_, x, y) = f"{name} = {value:g}", found[value]
        own.append(Point(x, y, slug, label, f"{fixed(x, R2.digits)}, {fixed(y, LINEAR.digits)} %"))
        rows.append((label, found[value]))
    main, labels = frames(run), run.labels()
    others = {other: _at(main, seed, other) for other in labels if other != slug}
    faint = [
        Point(at[1], at[2], other, labels[other], f"seed {seed}", faint=True)
        for other, at in others.items()
        if at
    ]
    curve = Curve(tuple((point.x, point.y) for point in own), slug, f"from small to large {name}")
    title = "Class separation against transfer, as its strength changes"
    panel = Panel("portrait-strengths", title, R2.label, LINEAR.label, (*faint, *own), (curve,))
    yield Figure("portrait_strengths", "What its strength changes", (panel,))
    columns = [
        Column("accuracy", TOP1.label),
        Column("separation", "Class separation R²", digits=3),
        Column("transfer", "Linear transfer, mean of the tasks, %"),
    ]
    notes = (f"All on seed {seed}.",)
    yield table_of_rows(
        "portrait_strengths", "At each strength", columns, rows, corner="Strength", notes=notes
    )


def _at(of_each: Any, seed: int, slug: str) -> list[float]:
    """Return the numbers of one network in each frame [seed, objective]; nothing if one lacks it."""
    numbers = [float(frame.at[seed, slug]) for frame in of_each if slug in frame and seed in frame.index]
    return numbers if len(numbers) == len(of_each) and all(value == value for value in numbers) else []
