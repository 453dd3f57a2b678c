"""Figure C.3: accuracy on images not trained on against accuracy on the training images."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.exhibits.base import Exhibit, Figure, Panel, StudyResults
from penultimate.report.exhibits.cells import not_measured, seeds_phrase
from penultimate.report.exhibits.evolution import Path, Run, lines, path_panel, paths
from penultimate.report.exhibits.measurements import Measurements, admit_compared
from penultimate.report.exhibits.scatter import (
    correlation_of,
    finding,
    mean_points,
    published_points,
    run_points,
)

X_LABEL, Y_LABEL = "Top-1 accuracy on the training images, %", "Top-1 accuracy on the test images, %"


def build(results: StudyResults, allow_limited: bool = False) -> Exhibit:
    """The exhibit; raises RequestError for a limited study unless `allow_limited`."""
    measurements = admit_compared(results, allow_limited)
    where, epochs = _along(measurements)
    along = _epochs(measurements, where, epochs) if epochs else None
    finished = _finished(measurements)
    notes = []
    if along is None:
        notes.append("Training accuracy over the epochs was not recorded: only finished networks stand here.")
    if finished is None:
        notes = [not_measured("Test against training accuracy")]
    figure = Figure(
        "figureC3",
        "Test against training accuracy",
        "Accuracy on images not trained on against accuracy on the training images, ours and the paper's.",
        tuple(panel for panel in (along, finished, _published()) if panel),
        legend=along is not None,
    )
    runs = f" ({seeds_phrase(results, measurements)})" if finished else ""
    return Exhibit(
        "figureC3",
        "At equal training accuracy, who does better on new images?",
        f"Each mark is one objective at the end of training{runs}. Of two at the same place to the right, the"
        " higher one carries more of what it learned over to new images."
        f"{f' Epoch by epoch: {lines(epochs).lower()}' if epochs else ''}",
        figures=(figure,),
        notes=(
            *notes,
            "The paper draws every epoch; its panel here shows what it prints, the end of training (Tables 1"
            " and C.1). It finds regularized objectives above softmax at equal training accuracy.",
            *measurements.notes(),
        ),
        limited=measurements.limited,
    )


def _along(measurements: Measurements) -> tuple[str, dict[Run, Path]]:
    """Accuracy on test images (else on holdout images) against training accuracy, of the epochs with both.

    The split of those images, and the runs.
    """
    train, test = paths(measurements, "top1", "train"), paths(measurements, "top1", "test")
    where = "test" if test else "holdout"
    test = test or paths(measurements, "top1", where)
    found = {}
    for run, path in train.items():
        there = test.get(run, {})
        points = {epoch: (100 * path[epoch][1], 100 * there[epoch][1]) for epoch in path if epoch in there}
        if points:
            found[run] = points
    return where, found


def _epochs(measurements: Measurements, where: str, found: dict[Run, Path]) -> Panel:
    titles = (
        f"{card(measurements.source).title}, epoch by epoch",
        X_LABEL,
        f"Top-1 accuracy on the {where} images, %",
    )
    return path_panel(measurements, found, "figureC3-epochs", titles)


def _finished(measurements: Measurements) -> Panel | None:
    train = measurements.without(measurements.runs("top1", split="train"))
    test = measurements.runs("top1")
    means = mean_points(measurements, train, test, 1, 100)
    if not means:
        return None
    several = len(measurements.seeds) > 1
    faint = run_points(measurements, train, test, 1, 100, faint=True) if several else ()
    return Panel(
        "figureC3-ours",
        f"{card(measurements.source).title}, end of training",
        X_LABEL,
        Y_LABEL,
        (*faint, *means),
        finding=finding(correlation_of(means)),
    )


def _published() -> Panel:
    points = published_points(
        "tableC1_train_accuracy", "train_top1_percent", "table1_linear", 2, "imagenet_top1_percent"
    )
    return Panel(
        "figureC3-published",
        "ImageNet (ResNet-50), end of training",
        X_LABEL,
        "Top-1 accuracy on the validation images, %",
        points,
        source="published",
        finding=finding(correlation_of(points)),
    )
