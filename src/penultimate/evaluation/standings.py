"""Networks that were evaluated on tasks: their answers, and the ranking that follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penultimate.data.catalog import card
from penultimate.statistics.paired import Answers, Pair, answers, compared, intervals, places

if TYPE_CHECKING:
    import pandas as pd

    from penultimate.results.rows import Run

PROBES = {"linear": "Linear probe", "knn": "Nearest neighbours", "tuned": "Fine-tuned"}
"""The classifiers whose predictions are compared: those on frozen features, and fine-tuned networks."""
PREDICTIONS = {"linear": "probe_predictions", "knn": "probe_predictions", "tuned": "tuned_predictions"}


@dataclass(frozen=True, eq=False)
class Board:
    """The networks of a task, or of all tasks together (`task` is empty), the best first.

    `standings` has a row for each network, by slug: `accuracy`, the ends `low` and `high` of its interval,
    and the `first` and `last` place that the paired tests leave open. `pairs` compares every two networks.
    """

    task: str
    standings: pd.DataFrame
    pairs: dict[tuple[str, str], Pair]

    @property
    def title(self) -> str:
        """The name of the task."""
        return card(self.task).title if self.task else "Mean"

    def place(self, network: str) -> str:
        """Return the places that a network may have, such as "1–3"."""
        first, last = (int(self.standings.at[network, column]) for column in ("first", "last"))
        return f"{first}" if first == last else f"{first}–{last}"

    def difference(self, one: str, other: str) -> tuple[float, float, bool] | None:
        """Return by how much one network is ahead, the corrected p, and whether they are told apart."""
        for pair, sign in ((self.pairs.get((one, other)), 1), (self.pairs.get((other, one)), -1)):
            if pair is not None:
                return sign * pair.difference, pair.p, pair.is_told_apart
        return None


def answers_of(run: Run, task: str, probe: str) -> tuple[list[str], Answers] | None:
    """Return the networks that a probe tested on a task, and which test images each got right."""
    rows = run.rows(PREDICTIONS[probe], target=task)
    steps = dict(zip(run.slugs(rows["objective"]), rows["step"], strict=True))
    if run.arrays is None or not steps:
        return None
    predicted, truth = {}, dict[int, int]()
    for slug in [each.slug for each in run.objectives() if each.slug in steps]:
        held = run.arrays(str(steps[slug]), PREDICTIONS[probe])
        predicted[slug] = held["ids"], held[probe]
        truth = truth or dict(zip(held["ids"].tolist(), held["labels"].tolist(), strict=True))
    per_class = card(task).accuracy == "mean_per_class"
    return list(predicted), answers(predicted, truth, per_class, groups_of(run, task))


def groups_of(run: Run, task: str) -> dict[int, int] | None:
    """Return {id: group} of a task's test images; None if they come in no groups."""
    for step in run.rows("test_groups", target=task, about="images")["step"]:
        if run.arrays is not None:
            held = run.arrays(str(step), "test_groups")
            return dict(zip(held["ids"].tolist(), held["groups"].tolist(), strict=True))
    return None


def boards(run: Run, probe: str) -> list[Board]:
    """Return the board of all tasks together if there are several, and that of each task."""
    found = {task: held for task in run.targets if (held := answers_of(run, task, probe))}
    each = [board(task, {task: held}) for task, held in found.items()]
    overall = [board("", found)] if len(found) > 1 else []
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
    named = {(shared[pair.one], shared[pair.other]): pair for pair in pairs}
    return Board(task, standings.sort_values("accuracy", ascending=False, kind="stable"), named)
