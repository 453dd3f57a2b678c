"""Figure 1: accuracy on the pretraining classes against transfer; a point a run."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Exhibit, Figure, Panel, StudyResults
from penultimate.report.exhibits.cells import not_measured, seeds_phrase
from penultimate.report.exhibits.measurements import Measurements, admit
from penultimate.report.exhibits.scatter import (
    correlation_of,
    finding,
    mean_points,
    published_points,
    run_points,
)

Y_LABEL = "Mean linear transfer accuracy, %"


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit(results, allow_limited)
    ours = _ours(measurements)
    notes = [] if ours else [not_measured("Pretraining accuracy against linear transfer")]
    figure = Figure(
        "figure1",
        "Pretraining accuracy against transfer",
        "Scatter plots of mean linear transfer accuracy against accuracy on the pretraining test set.",
        ((ours, _published()) if ours else (_published(),)),
    )
    points = f"Each mark of ours is one run ({seeds_phrase(results, measurements)})." if ours else ""
    return Exhibit(
        "figure1",
        "Is the better classifier the better source of features?",
        f"{points} To the right: better on the classes trained on. Up: frozen features that serve the new"
        " tasks better. The paper's panel shows its printed means over eight runs.".strip(),
        figures=(figure,),
        notes=(*notes, *measurements.notes()),
        limited=measurements.limited,
    )


def _ours(measurements: Measurements) -> Panel | None:
    top1 = measurements.without(measurements.runs("top1"))
    transfer = measurements.mean_transfer("linear")
    points = run_points(measurements, top1, transfer, 1, 100)
    if not points:
        return None
    means = mean_points(measurements, top1, transfer, 1, 100)
    several = len(points) > len(means)
    return Panel(
        "figure1-ours",
        f"Trained on {card(measurements.source).title}",
        "Top-1 accuracy on the pretraining test set, %",
        Y_LABEL,
        points,
        finding=finding(correlation_of(means)) + (" (means over runs)" if several else ""),
    )


def _published() -> Panel:
    points = published_points("table1_linear", "imagenet_top1_percent", "table1_linear", 1)
    return Panel(
        "figure1-published",
        "Trained on ImageNet (ResNet-50)",
        "ImageNet top-1 accuracy, %",
        Y_LABEL,
        points,
        source="published",
        finding=finding(correlation_of(points)),
    )
