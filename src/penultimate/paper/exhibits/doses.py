"""Families of objectives at several strengths: transfer against class separation, and against accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from penultimate.objectives.presets import resolve
from penultimate.paper.claims.aspects import QUANTITIES, Aspect
from penultimate.paper.claims.doses import DOSE_CLAIMS, FAMILIES
from penultimate.paper.claims.effects import common_seeds
from penultimate.paper.claims.strengths import PER
from penultimate.paper.claims.trials import range_text
from penultimate.paper.exhibits.verdict_table import verdict_table
from penultimate.paper.families import (
    COVARIATES,
    FURTHER,
    SHOWN,
    Strength,
    below_softmax_in_training,
    complete,
    distinct,
    families_of,
    left_out,
    pareto_front,
    with_covariates,
)
from penultimate.paper.panels import LINEAR, R2_TRAIN
from penultimate.paper.printed import mean_of_printed
from penultimate.report.base import MISSING, Cell, Column, Curve, ExhibitTable, Figure, Panel, Point, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.shapes.cells import run_cell
from penultimate.report.shapes.numbers import error_of
from penultimate.report.shapes.scatter import PrintedPanel
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import fixed, listed, signed

if TYPE_CHECKING:
    from penultimate.paper.claims.criteria import Criterion
    from penultimate.paper.claims.evidence import StudyEvidence
    from penultimate.statistics import PartialSlope

KNN = Quantity("knn_{accuracy}", label="Mean kNN transfer accuracy, %", target="targets")
TOP1 = Quantity("top1", label="Test accuracy on the classes trained on, %")
COLUMNS: tuple[tuple[Aspect, str, int], ...] = (
    ("separation", "R²", 3),
    ("accuracy", "Test accuracy, %", 2),
    ("train", "Training accuracy, %", 2),
    ("linear", "Linear transfer, %", 2),
    ("knn", "kNN transfer, %", 2),
)
NAMES_OF_COVARIATES: Mapping[Aspect, str] = {
    "separation": "R²",
    "accuracy": "Test accuracy",
    "train": "Training accuracy",
}
KINDS: tuple[tuple[Literal["linear", "knn"], str, str], ...] = (
    ("linear", "linear", LINEAR.label),
    ("knn", "kNN", KNN.label),
)
LEADING = ("doses-linear", "doses-linear-published")
"""The panels that stand under the answer of a study of strengths."""
IN_PAPER = {
    kind: PrintedPanel(
        f"doses-{kind}-published",
        f"The paper's nine objectives ({words})",
        ("neurips_table3_class_separation", "class_separation_r2"),
        (f"neurips_table1_{kind}", mean_of_printed),
        R2_TRAIN.label,
        label,
        x_digits=3,
    )
    for kind, words, label in KINDS
}


def _doses(measurements: Measurements) -> Piece:
    """Return the verdicts, the prices, the pairs and the figures of a study of strengths."""
    from penultimate.paper.claims.doses import dose_reasons, dose_spoken
    from penultimate.paper.claims.evidence import gather
    from penultimate.paper.claims.verdicts import judge

    evidence = gather(measurements)
    families = families_of(evidence)
    if len(families) < 2:
        return Piece(wanted=False)
    judged = [one for one in judge(evidence, DOSE_CLAIMS) if one.ours.missing is None]
    verdicts = verdict_table("doses", "The claims about strengths", judged)
    shown = complete(families)
    front = pareto_front(distinct(shown))
    absent = left_out(evidence, shown)
    named = listed([one.label for one in front])
    tables = (
        *([verdicts] if judged else []),
        _prices_table(evidence),
        _strengths_table(families, front),
        *_beside(measurements, families),
        _numbers_table(dose_reasons()),
    )
    return Piece(
        tables,
        _figures(shown) if shown else (),
        notes=(
            *(f"{OURS}: {one.claim.says}: {one.ours.verdict}. {one.ours.reason}" for one in judged[:1]),
            *(
                [f"On the Pareto front of test accuracy and linear transfer, by means: {named}."]
                if front
                else []
            ),
            *([f"On no curve, since not every seed has them: {listed(absent)}."] if absent else []),
        ),
        method=dose_spoken(),
    )


def _strengths_table(families: Mapping[str, Sequence[Strength]], front: Sequence[Strength]) -> ExhibitTable:
    best = {one.spec for one in front}
    columns = tuple(Column(aspect, label) for aspect, label, _ in COLUMNS)
    rows = tuple(
        TableRow(
            one.label + (" ◆" if one.spec in best else ""),
            tuple(
                run_cell(one.values.get(aspect), digits, shows_error=True) for aspect, _, digits in COLUMNS
            ),
            one.mark,
        )
        for one in distinct(families)
    )
    return ExhibitTable(
        "doses_strengths",
        "Every strength",
        "Objective",
        columns,
        rows,
        notes=("◆ On the Pareto front of test accuracy and linear transfer.",),
        folded=True,
    )


def _beside(
    measurements: Measurements, families: Mapping[str, Sequence[Strength]]
) -> tuple[ExhibitTable, ...]:
    """Return what decides nothing: covariates of transfer, and softmax in training at equal accuracy."""
    together = with_covariates(families, COVARIATES) or []
    alone = [next(iter(with_covariates(families, (aspect,)) or ()), None) for aspect in COVARIATES]
    covariates = ExhibitTable(
        "doses_covariates",
        "Covariates: linear transfer within each family and seed",
        "Regressed on",
        (
            Column("alone", "By itself", "Points of transfer"),
            Column("together", "With the two others", "Points of transfer"),
            Column("inflation", "Variance inflation"),
        ),
        tuple(
            TableRow(
                f"{NAMES_OF_COVARIATES[aspect]}{', each .1' if aspect == 'separation' else ', each point'}",
                (_slope_cell(single, aspect), _slope_cell(one, aspect), Cell(fixed(one.inflation, 1))),
            )
            for aspect, one, single in zip(COVARIATES, together, alone, strict=False)
        ),
        notes=("± is the standard error of a slope. Covariates are outcomes too: they decide nothing.",),
        folded=True,
    )
    deficits = [(one, below_softmax_in_training(measurements, one)) for one in distinct(families)]
    rows = tuple(
        TableRow(
            one.label,
            (
                run_cell(one.values.get("accuracy"), 2),
                replace(run_cell(of, 2, shows_error=True), of_runs=False),  # its seeds have a column
                Cell(str(len(of)), len(of)),
            ),
            one.mark,
        )
        for one, of in deficits
        if of
    )
    line = ExhibitTable(
        "doses_line",
        "Beside softmax in training, when it was as accurate",
        "Objective",
        (
            Column("accuracy", "Test accuracy, %"),
            Column("deficit", "Linear transfer, less softmax's then, points"),
            Column("seeds", "Seeds in which softmax ever was"),
        ),
        rows,
        notes=(
            "Softmax's transfer between snapshots, where its accuracy on 5,120 test images first reaches the"
            " objective's: below zero, the objective transfers worse than being under-trained explains.",
        ),
        folded=True,
    )
    return (*((covariates,) if covariates.rows else ()), *((line,) if rows else ()))


def _slope_cell(slope: PartialSlope | None, aspect: Aspect) -> Cell:
    if slope is None:
        return Cell(MISSING)
    per = PER if aspect == "separation" else 1
    return Cell(f"{signed(per * slope.slope, 2)} ± {fixed(per * slope.error, 2)}", per * slope.slope)


def _numbers_table(reasons: Sequence[tuple[str, Criterion]]) -> ExhibitTable:
    return ExhibitTable(
        "doses_numbers",
        "Every number in the rules on strengths, and why it is this one",
        "Number",
        (Column("value", "Value"), Column("reason", "Why")),
        tuple(
            TableRow(
                name.replace("_", " ").capitalize(),
                (Cell(f"{criterion.value:.3g}", criterion.value), Cell(criterion.reason)),
            )
            for name, criterion in reasons
        ),
        folded=True,
    )


def _prices_table(evidence: StudyEvidence) -> ExhibitTable:
    """Return the price of every family: linear and kNN transfer, and linear transfer within the window."""
    from penultimate.paper.claims.criteria import CRITERIA
    from penultimate.paper.claims.doses import WINDOW
    from penultimate.paper.claims.strengths import curve_of, price_effect, price_text
    from penultimate.statistics import resampled_mean

    rows = []
    for family in (*FAMILIES, *FURTHER):
        linear, knn = (curve_of(evidence, family, aspect) for aspect in ("linear", "knn"))
        if linear is None:
            continue
        inside, prices = linear.among(WINDOW.get(family, ())), [*linear.prices().values()]
        cells = [
            Cell(str(len(linear.separation))),
            Cell(f"{fixed(linear.span, 3)}"),
            *(
                Cell(price_text(effect) if effect else "not judged")
                for effect in (
                    price_effect(curve.prices(), CRITERIA) if curve else None
                    for curve in (linear, knn, inside)
                )
            ),
            Cell(range_text(*resampled_mean(prices), 2) if prices else "not judged"),
        ]
        rows.append(TableRow(resolve(family).label, tuple(cells), family))
    columns = (
        Column("strengths", "Strengths"),
        Column("span", "Span of R²"),
        Column("linear", "Linear", "Points for each .1 of R²"),
        Column("knn", "kNN", "Points for each .1 of R²"),
        Column("window", "Linear, in the window", "Points for each .1 of R²"),
        Column("bootstrap", "Linear, seeds resampled", "Points for each .1 of R²"),
    )
    told = [resolve(family).label for family in FURTHER if any(row.objective == family for row in rows)]
    notes = (f"Told, and judged by no rule: {listed(told)}.",) if told else ()
    return ExhibitTable(
        "doses_prices", "The price of class separation", "Family", columns, tuple(rows), notes=notes
    )


def _figures(families: Mapping[str, Sequence[Strength]]) -> tuple[Figure, ...]:
    """Return transfer against class separation beside the paper's, and transfer against accuracy."""
    ours = {
        kind: Panel(
            f"doses-{kind}",
            f"Families of objectives here ({words})",
            R2_TRAIN.label,
            label,
            _points(families, "separation", kind),
            _curves(families, "separation", kind),
            finding="a curve joins the strengths of a family; faint: single seeds",
        )
        for kind, words, label in KINDS
    }
    frontier = Panel(
        "doses-frontier",
        "Accuracy against transfer; the darker, the larger R²",
        TOP1.label,
        LINEAR.label,
        _points(families, "accuracy", "linear", shaded=True),
        _curves(families, "accuracy", "linear", of_seeds=False),
        size=(640, 420),
    )
    return (
        Figure(
            "doses",
            "Class separation against transfer, as strength is varied",
            "Mean transfer accuracy against class separation: a curve for each family of objectives, through"
            " softmax where it is strength zero, and the paper's nine objectives beside it.",
            tuple(panel for kind, _, _ in KINDS for panel in (ours[kind], IN_PAPER[kind].panel())),
        ),
        Figure(
            "doses-frontier",
            "Accuracy on the pretraining classes against transfer",
            "Mean linear transfer accuracy against test accuracy, with class separation as the shade of a"
            " mark: a curve for each family of objectives.",
            (frontier,),
        ),
    )


