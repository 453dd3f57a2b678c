"""Figure 5 of the paper's ICLR version: linear transfer against the accuracy of the relearned head."""

from __future__ import annotations

import dataclasses

from penultimate import published
from penultimate.data.catalog import card
from penultimate.objectives.presets import PRESETS
from penultimate.report.claims.rules import judged_shots
from penultimate.report.exhibits.base import Exhibit, Figure, Panel, Point, StudyResults
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.figure6 import RELEARNED, ByShots, admit_relearning
from penultimate.report.exhibits.measurements import Measurements, Runs
from penultimate.report.exhibits.numbers import mean_of_printed
from penultimate.report.exhibits.scatter import correlation_of, finding, mean_points
from penultimate.report.exhibits.table4 import MEASURED_BY
from penultimate.report.text import counted, fixed

X_LABEL = "Top-1 accuracy of the relearned head, %"
Y_LABEL = "Mean linear transfer accuracy, %"


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements, relearned = admit_relearning(results, allow_limited)
    source = card(measurements.source)
    shots = judged_shots(relearned, source.sizes.get("train", source.images) / source.classes)
    objectives = _objectives(measurements, relearned, shots)
    temperatures = _temperatures(measurements, relearned, shots)
    notes = []
    if shots is not None:
        notes.append(
            f"The head is relearned from {counted(shots, 'image')} of each class, of what was measured the"
            " share of the training images nearest to the paper's."
        )
    if objectives is None:
        notes.append(not_measured("Linear transfer against the relearned head", MEASURED_BY))
    if temperatures is None:
        notes.append(not_measured("The same over temperatures of cosine softmax", MEASURED_BY))
    panels = (objectives, _published("objective"), temperatures, _published("temperature"))
    figure = Figure(
        "iclr_figure5",
        "Relearning against transfer",
        "Scatter plots of mean linear transfer accuracy against the accuracy of the relearned head.",
        tuple(panel for panel in panels if panel),
    )
    return Exhibit(
        "iclr_figure5",
        "Is a head that is easy to relearn a sign of features that transfer worse?",
        "To the right: networks whose final layer is better relearned from few images of the classes trained"
        " on. Up: networks whose frozen features serve the new tasks better. Means over runs.",
        figures=(figure,),
        notes=(*notes, *measurements.notes()),
        limited=measurements.limited,
    )


def _objectives(measurements: Measurements, relearned: ByShots, shots: int | None) -> Panel | None:
    points = _points(measurements, measurements.without(relearned.get(shots or 0, {})))
    if not points:
        return None
    return _panel("ours", f"Objectives on {card(measurements.source).title}", points)


def _temperatures(measurements: Measurements, relearned: ByShots, shots: int | None) -> Panel | None:
    runs = relearned.get(shots or 0, {})
    points = tuple(
        dataclasses.replace(point, label=f"τ = {temperature:g}")
        for temperature, objective in measurements.temperature_sweep
        if objective.spec in runs
        for point in _points(measurements, {objective.spec: runs[objective.spec]})
    )
    if len(points) < 3:
        return None
    title = f"Cosine softmax on {card(measurements.source).title}, by temperature"
    return _panel("temperature", title, points, "temperature")


def _points(measurements: Measurements, runs: Runs) -> tuple[Point, ...]:
    return mean_points(measurements, runs, measurements.mean_transfer("linear"), 1, 100)


def _panel(name: str, title: str, points: tuple[Point, ...], noun: str = "objective") -> Panel:
    found = finding(correlation_of(points), noun)
    return Panel(f"iclr_figure5-{name}", title, X_LABEL, Y_LABEL, points, finding=found)


def _published(noun: str) -> Panel:
    """The paper's panel over objectives (its Table 3) or temperatures (its Table 4)."""
    sweeps = noun == "temperature"
    points = []
    for row in published.printed("iclr_table4_temperature" if sweeps else "iclr_table3_linear"):
        slug = "cosine_softmax" if sweeps else row["objective"]
        label = f"τ = {float(row['temperature']):g}" if sweeps else PRESETS[slug].label
        across, up = float(row[RELEARNED]), mean_of_printed(row)
        points.append(Point(across, up, slug, label, f"{row[RELEARNED]} %, {fixed(up, 1)} %"))
    title = "Cosine softmax on ImageNet, by temperature" if sweeps else "Objectives on ImageNet (ResNet-50)"
    return Panel(
        f"iclr_figure5-{noun}-published",
        title,
        X_LABEL,
        Y_LABEL,
        tuple(points),
        source="published",
        finding=finding(correlation_of(tuple(points)), noun),
    )
