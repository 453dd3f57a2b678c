"""Networks that were evaluated on tasks: their answers, and the ranking that follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penultimate.data.catalog import card
from penultimate.results.rows import Run, arrays_of
from penultimate.results.text import fixed, listed, p_value, percent
from penultimate.statistics.paired import Answers, Pair, answers, compared, intervals, places

if TYPE_CHECKING:
    import pandas as pd

PROBES = {"linear": "Linear probe", "knn": "Nearest neighbours", "tuned": "Fine-tuned"}
"""The classifiers whose predictions are compared: those on frozen features, and fine-tuned networks."""
PREDICTIONS = {"linear": "probe_predictions", "knn": "probe_predictions", "tuned": "tuned_predictions"}


@dataclass(frozen=True, eq=False)
class Board:
    """The networks of a task, or of all tasks together (`task` is empty), the best first.

    `standings` has a row for each network, by slug: `accuracy`, the ends `low` and `high` of its interval,
    and the `first` and `last` place that the paired tests leave open. `answers` are those on each task in the
    same order, and `pairs` compares every two networks, the better one first.
    """

    task: str
    standings: pd.DataFrame
    answers: list[Answers]
    pairs: dict[tuple[str, str], Pair]

    @property
    def key(self) -> str:
        """The task in the names of columns."""
        return self.task or "mean"

    @property
    def title(self) -> str:
        """The name of the task."""
        return card(self.task).title if self.task else "Mean of the tasks"

    @property
    def images(self) -> int:
        """The number of test images."""
        return sum(len(task.strata) for task in self.answers)

    @property
    def leaders(self) -> list[str]:
        """The networks that no other beats beyond chance."""
        return list(self.standings.index[self.standings["first"] == 1])

    def place(self, network: str) -> str:
        """Return the places that a network may have, such as "1–3"."""
        first, last = (int(self.standings.at[network, column]) for column in ("first", "last"))
        return f"{first}" if first == last else f"{first}–{last}"

    def difference(self, one: str, other: str) -> tuple[float | None, float, bool]:
        """Return by how much one network is ahead (or None), the corrected p, and if they are told apart."""
        for pair, sign in ((self.pairs.get((one, other)), 1), (self.pairs.get((other, one)), -1)):
            if pair is not None:
                return sign * pair.difference, pair.p, pair.is_told_apart
        return None, 1.0, False

    def sentence(self, labels: dict[str, str]) -> str:
        """Return the result in a sentence."""
        first, *others = self.standings.index
        row = self.standings.loc[first]
        value = f"{percent(row.accuracy)} % (95 % interval {percent(row.low)} to {percent(row.high)})"
        if not others:
            return f"{labels[first]} reaches {value}; there is nothing to compare it with."
        apart = {other: self.difference(first, other) for other in others}
        nearest = next((other for other in others if not apart[other][2]), others[0])
        difference, p, is_told_apart = apart[nearest]
        by = f"{fixed(100 * (difference or 0.0), 1)} points, {p_value(p)}"
        if is_told_apart:
            return f"{labels[first]} is ahead with {value}, beyond chance; {labels[nearest]} follows ({by})."
        level = [labels[other] for other in self.leaders if other != first]
        shared = f"; it shares the lead with {listed(level)}" if len(level) > 1 else ""
        return (
            f"{labels[first]} has the highest accuracy, {value}, but that may be chance: it is not told apart"
            f" from {labels[nearest]} ({by}){shared}."
        )


def predictions_of(run: Run, task: str, probe: str = "linear") -> dict[str, tuple[Any, Any, Any]]:
    """Return the ids of a task's test images, their classes and the predicted ones, for each network."""
    found = arrays_of(run, PREDICTIONS[probe], ("ids", "labels", probe), target=task)
    return {slug: (held["ids"], held["labels"], held[probe]) for slug, _, held in found}


def answers_to(run: Run, task: str, predicted: dict[str, tuple[Any, Any, Any]]) -> Answers:
    """Return which test images of a task are right in predictions; the first ones say which images count."""
    ids, labels, _ = next(iter(predicted.values()))
    truth = dict(zip(ids.tolist(), labels.tolist(), strict=True))
    made = {name: (of, guess) for name, (of, _, guess) in predicted.items()}
    return answers(made, truth, card(task).accuracy == "mean_per_class", groups_of(run, task))


def groups_of(run: Run, task: str) -> dict[int, int] | None:
    """Return {id: group} of a task's test images; None if they come in no groups."""
    for step in run.rows("test_groups", target=task, about="images")["step"]:
        if run.arrays is not None:
            held = run.arrays(str(step), "test_groups")
            return dict(zip(held["ids"].tolist(), held["groups"].tolist(), strict=True))
    return None


def boards(run: Run, probe: str = "linear") -> list[Board]:
    """Return the board of all tasks together if there are several, and that of each task."""
    made = {task: predicted for task in run.targets if (predicted := predictions_of(run, task, probe))}
    found = {task: (list(predicted), answers_to(run, task, predicted)) for task, predicted in made.items()}
    overall = [board("", found)] if len(found) > 1 else []
    each = [board(task, {task: held}) for task, held in found.items()]
    return [one for one in [*overall, *each] if one is not None]


def board(task: str, found: dict[str, tuple[list[str], Answers]]) -> Board | None:
    """Return the board of the networks that were tested on all of some tasks, by their mean accuracy."""
    import pandas as pd

    first, *others = (networks for networks, _ in found.values())
    shared = [network for network in first if all(network in names for names in others)]
    if not shared:
        return None
    of_tasks = [of.of([networks.index(network) for network in shared]) for networks, of in found.values()]
    pairs = compared(of_tasks)
    rows = [
        (interval.value, interval.low, interval.high, *ends)
        for interval, ends in zip(intervals(of_tasks), places(pairs, len(shared)), strict=True)
    ]
    standings = pd.DataFrame(rows, shared, ["accuracy", "low", "high", "first", "last"])
    standings = standings.sort_values("accuracy", ascending=False, kind="stable")
    order = [shared.index(network) for network in standings.index]
    named = {(shared[pair.one], shared[pair.other]): pair for pair in pairs}
    return Board(task, standings, [of.of(order) for of in of_tasks], named)


def records(run: Run) -> list[dict[str, Any]]:
    """Return the boards of all probes as rows: a network on a task, or over all tasks if the task is ""."""
    return [
        {
            "network": run.labels()[row.Index],
            "task": found.task,
            "probe": probe,
            "accuracy": float(row.accuracy),
            "low": float(row.low),
            "high": float(row.high),
            "best_place": int(row.first),
            "worst_place": int(row.last),
            "unbeaten": bool(row.first == 1),
            "test_images": found.images,
        }
        for probe in PROBES
        for found in boards(run, probe)
        for row in found.standings.itertuples()
    ]


def with_interval(value: float, low: float, high: float) -> str:
    """Return a share in per cent with the ends of its interval.

    >>> with_interval(0.5, 0.41, 0.59)
    '50.0 [41.0, 59.0]'
    """
    return f"{percent(value)} [{percent(low)}, {percent(high)}]"
