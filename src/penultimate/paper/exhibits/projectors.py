"""Objectives behind hidden layers that are thrown away: what transfer gains, and what accuracy loses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from penultimate.objectives.presets import resolve
from penultimate.paper.arms import BEHIND_A_PROJECTOR
from penultimate.paper.claims.aspects import QUANTITIES, Aspect
from penultimate.paper.claims.effects import BySeed, common_seeds
from penultimate.paper.claims.projectors import (
    ARMS,
    DEPTHS,
    OBJECTIVES,
    PROJECTOR_CLAIMS,
    STUDY,
    behind,
    by_depth,
    judge_projected,
    mean_by_depth,
    projector_spoken,
)
from penultimate.paper.claims.rules import Projected
from penultimate.paper.claims.trials import range_text
from penultimate.paper.exhibits.doses import TOP1
from penultimate.paper.exhibits.verdict_table import verdict_table
from penultimate.paper.families import Strength, complete, pareto_front
from penultimate.paper.panels import LINEAR
from penultimate.report.base import (
    MISSING,
    Cell,
    Column,
    Curve,
    ExhibitTable,
    Figure,
    Missing,
    Panel,
    Point,
    TableRow,
)
from penultimate.report.measurements import Measurements
from penultimate.report.shapes.cells import run_cell
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, listed, signed
from penultimate.statistics import mean

if TYPE_CHECKING:
    from penultimate.paper.claims.evidence import StudyEvidence
    from penultimate.paper.claims.verdicts import Judged

COLUMNS: tuple[tuple[Aspect, str, int], ...] = (
    ("accuracy", "Test accuracy, %", 2),
    ("separation", "R² of the features", 3),
    ("linear", "Linear transfer, %", 2),
    ("knn", "kNN transfer, %", 2),
)
SAID = {
    "projector_gain": ("linear transfer is better", "linear transfer is no better"),
    "projector_gain_knn": ("kNN transfer is better", "kNN transfer is no better"),
    "projector_spread": (
        "the objectives differ less in linear transfer",
        "the objectives do not differ less in linear transfer",
    ),
    "projector_accuracy": (
        "test accuracy is no lower than softmax's with none",
        "test accuracy is lower than softmax's with none",
    ),
}
"""What the finding says of two layers if a claim holds, and if it does not."""
SHADES = {behind(spec, depth): depth / DEPTHS[-1] for spec in OBJECTIVES for depth in DEPTHS}
"""How dark a mark of the figure is: the darker, the more layers are thrown away."""
Numbers: TypeAlias = Mapping[Aspect, Mapping[int, Mapping[str, BySeed]]]
"""Values of every aspect, by depth, objective and seed."""


def _projectors(measurements: Measurements) -> Piece:
    """Return the verdicts, every network's numbers, and the figure of a study with the arm."""
    from penultimate.paper.claims.evidence import gather
    from penultimate.paper.claims.verdicts import judge

    if BEHIND_A_PROJECTOR not in measurements.arms:
        return Piece(wanted=False)
    evidence = gather(measurements)
    judged = [one for one in judge(evidence, PROJECTOR_CLAIMS) if one.ours.missing is None]
    if not judged:
        what = "Objectives with hidden layers that are thrown away, and the same without"
        return Piece(missing=(Missing(what, f"penultimate run {STUDY}"),))
    numbers: Numbers = {aspect: by_depth(evidence, aspect) for aspect, _, _ in COLUMNS}
    networks = _networks(numbers)
    drawable = {
        name: [one for one in found.values() if {"separation", "linear", "accuracy"} <= {*one.values}]
        for name, found in networks.items()
    }
    shown = complete({name: found for name, found in drawable.items() if found})
    front = pareto_front([one for found in shown.values() for one in found])
    drawn = {one.spec for found in shown.values() for one in found}
    absent = [
        _label(spec, depth) for spec in OBJECTIVES for depth in DEPTHS if behind(spec, depth) not in drawn
    ]
    named = listed([one.label for one in front])
    notes = [
        f"{OURS}: {_finding(evidence, judged)}",
        *_ranges(numbers["linear"]),
        *_mediator(evidence, numbers),
        *([f"On the Pareto front of test accuracy and linear transfer, by means: {named}."] if front else []),
        *([f"On no curve, since not every seed has them: {listed(absent)}."] if absent else []),
    ]
    return Piece(
        (
            verdict_table("projectors", "The claims about layers that are thrown away", judged),
            _table(evidence, numbers),
        ),
        (_figure(shown),) if shown else (),
        notes=tuple(notes),
        method=projector_spoken(),
    )


