"""Intervals and paired tests that compare networks on the same test examples.

An `Answers` holds one task. Over several tasks, networks are compared by their mean accuracy, in which every
task has the same weight. The only randomness considered is the choice of test examples, not the training of
networks or the choice of training images, so the results hold for these networks. Examples of one group (the
images of a patient) are not independent: where groups are known, groups are drawn and tested, not examples.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penultimate.errors import RequestError
from penultimate.statistics.comparison import LEVEL, holm
from penultimate.statistics.proportion import effective_count, mean_interval

FLIPS = 20_000
"""The number of random sign flips for a test that is not exact."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Which examples of a task each network gets right: bool [networks n]; `strata` [n] are their classes.

    With `per_class` the accuracy is the mean over classes of each class's accuracy. `groups` [n] says which
    examples belong together, by any numbers; without them, every example stands alone.
    """

    correct: npt.NDArray[np.bool_]
    strata: npt.NDArray[np.int64]
    per_class: bool = False
    groups: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.correct.ndim != 2 or self.correct.shape[1:] != self.strata.shape or not self.strata.size:
            shapes = f"{list(self.correct.shape)} for {list(self.strata.shape)}"
            raise RequestError(f"answers are [networks n] of at least one example of a class; got {shapes}")
        if self.groups is not None and self.groups.shape != self.strata.shape:
            shape = list(self.groups.shape)
            raise RequestError(f"groups are one of each of {len(self.strata)} examples; got {shape}")

    def of(self, rows: Sequence[int]) -> Answers:
        """Return the answers of some of the networks."""
        return replace(self, correct=self.correct[list(rows)])

    def weights(self) -> npt.NDArray[np.float64]:
        """Return the weight of each example in the accuracy [n]; they sum to 1."""
        if not self.per_class:
            return np.full(len(self.strata), 1 / len(self.strata))
        _, places, counts = np.unique(self.strata, return_inverse=True, return_counts=True)
        return np.asarray(1 / len(counts) / counts[places])

    def by_group(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sum over each group of what its examples add [groups]."""
        assert self.groups is not None
        sums = np.bincount(np.unique(self.groups, return_inverse=True)[1], values)
        return np.asarray(sums, np.float64)

    def parts(self) -> list[tuple[npt.NDArray[np.bool_], float]]:
        """Return the groups of examples that share a weight, each with the weight of the group."""
        if not self.per_class:
            return [(self.correct, 1.0)]
        classes = np.unique(self.strata)
        return [(self.correct[:, self.strata == each], 1 / len(classes)) for each in classes]

    def accuracies(self) -> npt.NDArray[np.float64]:
        """Return the accuracy of each network [networks]."""
        return np.asarray(np.sum([weight * part.mean(1) for part, weight in self.parts()], axis=0))

    def chance(self) -> float:
        """Return the accuracy of always predicting the most frequent class.

        >>> import numpy as np
        >>> Answers(np.ones((1, 4), bool), np.array([0, 0, 0, 1])).chance()
        0.75
        """
        _, counts = np.unique(self.strata, return_counts=True)
        return 1 / len(counts) if self.per_class else float(counts.max() / counts.sum())


class AccuracyInterval(NamedTuple):
    """An accuracy and the two ends of its interval."""

    value: float
    low: float
    high: float


def intervals(tasks: Sequence[Answers]) -> list[AccuracyInterval]:
    """Return each network's mean accuracy over tasks, with an interval that holds for few examples too.

    The accuracy on one task is a proportion of its examples, whose interval is exact. A mean over classes or
    tasks is a mean of proportions (`mean_interval`). A task with groups counts as many examples as its groups
    are worth (`effective_count`).

    >>> import numpy as np
    >>> right = np.array([[True] * 31, [True] * 5 + [False] * 26])
    >>> [(round(each.low, 3), round(each.high, 3)) for each in intervals([Answers(right, np.zeros(31, int))])]
    [(0.888, 1.0), (0.055, 0.337)]
    """
    values = np.mean([task.accuracies() for task in tasks], axis=0)
    parts = [part for task in tasks for part in _shares(task)]
    weights = [weight / len(tasks) for *_, weight in parts]
    ends = [
        mean_interval([share[row] for share, *_ in parts], [count[row] for _, count, _ in parts], weights)
        for row in range(len(values))
    ]
    return [AccuracyInterval(float(value), *both) for value, both in zip(values, ends, strict=True)]


