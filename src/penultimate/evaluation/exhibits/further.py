"""What is measured on request: the layer to read, images of other data, few labels, and calibration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from penultimate.data.catalog import card
from penultimate.evaluation.exhibits import shows
from penultimate.evaluation.exhibits.ranking import difference_cells
from penultimate.evaluation.standings import answers_to
from penultimate.results.exhibit import Part
from penultimate.results.figure import Curve, Figure, Panel, Point
from penultimate.results.means import name_on, table_of_means
from penultimate.results.rows import Run, arrays_of, by_setting, mean_of, seeds
from penultimate.results.table import Cell, Column, table_of_rows
from penultimate.results.text import as_name, counted, fixed, plain, signed
from penultimate.statistics.comparison import LEVEL, holm
from penultimate.statistics.paired import Answers, difference_interval, paired_p

LAST = "penultimate"
OUTSIDE = {"outside_auroc": ("AUROC, %", "high"), "outside_fpr95": ("FPR at 95 % TPR, %", "low")}
OUTSIDE_SCORES = {"msp": "Softmax", "mahalanobis": "Mahalanobis", "knn": "k-th neighbour"}
FEW_PROBES = {"ridge": "Ridge regression", "centroid": "Nearest centroid"}
SCALINGS = {"": "As trained", "_scaled": "With temperature scaling"}
MOST_PANELS = 9
"""The greatest number of tasks that are drawn."""


class Readout(NamedTuple):
    """The layer of a network on a task, and the answers from there and from the penultimate features."""

    layer: str
    answers: Answers

    @property
    def is_earlier(self) -> bool:
        """Whether an earlier layer was chosen."""
        return self.layer.lower() != LAST


@shows("readout", "Which layer to read, and what it gains", section="readout")
def readout(run: Run) -> Iterator[Part]:
    """For each network and task the layer whose linear probe does best on validation images, its accuracy on
    the test images, and by how many points that is above the accuracy of the penultimate features, with a
    95 % interval over test images. Bold: beyond chance."""
    found = {task: of for task in run.targets if (of := _readouts(run, task))}
    if not found:
        yield "Not measured (`--layers`), or no network has two layers to choose from."
        return
    columns: list[Column] = []
    cells: dict[str, list[Cell]] = {
        slug: [] for slug in run.labels() if any(slug in of for of in found.values())
    }
    if len(found) > 1:
        columns += _columns("mean", "Mean of the tasks", {})
        whole = {
            slug: [of[slug] for of in found.values()]
            for slug in cells
            if all(slug in of for of in found.values())
        }
        for slug, gained in _gains(whole, cells).items():
            cells[slug] += gained
    for task, of in found.items():
        columns += _columns(task, card(task).title, {"layer": "Layer", "percent": "Accuracy there, %"})
        gains = _gains({slug: [one] for slug, one in of.items()}, cells)
        for slug in cells:
            place = [Cell(), Cell()]
            if slug in of:
                accuracy = 100 * float(of[slug].answers.accuracies()[0])
                layer = plain(of[slug].layer) if of[slug].is_earlier else "last"
                place = [Cell(layer), Cell(accuracy, fixed(accuracy, 1))]
            cells[slug] += [*place, *gains[slug]]
    labels = run.labels()
    yield table_of_rows(
        "readout",
        "The layer to read, and its gain on test images over the penultimate features",
        columns,
        [(labels[slug], of) for slug, of in cells.items()],
        corner="Network",
        slugs=tuple(cells),
        own_marks=True,
    )
    single = [one for of in found.values() for one in of.values()]
    yield (
        f"For {sum(one.is_earlier for one in single)} of {counted(len(single), 'combination')} of network and"
        " task, validation chooses an earlier layer than the penultimate features."
    )
    yield (
        "Gains: Bonett and Price's interval (2012) for answers to the same images; p of the ranking's"
        " paired test, corrected for the networks of a column whose layer is an earlier one (Holm). Test"
        " images are seen by the chosen layer and the penultimate features alone."
    )


def _columns(key: str, title: str, own: dict[str, str]) -> list[Column]:
    heads = {**own, "gain": "Gain, points", "p": "p"}
    return [Column(f"{key}_{name}", label, title) for name, label in heads.items()]


def _readouts(run: Run, task: str) -> dict[str, Readout]:
    rows = run.rows(f"readout_{card(task).accuracy}", target=task)
    layers = dict(zip(run.slugs(rows["objective"]), rows["layer"].astype(str), strict=True))
    names = ("ids", "labels", "chosen", "last")
    found = {}
    for slug, _, held in arrays_of(run, "readout_predictions", names, target=task):
        both = {which: (held["ids"], held["labels"], held[which]) for which in ("chosen", "last")}
        found[slug] = Readout(layers[slug], answers_to(run, task, both))
    return found


def _gains(found: Mapping[str, Sequence[Readout]], networks: Iterable[str]) -> dict[str, list[Cell]]:
    """Return the cells of each network's gain and of its p, corrected for all networks (Holm)."""
    earlier = {
        slug: [one.answers for one in of] for slug, of in found.items() if any(one.is_earlier for one in of)
    }
    corrected = holm([paired_p(answers, 0, 1) for answers in earlier.values()])
    cells = {slug: [Cell(), Cell()] for slug in networks}
    for (slug, answers), p in zip(earlier.items(), corrected, strict=True):
        gain = difference_interval(answers, 0, 1)
        value, low, high = (signed(100 * end, 1) for end in (gain.value, gain.low, gain.high))
        points, of_p = difference_cells(gain.value, p, p <= LEVEL)
        cells[slug] = [points._replace(text=f"{value} ({low} to {high})"), of_p]
    return cells