def _label(spec: str, depth: int) -> str:
    return f"{resolve(spec).label} (depth {depth})"


def _networks(numbers: Numbers) -> dict[str, dict[int, Strength]]:
    """Return every objective at every depth that has any numbers."""
    found: dict[str, dict[int, Strength]] = {}
    for spec in OBJECTIVES:
        name = resolve(spec).preset or spec
        for depth in DEPTHS:
            values = {aspect: of[depth][spec] for aspect, of in numbers.items() if spec in of[depth]}
            if values:
                one = Strength(behind(spec, depth), name, _label(spec, depth), values)
                found.setdefault(name, {})[depth] = one
    return found


def _finding(evidence: StudyEvidence, judged: Sequence[Judged]) -> str:
    """Return the verdicts in a sentence, each with its number."""
    decided = [one for one in judged if one.ours.judged]
    if not decided:
        return f"What layers that are thrown away change cannot be said yet. {judged[0].ours.reason}"
    said = []
    for one in decided:
        rule = one.claim.rule
        trials = judge_projected(evidence, rule).every if isinstance(rule, Projected) else ()
        sizes = "; ".join(trial.text for trial in trials)
        holds, does_not = SAID[one.claim.key]
        words = {"holds": holds, "does not hold": does_not, "undecided": f"whether {holds} is open"}
        said.append(f"{words[one.ours.verdict]}: {sizes}")
    left = [f"whether {SAID[one.claim.key][0]}" for one in judged if not one.ours.judged]
    return (
        f"With {in_words(DEPTHS[-1])} hidden layers thrown away after training, {'; '.join(said)}."
        f"{f' Not judged: {listed(left)}.' if left else ''}"
    )


def _ranges(linear: Mapping[int, Mapping[str, BySeed]]) -> list[str]:
    """Return a sentence on how far apart the objectives' means lie at every depth that all have."""
    told = []
    for depth, of in linear.items():
        if all(of.get(spec) for spec in OBJECTIVES):
            means = [mean(runs.values()) for runs in of.values()]
            told.append(f"{fixed(min(means), 2)} to {fixed(max(means), 2)} % at depth {depth}")
    return [f"The objectives' linear transfer, by means: {listed(told)}."] if told else []


def _mediator(evidence: StudyEvidence, numbers: Numbers) -> list[str]:
    """Return a sentence on how class separation changes with depth, beside how transfer does."""
    sides = [numbers["separation"], numbers["linear"]]
    means = [mean_by_depth(of) for of in sides]
    first, last = DEPTHS[0], DEPTHS[-1]
    if not all({first, last} <= of.keys() for of in means):
        return []
    told = [
        f"{fixed(mean(of[first].values()), digits)} to {fixed(mean(of[last].values()), digits)}{unit}, by"
        f" {_change(evidence, of[last], of[first], digits).text}"
        for of, digits, unit in zip(means, (3, 2), ("", " %"), strict=True)
    ]
    changes = [
        [mean(of[last][spec].values()) - mean(of[first][spec].values()) for of in sides]
        for spec in OBJECTIVES
    ]
    count = sum(across < 0 < up for across, up in changes)
    return [
        f"R² as a mediator: from depth {first} to depth {last} the objectives' mean R² goes from {told[0]},"
        f" and their linear transfer from {told[1]}; R² falls and transfer rises in"
        f" {in_words(count, 'none')} of {counted(len(OBJECTIVES), 'objective')}."
    ]


