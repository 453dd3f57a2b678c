"""The layer to read features from, for each network and task, and what it gains on test images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penultimate.evaluation.boards import ProbedTask, arrays_of, task_of
from penultimate.report.base import MISSING, Cell, Column, ExhibitTable, TableRow
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.quantity import TARGETS, Quantity
from penultimate.report.shapes.depth import PENULTIMATE
from penultimate.report.spec import EVALUATE, OURS, Bespoke, Exhibit, Piece
from penultimate.report.text import counted, fixed, in_words, listed, p_value, plain, signed
from penultimate.statistics.comparison import LEVEL, holm
from penultimate.statistics.paired import AccuracyInterval, difference_interval, paired_p

ACCURACIES = (Quantity("readout_{accuracy}", target=TARGETS, over="layers", optional=True),)
CHOSEN, LAST = (StudyObjective(name, name, name) for name in ("chosen", "last"))
MOST = 3
"""The most networks that a sentence names."""
METHOD = (
    "Every layer's linear probe is that of the ranking, and its accuracy on the validation images, which are"
    " held back from the training images, chooses the layer; of equals the later one. Test images are seen"
    " by the chosen layer and the penultimate features alone. Both answer the same test images: the interval"
    " of the gain is that of Bonett and Price (2012) in the form for weights and groups, p is of the paired"
    " test of the ranking, corrected for the networks of a column whose layer is an earlier one (Holm).",
)


@dataclass(frozen=True)
class Readout:
    """A network's layers of all tasks (or its layer of one), and its gain over the penultimate features."""

    network: StudyObjective
    layers: tuple[str, ...]
    tasks: tuple[ProbedTask, ...]
    gain: AccuracyInterval
    p: float = 1.0

    @property
    def is_earlier(self) -> bool:
        return any(layer != PENULTIMATE for layer in self.layers)

    @property
    def is_told_apart(self) -> bool:
        return self.is_earlier and self.p <= LEVEL


def readouts(measurements: Measurements) -> dict[str, list[Readout]]:
    """Return the chosen layers by task, those of a task with the p of their gains corrected (Holm).

    Over several tasks, "" has the mean gain of each network that was tested on all of them.
    """
    of_task: dict[str, list[Readout]] = {}
    for target in measurements.targets:
        found = []
        for network in measurements.objectives:
            one = _readout(measurements, target, network)
            found += [one] if one else []
        if found:
            of_task[target] = found
    if len(of_task) > 1:
        every = [
            [next((one for one in found if one.network == network), None) for found in of_task.values()]
            for network in measurements.objectives
        ]
        whole = [[one for one in of if one] for of in every if all(of)]
        means = [_joined(of) for of in whole]
        of_task = {**({"": means} if means else {}), **of_task}
    return {name: _corrected(found) for name, found in of_task.items()}


def _readout(measurements: Measurements, target: str, network: StudyObjective) -> Readout | None:
    row = next(
        (
            row
            for row in measurements.rows("readout_predictions", "test", target)
            if row.objective == network.spec
        ),
        None,
    )
    layers = [
        str(row.layer)
        for metric in ("readout_top1", "readout_mean_per_class")
        for row in measurements.rows(metric, "test", target)
        if row.objective == network.spec and row.layer
    ]
    arrays = arrays_of(measurements, row) if row else {}
    if not arrays or len(layers) != 1:
        return None
    ids, labels = arrays["ids"], arrays["labels"]
    task = task_of(
        measurements,
        target,
        {CHOSEN: (ids, labels, arrays["chosen"]), LAST: (ids, labels, arrays["last"])},
    )
    assert task is not None
    layer = PENULTIMATE if layers[0] == PENULTIMATE.lower() else layers[0]
    return Readout(network, (layer,), (task,), difference_interval([task.answers], 0, 1))


def _joined(found: Sequence[Readout]) -> Readout:
    """Return the mean over tasks of a network, each task by its own layer."""
    tasks = tuple(task for one in found for task in one.tasks)
    layers = tuple(layer for one in found for layer in one.layers)
    gain = difference_interval([task.answers for task in tasks], 0, 1)
    return Readout(found[0].network, layers, tasks, gain)


def _corrected(found: Sequence[Readout]) -> list[Readout]:
    earlier = [one for one in found if one.is_earlier]
    p = iter(holm([paired_p([task.answers for task in one.tasks], 0, 1) for one in earlier]))
    return [
        Readout(one.network, one.layers, one.tasks, one.gain, next(p) if one.is_earlier else 1.0)
        for one in found
    ]


