"""Figure 6: the head relearned from few images of the classes trained on, beside the original one.

Rows of relearned heads have the metric `relearn_top1`, the split "test", no epoch, the source as target, and
in the column `layer` how many images of each class taught them, as text: "5 per class".
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from penultimate import published
from penultimate.data.catalog import card
from penultimate.report.exhibits.base import (
    Column,
    Curve,
    Exhibit,
    ExhibitTable,
    Figure,
    Panel,
    Point,
    StudyResults,
)
from penultimate.report.exhibits.cells import (
    not_measured,
    printed,
    published_cell,
    published_table,
    run_cell,
    run_rows,
)
from penultimate.report.exhibits.measurements import Measurements, Runs, admit
from penultimate.report.exhibits.scatter import correlation_of, finding, mean_points, published_points
from penultimate.report.exhibits.table4 import MEASURED_BY
from penultimate.report.text import counted, fixed, p_value
from penultimate.table import Table

METRIC = "relearn_top1"
RELEARNED = "imagenet_50k_relearned_top1_percent"
SHOTS = re.compile(r"(\d+) per class")
X_LABEL = "Class separation R² on the training images"
Y_LABEL = "Top-1 accuracy on the classes trained on, %"

ByShots = dict[int, Runs]
"""Accuracies of relearned heads: {images per class: {canonical spec: {seed: fraction}}}."""


def admit_relearning(results: StudyResults, allow_limited: bool = False) -> tuple[Measurements, ByShots]:
    """The measurements of a study, and apart from them its relearned heads, fewest images per class first.

    Raises RequestError as `admit` does.
    """
    heads = [row for row in results.table if row.metric == METRIC]
    others = Table(row for row in results.table if row.metric != METRIC)
    measurements = admit(dataclasses.replace(results, table=others), allow_limited)
    found: ByShots = {}
    for objective in measurements.objectives:
        for row in heads:
            shots = SHOTS.fullmatch(row.layer or "")
            if (
                shots is not None
                and row.objective == objective.spec
                and row.seed is not None
                and row.split == "test"
                and row.status != "diverged"
                and measurements.shows(row)
            ):
                found.setdefault(int(shots[1]), {}).setdefault(objective.spec, {})[row.seed] = row.value
    return measurements, dict(sorted(found.items()))


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements, relearned = admit_relearning(results, allow_limited)
    panels = [_panel(measurements, runs, shots) for shots, runs in relearned.items()]
    figure = Figure(
        "figure6",
        "Relearning the head",
        "Scatter plots of the accuracy of relearned heads against class separation; a line joins each to the"
        " accuracy of the original head.",
        (*(panel for panel in panels if panel), _published_panel()),
    )
    return Exhibit(
        "figure6",
        "Do separated classes make the head easy to relearn?",
        "The final layer of each finished network is thrown away and learned again from a few images of the"
        " classes it was trained on. Large marks: the relearned head; small marks joined to them: the"
        " original one. To the right: objectives that pull the classes further apart.",
        (_ours(measurements, relearned), _published_table()) if relearned else (_published_table(),),
        (figure,),
        notes=(
            *(() if relearned else (not_measured("Relearned heads", MEASURED_BY),)),
            "The paper's Figure 6 (40 images per class, tested on 10,000 others) is not tabulated; beside"
            " ours stands the relearned accuracy that its ICLR version prints: 50,046 training images,"
            " tested on the whole validation set. The paper calls the two qualitatively similar.",
            *measurements.notes(),
        ),
        limited=measurements.limited,
    )


def _panel(measurements: Measurements, relearned: Runs, shots: int) -> Panel | None:
    separation = measurements.without(measurements.runs("class_separation", split="train"))
    means = mean_points(measurements, separation, relearned, 3, 1)
    if not means:
        return None
    own = mean_points(measurements, separation, measurements.runs("top1"), 3, 1)
    return Panel(
        f"figure6-{shots}",
        f"{card(measurements.source).title}, {counted(shots, 'image')} of each class",
        X_LABEL,
        Y_LABEL,
        (*(dataclasses.replace(point, faint=True) for point in own), *means),
        joined(own, means),
        finding=_both_findings(own, means),
    )


def joined(own: tuple[Point, ...], relearned: tuple[Point, ...]) -> tuple[Curve, ...]:
    """The lines from original to relearned heads, of the objectives that have both."""
    starts = {point.label: point for point in own}
    return tuple(
        Curve(
            ((starts[end.label].x, starts[end.label].y), (end.x, end.y)),
            end.objective,
            f"{end.label}: original to relearned head",
            faint=True,
        )
        for end in relearned
        if end.label in starts
    )


def _both_findings(own: tuple[Point, ...], relearned: tuple[Point, ...]) -> str:
    starts = {point.label: point.y for point in own}
    gaps = tuple(
        dataclasses.replace(point, y=point.y - starts[point.label])
        for point in relearned
        if point.label in starts
    )
    heads = f"Relearned: {finding(correlation_of(relearned))}"
    gap = correlation_of(gaps)
    return f"{heads}. Relearned less original: ρ = {fixed(gap.rho, 2)}, {p_value(gap.p)}" if gap else heads


def _ours(measurements: Measurements, relearned: ByShots) -> ExhibitTable:
    separation = measurements.runs("class_separation", split="train")
    own = measurements.runs("top1")
    columns = (
        Column("class_separation_r2", "R² (training images)"),
        Column("top1_percent", "Original head", "Test top-1, %", "%"),
        *(
            Column(f"relearned_{shots}_percent", f"Relearned, {shots} per class", "Test top-1, %", "%")
            for shots in relearned
        ),
    )
    cells = [
        lambda spec: run_cell(separation.get(spec), 3),
        lambda spec: run_cell(own.get(spec), 1, scale=100),
        *(lambda spec, runs=runs: run_cell(runs.get(spec), 1, scale=100) for runs in relearned.values()),
    ]
    rows = run_rows(measurements, cells, list(relearned.values()))
    title = "The original and the relearned heads"
    return ExhibitTable("figure6", title, "Objective", columns, rows)


def relearned_in_paper() -> dict[str, str]:
    """The paper's relearned accuracy of each objective, in per cent, as printed."""
    return {row["objective"]: row[RELEARNED] for row in published.printed("iclr_table3_linear")}


