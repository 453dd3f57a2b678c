"""Images of other data: how well three scores tell them from the source's, by objective and by data set."""

from __future__ import annotations

from dataclasses import replace

from penultimate.data.catalog import card
from penultimate.measures.outside import SCORES
from penultimate.report.base import Cell, Column, ExhibitTable, Figure, Missing, Panel, Raster, TableRow
from penultimate.report.drawing.rasters import raster_size
from penultimate.report.measurements import ByRun, Measurements, mean_of
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.sets import name_on
from penultimate.report.shapes.cells import run_cell
from penultimate.report.shapes.numbers import summarise
from penultimate.report.shapes.table import run_column, run_table
from penultimate.report.spec import OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import as_name, counted, fixed, listed

SHORT = {
    "msp": "Softmax",
    "mahalanobis": "Mahalanobis",
    "knn": "k-th neighbour",
}
"""The scores as headings of columns."""
AREA, PASSED = "outside_auroc", "outside_fpr95"
GROUPS = {AREA: "AUROC, %", PASSED: "FPR at 95 % TPR, %"}


def _scored(metric: str, score: str) -> Quantity:
    return Quantity(
        metric,
        target=TARGETS,
        setting=f"score={score}",
        label=SHORT[score],
        group=GROUPS[metric.removesuffix("_low").removesuffix("_high")],
        key=f"{metric}_{score}_percent",
        optional=True,
    )


SHOWN = {metric: {score: _scored(metric, score) for score in SCORES} for metric in GROUPS}
ENDS = {
    (metric, end): {score: _scored(f"{metric}_{end}", score) for score in SCORES}
    for metric in GROUPS
    for end in ("low", "high")
}
COPIES = Quantity("outside_copies", target=TARGETS, optional=True)


def _sets(measurements: Measurements) -> list[str]:
    """Return the data sets that were told from the source, in the order of the study."""
    described = measurements.results.description
    named = [str(name) for name in described.get("outside", ()) or described.get("targets", ())]
    return [
        name
        for name in named
        if any(measurements.on_target(quantity, name) for quantity in SHOWN[AREA].values())
    ]


def _means(measurements: Measurements, sets: list[str], quantity: Quantity) -> ByRun:
    return mean_of([measurements.on_target(quantity, name) for name in sets])


def _build(measurements: Measurements) -> Piece:
    """Return the means over data sets, a table of each of them, and maps of all."""
    sets = _sets(measurements)
    if not sets:
        asked = measurements.networks.requested("outside") is not None
        return Piece(missing=(Missing("Scores of images of other data"),)) if asked else Piece(wanted=False)
    columns = [
        run_column(replace(quantity, bold=metric == AREA), runs)
        for metric, of_scores in SHOWN.items()
        for quantity in of_scores.values()
        if (runs := _means(measurements, sets, quantity))
    ]
    title = (
        f"Images of other data told from those of {measurements.title}, mean of {counted(len(sets), 'set')}"
    )
    table = run_table(measurements, "outside", title, columns)
    corner = "Network" if measurements.networks.are_given else "Objective"
    of_sets = [_of_set(measurements, name, corner) for name in sets]
    tables = [
        *([replace(table, corner=corner)] if table and len(sets) > 1 else []),
        *(replace(one, folded=len(sets) > 1) for one in of_sets),
    ]
    figures = (_maps(measurements, sets),) if len(sets) > 1 and columns else ()
    return Piece(tuple(tables), figures, _notes(measurements, sets))


def _of_set(measurements: Measurements, name: str, corner: str) -> ExhibitTable:
    """Return the table of one data set; of single networks each number has its interval over images."""
    there = [
        (quantity, measurements.on_target(quantity, name), metric, score)
        for metric, of_scores in SHOWN.items()
        for score, quantity in of_scores.items()
    ]
    there = [each for each in there if each[1]]
    rows = []
    for objective in measurements.objectives:
        if any(objective.spec in runs for _, runs, _, _ in there):
            cells = [
                _cell(measurements, name, objective.spec, quantity, runs, metric, score)
                for quantity, runs, metric, score in there
            ]
            rows.append(TableRow(objective.label, tuple(cells), objective.slug))
    heads = tuple(Column(one.key, one.label, one.group, one.unit) for one, _, _, _ in there)
    title = f"{card(name).title}: told from {measurements.title}"
    return ExhibitTable(as_name("outside", name), title, corner, heads, tuple(rows))


