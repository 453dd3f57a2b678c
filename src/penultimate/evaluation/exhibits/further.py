"""What is measured on request: images of other data, few labels, and the calibration of linear probes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penultimate.data.catalog import card
from penultimate.evaluation.exhibits import shows
from penultimate.results.exhibit import Part
from penultimate.results.figure import Curve, Figure, Panel, Point
from penultimate.results.means import table_of_means
from penultimate.results.rows import Run, by_setting, mean_of, seeds
from penultimate.results.sets import name_on
from penultimate.results.table import Column
from penultimate.results.text import as_name, counted, fixed

if TYPE_CHECKING:
    import pandas as pd

OUTSIDE_SCORES = {"msp": "Softmax", "mahalanobis": "Mahalanobis", "knn": "k-th neighbour"}
FEW_PROBES = {"ridge": "Ridge regression", "centroid": "Nearest centroid"}
SCALINGS = {"": "As trained", "_scaled": "With temperature scaling"}
MOST_PANELS = 9
"""The greatest number of tasks that are drawn."""


@shows("outside", "How well do features tell images of other data?", section="labels")
def outside(run: Run) -> Iterator[Part]:
    """Three scores of how unlike the source's images an image is: the largest softmax probability, the
    Mahalanobis distance to the nearest class, and the distance from the k-th nearest training image.
    AUROC: the share of pairs of an image from outside and one of the source that the score orders
    rightly. FPR: the share of images from outside that pass when 95 % of the source's do."""
    named = [str(name) for name in run.description.get("outside", ()) or run.description.get("targets", ())]
    frames = {
        name: {
            column: seeds(run, metric, target=name, setting=f"score={score}", scale=100)
            for metric, group, better in (
                ("outside_auroc", "AUROC, %", "high"),
                ("outside_fpr95", "FPR at 95 % TPR, %", "low"),
            )
            for score, label in OUTSIDE_SCORES.items()
            for column in [Column(f"{metric}_{score}_percent", label, group, better=better)]  # type: ignore[arg-type]
        }
        for name in named
    }
    measured = {name: of for name, of in frames.items() if any(not frame.empty for frame in of.values())}
    if len(measured) > 1:
        columns = {
            column: mean_of([of[column] for of in measured.values()])
            for column in next(iter(measured.values()))
        }
        title = f"Images of other data, mean over {counted(len(measured), 'data set')}"
        yield table_of_means(run, "outside", title, columns, corner="Network")
    for name, of in measured.items():
        table = "outside" if len(measured) == 1 else f"outside_{as_name(name)}"
        yield table_of_means(run, table, card(name).title, of, corner="Network")


@shows("few_labels", "How much is learned from few labels?", section="tasks")
def few_labels(run: Run) -> Iterator[Part]:
    """Test accuracy of a classifier that is fitted to a few training images of each class, in the mean
    over draws of these images, which are the same for every network."""
    for probe, words in FEW_PROBES.items():
        by_task = {
            task: by_setting(run, f"few_{probe}_{card(task).accuracy}", ("shots",), target=task, scale=100)
            for task in run.targets
        }
        measured = {task: found for task, found in by_task.items() if found}
        sizes = sorted({size for found in measured.values() for size in found}, key=lambda size: int(size[0]))
        columns = {
            Column(f"{size}_percent", f"{size} a class", "Mean over tasks, %", better="high"): mean_of(
                [found[size,] for found in measured.values() if (size,) in found]
            )
            for (size,) in sizes
        }
        yield table_of_means(
            run, f"few_labels_{probe}", f"{words} on few images, %", columns, corner="Network"
        )
        if probe == "ridge" and measured:
            panels = [panel_of(run, task, found) for task, found in [*measured.items()][:MOST_PANELS]]
            yield Figure(
                "few_labels", "Transfer from few labels, ridge regression", tuple(panels), legend=True
            )


def panel_of(run: Run, task: str, found: dict[tuple[str, ...], pd.DataFrame]) -> Panel:
    """Return the accuracy of each network against the number of training images a class."""
    curves, points = [], []
    for slug, label in run.labels().items():
        line = tuple(
            (float(size), float(frame[slug].mean()))
            for (size,), frame in sorted(found.items(), key=lambda item: int(item[0][0]))
            if slug in frame
        )
        if line:
            detail = f"{fixed(line[-1][1], 1)} % from {line[-1][0]:g} images a class"
            curves.append(Curve(line, slug, f"{label}, {detail}"))
            points.append(Point(*line[-1], slug, label, detail))
    return Panel(
        name_on("few_labels", task),
        card(task).title,
        "Training images a class",
        "Test accuracy, %",
        tuple(points),
        tuple(curves),
        labelled=False,
        x_log=True,
    )


@shows("probe_calibration", "Are linear probes right as often as they are sure?", section="tasks")
def probe_calibration(run: Run) -> Iterator[Part]:
    """The negative log likelihood and the calibration error of the linear probe on each task, in 15 bins,
    in the mean over tasks; less is better. The temperature is chosen on a fifth of the training images
    that the probe was not fitted to."""
    columns = {
        Column(f"{metric}{suffix}", label, group, 3 if metric == "nll" else 1, "low"): mean_of(
            [
                frame
                for task in run.targets
                if not (frame := seeds(run, f"probe_{metric}{suffix}", target=task, scale=scale)).empty
            ]
        )
        for suffix, group in SCALINGS.items()
        for metric, label, scale in (("nll", "NLL", 1.0), ("ece", "ECE, %", 100.0))
    }
    yield table_of_means(
        run, "probe_calibration", "Linear probes, mean over tasks", columns, corner="Network"
    )
