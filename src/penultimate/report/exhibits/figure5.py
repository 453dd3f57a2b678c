"""Figure 5: class separation against transfer, across objectives and temperatures of cosine softmax."""

from __future__ import annotations

import dataclasses

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Exhibit, Figure, Panel, Point, StudyResults
from penultimate.report.exhibits.cells import not_measured, seeds_phrase
from penultimate.report.exhibits.measurements import Measurements, admit
from penultimate.report.exhibits.numbers import mean_of_printed, published_rows
from penultimate.report.exhibits.scatter import (
    correlation_of,
    finding,
    mean_points,
    published_points,
    run_points,
)
from penultimate.report.text import fixed

X_LABEL = "Class separation R² on the training images"
Y_LABEL = "Mean linear transfer accuracy, %"
PRINTED = (
    "The paper prints ρ = −0.93 with p = 0.002. The p shown here follows from its printed tables; all p are"
    " exact, from all orders of the ranks, up to twelve marks."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    notes = []
    panels = []
    ours = _ours(measurements)
    if ours is None:
        notes.append(not_measured("Class separation against linear transfer"))
    else:
        panels.append(ours)
    panels.append(_published())
    sweep = _sweep(measurements)
    if sweep is None:
        what = "The figure's right half, a sweep of cosine softmax over temperatures"
        notes.append(not_measured(what, "glyphs"))
    else:
        panels += [sweep, _published_sweep()]
    figure = Figure(
        "figure5",
        "Class separation against transfer",
        "Scatter plots of mean linear transfer accuracy against class separation, ours and the paper's.",
        tuple(panels),
    )
    several = "; whiskers: standard errors; faint: single runs" if len(measurements.seeds) > 1 else ""
    runs = f" ({seeds_phrase(results, measurements, sweep is not None)}{several})" if ours else ""
    return Exhibit(
        "figure5",
        "The further apart the classes, the less the features transfer?",
        f"Each mark is one objective{runs}. To the right: objectives that pull the classes of the pretraining"
        " set further apart. Up: objectives whose frozen features serve the new tasks better.",
        figures=(figure,),
        notes=(*notes, PRINTED, *measurements.notes()),
        limited=measurements.limited,
    )


def separation_means(measurements: Measurements) -> tuple[Point, ...]:
    """The points behind the study's headline: R² on training images, mean linear transfer in per cent."""
    separation = measurements.without(measurements.runs("class_separation", split="train"))
    return mean_points(measurements, separation, measurements.mean_transfer("linear"), 3, 1)


def _ours(measurements: Measurements) -> Panel | None:
    means = separation_means(measurements)
    if not means:
        return None
    separation = measurements.without(measurements.runs("class_separation", split="train"))
    transfer = measurements.mean_transfer("linear")
    several = len(measurements.seeds) > 1
    faint = run_points(measurements, separation, transfer, 3, 1, faint=True) if several else ()
    return Panel(
        "figure5-ours",
        f"Objectives on {card(measurements.source).title}",
        X_LABEL,
        Y_LABEL,
        (*faint, *means),
        finding=finding(correlation_of(means)),
    )


def published_separation() -> tuple[Point, ...]:
    """The paper's points: its Table 3 against the means of its Table 1."""
    return published_points("table3_class_separation", "class_separation_r2", "table1_linear", 3)


def _published() -> Panel:
    points = published_separation()
    return Panel(
        "figure5-published",
        "Objectives on ImageNet (ResNet-50)",
        X_LABEL,
        Y_LABEL,
        points,
        source="published",
        finding=finding(correlation_of(points)),
    )


def _sweep(measurements: Measurements) -> Panel | None:
    sweep = measurements.temperature_sweep
    specs = {objective.spec: temperature for temperature, objective in sweep}
    separation = measurements.runs("class_separation", split="train")
    own = {spec: separation[spec] for spec in specs if spec in separation}
    points = tuple(
        dataclasses.replace(point, label=f"τ = {specs[spec]:g}")
        for spec, runs in own.items()
        for point in mean_points(measurements, {spec: runs}, measurements.mean_transfer("linear"), 3, 1)
    )
    if len(points) < 3:
        return None
    return Panel(
        "figure5-temperature",
        f"Cosine softmax on {card(measurements.source).title}, by temperature",
        X_LABEL,
        Y_LABEL,
        points,
        finding=finding(correlation_of(points), "temperature"),
    )


def _published_sweep() -> Panel:
    points = []
    for row in published_rows("table4_temperature"):
        separation, transfer = float(row["class_separation_r2"]), mean_of_printed(row)
        detail = f"{fixed(separation, 3)}, {fixed(transfer, 1)} %"
        label = f"τ = {float(row['temperature']):g}"
        points.append(Point(separation, transfer, "cosine_softmax", label, detail))
    return Panel(
        "figure5-temperature-published",
        "Cosine softmax on ImageNet, by temperature",
        X_LABEL,
        Y_LABEL,
        tuple(points),
        source="published",
        finding=finding(correlation_of(tuple(points)), "temperature"),
    )
