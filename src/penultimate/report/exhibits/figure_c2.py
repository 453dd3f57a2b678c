"""Figure C.2: accuracy on the training images over the epochs; where only the loss was recorded, the loss."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Exhibit, Figure, Panel, StudyResults
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.evolution import in_percent, path_panel, paths
from penultimate.report.exhibits.measurements import Measurements, admit_compared

PUBLISHED = "The paper's figure is not tabulated; its accuracies at the end of training are its Table C.1."
LOSS = (
    "Training accuracy over the epochs was not recorded; drawn instead is the mean training loss (augmented"
    " images, weights as they move) as a share of that of the first epoch. Losses of different objectives"
    " have different units and floors, so only the shape of each line counts, not which is lower."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    accuracy = _accuracy(measurements)
    loss = None if accuracy else _loss(measurements)
    panel = accuracy or loss
    figure = Figure(
        "figureC2",
        "The training images over training",
        "Lines of accuracy, or of the loss, on the training images over the epochs, a run each.",
        (panel,) if panel else (),
        legend=True,
    )
    notes = [PUBLISHED, *measurements.notes()]
    if loss:
        notes.insert(0, LOSS)
    elif panel is None:
        notes.insert(0, not_measured("Training accuracy over the epochs"))
    return Exhibit(
        "figureC2",
        "How fast are the training images learned?",
        "Each line is a run; the first two fifths of training are left out.",
        figures=(figure,) if panel else (),
        notes=tuple(notes),
        limited=measurements.limited,
    )


def _accuracy(measurements: Measurements) -> Panel | None:
    found = in_percent(paths(measurements, "top1", "train"))
    if not found:
        return None
    title = f"Training images of {card(measurements.source).title}"
    return path_panel(measurements, found, "figureC2-ours", (title, "Epoch", "Top-1 accuracy, %"))


def _loss(measurements: Measurements) -> Panel | None:
    found = {
        run: [(epoch, 100 * loss / path[0][1]) for epoch, loss in path]
        for run, path in paths(measurements, "mean_loss", "train").items()
        if path[0][1] > 0
    }
    if not found:
        return None
    title = f"Training loss on {card(measurements.source).title}"
    return path_panel(measurements, found, "figureC2-ours", (title, "Epoch", "Loss, % of the first epoch's"))
