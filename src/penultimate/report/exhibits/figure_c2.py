"""Figure C.2: accuracy on the training images over the epochs; where only the loss was recorded, the loss."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Exhibit, Figure, StudyResults
from penultimate.report.exhibits.cells import not_measured
from penultimate.report.exhibits.evolution import Path, Run, in_percent, lines, path_panel, paths
from penultimate.report.exhibits.measurements import admit_compared

PUBLISHED = "The paper's figure is not tabulated; its accuracies at the end of training are its Table C.1."
LOSS = (
    "Training accuracy over the epochs was not recorded; drawn instead is the mean training loss (augmented"
    " images, weights as they move) as a share of that of the first epoch. Losses of different objectives"
    " have different units and floors, so only the shape of each line counts, not which is lower."
)


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    source = card(measurements.source).title
    accuracy = in_percent(paths(measurements, "top1", "train"))
    loss = {} if accuracy else _loss(paths(measurements, "mean_loss", "train"))
    found = accuracy or loss
    titles = (
        (f"Training images of {source}", "Epoch", "Top-1 accuracy, %")
        if accuracy
        else (f"Training loss on {source}", "Epoch", "Loss, % of the first epoch's")
    )
    panel = path_panel(measurements, found, "figureC2-ours", titles) if found else None
    figure = Figure(
        "figureC2",
        "The training images over training",
        "Lines of accuracy, or of the loss, on the training images over the epochs.",
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
        f"{lines(found)} The first two fifths of training are left out.",
        figures=(figure,) if panel else (),
        notes=tuple(notes),
        limited=measurements.limited,
    )


def _loss(found: dict[Run, Path]) -> dict[Run, Path]:
    """Losses in per cent of that of a run's first epoch."""
    return {
        run: {epoch: (epoch, 100 * loss / first) for epoch, loss in path.values()}
        for run, path in found.items()
        if (first := next(iter(path.values()))[1]) > 0
    }
