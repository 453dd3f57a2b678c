"""Which ranks of networks are real: rank intervals by the bootstrap, tie groups, detectable differences.

All of it is about networks that answered the same test examples (`statistics.paired.Answers`).
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penultimate.errors import RequestError
from penultimate.statistics.comparison import LEVEL
from penultimate.statistics.paired import Answers, Pair, paired_units

DRAWS, POWER = 2000, 0.8
BLOCK = 1 << 22
"""The most counts of a bootstrap that are held at once."""


class RankInterval(NamedTuple):
    """A network's rank (a tie is half a place), its interval, and the share of draws in which it is first."""

    rank: float
    low: int
    high: int
    first: float


def rank_intervals(
    tasks: Sequence[Answers],
    *,
    over_tasks: bool = False,
    draws: int = DRAWS,
) -> list[RankInterval]:
    """Return the rank of each network by mean accuracy over tasks, with its paired bootstrap interval.

    In every draw each task's examples are drawn with replacement, the same ones for all networks, and the
    networks are ranked again; of accuracies that are means over classes, within each class. Of a task with
    groups, whole groups are drawn (the cluster bootstrap). With `over_tasks`, the tasks are drawn with
    replacement first: the ranks then hold for tasks like these, and not for these alone. The interval is that
    of percentiles, rounded outwards to whole places, and always the same.

    Raise RequestError without a task, and for tasks with different networks.

    >>> import numpy as np
    >>> right = np.arange(400) < np.array([[360], [300], [296]])
    >>> found = rank_intervals([Answers(right, np.zeros(400, int))])
    >>> [(each.low, each.high) for each in found]
    [(1, 1), (2, 2), (3, 3)]

    Efron, 1979; Hall & Miller, 2009 (the bootstrap of ranks).
    """
    if not tasks or len({len(task.correct) for task in tasks}) != 1:
        raise RequestError("ranks are of one task or more, each with answers of the same networks")
    random = np.random.default_rng(0)
    drawn = np.stack([_resampled(task, draws, random) for task in tasks])  # [tasks draws networks]
    means = drawn.mean(0)
    if over_tasks:
        chosen = random.integers(0, len(tasks), (len(tasks), draws))
        order = np.stack([random.permutation(draws) for _ in tasks])  # a task drawn twice has other examples
        means = drawn[chosen, order].mean(0)
    ranks = _ranks(means)
    observed = _ranks(np.mean([task.accuracies() for task in tasks], axis=0)[None])[0]
    tail = LEVEL / 2
    low = np.floor(np.quantile(ranks, tail, axis=0, method="inverted_cdf"))
    high = np.ceil(np.quantile(ranks, 1 - tail, axis=0, method="inverted_cdf"))
    best = ranks == ranks.min(1, keepdims=True)
    first = (best / best.sum(1, keepdims=True)).mean(0)
    return [
        RankInterval(
            float(rank), min(int(least), math.floor(rank)), max(int(most), math.ceil(rank)), float(share)
        )
        for rank, least, most, share in zip(observed, low, high, first, strict=True)
    ]


