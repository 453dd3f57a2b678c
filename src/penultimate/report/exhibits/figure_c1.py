"""Figure C.1: accuracy on images not trained on, over the epochs of training."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Exhibit, Figure, StudyResults
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.evolution import in_percent, lines, path_panel, paths
from penultimate.report.exhibits.measurements import admit_compared

PUBLISHED = (
    "The paper's figure is not tabulated. It says: validation accuracy rises rapidly, because averaged"
    " weights are evaluated; logit normalization and some others appear to be ahead of softmax over the whole"
    " of training."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    found = in_percent(paths(measurements, "top1", "holdout"))
    title = f"Holdout images of {card(measurements.source).title}"
    panel = (
        path_panel(measurements, found, "figureC1-ours", (title, "Epoch", "Top-1 accuracy, %"))
        if found
        else None
    )
    figure = Figure(
        "figureC1",
        "Holdout accuracy over training",
        "Lines of top-1 accuracy on the holdout images over the epochs.",
        (panel,) if panel else (),
        legend=True,
    )
    return Exhibit(
        "figureC1",
        "Which objective is ahead, and when?",
        "Accuracy on the holdout images, on which nothing is trained, over the epochs, of the averaged"
        f" weights. {lines(found)} The first two fifths of training are left out.",
        figures=(figure,) if panel else (),
        notes=(
            *(() if panel else (not_measured("Holdout accuracy over the epochs"),)),
            PUBLISHED,
            *measurements.notes(),
        ),
        limited=measurements.limited,
    )