def _points(
    families: Mapping[str, Sequence[Strength]], across: Aspect, up: Aspect, shaded: bool = False
) -> tuple[Point, ...]:
    shown = [one for one in distinct(families) if {across, up} <= {*one.values}]
    separations = [one.mean("separation") for one in shown]
    low, high = min(separations), max(separations)
    return tuple(
        Point(
            one.mean(across),
            one.mean(up),
            one.mark,
            resolve(one.mark).label,
            f"{one.label}: R² {fixed(one.mean('separation'), 3)}, {fixed(one.mean(up), 1)} %",
            *((None, None) if shaded else (error_of(one.summary(across)), error_of(one.summary(up)))),
            shade=(one.mean("separation") - low) / (high - low) if shaded and high > low else None,
        )
        for one in shown
    )


def _curves(
    families: Mapping[str, Sequence[Strength]], across: Aspect, up: Aspect, of_seeds: bool = True
) -> tuple[Curve, ...]:
    """Return the curve of each family through its means, and faint ones of its seeds."""
    curves = []
    for family, found in families.items():
        whole = [one for one in found if {across, up} <= {*one.values}]
        label = resolve(family).label
        seeds = common_seeds(one.values[aspect] for one in whole for aspect in (across, up)) if whole else []
        for seed in seeds if of_seeds and len(seeds) > 1 else ():
            line = tuple((one.values[across][seed], one.values[up][seed]) for one in whole)
            curves.append(Curve(line, family, f"{label}, seed {seed}", faint=True))
        if len(whole) > 1:
            line = tuple((one.mean(across), one.mean(up)) for one in whole)
            curves.append(Curve(line, family, f"{label}, from the weakest strength to the strongest"))
    return tuple(curves)


DOSES = Exhibit(
    name="doses",
    title="One curve or many: transfer as the strength of an objective is varied",
    caption="Each mark is an objective at one strength, a mean over seeds with standard errors; a curve joins"
    " the strengths of a family, through softmax where that is its strength zero, and faint curves are single"
    " seeds. To the right: classes pulled further apart. Up: features that serve the new tasks better. The"
    " strength is what was set; class separation is an outcome.",
    parts=(
        Bespoke(
            _doses,
            tuple(
                QUANTITIES[aspect].of_arm(family)
                for family in SHOWN
                for aspect in ("accuracy", "separation", "linear", "knn")
            ),
        ),
    ),
    place=1,
    measured_by="sweep",
    of_given=False,
    summary="Transfer against class separation in families of strengths, and what they come to",
    short="Strength by strength",
)