def _resampled(task: Answers, draws: int, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the accuracies of each draw of a task's examples [draws networks].

    Examples that the same networks get right are exchangeable, so that their counts are drawn together.
    """
    found = np.zeros((draws, len(task.correct)))
    if task.groups is not None:
        return _resampled_groups(task, draws, random)
    for part, weight in task.parts():
        patterns, counts = np.unique(part, axis=1, return_counts=True)
        total = int(counts.sum())
        at_once = max(1, BLOCK // len(counts))
        for start in range(0, draws, at_once):
            size = min(at_once, draws - start)
            taken = random.multinomial(total, counts / total, size)
            found[start : start + size] += weight * (taken @ patterns.T.astype(np.float64)) / total
    return found


def _resampled_groups(task: Answers, draws: int, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the accuracies of each draw of a task's groups [draws networks].

    A mean over classes leaves out the classes that the draw holds no example of.
    """
    classes = np.unique(task.strata) if task.per_class else [None]
    masks = [np.ones(len(task.strata)) if each is None else task.strata == each for each in classes]
    sizes = np.stack([task.by_group(mask.astype(np.float64)) for mask in masks], 1)  # [groups classes]
    right = np.stack([[task.by_group(mask * row) for mask in masks] for row in task.correct], 2)
    right = right.transpose(1, 0, 2)  # [groups classes networks]
    groups = len(sizes)
    found = np.empty((draws, len(task.correct)))
    at_once = max(1, BLOCK // (groups + right.shape[1] * right.shape[2]))
    for start in range(0, draws, at_once):
        size = min(at_once, draws - start)
        taken = random.multinomial(groups, np.full(groups, 1 / groups), size).astype(np.float64)
        whole = (taken @ sizes)[:, :, None]
        hits = (taken @ right.reshape(groups, -1)).reshape(size, *right.shape[1:])
        shares = np.divide(hits, whole, out=np.zeros_like(hits), where=whole > 0)
        found[start : start + size] = shares.sum(1) / (whole > 0).sum(1)
    return found


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the rank of each value in its row, the largest first; equal values share the mean place."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-values.round(12), axis=1))


def tie_groups(pairs: Iterable[Pair], networks: int) -> list[tuple[int, ...]]:
    """Return the tie groups: the largest sets of networks of which no two are told apart.

    A network may be in several groups, for being level is not transitive. Groups are sorted by their members,
    which are indices; letters for them are the compact letter display.

    >>> pair = lambda one, other, p: Pair(one, other, 0.1, p)
    >>> tie_groups([pair(0, 1, 0.3), pair(0, 2, 0.01), pair(1, 2, 0.2)], 3)
    [(0, 1), (1, 2)]

    Piepho, 2004 (insert and absorb).
    """
    groups: set[frozenset[int]] = {frozenset(range(networks))}
    for pair in pairs:
        if not pair.is_told_apart:
            continue
        both = {group for group in groups if {pair.one, pair.other} <= group}
        split = {group - {each} for group in both for each in (pair.one, pair.other)}
        rest = groups - both
        groups = rest | {each for each in split if not any(each < other for other in (*split, *rest))}
        groups = {each for each in groups if not any(each < other for other in groups)}
    return sorted(tuple(sorted(group)) for group in groups if group)


def letter(group: int) -> str:
    """Return the letter of a tie group: a, b, ..., z, a2, b2, ...

    >>> letter(1), letter(26)
    ('b', 'a2')
    """
    again, place = divmod(group, len(string.ascii_lowercase))
    return string.ascii_lowercase[place] + (str(again + 1) if again else "")


def detectable_difference(
    tasks: Sequence[Answers], one: int, other: int, *, level: float = LEVEL, power: float = POWER
) -> float:
    """Return the smallest difference in mean accuracy that a paired test would probably have found.

    With V the variance of the difference if there is none (from the examples that exactly one network gets
    right, as observed), and V - c d^2 the one if it is d,

    d = z_(1 - level/2) sqrt(V) + z_power sqrt(V - c d^2) + s,    V = sum_i w_i^2,  c = sum_g w_g^2 / n_g,

    solved for d, where w_i is the weight of an example, and w_g that of n_g examples that weigh the same. For
    a single weight, the test is McNemar's exact one, and s = 1/n is its continuity correction; otherwise 0.
    Of a task with groups, w_i is what group i adds to the difference, and c the sum of the groups' squared
    weights.

    NaN if there is no such example, or if the difference would exceed the weight of all of them: more
    examples would have to be answered differently.

    >>> import numpy as np
    >>> right = np.stack([np.arange(1000) % 10 != 0, np.arange(1000) % 10 != 1])
    >>> round(detectable_difference([Answers(right, np.zeros(1000, int))], 0, 1), 3)
    0.041

    Connor, 1987; Lachin, 1992.
    """
    from scipy.special import ndtri

    leads, weights, _ = paired_units(tasks, one, other)
    variance, curvature = float(leads @ leads), float(weights @ weights)
    share = sum(
        float(task.weights()[task.correct[one] != task.correct[other]].sum()) / len(tasks) for task in tasks
    )
    if not variance:
        return math.nan
    is_exact = all(task.groups is None for task in tasks) and len(np.unique(weights.round(15))) == 1
    a, b = float(ndtri(1 - level / 2)), float(ndtri(power))
    t = a * math.sqrt(variance) + (float(weights[0]) if is_exact else 0.0)
    scale = 1 + b**2 * curvature
    inner = t**2 - scale * (t**2 - b**2 * variance)
    found = (t + math.copysign(math.sqrt(inner), b)) / scale if inner >= 0 else math.nan
    return found if found <= share else math.nan
