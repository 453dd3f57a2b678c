"""The price of class separation by the number of classes that networks are trained on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from penultimate.objectives.presets import PRESETS, preset_of, resolve
from penultimate.paper.claims.aspects import QUANTITIES, Aspect
from penultimate.paper.claims.label_spaces import (
    CLASS_CLAIMS,
    COMPARED,
    LEAST_CHANGE,
    LabelSpace,
    arms_by_classes,
    class_spoken,
    label_spaces,
    prices,
)
from penultimate.paper.claims.strengths import PER, price_text
from penultimate.paper.exhibits.separation import LINEAR, R2_TRAIN
from penultimate.paper.exhibits.verdict_table import verdict_table
from penultimate.report.base import Cell, Column, Curve, ExhibitTable, Figure, Panel, Point, TableRow
from penultimate.report.measurements import Measurements, Seed
from penultimate.report.shapes.cells import run_cell
from penultimate.report.shapes.numbers import error_of, summarise
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import fixed
from penultimate.statistics import least_squares, mean

if TYPE_CHECKING:
    from penultimate.paper.claims.effects import Effect
    from penultimate.paper.claims.evidence import StudyEvidence

COLUMNS: tuple[tuple[Aspect, str, int], ...] = (
    ("accuracy", "Test accuracy, %", 2),
    ("separation", "R²", 3),
    ("linear", "Linear transfer, %", 2),
    ("knn", "kNN transfer, %", 2),
)
SEEN: tuple[Literal["linear", "knn"], ...] = ("linear", "knn")
FEWEST = "16 classes"
"""The arm that every study of several numbers of classes has."""
LEADING = ("classes-price", "classes-lines")
"""The panels that stand under the answer of a study of several numbers of classes."""


def _classes(measurements: Measurements) -> Piece:
    from penultimate.paper.claims.evidence import gather
    from penultimate.paper.claims.verdicts import judge

    evidence = gather(measurements)
    spaces = {aspect: label_spaces(evidence, aspect) for aspect in SEEN}
    if len(spaces["linear"]) < 2:
        return Piece(wanted=False)
    judged = [one for one in judge(evidence, CLASS_CLAIMS) if one.ours.missing is None]
    verdicts = verdict_table("classes", "The claims about the number of classes", judged)
    numbers = ExhibitTable(
        "classes_numbers",
        "The number in the rules on classes that other rules do not have",
        "Number",
        (Column("value", "Value"), Column("reason", "Why")),
        (
            TableRow(
                "Least change",
                (Cell(f"{LEAST_CHANGE.value:.3g}", LEAST_CHANGE.value), Cell(LEAST_CHANGE.reason)),
            ),
        ),
        folded=True,
    )
    return Piece(
        (verdicts, _prices_table(spaces), _networks_table(evidence), numbers),
        (_figure(spaces["linear"]),),
        notes=tuple(f"{OURS}: {one.claim.says}: {one.ours.verdict}. {one.ours.reason}" for one in judged[:1]),
        method=class_spoken(),
    )


def _prices_table(spaces: Mapping[Literal["linear", "knn"], Sequence[LabelSpace]]) -> ExhibitTable:
    effects = {aspect: prices(of) for aspect, of in spaces.items()}
    return ExhibitTable(
        "classes_prices",
        "The price of class separation, by the number of classes",
        "Classes",
        (
            Column("networks", "Networks"),
            Column("span", "Span of R²"),
            Column("linear", "Linear", "Points for each .1 of R²"),
            Column("knn", "kNN", "Points for each .1 of R²"),
        ),
        tuple(
            TableRow(
                str(one.classes),
                (
                    Cell(str(sum(len(of) for of in one.separation.values()))),
                    Cell(fixed(_span(one), 3), _span(one)),
                    *(_price_cell(effects[aspect].get(one.classes)) for aspect in SEEN),
                ),
            )
            for one in spaces["linear"]
        ),
    )


def _price_cell(effect: Effect | None) -> Cell:
    return Cell(price_text(effect), -effect.estimate) if effect else Cell("not judged")


def _span(space: LabelSpace) -> float:
    """Return the distance in R² between the objectives that separate least and most, by their means."""
    means = [x for x, _ in _means(space).values()]
    return max(means) - min(means)


def _means(space: LabelSpace) -> dict[str, tuple[float, float]]:
    """Return the mean R² and transfer of each objective, over the draws that it has."""
    return {name: (mean(x.values()), mean(y.values())) for name, (x, y) in _runs(space).items()}


def _runs(space: LabelSpace) -> dict[str, tuple[dict[Seed, float], dict[Seed, float]]]:
    sides = (space.separation, space.transfer)
    found = {
        name: tuple({draw: of[name] for draw, of in side.items() if name in of} for side in sides)
        for name in COMPARED
    }
    return {name: (x, y) for name, (x, y) in found.items() if x}


def _networks_table(evidence: StudyEvidence) -> ExhibitTable:
    rows = []
    for classes, of in arms_by_classes(evidence.measurements).items():
        here = evidence.with_arm(of.arm)
        columns = {aspect: here.values(aspect) for aspect, _, _ in COLUMNS}
        rows += [
            TableRow(
                f"{classes} classes: {resolve(one.spec).detailed_label}",
                tuple(
                    run_cell(columns[aspect].get(one.spec), digits, shows_error=True)
                    for aspect, _, digits in COLUMNS
                ),
                str(preset_of(one.spec)),
            )
            for one in of.objectives
            if preset_of(one.spec) in COMPARED
        ]
    return ExhibitTable(
        "classes_networks",
        "Every objective with every number of classes",
        "Classes, objective",
        tuple(Column(aspect, label) for aspect, label, _ in COLUMNS),
        tuple(rows),
        folded=True,
    )


def _figure(spaces: Sequence[LabelSpace]) -> Figure:
    """Return the price against the number of classes, and the lines of which it is the slope."""
    effects = prices(spaces)
    places = [(math.log2(classes), effect) for classes, effect in effects.items()]
    draws = dict.fromkeys(draw for one in spaces for draw in one.draws)
    own = {draw: [(math.log2(one.classes), _own_price(one, draw)) for one in spaces] for draw in draws}
    price = Panel(
        "classes-price",
        "The price of class separation",
        "Classes trained on, log₂",
        "Points of linear transfer for each .1 of R²",
        tuple(
            Point(
                place,
                -effect.estimate,
                "softmax",
                f"{classes} classes",
                f"{classes} classes: {price_text(effect)}",
            )
            for classes, (place, effect) in zip(effects, places, strict=True)
        ),
        (
            *(
                Curve(((place, -effect.high), (place, -effect.low)), "softmax", f"{classes} classes, 95 %")
                for classes, (place, effect) in zip(effects, places, strict=True)
            ),
            *(
                Curve(
                    tuple((place, value) for place, value in line if value is not None),
                    "softmax",
                    f"seed {draw}",
                    faint=True,
                )
                for draw, line in own.items()
                if sum(value is not None for _, value in line) > 1
            ),
        ),
        finding="upright lines: 95 % intervals; faint: single draws",
    )
    lines = Panel(
        "classes-lines",
        "Transfer against class separation",
        R2_TRAIN.label,
        LINEAR.label,
        tuple(
            Point(
                summarise(x.values()).mean,
                summarise(y.values()).mean,
                name,
                f"{one.classes} classes",
                f"{PRESETS[name].label}, {one.classes} classes",
                error_of(summarise(x.values())),
                error_of(summarise(y.values())),
            )
            for one in spaces
            for name, (x, y) in _runs(one).items()
        ),
        tuple(
            Curve(tuple(_means(one).values()), "softmax", f"{one.classes} classes", dashed=True)
            for one in spaces
        ),
        finding="a line joins softmax, the logit penalty and squared error of one number of classes",
    )
    return Figure(
        "classes",
        "The price of class separation, by the number of classes",
        "The slope of mean linear transfer on class separation within draws, against the number of classes"
        " trained on; and the means of the objectives, a line for each number of classes.",
        (price, lines),
    )


def _own_price(space: LabelSpace, draw: Seed) -> float | None:
    line = least_squares(*space.line(draw)) if draw in space.draws else None
    return None if line is None else PER * line.slope


CLASSES = Exhibit(
    name="classes",
    title="Sixteen ways or a hundred: the price of class separation by the number of classes",
    caption="Networks are trained on fewer or more classes, with as many images in all, and their features"
    " are tried on the same tasks. A price is the slope of mean transfer on R² within draws: below zero, the"
    " objectives that pull the classes further apart transfer worse.",
    parts=(
        Bespoke(
            _classes,
            tuple(QUANTITIES[aspect].of_arm(FEWEST) for aspect, _, _ in COLUMNS),
        ),
    ),
    place=1,
    measured_by="class_counts",
    of_given=False,
    summary="Transfer against class separation for 16 to 128 classes, and whether their number matters",
    short="Class by class",
)