def _table(evidence: StudyEvidence, numbers: Numbers) -> ExhibitTable:
    """Return every objective at every depth, with what it gains on itself with no layer thrown away."""
    columns = [
        column
        for aspect, label, _ in COLUMNS
        for column in (Column(aspect, "Mean", label), Column(f"{aspect}_gain", "Change (95 %)", label))
    ]
    rows = []
    for spec in OBJECTIVES:
        for depth in DEPTHS:
            runs = {aspect: (of[depth].get(spec), of[DEPTHS[0]].get(spec)) for aspect, of in numbers.items()}
            rows.append(_row(evidence, _label(spec, depth), runs, depth, resolve(spec).preset or spec))
    means = {aspect: mean_by_depth(of) for aspect, of in numbers.items()}
    for depth in DEPTHS:
        runs = {aspect: (of.get(depth), of.get(DEPTHS[0])) for aspect, of in means.items()}
        rows.append(_row(evidence, f"Mean of the objectives (depth {depth})", runs, depth))
    return ExhibitTable(
        "projectors_networks",
        "Every objective, by how many hidden layers are thrown away (depth)",
        "Objective",
        tuple(columns),
        tuple(row for row in rows if any(cell.value is not None for cell in row.cells)),
        notes=(
            "Features, and their R², are those before the layers that are thrown away, at every depth.",
            "Change: on the same at depth 0, within the seeds that have both.",
        ),
    )


def _row(
    evidence: StudyEvidence,
    label: str,
    runs: Mapping[Aspect, tuple[BySeed | None, BySeed | None]],
    depth: int,
    mark: str = "",
) -> TableRow:
    cells: list[Cell] = []
    for aspect, _, digits in COLUMNS:
        own, plain = runs[aspect]
        gain = _change(evidence, own or {}, plain or {}, digits) if depth else Cell(MISSING)
        cells += [run_cell(own, digits, shows_error=True), gain]
    return TableRow(label, tuple(cells), mark)


def _change(evidence: StudyEvidence, upper: BySeed, lower: BySeed, digits: int) -> Cell:
    """Return the difference within the seeds that both have, with its interval if there are several."""
    seeds = common_seeds([upper, lower])
    if not seeds:
        return Cell(MISSING, detail="no seed has both")
    effect = evidence.effect([upper, lower], [1, -1])
    size = signed(effect.estimate, digits)
    between = f" ({range_text(effect.low, effect.high, digits)})" if math.isfinite(effect.low) else ""
    return Cell(f"{size}{between}", effect.estimate, detail=f"within {counted(len(seeds), 'seed')}")


def _figure(shown: Mapping[str, Sequence[Strength]]) -> Figure:
    """Return linear transfer against test accuracy, a curve for each objective through its depths."""
    points, curves = list[Point](), list[Curve]()
    for name, found in shown.items():
        label = resolve(name).label
        places = [(one.mean("accuracy"), one.mean("linear")) for one in found]
        for one, (x, y) in zip(found, places, strict=True):
            told = f"{one.label}: {fixed(x, 1)} % test accuracy, {fixed(y, 1)} % linear transfer"
            points.append(Point(x, y, name, label, told, shade=SHADES[one.spec]))
        if len(found) > 1:
            curves.append(Curve(tuple(places), name, f"{label}, from no layer thrown away to the most"))
    panel = Panel(
        "projectors-frontier",
        "Accuracy against transfer; the darker, the more layers are thrown away",
        TOP1.label,
        LINEAR.label,
        tuple(points),
        tuple(curves),
        size=(640, 420),
    )
    return Figure(
        "projectors",
        "Test accuracy against linear transfer, by how many hidden layers are thrown away",
        "Mean linear transfer accuracy of the features before the layers that are thrown away, against test"
        " accuracy of the whole network, with the number of layers as the shade of a mark: a curve for each"
        " objective through no layer, one and two.",
        (panel,),
    )


PROJECTORS = Exhibit(
    name="projectors",
    title="A disposable last block: objectives behind hidden layers that are thrown away after training",
    caption="Each objective, at the strength that the holdout chose, is trained with no hidden layer between"
    " the penultimate features and its head, with one and with two (depth). These layers are dropped after"
    " training: features are read before them. Test accuracy is that of the network with them. Changes are"
    " within seeds, with 95 % intervals.",
    parts=(
        Bespoke(
            _projectors,
            tuple(QUANTITIES[aspect].of_arm(arm) for arm in ARMS for aspect, _, _ in COLUMNS),
        ),
    ),
    place=1,
    measured_by=STUDY,
    of_given=False,
    summary="Transfer and accuracy of objectives behind hidden layers that are thrown away after training",
    short="Layers thrown away",
)
