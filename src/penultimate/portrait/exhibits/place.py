"""Where an objective stands: accuracy against transfer, class separation against transfer, and its ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penultimate.data.catalog import shifted
from penultimate.portrait.exhibits import shows
from penultimate.portrait.traits import Trait, subject_of, trait, values
from penultimate.results.exhibit import Part
from penultimate.results.figure import Axis, Figure, scatter
from penultimate.results.rows import Objective, Run
from penultimate.results.table import Cell, Column, table_of_cells
from penultimate.results.text import fixed
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
        name = "Test accuracy on the nearest shifted set, %"
        asked[name] = values(run, "top1", scale=100, target=nearest)
    found = {name: (runs, 3 if runs is r2 else 1) for name, runs in asked.items()}
    made = [trait(name, runs, subject.slug, digits) for name, (runs, digits) in found.items()]
    rows = [(one.name, _cells(one, run.baseline)) for one in made if one is not None]
    alone = [
        (name, [_own(runs[subject.slug], digits)])
        for name, (runs, digits) in found.items()
        if subject.slug in runs and not rows
    ]
    minus = f"Minus {run.labels().get(run.baseline, 'the first').lower()} (95 %)"
    heads = {"value": "Its value", "difference": minus, "rank": "Its place", "range": "The others"}
    columns = [Column(key, label) for key, label in {**heads, "told": "Beyond chance"}.items()]
    yield table_of_cells(
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
    return [_own(one.runs[one.own], one.digits), difference, of, one.span(), gap.told if gap else None]


def standing(run: Run, subject: Objective) -> str | None:
    """Return a sentence on accuracy and transfer, against the baseline if it can be compared with it."""
    top1, _, linear = frames(run)
    verbs = (
        (top1, "is {} points {} where it was trained", ("more accurate", "less accurate")),
        (linear, "transfers {} points {}", ("better", "worse")),
    )
    parts = []
    for runs, verb, words in verbs:
        one = trait("", runs, subject.slug)
        if one is not None and run.baseline in one.others:
            gap, size = one.minus(run.baseline), one.value - float(one.others[run.baseline])
            sure = "beyond chance" if gap and gap.p <= LEVEL else "not beyond chance"
            parts.append(f"{verb.format(fixed(abs(size), 1), words[size < 0])} ({sure})")
    if parts:
        label = run.labels()[run.baseline].lower()
        return f"Compared with {label}, {subject.label} {' and '.join(parts)}."
    own = ((top1, "is {} % accurate where it was trained"), (linear, "transfers at {} %"))
    parts = [verb.format(fixed(of[subject.slug].mean(), 1)) for of, verb in own if subject.slug in of]
    alone = " No other objective stands beside it." if len(run.objectives()) == 1 else ""
    return f"{subject.label} {' and '.join(parts)}.{alone}" if parts else None
