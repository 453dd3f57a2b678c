"""The main claim on every path: what it comes to under each choice, and which choice decides."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from penultimate.paper.arms import PAPERS_STRENGTHS
from penultimate.paper.claims.criteria import CRITERIA
from penultimate.paper.families import SHOWN
from penultimate.paper.layers import PROBES as OF_LAYERS
from penultimate.paper.paths import choices
from penultimate.paper.paths.choices import CHOICES, INDEXES, LISTED, PROBES, TRAINED
from penultimate.report.base import (
    MISSING,
    Cell,
    Column,
    ExhibitTable,
    Figure,
    Missing,
    Panel,
    SortedEstimates,
    Strip,
    TableRow,
)
from penultimate.report.drawing.estimates import estimates_size
from penultimate.report.measurements import Measurements
from penultimate.report.quantity import Quantity
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, listed, plain, signed

if TYPE_CHECKING:
    from penultimate.paper.paths.curve import Deciding, Specification, SpecificationCurve

WORDS = {
    choices.TRAINED: "what is trained",
    choices.INDEX: "the index of separation",
    choices.PROBE: "the probe",
    choices.OBJECTIVES: "which objectives are compared",
    choices.DRAWS: "the draws of the images",
    choices.LAYER: "the layer that is probed",
}
"""The choices as they stand in a sentence."""


def _build(measurements: Measurements) -> Piece:
    """Return the curve, its tables, and sentences on the shares of paths and on what decides."""
    from penultimate.paper.paths.curve import specification_curve

    if len(measurements.objectives) < CRITERIA.least_objectives.value:
        return Piece(wanted=False)
    curve = specification_curve(measurements)
    if not curve.paths:
        return Piece(missing=(Missing("Class separation and transfer of six objectives or more"),))
    deciding = curve.deciding()
    tables = (
        _levels_table(curve),
        *([_deciding_table(deciding)] if deciding else []),
        _paths_table(curve),
    )
    return Piece(tables, (_figure(curve),), _sentences(curve, deciding), method=_method(curve))


def _sentences(curve: SpecificationCurve, deciding: Sequence[Deciding]) -> tuple[str, ...]:
    return (
        f"{OURS}: {shares_sentence(curve)} {deciding_sentence(curve, deciding)}".strip(),
        trained_sentence(curve),
        _rule_sentence(curve.paths),
    )


def shares_sentence(curve: SpecificationCurve) -> str:
    """Return on what share of the paths the claim is borne out, has its sign, and is contradicted."""
    paths = curve.paths
    holds, sign, contradicts = (_share(paths, name) for name in ("holds", "is_negative", "contradicts"))
    return (
        "that objectives which separate the classes further transfer worse is borne out on"
        f" {holds} of {len(paths)} paths through these choices (ρ and its 95 % interval lie below 0), has its"
        f" sign on {sign}, and is contradicted on {contradicts} (both lie above 0)."
    )


def deciding_sentence(curve: SpecificationCurve, deciding: Sequence[Deciding]) -> str:
    """Return which choice decides, between which levels, and what the others explain; or nothing."""
    if not deciding:
        return ""
    (first, most), *others = sorted(deciding[0].shares.items(), key=lambda one: -one[1])
    said = [f"{WORDS[choice]} {_percent(share)}" for choice, share in others]
    also = f", {listed(said)}" if said else ""
    medians = {level: median(path.rho for path in of) for level, of in curve.groups(first).items()}
    low, high = (pick(medians, key=medians.__getitem__) for pick in (min, max))
    name = WORDS[first]
    return (
        f"{name[0].upper()}{name[1:]} decides: it explains {_percent(most)} of the variance of ρ where these"
        f" choices are crossed{also}. The median ρ runs from {fixed(medians[low], 2)} (“{low}”) to"
        f" {fixed(medians[high], 2)} (“{high}”)."
    )


def trained_sentence(curve: SpecificationCurve) -> str:
    """Return the median ρ by what is trained, with the share of paths that have the claim's sign."""
    said = [
        f"“{level}” {fixed(median(path.rho for path in paths), 2)} ({len(paths)} paths,"
        f" {_share(paths, 'is_negative')} below 0, {_share(paths, 'holds')} with the interval)"
        for level, paths in curve.groups(TRAINED).items()
    ]
    return f"The median ρ by what is trained: {listed(said)}."


