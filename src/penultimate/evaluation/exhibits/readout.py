"""The layer to read features from, for each network and task, and what it gains on test images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from penultimate.data.catalog import card
from penultimate.evaluation.exhibits import shows
from penultimate.evaluation.standings import answers_to
from penultimate.results.exhibit import Part
from penultimate.results.rows import Run, arrays_of
from penultimate.results.table import Cell, Column, table_of_cells
from penultimate.results.text import counted, fixed, in_words, listed, p_value, plain, signed
from penultimate.statistics.comparison import LEVEL, holm
from penultimate.statistics.paired import AccuracyInterval, Answers, difference_interval, paired_p

LAST = "penultimate"
MOST = 3
"""The most networks that a sentence names."""


@dataclass(frozen=True)
class Readout:
    """A network's layer on a task (or its layers on all), and its gain over the penultimate features."""

    network: str
    layers: tuple[str, ...]
    answers: tuple[Answers, ...]
    gain: AccuracyInterval
    p: float = 1.0

    @property
    def is_earlier(self) -> bool:
        """Whether an earlier layer was chosen."""
        return any(layer.lower() != LAST for layer in self.layers)

    @property
    def is_told_apart(self) -> bool:
        """Whether it gains or loses beyond chance."""
        return self.is_earlier and self.p <= LEVEL

    def __str__(self) -> str:
        """Return the gain with its interval, in points."""
        gain, low, high = (signed(100 * end, 1) for end in (self.gain.value, self.gain.low, self.gain.high))
        return f"{gain} ({low} to {high})"


def readouts(run: Run) -> dict[str, list[Readout]]:
    """Return the chosen layers by task, with the p of their gains corrected for all networks (Holm).

    Over several tasks, "" has the mean gain of each network that was tested on all of them.
    """
    of_task = {task: found for task in run.targets if (found := _on_task(run, task))}
    if len(of_task) > 1:
        by_network = {each.slug: list[Readout]() for each in run.objectives()}
        for one in (one for found in of_task.values() for one in found):
            by_network[one.network].append(one)
        whole = [each for each in by_network.values() if len(each) == len(of_task)]
        of_task = {"": [_readout(each) for each in whole], **of_task}
    return {task: _corrected(found) for task, found in of_task.items() if found}


def _on_task(run: Run, task: str) -> list[Readout]:
    rows = run.rows(f"readout_{card(task).accuracy}", target=task)
    layers = dict(zip(run.slugs(rows["objective"]), rows["layer"].astype(str), strict=True))
    names = ("ids", "labels", "chosen", "last")
    found = []
    for slug, _, held in arrays_of(run, "readout_predictions", names, target=task):
        both = {which: (held["ids"], held["labels"], held[which]) for which in ("chosen", "last")}
        answers = answers_to(run, task, both)
        found.append(_readout([Readout(slug, (layers[slug],), (answers,), AccuracyInterval(0, 0, 0))]))
    return found


def _readout(found: list[Readout]) -> Readout:
    """Return a network's readouts as one, each task by its own layer."""
    layers = tuple(layer for one in found for layer in one.layers)
    answers = tuple(of for one in found for of in one.answers)
    return Readout(found[0].network, layers, answers, difference_interval(answers, 0, 1))


def _corrected(found: list[Readout]) -> list[Readout]:
    p = iter(holm([paired_p(one.answers, 0, 1) for one in found if one.is_earlier]))
    return [replace(one, p=next(p)) if one.is_earlier else one for one in found]


@shows("readout", "Which layer to read, and what it gains", section="readout")
def readout(run: Run) -> Iterator[Part]:
    """For each network and task the layer whose linear probe does best on validation images, its accuracy on
    the test images, and by how many points that is above the accuracy of the penultimate features, with a
    95 % interval over test images. Bold: beyond chance."""
    found = readouts(run)
    if not found:
        yield "Not measured (`--layers`), or no network has two layers to choose from."
        return
    columns = []
    for task in found:
        title, key = (card(task).title, task) if task else ("Mean of the tasks", "mean")
        own = {"layer": "Layer", "percent": "Accuracy there, %"} if task else {}
        heads = {**own, "gain": "Gain, points", "p": "p"}
        columns += [Column(f"{key}_{name}", label, title) for name, label in heads.items()]
    labels = run.labels()
    rows = []
    for network in labels:
        of_each = {task: [one for one in of if one.network == network] for task, of in found.items()}
        if any(of_each.values()):
            cells = [cell for task, ones in of_each.items() for cell in _cells(ones, bool(task))]
            rows.append((network, cells))
    yield table_of_cells(
        "readout",
        "The layer to read, and its gain on test images over the penultimate features",
        columns,
        [(labels[network], cells) for network, cells in rows],
        corner="Network",
        slugs=tuple(network for network, _ in rows),
        own_marks=True,
    )
    yield _sentence(found, labels)
    yield (
        "Gains: Bonett and Price's interval (2012) for answers to the same images; p of the ranking's"
        " paired test, corrected for the networks of a column whose layer is an earlier one (Holm). Test"
        " images are seen by the chosen layer and the penultimate features alone."
    )


def _cells(found: list[Readout], of_one_task: bool) -> list[Cell]:
    if not found:
        return [Cell()] * (4 if of_one_task else 2)
    (one,) = found
    accuracy = 100 * float(one.answers[0].accuracies()[0])
    layer = plain(one.layers[0]) if one.is_earlier else "last"
    cells = [Cell(layer), Cell(accuracy, fixed(accuracy, 1))] if of_one_task else []
    if not one.is_earlier:
        return [*cells, Cell(), Cell()]
    gain = Cell(100 * one.gain.value, str(one), "best" if one.is_told_apart else "")
    return [*cells, gain, Cell(one.p, p_value(one.p).removeprefix("p = ").removeprefix("p "))]


def _sentence(found: dict[str, list[Readout]], labels: dict[str, str]) -> str:
    """Return which layers to read: those that gain or lose beyond chance, or that none does."""
    single = [(task, one) for task, of_task in found.items() if task for one in of_task]
    earlier = sum(one.is_earlier for _, one in single)
    said = (
        f"For {in_words(earlier, 'none')} of {counted(len(single), 'combination')} of network and task,"
        " validation chooses an earlier layer than the penultimate features"
    )
    told = [(task, one) for task, one in single if one.is_told_apart]
    for is_better, word in ((True, "better"), (False, "worse")):
        names = [
            f"{labels[one.network]} on {card(task).title} from {plain(one.layers[0])}, {one}"
            for task, one in told
            if (one.gain.value > 0) == is_better
        ]
        if names:
            shown = [*names[:MOST], *([f"{in_words(len(names) - MOST)} more"] if len(names) > MOST else [])]
            said += f"; it is {word} there on test images, beyond chance, for {listed(shown)}"
    return (
        f"{said}." if told or not earlier else f"{said}; none of them differs on test images beyond chance."
    )
