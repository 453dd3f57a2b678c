"""Where an objective stands: accuracy against transfer, class separation against transfer, and its ranks."""

from __future__ import annotations

from penultimate.portrait.traits import Trait, subject_of, trait, within_seeds
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, Figure, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.scatter import ScatterPanel
from penultimate.report.spec import OURS, PORTRAIT, Bespoke, Exhibit, Piece
from penultimate.report.text import fixed, p_value
from penultimate.statistics.summary import MeanWithError, mean, summarise

LINEAR = Quantity("linear_{accuracy}", target="targets", label="Mean linear transfer accuracy, %")
TOP1 = Quantity("top1", label="Test accuracy where trained, %")
R2 = Quantity("class_separation", "train", label="Class separation R² on the training images")
PANELS = (
    ScatterPanel("portrait-accuracy", "Accuracy against transfer", TOP1, LINEAR, ""),
    ScatterPanel("portrait-separation", "Class separation against transfer", R2, LINEAR, ""),
)
ASKED = (
    (TOP1, "Test accuracy where trained, %"),
    (Quantity("top1", "train"), "Training accuracy, %"),
    (LINEAR, "Linear transfer, mean of the tasks, %"),
    (Quantity("knn_{accuracy}", target="targets"), "kNN transfer, mean of the tasks, %"),
    (R2, "Class separation R²"),
    (Quantity("ece", factor=100, decimals=1), "Calibration error (ECE), %"),
    (Quantity("top1", target="v2"), "Test accuracy on the nearest shifted set, %"),
)
COLUMNS = (
    Column("value", "Its value"),
    Column("difference", "Minus {baseline} (95 %)"),
    Column("rank", "Its place"),
    Column("range", "The others"),
    Column("told", "Beyond chance"),
)


def _table(measurements: Measurements, subject: StudyObjective) -> ExhibitTable | None:
    baseline = measurements.baseline
    found = [(trait(measurements, subject.spec, quantity, name)) for quantity, name in ASKED]
    rows = tuple(_row(one, baseline) for one in found if one is not None)
    if not rows:
        return _alone(measurements, subject)
    label = measurements.objective(baseline).label if baseline else "the first"
    columns = tuple(Column(of.key, of.label.format(baseline=label.lower())) for of in COLUMNS)
    notes = ("Places are counted from the highest value. The others: their lowest and highest mean.",)
    return ExhibitTable(
        "portrait_place", "Its ranks, beside the others", "Quantity", columns, rows, notes=notes
    )


def _alone(measurements: Measurements, subject: StudyObjective) -> ExhibitTable | None:
    """Return the objective's own numbers, where nothing stands beside it that they can be compared with."""
    rows = []
    for quantity, name in ASKED:
        runs = measurements.values(quantity).get(subject.spec, {})
        if runs:
            summary = summarise([quantity.scale * value for value in runs.values()])
            rows.append(TableRow(name, (_value(summary, quantity),)))
    if not rows:
        return None
    return ExhibitTable("portrait_place", "Its own numbers", "Quantity", COLUMNS[:1], tuple(rows))


def _value(summary: MeanWithError, quantity: Quantity) -> Cell:
    error = "" if summary.is_single else f" ± {fixed(summary.standard_error, quantity.digits)}"
    return Cell(f"{fixed(summary.mean, quantity.digits)}{error}", summary.mean, of_runs=True)


def _row(one: Trait, baseline: str) -> TableRow:
    summary = summarise([one.quantity.scale * value for value in one.own.values()])
    gap = within_seeds(one.own, one.others[baseline]) if baseline in one.others else None
    difference = (
        f"{one.change(gap.mean)} ({one.change(gap.low)} to {one.change(gap.high)})" if gap else MISSING
    )
    ends = f"{one.text(min(one.means.values()))} to {one.text(max(one.means.values()))}"
    told = MISSING if gap is None else f"{'yes' if gap.is_beyond_chance else 'no'}, {p_value(gap.p)}"
    cells = (
        _value(summary, one.quantity),
        Cell(difference, gap.mean * one.quantity.scale if gap else None),
        Cell(f"{one.place} of {len(one.means) + 1}"),
        Cell(ends),
        Cell(told),
    )
    return TableRow(one.name, cells)


def standing(measurements: Measurements, subject: StudyObjective) -> str:
    """Return a sentence on accuracy and transfer, against the baseline if it can be compared with it.

    It is "" if neither was measured.
    """
    parts = []
    baseline = measurements.baseline
    for quantity, verb in ((TOP1, "is {} where it was trained"), (LINEAR, "transfers {}")):
        one = trait(measurements, subject.spec, quantity, "")
        if one is None or baseline not in one.others:
            continue
        gap = within_seeds(one.own, one.others[baseline])
        size = one.quantity.scale * (one.value - one.means[baseline])
        words = ("more accurate", "less accurate") if quantity is TOP1 else ("better", "worse")
        amount = f"{fixed(abs(size), 1)} points {words[size < 0]}"
        sure = gap is not None and gap.is_beyond_chance
        parts.append(f"{verb.format(amount)}{' (beyond chance)' if sure else ' (not beyond chance)'}")
    if not parts:
        return _own_words(measurements, subject)
    label = measurements.objective(baseline).label.lower()
    return f"Compared with {label}, {subject.label} {' and '.join(parts)}."


def _own_words(measurements: Measurements, subject: StudyObjective) -> str:
    """Return a sentence on accuracy and transfer alone, or "" if neither was measured."""
    parts = []
    for quantity, verb in ((TOP1, "is {} % accurate where it was trained"), (LINEAR, "transfers at {} %")):
        runs = measurements.values(quantity).get(subject.spec, {})
        if runs:
            parts.append(verb.format(fixed(quantity.scale * mean(runs.values()), quantity.digits)))
    if not parts:
        return ""
    told = " No other objective stands beside it." if len(measurements.objectives) == 1 else ""
    return f"{subject.label} {' and '.join(parts)}.{told}"


def _place(measurements: Measurements) -> Piece:
    subject = subject_of(measurements)
    if subject is None:
        return Piece(wanted=False)
    panels = tuple(panel for shape in PANELS if (panel := shape.panel(measurements)) is not None)
    table = _table(measurements, subject)
    said = standing(measurements, subject)
    figure = Figure(
        "portrait_place",
        "Where it stands",
        "Scatter plots of accuracy and of class separation against linear transfer, a mark an objective.",
        panels,
    )
    return Piece(
        (table,) if table else (),
        (figure,) if panels else (),
        notes=(f"{OURS}: {said[0].lower()}{said[1:]}",) if said else (),
    )


PLACE = Exhibit(
    name="portrait_place",
    title="Where it stands",
    caption="Accuracy on the classes trained on, and what the frozen features are worth on new tasks. All"
    " objectives are shown by the same seeds, each with its own draw of the images, and differences are"
    " tested within seeds.",
    parts=(Bespoke(_place),),
    page="portrait",
    measured_by=PORTRAIT,
    place=1,
    of_given=False,
    summary="Of a portrait: accuracy against transfer, and the objective's ranks",
    short="Where it stands",
)
