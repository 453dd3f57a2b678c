"""Networks that were evaluated on tasks: their answers, and the ranking that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from penultimate.data.catalog import card
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.sets import official_accuracy
from penultimate.report.text import counted, fixed, listed, p_value
from penultimate.report.text import percent as in_percent
from penultimate.statistics.paired import (
    AccuracyInterval,
    Answers,
    Pair,
    answers,
    compared,
    intervals,
    places,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from penultimate.records.table import Row

Predicted: TypeAlias = "tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]"
"""The ids of test images, their classes, and the predicted ones."""
PROBES = {"linear": "Linear probe", "knn": "Nearest neighbours", "tuned": "Fine-tuned"}
"""The classifiers whose predictions are compared: those on frozen features, and fine-tuned networks."""
PREDICTIONS = {"linear": "probe_predictions", "knn": "probe_predictions", "tuned": "tuned_predictions"}


@dataclass(frozen=True)
class ProbedTask:
    """A task: the networks that a probe tested on it, and their correct answers."""

    name: str
    title: str
    networks: tuple[StudyObjective, ...]
    answers: Answers

    @property
    def examples(self) -> int:
        return len(self.answers.strata)


@dataclass(frozen=True)
class Standing:
    """A network's accuracy on a board, and the best and the worst place that the paired tests leave to it."""

    network: StudyObjective
    interval: AccuracyInterval
    best_place: int
    worst_place: int

    @property
    def is_unbeaten(self) -> bool:
        """Whether no other network is better beyond chance."""
        return self.best_place == 1

    @property
    def place(self) -> str:
        """The possible places of the network.

        >>> network = StudyObjective("a", "a", "a")
        >>> [Standing(network, AccuracyInterval(0.5, 0.4, 0.6), *ends).place for ends in ((1, 1), (1, 3))]
        ['1', '1–3']
        """
        best, worst = self.best_place, self.worst_place
        return f"{best}" if best == worst else f"{best}–{worst}"


@dataclass(frozen=True)
class Board:
    """The networks of a task, or of all tasks together (`name` is empty), in their order."""

    name: str
    title: str
    tasks: tuple[ProbedTask, ...]
    standings: tuple[Standing, ...]
    pairs: tuple[tuple[StudyObjective, StudyObjective, Pair], ...]

    @property
    def leaders(self) -> list[Standing]:
        """The networks that no other beats beyond chance."""
        return [standing for standing in self.standings if standing.is_unbeaten]

    def sentence(self) -> str:
        """Return the result of the board in a sentence."""
        first, *others = self.standings
        value = f"{in_percent(first.interval.value)} %"
        interval = f"95 % interval {in_percent(first.interval.low)} to {in_percent(first.interval.high)}"
        if not others:
            return f"{first.network.label} reaches {value} ({interval}); there is nothing to compare it with."
        of_first = {other: pair for one, other, pair in self.pairs if one == first.network}
        order = [standing.network for standing in others]
        nearest = next((each for each in order if not of_first[each].is_told_apart), order[0])
        pair = of_first[nearest]
        by = f"{fixed(100 * pair.difference, 1)} points, {p_value(pair.p)}"
        if pair.is_told_apart:
            return (
                f"{first.network.label} is ahead with {value} ({interval}), beyond chance;"
                f" {nearest.label} follows ({by})."
            )
        level = [standing.network.label for standing in self.leaders if standing != first]
        if len(level) > 3:
            level = [*level[:2], counted(len(level) - 2, "other")]
        shared = f"; it shares the lead with {listed(level)}" if len(level) > 1 else ""
        return (
            f"{first.network.label} has the highest accuracy, {value} ({interval}), but that may be chance:"
            f" it is not told apart from {nearest.label} ({by}){shared}."
        )


def tasks_of(measurements: Measurements, probe: str = "linear") -> tuple[ProbedTask, ...]:
    """Return the tasks for which a probe left predictions, with the networks that made them."""
    return tuple(task for target in measurements.targets if (task := _task(measurements, target, probe)))