def _shares(task: Answers) -> list[tuple[list[float], list[float], float]]:
    """Return each network's share of right answers and number of examples in each part, and its weight."""
    networks = len(task.correct)
    if task.groups is None:
        return [(part.mean(1).tolist(), [float(part.shape[1])] * networks, w) for part, w in task.parts()]
    each, of_groups = task.weights(), task.by_group(task.weights())
    right = [task.by_group(each * row) for row in task.correct]
    counts = [effective_count(row, of_groups, len(each)) for row in right]
    return [([min(1.0, float(row.sum())) for row in right], counts, 1.0)]


def paired_units(
    tasks: Sequence[Answers], one: int, other: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return what independent units, examples or groups, add to the lead of one network over another.

    The units of all tasks are listed as their leads, weights and strata: a unit's stratum is its task, or its
    class if the accuracy is a mean over classes. Weights sum to 1.
    """
    leads, weights, strata, so_far = [], [], [], 0
    for task in tasks:
        each = task.weights() / len(tasks)
        lead = each * (task.correct[one].astype(np.float64) - task.correct[other])
        stratum = np.zeros(len(each), np.int64)
        if task.groups is not None:
            lead, each = task.by_group(lead), task.by_group(each)
            stratum = stratum[: len(each)]
        elif task.per_class:
            stratum = np.unique(task.strata, return_inverse=True)[1]
        leads.append(lead)
        weights.append(each)
        strata.append(stratum + so_far)
        so_far += int(stratum.max()) + 1
    return np.concatenate(leads), np.concatenate(weights), np.concatenate(strata)


def paired_p(tasks: Sequence[Answers], one: int, other: int) -> float:
    """Return the two-sided p of a sign-flip test of the null hypothesis that two networks are equally good.

    If all examples have the same weight, p is exact (McNemar's exact test). Otherwise it comes from `FLIPS`
    random flips, which cannot show a p below 1 / (1 + FLIPS), or from the following bound if that is smaller:

    p <= 2 exp(-D^2 / (2 sum_i w_i^2)),    D the difference,

    over the examples that exactly one of the networks gets right. Where a task has groups, the sign of a
    whole group is flipped: what its examples add to the difference takes the place of an example's weight.

    >>> import numpy as np
    >>> right = np.array([[True] * 8 + [False] * 92, [False] * 100])
    >>> round(paired_p([Answers(right, np.zeros(100, int))], 0, 1), 4)
    0.0078
    >>> round(paired_p([Answers(right, np.zeros(100, int), groups=np.arange(100) // 2)], 0, 1), 4)
    0.125

    McNemar, 1947; Hoeffding, 1963.
    """
    from scipy.special import bdtr

    leads = paired_units(tasks, one, other)[0].round(15)
    leads = leads[leads != 0]
    if not leads.size:
        return 1.0
    sizes, counts = np.unique(np.abs(leads), return_counts=True)
    if len(sizes) == 1:
        first = int((leads > 0).sum())
        return min(1.0, 2 * float(bdtr(min(first, len(leads) - first), len(leads), 0.5)))
    observed, flipped = abs(float(leads.sum())), np.zeros(FLIPS)
    random = np.random.default_rng(0)
    for size, count in zip(sizes, counts, strict=True):
        flipped += size * (2.0 * random.binomial(count, 0.5, FLIPS) - count)
    bound = 2 * math.exp(-(observed**2) / (2 * float(leads @ leads)))
    return min(bound, float((1 + (np.abs(flipped) >= observed * (1 - 1e-12)).sum()) / (1 + FLIPS)))


def difference_interval(tasks: Sequence[Answers], one: int, other: int) -> AccuracyInterval:
    """Return how far a network is ahead of another in mean accuracy, with an interval over test examples.

    D +- t_(n-1) sqrt(sum_s n_s / (n_s - 1) sum_i (l_i - D_s w_i)^2 + 2 sum_i w_i^2 / n),    D = sum_i l_i,

    where unit i (an example, or a group of a task that has groups) of weight w_i adds l_i to the lead, and
    D_s = sum_i l_i / sum_i w_i is the lead in its stratum (`paired_units`): what tasks differ by is no error.
    The second term stands for two examples more, one each way, without which equal answers to few examples
    would look sure.

    >>> import numpy as np
    >>> right = np.array([[True] * 60 + [False] * 40, [True] * 50 + [False] * 50])
    >>> found = difference_interval([Answers(right, np.zeros(100, int))], 0, 1)
    >>> round(found.value, 2), round(found.low, 3), round(found.high, 3)
    (0.1, 0.034, 0.166)

    Bonett & Price, 2012, of whose interval this is the form for weights and groups.
    """
    from scipy.special import stdtrit

    leads, weights, strata = paired_units(tasks, one, other)
    value, sizes = float(leads.sum()), np.bincount(strata)
    within = np.bincount(strata, leads) / np.bincount(strata, weights)
    within[sizes == 1] = value  # a single unit tells nothing of its own stratum
    apart = (leads - within[strata] * weights) ** 2
    variance = float((sizes / np.maximum(sizes - 1, 1))[strata] @ apart)
    variance += 2 * float(weights @ weights) / len(weights)
    reach = float(stdtrit(max(len(weights) - 1, 1), 1 - LEVEL / 2)) * math.sqrt(variance)
    return AccuracyInterval(value, max(-1.0, value - reach), min(1.0, value + reach))


@dataclass(frozen=True)
class Pair:
    """Two networks by their index in the answers, how far the first is ahead, and the corrected p."""

    one: int
    other: int
    difference: float
    p: float

    @property
    def is_told_apart(self) -> bool:
        return self.p <= LEVEL


def compared(tasks: Sequence[Answers]) -> list[Pair]:
    """Return every pair of networks, the better one first, with p corrected for all pairs (Holm)."""
    values = np.mean([task.accuracies() for task in tasks], axis=0).tolist()
    return pairs_in_order(values, lambda one, other: paired_p(tasks, one, other))


def pairs_in_order(values: Sequence[float], test: Callable[[int, int], float]) -> list[Pair]:
    """Return every pair of values, the larger one first, with the p of a test corrected for all (Holm)."""
    order = [
        (one, other) if values[one] >= values[other] else (other, one)
        for one, other in itertools.combinations(range(len(values)), 2)
    ]
    corrected = holm([test(*pair) for pair in order])
    return [
        Pair(*pair, values[pair[0]] - values[pair[1]], p) for pair, p in zip(order, corrected, strict=True)
    ]


def places(pairs: Sequence[Pair], networks: int) -> list[tuple[int, int]]:
    """Return the best and the worst place that each network may have, from the pairs that differ.

    The best place is 1 + the number of networks that are better beyond chance. The worst is the number of
    networks, itself included, that are not worse beyond chance.

    >>> places([Pair(0, 1, 0.2, 0.01), Pair(0, 2, 0.1, 0.3), Pair(2, 1, 0.1, 0.4)], 3)
    [(1, 2), (2, 3), (1, 3)]
    """
    told = [pair for pair in pairs if pair.is_told_apart and pair.difference > 0]
    better = Counter(pair.other for pair in told)
    worse = Counter(pair.one for pair in told)
    return [(1 + better[each], networks - worse[each]) for each in range(networks)]


def answers(
    predictions: Mapping[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]],
    truth: Mapping[int, int],
    per_class: bool,
    groups: Mapping[int, int] | None = None,
) -> Answers:
    """Return the answers of networks to the same examples, which are matched by their ids.

    `predictions` is {network: (ids, predicted classes)}, `truth` is {id: class}, and `groups` {id: group}.
    Raise RequestError for a network that was tested on other examples.
    """
    ids = np.array(sorted(truth))
    correct = np.zeros((len(predictions), len(ids)), np.bool_)
    labels = np.array([truth[int(each)] for each in ids])
    for row, (name, (of, predicted)) in enumerate(predictions.items()):
        order = np.argsort(of)
        if not np.array_equal(of[order], ids):
            raise RequestError(f"'{name}' was tested on other images than the other networks")
        correct[row] = predicted[order] == labels
    grouped = None if groups is None else np.array([groups[int(each)] for each in ids])
    return Answers(correct, labels, per_class, grouped)