@shows("outside", "How well do features tell images of other data?", section="labels")
def outside(run: Run) -> Iterator[Part]:
    """Three scores of how unlike the source's images an image is: the largest softmax probability, the
    Mahalanobis distance to the nearest class, and the distance from the k-th nearest training image.
    AUROC: the share of pairs of an image from outside and one of the source that the score orders
    rightly. FPR: the share of images from outside that pass when 95 % of the source's do."""
    measured = {}
    for name in map(str, run.description.get("outside", ()) or run.description.get("targets", ())):
        frames = {}
        for metric, (group, better) in OUTSIDE.items():
            for score, label in OUTSIDE_SCORES.items():
                column = Column(f"{metric}_{score}_percent", label, group, better=better)  # type: ignore[arg-type]
                frames[column] = seeds(run, metric, target=name, setting=f"score={score}", scale=100)
        if any(not frame.empty for frame in frames.values()):
            measured[name] = frames
    if len(measured) > 1:
        columns = next(iter(measured.values()))
        means = {column: mean_of([of[column] for of in measured.values()]) for column in columns}
        title = f"Images of other data, mean over {counted(len(measured), 'data set')}"
        yield table_of_means(run, "outside", title, means, corner="Network")
    for name, of in measured.items():
        table = "outside" if len(measured) == 1 else f"outside_{as_name(name)}"
        yield table_of_means(run, table, card(name).title, of, corner="Network")


@shows("few_labels", "How much is learned from few labels?", section="tasks")
def few_labels(run: Run) -> Iterator[Part]:
    """Test accuracy of a classifier that is fitted to a few training images of each class, in the mean
    over draws of these images, which are the same for every network."""
    for probe, words in FEW_PROBES.items():
        measured: dict[str, dict[int, pd.DataFrame]] = {}
        for task in run.targets:
            metric = f"few_{probe}_{card(task).accuracy}"
            if found := by_setting(run, metric, ("shots",), target=task, scale=100):
                measured[task] = {int(size): frame for (size,), frame in found.items()}
        columns = {
            Column(f"{size}_percent", f"{size} a class", "Mean over tasks, %", better="high"): mean_of(
                [of[size] for of in measured.values() if size in of]
            )
            for size in sorted({size for of in measured.values() for size in of})
        }
        title = f"{words} on few images, %"
        yield table_of_means(run, f"few_labels_{probe}", title, columns, corner="Network")
        if probe == "ridge" and measured:
            panels = [_few(run, task, of) for task, of in [*measured.items()][:MOST_PANELS]]
            title = "Transfer from few labels, ridge regression"
            yield Figure("few_labels", title, tuple(panels), legend=True)


def _few(run: Run, task: str, found: dict[int, pd.DataFrame]) -> Panel:
    """Return the accuracy of each network against the number of training images a class."""
    curves, points = [], []
    for slug, label in run.labels().items():
        line = tuple((size, float(frame[slug].mean())) for size, frame in found.items() if slug in frame)
        if line:
            detail = f"{fixed(line[-1][1], 1)} % from {line[-1][0]} images a class"
            curves.append(Curve(line, slug, f"{label}, {detail}"))
            points.append(Point(*line[-1], slug, label, detail))
    heads = card(task).title, "Training images a class", "Test accuracy, %"
    drawn = tuple(points), tuple(curves)
    return Panel(name_on("few_labels", task), *heads, *drawn, labelled=False, x_log=True)


@shows("probe_calibration", "Are linear probes right as often as they are sure?", section="tasks")
def probe_calibration(run: Run) -> Iterator[Part]:
    """The negative log likelihood and the calibration error of the linear probe on each task, in 15 bins,
    in the mean over tasks; less is better. The temperature is chosen on a fifth of the training images
    that the probe was not fitted to."""
    columns = {}
    for suffix, group in SCALINGS.items():
        for metric, label, scale in (("nll", "NLL", 1.0), ("ece", "ECE, %", 100.0)):
            column = Column(f"{metric}{suffix}", label, group, 3 if metric == "nll" else 1, "low")
            found = [seeds(run, f"probe_{column.key}", target=task, scale=scale) for task in run.targets]
            columns[column] = mean_of([frame for frame in found if not frame.empty])
    title = "Linear probes, mean over tasks"
    yield table_of_means(run, "probe_calibration", title, columns, corner="Network")