def _published_table() -> ExhibitTable:
    relearned = relearned_in_paper()
    columns = [
        (Column("class_separation_r2", "R² (training images)"), printed("class_separation_r2")),
        (Column("imagenet_top1_percent", "Original head", "Top-1, %", "%"), printed("imagenet_top1_percent")),
        (
            Column(RELEARNED, "Relearned, 50,046 images", "Top-1, %", "%"),
            lambda row: published_cell(relearned[row["objective"]]),
        ),
    ]
    title = "The paper's Table 3, and IN(50k) of its ICLR version: ResNet-50, ImageNet"
    return published_table("figure6", "table3_class_separation", title, columns)


def _published_panel() -> Panel:
    relearned = relearned_in_paper()
    own = published_points(
        "table3_class_separation",
        "class_separation_r2",
        "table3_class_separation",
        3,
        "imagenet_top1_percent",
    )
    heads = tuple(_moved(point, relearned) for point in own)
    return Panel(
        "figure6-published",
        "ImageNet (ResNet-50), 50,046 images",
        X_LABEL,
        Y_LABEL,
        (*(dataclasses.replace(point, faint=True) for point in own), *heads),
        joined(own, heads),
        source="published",
        finding=_both_findings(own, heads),
    )


def _moved(point: Point, heights: Mapping[str, str]) -> Point:
    """The point at another height, its detail told anew."""
    height = heights[point.objective]
    detail = f"{point.detail.partition(',')[0]}, {height} %"
    return dataclasses.replace(point, y=float(height), detail=detail)