def _rule_sentence(paths: Sequence[Specification]) -> str:
    from penultimate.paper.claims.effects import decide

    count = Counter(decide(path.effect) for path in paths)
    least = fixed(-CRITERIA.least_correlation.value, 2)
    return (
        f"By the rule of the main claim (ρ of {least} or less, beyond chance) it holds on {count['holds']} of"
        f" the {len(paths)} paths, does not hold on {count['does not hold']}, and is undecided on"
        f" {count['undecided']}."
    )


def _share(paths: Sequence[Specification], name: str) -> str:
    return _percent(sum(getattr(path, name) for path in paths) / len(paths))


def _percent(share: float) -> str:
    """Return a share in per cent; one that is not zero is not shown as zero.

    >>> _percent(0.204), _percent(0.002), _percent(0.0)
    ('20 %', '0.2 %', '0 %')
    """
    return f"{fixed(100 * share, 0 if share == 0 or share >= 0.0095 else 1)} %"


def _levels_table(curve: SpecificationCurve) -> ExhibitTable:
    columns = (
        Column("paths", "Paths"),
        Column("median_rho", "Median ρ"),
        Column("lowest_rho", "Lowest ρ"),
        Column("highest_rho", "Highest ρ"),
        Column("holds_percent", "Bear it out", unit="%"),
        Column("sign_percent", "Have its sign", unit="%"),
        Column("contradicts_percent", "Contradict it", unit="%"),
    )
    groups: dict[str, Sequence[Specification]] = {"All paths": curve.paths}
    for choice in CHOICES:
        levels = curve.groups(choice)
        groups |= {f"{choice}: {level}": paths for level, paths in levels.items() if len(levels) > 1}
    return ExhibitTable(
        "paths",
        "The paths by each choice",
        "Choice",
        tuple(dataclasses.replace(one, label=f"{one.label}{', %' if one.unit else ''}") for one in columns),
        tuple(TableRow(label, _level_cells(paths)) for label, paths in groups.items()),
    )


def _level_cells(paths: Sequence[Specification]) -> tuple[Cell, ...]:
    rhos = [path.rho for path in paths]
    shares = [
        100 * sum(getattr(path, name) for path in paths) / len(paths)
        for name in ("holds", "is_negative", "contradicts")
    ]
    return (
        Cell(str(len(paths)), len(paths)),
        *(Cell(fixed(rho, 2), rho) for rho in (median(rhos), min(rhos), max(rhos))),
        *(Cell(fixed(share, 0), share) for share in shares),
    )


def _deciding_table(deciding: Sequence[Deciding]) -> ExhibitTable:
    """Return a row for each choice, with the share that it explains in each crossed part of the paths."""
    varied = [choice for choice in CHOICES if any(choice in part.shares for part in deciding)]
    rows = [
        TableRow(
            choice,
            tuple(
                Cell(
                    f"{fixed(100 * part.shares[choice], 1)} ({part.levels[choice]} levels)",
                    100 * part.shares[choice],
                )
                if choice in part.shares
                else Cell(MISSING)
                for part in deciding
            ),
        )
        for choice in varied
    ]
    rows.append(
        TableRow(
            "Several choices together",
            tuple(Cell(fixed(100 * part.left, 1), 100 * part.left) for part in deciding),
        )
    )
    return ExhibitTable(
        "paths_deciding",
        "Which choice decides: shares of the variance of ρ, in per cent",
        "Choice",
        tuple(
            Column(f"part_{number}", f"{part.words} ({part.paths} paths)")
            for number, part in enumerate(deciding, 1)
        ),
        tuple(rows),
        notes=(
            "Each column is of those paths that cross all levels of its choices; a dash stands where a choice"
            " is not varied among them.",
        ),
    )


def _paths_table(curve: SpecificationCurve) -> ExhibitTable:
    columns = (
        *(Column(choice.lower().replace(" ", "_"), choice) for choice in CHOICES[1:]),
        Column("compared", "Compared"),
        Column("rho", "ρ"),
        Column("low", "From", "95 % interval"),
        Column("high", "To", "95 % interval"),
        Column("p", "p"),
    )
    rows = tuple(
        TableRow(
            path.levels[TRAINED],
            (
                *(Cell(path.levels[choice]) for choice in CHOICES[1:]),
                Cell(str(path.count), path.count),
                *(Cell(signed(value, 2), value) for value in (path.rho, *path.span)),
                Cell(f"{path.p:.2g}", path.p),
            ),
        )
        for path in curve.paths
    )
    return ExhibitTable("paths_all", "Every path, by rising ρ", TRAINED, columns, rows, folded=True)