def predictions_of(measurements: Measurements, target: str, probe: str) -> dict[StudyObjective, Predicted]:
    """Return what a probe on each network predicts of a task's test images."""
    rows: dict[str, Row] = {
        str(row.objective): row for row in measurements.rows(PREDICTIONS[probe], "test", target) if row.step
    }
    found: dict[StudyObjective, Predicted] = {}
    for each in measurements.objectives:
        arrays = arrays_of(measurements, rows[each.spec]) if each.spec in rows else {}
        if arrays:
            found[each] = (arrays["ids"], arrays["labels"], arrays[probe])
    return found


def _task(measurements: Measurements, target: str, probe: str) -> ProbedTask | None:
    return task_of(measurements, target, predictions_of(measurements, target, probe))


def groups_of(measurements: Measurements, target: str) -> dict[int, int] | None:
    """Return {id: group} of a task's test images; None if they come in no groups."""
    for row in measurements.rows("test_groups", "test", target):
        if arrays := arrays_of(measurements, row):
            return dict(zip(arrays["ids"].tolist(), arrays["groups"].tolist(), strict=True))
    return None


def task_of(
    measurements: Measurements, target: str, found: Mapping[StudyObjective, Predicted]
) -> ProbedTask | None:
    """Return a task with the answers that follow from predictions; None without any."""
    if not found:
        return None
    ids, labels, _ = next(iter(found.values()))
    truth = dict(zip(ids.tolist(), labels.tolist(), strict=True))
    predicted = {network.spec: (of, guess) for network, (of, _, guess) in found.items()}
    per_class = official_accuracy(target) == "mean_per_class"
    of_task = answers(predicted, truth, per_class, groups_of(measurements, target))
    return ProbedTask(target, card(target).title, (*found,), of_task)


def arrays_of(measurements: Measurements, row: Row) -> Mapping[str, Any]:
    """Return the arrays that a row points to; none if the results hold rows only.

    Raises DamagedFileError, with the command that repairs it, for a file that differs from what was written.
    """
    read = measurements.results.arrays
    return {} if read is None or row.step is None else read(row.step, row.metric)


def board_of(tasks: tuple[ProbedTask, ...]) -> Board | None:
    """Return the board of the networks that were tested on all of these tasks, by mean accuracy."""
    shared = [
        each for each in (tasks[0].networks if tasks else ()) if all(each in task.networks for task in tasks)
    ]
    if not shared:
        return None
    of_tasks = [answers_on(task, shared) for task in tasks]
    pairs = compared(of_tasks)
    standings = [
        Standing(network, interval, *ends)
        for network, interval, ends in zip(
            shared, intervals(of_tasks), places(pairs, len(shared)), strict=True
        )
    ]
    one = tasks[0] if len(tasks) == 1 else None
    return Board(
        one.name if one else "",
        one.title if one else "Both tasks" if len(tasks) == 2 else f"All {counted(len(tasks), 'task')}",
        tasks,
        tuple(sorted(standings, key=lambda standing: -standing.interval.value)),
        tuple((shared[pair.one], shared[pair.other], pair) for pair in pairs),
    )


def answers_on(task: ProbedTask, networks: list[StudyObjective]) -> Answers:
    """Return the answers of some of a task's networks."""
    return task.answers.of([task.networks.index(each) for each in networks])


def boards_of(tasks: tuple[ProbedTask, ...]) -> list[Board]:
    """Return the board of all tasks together if there are several, and the board of each task."""
    each = [board for task in tasks if (board := board_of((task,)))]
    overall = board_of(tasks) if len(each) > 1 else None
    return [overall, *each] if overall else each


def records(measurements: Measurements) -> list[dict[str, Any]]:
    """Return the boards of all probes as rows: a network on a task, or over all tasks if the task is ""."""
    return [
        {
            "network": standing.network.label,
            "task": board.name,
            "probe": probe,
            "accuracy": standing.interval.value,
            "low": standing.interval.low,
            "high": standing.interval.high,
            "best_place": standing.best_place,
            "worst_place": standing.worst_place,
            "unbeaten": standing.is_unbeaten,
            "test_images": sum(task.examples for task in board.tasks),
        }
        for probe in PROBES
        for board in boards_of(tasks_of(measurements, probe))
        for standing in board.standings
    ]