def _cell(
    measurements: Measurements,
    name: str,
    spec: str,
    quantity: Quantity,
    runs: ByRun,
    metric: str,
    score: str,
) -> Cell:
    cell = run_cell(runs.get(spec), quantity.digits, quantity.scale)
    ends = [measurements.on_target(ENDS[metric, end][score], name).get(spec, {}) for end in ("low", "high")]
    if cell.value is None or len(runs[spec]) != 1 or not all(ends):
        return cell
    low, high = (fixed(quantity.scale * next(iter(of.values())), quantity.digits) for of in ends)
    return replace(cell, text=f"{cell.text} ({low}–{high})", detail=f"95 % interval {low} to {high}")


def _maps(measurements: Measurements, sets: list[str]) -> Figure:
    """Return a map for each score: the area under the ROC curve by data set and network."""
    found = [
        objective
        for objective in measurements.objectives
        if any(
            objective.spec in measurements.on_target(quantity, name)
            for name in sets
            for quantity in SHOWN[AREA].values()
        )
    ]
    panels = []
    for score, quantity in SHOWN[AREA].items():
        of_sets = [measurements.on_target(quantity, name) for name in sets]
        if not any(of_sets):
            continue
        cells = tuple(
            tuple(
                summarise(list(runs[one.spec].values())).mean if one.spec in runs else None for one in found
            )
            for runs in of_sets
        )
        raster = Raster(
            tuple(str(place) for place in range(1, len(sets) + 1)),
            tuple(one.label for one in found),
            cells,
            (),
            tuple(one.slug for one in found),
            0.5,
            1.0,
        )
        size = raster_size(len(sets), len(found), 230.0)
        panels.append(
            Panel(name_on("outside", score), SHORT[score], "", "", labelled=False, size=size, raster=raster)
        )
    numbered = ", ".join(f"{place} {card(name).title}" for place, name in enumerate(sets, start=1))
    title = f"AUROC by score, data set and network, from .5 (pale) to 1 (dark); rows: {numbered}"
    description = "Maps of the area under the ROC curve, one for each score: data sets by networks."
    return Figure("outside", title, description, tuple(panels), legend=True)


def _notes(measurements: Measurements, sets: list[str]) -> tuple[str, ...]:
    """Return which score tells other data best, and what was left out as a copy."""
    means = {}
    for score, quantity in SHOWN[AREA].items():
        runs = _means(measurements, sets, quantity)
        if runs:
            values = [summarise(list(of.values())).mean for of in runs.values()]
            means[score] = 100 * sum(values) / len(values)
    notes = []
    if len(means) > 1:
        best, worst = (pick(means, key=means.__getitem__) for pick in (max, min))
        noun = "network" if measurements.networks.are_given else "objective"
        notes.append(
            f"{OURS}: in the mean over {counted(len(sets), 'set')} of other data and over {noun}s the score"
            f" that tells them best is the {SCORES[best]} (AUROC {fixed(means[best], 1)} %), and the one that"
            f" tells them worst the {SCORES[worst]} ({fixed(means[worst], 1)} %)."
        )
    left_out = {
        card(name).title: round(max(max(of.values()) for of in runs.values()))
        for name in sets
        if (runs := measurements.on_target(COPIES, name)) and any(any(of.values()) for of in runs.values())
    }
    if left_out:
        told = [f"{count:,} of {title}" for title, count in left_out.items()]
        notes.append(f"Left out, for {measurements.title} holds the same images: {listed(told)}.")
    return tuple(notes)


EXHIBIT = Exhibit(
    name="outside",
    title="Does a network notice images of other data?",
    caption="Three scores of how much an image looks like {source}: of the logits the maximum softmax"
    " probability; of the penultimate features the Mahalanobis distance"
    " from the class means and the distance from the k-th nearest training image (k = 50). AUROC: of an image"
    " of {source} and one of other data, how often the first scores higher, 50 % by chance. FPR: of the other"
    " data, how much scores as high as 95 % of {source}’s test images do.",
    parts=(
        Bespoke(
            _build,
            (
                *(quantity for of_scores in SHOWN.values() for quantity in of_scores.values()),
                *(quantity for of_scores in ENDS.values() for quantity in of_scores.values()),
                COPIES,
            ),
        ),
    ),
    method=(
        "Inside images are the positives. Of single networks the intervals are over images: DeLong’s for the"
        " AUROC; for the FPR that of Clopper and Pearson, averaged over bootstrap samples of the threshold."
        " The softmax is that of the logits as they are, whatever objective trained them.",
    ),
    place=5,
    measured_by="certainty",
    summary="Images of other data told from the source's, by three scores: AUROC and FPR at 95 % TPR",
    short="Images of other data",
)