def _figure(curve: SpecificationCurve) -> Figure:
    strips = []
    for choice in CHOICES:
        levels = curve.groups(choice)
        strips += [
            Strip(
                choice,
                level,
                tuple(place for place, path in enumerate(curve.paths) if path.shown(choice) == level),
            )
            for level in levels
            if len(levels) > 1
        ]
    claim = curve.claim
    estimates = SortedEstimates(
        tuple(path.rho for path in curve.paths),
        tuple(path.span for path in curve.paths),
        tuple(strips),
        marked=curve.paths.index(claim) if claim else None,
    )
    panel = Panel(
        "paths-sorted",
        f"{len(curve.paths)} paths, by rising ρ",
        "",
        "ρ of class separation and transfer, with its 95 % interval",
        labelled=False,
        finding=f"dark: the interval excludes 0{'; the circle: the main claim itself' if claim else ''}",
        size=estimates_size(estimates),
        estimates=estimates,
    )
    return Figure(
        "paths",
        "The rank correlation on every path",
        "Rank correlations of class separation with transfer, sorted, with their intervals; below them a line"
        " of ticks for each level of each choice.",
        (panel,),
    )


def _method(curve: SpecificationCurve) -> tuple[str, ...]:
    absent = [
        f"“{level}”"
        for choice, readings in ((choices.INDEX, INDEXES), (choices.PROBE, PROBES))
        for level in (one.words for one in readings)
        if level not in curve.groups(choice)
    ]
    lacking = f" Listed, but measured in none of these runs: {listed(absent)}." if absent else ""
    runs = [
        f"{listed([f'“{words}”' for words in of])} of `{plain(run)}` ({counted(curve.draws[run], 'draw')})"
        for run, of in curve.runs.items()
    ]
    return (
        f"The list of choices is of {LISTED}. It was written after every run that it reads existed and its"
        " numbers were known: the paths explore, and confirm nothing. They share networks, so that a share of"
        " paths is no probability.",
        "A path over objectives is judged as the main claim is: Spearman's ρ over the means of objectives,"
        " with an exact p and the wider of the intervals over objectives and over seeds. Over families it is"
        " the mean of ρ among the strengths of each, with a t interval over families.",
        f"Networks: {'; '.join(runs)}. Translated strengths are those of the study `sweep` that are nearest"
        " to the paper's in this world's number of classes and features. Squared error, which diverges at the"
        " paper's, has the holdout's there, and is missing where strengths are as printed.",
        "NC1 and CDNV are small where classes are far apart, so that their order is reversed. The best layer"
        " is chosen for each objective and task by validation images; the index of separation is that of the"
        f" penultimate features throughout.{lacking}",
        "The share of the variance of ρ that a choice explains is that of the means of its levels (eta"
        " squared), among paths that cross their choices.",
    )


def _optional(quantity: Quantity) -> Quantity:
    return dataclasses.replace(quantity, optional=True)


PATHS = Exhibit(
    name="paths",
    title="One result, every path: does the main claim depend on the choices behind it?",
    caption="Whether objectives that separate the classes further transfer worse, by every defensible choice"
    " that costs no training, and of all that was trained. Above: the rank correlation on each path, from the"
    " lowest to the highest. Below: the level of each choice on that path, and the median of each level.",
    parts=(
        Bespoke(
            _build,
            (
                *(one.quantity for one in INDEXES),
                *(one.quantity for one in PROBES),
                *(_optional(each) for one in OF_LAYERS for each in (one.tested, one.validated)),
                *(
                    _optional(one.quantity.of_arm(arm))
                    for one in (INDEXES[0], PROBES[0], PROBES[1])
                    for arm in (*SHOWN, PAPERS_STRENGTHS)
                ),
            ),
        ),
    ),
    paper_says="The paper prints one path: R² by cosine distance on training images, linear classifiers, nine"
    " objectives, ρ = −0.93.",
    place=1,
    measured_by="glyphs",
    of_given=False,
    summary="The main claim under every choice of index, probe, layer, objectives, draws and strengths",
    short="Every path",
)