def _gain(one: Readout) -> str:
    """Return a gain with its interval, in points."""
    low, high = (signed(100 * end, 1) for end in (one.gain.low, one.gain.high))
    return f"{signed(100 * one.gain.value, 1)} ({low} to {high})"


def _build(measurements: Measurements) -> Piece:
    found = readouts(measurements)
    if not found:
        asked = measurements.networks.requested("readout") is not None
        return Piece(wanted=asked, notes=("No network has two layers to choose from.",) if asked else ())
    columns, titles = [], {}
    for name, of_task in found.items():
        titles[name] = of_task[0].tasks[0].title if name else "Mean of the tasks"
        columns += [
            *([Column(f"{name}_layer", "Layer", titles[name])] if name else []),
            *([Column(f"{name}_percent", "Accuracy there, %", titles[name], "%")] if name else []),
            Column(f"{name or 'mean'}_gain", "Gain, points", titles[name]),
            Column(f"{name or 'mean'}_p", "p", titles[name]),
        ]
    rows = []
    for network in measurements.objectives:
        cells: list[Cell] = []
        for name, of_task in found.items():
            one = next((each for each in of_task if each.network == network), None)
            cells += _cells(one, bool(name))
        if any(cell.text != MISSING for cell in cells):
            rows.append(TableRow(network.label, tuple(cells), network.slug))
    table = ExhibitTable(
        "readout",
        "The layer to read, and its gain on test images over the penultimate features",
        "Network",
        tuple(columns),
        tuple(rows),
        notes=("Bold: another accuracy than that of the penultimate features, beyond chance.",),
    )
    return Piece((table,), notes=(_sentence(found, titles),), method=METHOD)


def _cells(one: Readout | None, of_one_task: bool) -> list[Cell]:
    if one is None:
        return [Cell(MISSING)] * (4 if of_one_task else 2)
    cells = []
    if of_one_task:
        accuracy = 100 * float(one.tasks[0].answers.accuracies()[0])
        layer = plain(one.layers[0])
        cells += [Cell("last" if not one.is_earlier else layer), Cell(fixed(accuracy, 1), accuracy)]
    if not one.is_earlier:
        return [*cells, Cell(MISSING, detail="the penultimate features are chosen"), Cell(MISSING)]
    p = p_value(one.p).removeprefix("p = ").removeprefix("p ")
    return [*cells, Cell(_gain(one), 100 * one.gain.value, best=one.is_told_apart), Cell(p, one.p)]


def _sentence(found: dict[str, list[Readout]], titles: dict[str, str]) -> str:
    """Return which layers to read: those that gain beyond chance, or that none does."""
    single = [(name, one) for name, of_task in found.items() if name for one in of_task]
    earlier = [(name, one) for name, one in single if one.is_earlier]
    which = f"{in_words(len(earlier), 'none')} of {counted(len(single), 'combination')} of network and task"
    if len(single) == 1:
        which = " on ".join((plain(single[0][1].network.label), titles[single[0][0]]))
    layer = "an earlier layer than " if earlier or len(single) > 1 else ""
    said = f"{OURS}: for {which}, validation chooses {layer}the penultimate features"
    told = [(name, one) for name, one in earlier if one.is_told_apart]
    for better, word in ((True, "better"), (False, "worse")):
        names = [
            f"{plain(one.network.label)} on {titles[name]} from {plain(one.layers[0])}, {_gain(one)}"
            for name, one in told
            if (one.gain.value > 0) == better
        ]
        if names:
            more = len(names) - MOST
            shown = [*names[:MOST], f"{in_words(more)} more"] if more > 0 else names
            said += f"; it is {word} there on test images, beyond chance, for {listed(shown)}"
    none = "it does not differ" if len(single) == 1 else "none of them differs"
    return said + ("." if told or not earlier else f"; {none} on test images beyond chance.")


READOUT = Exhibit(
    name="readout",
    title="Which layer to read, and what it gains",
    caption="For each network and task the layer whose linear probe does best on validation images, its"
    " accuracy on the test images, and by how many points that is above the accuracy of the penultimate"
    " features, with a 95 % interval over test images.",
    parts=(Bespoke(_build, ACCURACIES),),
    place=13,
    measured_by=EVALUATE,
    summary="The layer to read of networks of your own, chosen on validation images (--layers)",
    short="The layer to read",
)
