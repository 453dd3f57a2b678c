"""Intervals and tests of examples that come in groups, such as the images of a patient."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binomtest

from penultimate.errors import RequestError
from penultimate.metrics.auc import auc
from penultimate.statistics.areas import compare_areas
from penultimate.statistics.paired import Answers, intervals, paired_p
from penultimate.statistics.proportion import effective_count
from penultimate.statistics.ranks import detectable_difference, rank_intervals


def alike(seed: int, groups: int = 40, size: int = 10, accuracies: tuple[float, ...] = (0.8, 0.8)) -> Answers:
    """Return answers that are the same for all examples of a group, whose classes differ."""
    right = np.random.default_rng(seed).random((len(accuracies), groups)) < np.array(accuracies)[:, None]
    of = np.arange(groups).repeat(size)
    return Answers(right[:, of], np.arange(groups * size) % 3, groups=of)


def without_groups(task: Answers) -> Answers:
    return Answers(task.correct, task.strata, task.per_class)


def test_groups_of_one_example_change_nothing() -> None:
    right = np.random.default_rng(0).random((3, 200)) < 0.8
    for per_class in (False, True):
        alone = Answers(right, np.arange(200) % 4, per_class)
        grouped = Answers(right, np.arange(200) % 4, per_class, np.arange(200)[::-1])
        assert paired_p([grouped], 0, 1) == pytest.approx(paired_p([alone], 0, 1), abs=0.01)
        assert grouped.accuracies().tolist() == alone.accuracies().tolist()
        found, known = ([(each.low, each.high) for each in rank_intervals([of])] for of in (grouped, alone))
        assert found == known
        difference = (detectable_difference([of], 0, 1) for of in (grouped, alone))
        assert next(difference) == pytest.approx(next(difference), abs=1 / 150)
    exact = intervals([Answers(right, np.zeros(200, int), groups=np.arange(200))])
    literal = binomtest(int(right[0].sum()), 200).proportion_ci(method="exact")
    assert (exact[0].low, exact[0].high) == pytest.approx((literal.low, literal.high))


def test_an_interval_of_groups_covers_the_truth_where_one_of_examples_does_not() -> None:
    tasks = [alike(seed) for seed in range(300)]
    covers = {
        name: np.mean([found.low <= 0.8 <= found.high for task in of for found in intervals([task])])
        for name, of in (("groups", tasks), ("examples", list(map(without_groups, tasks))))
    }
    assert covers["groups"] > 0.93
    assert covers["examples"] < 0.7


def test_groups_that_answer_alike_are_as_certain_as_their_number() -> None:
    task = alike(1, groups=60, size=5, accuracies=(0.7,))
    (found,) = intervals([task])
    literal = binomtest(round(60 * found.value), 60).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((literal.low, literal.high), abs=0.02)
    for accuracy in (0.0, 1.0):  # never a single point
        (sure,) = intervals([alike(0, 31, 10, (accuracy,))])
        exact = binomtest(round(31 * accuracy), 31).proportion_ci(method="exact")
        assert (sure.low, sure.high) == pytest.approx((exact.low, exact.high))
    assert effective_count(np.array([0.5]), np.array([1.0]), 10) == 0


def test_a_test_of_groups_is_the_flips_of_their_signs() -> None:
    random = np.random.default_rng(3)
    groups = np.sort(random.integers(0, 9, 60))
    task = Answers(random.random((2, 60)) < [[0.9], [0.6]], np.zeros(60, int), groups=groups)
    lead = task.correct[0].astype(int) - task.correct[1]
    net = np.array([lead[groups == each].sum() for each in np.unique(groups)])
    flips = [
        abs(np.dot(signs, net)) >= abs(net.sum()) for signs in itertools.product((-1, 1), repeat=len(net))
    ]
    assert paired_p([task], 0, 1) == pytest.approx(np.mean(flips), abs=0.01)


def test_equal_networks_are_told_apart_as_seldom_as_the_level_says_only_by_groups() -> None:
    tasks = [alike(seed, 30, 8) for seed in range(200)]
    told = [
        np.mean([paired_p([task], 0, 1) <= 0.05 for task in of])
        for of in (tasks, list(map(without_groups, tasks)))
    ]
    assert told[0] <= 0.08
    assert told[1] > 0.3
    assert detectable_difference(tasks[:1], 0, 1) > 1.8 * detectable_difference(
        [without_groups(tasks[0])], 0, 1
    )


@pytest.mark.parametrize("per_class", [False, True])
def test_ranks_are_those_of_a_bootstrap_of_groups_one_draw_after_another(per_class: bool) -> None:
    task = alike(5, 25, 4, (0.8, 0.7, 0.7))
    task = Answers(task.correct, task.strata, per_class, task.groups)
    random = np.random.default_rng(0)
    first = np.zeros(3)
    for _ in range(3000):
        rows = np.concatenate([4 * each + np.arange(4) for each in random.integers(0, 25, 25)])
        drawn = Answers(task.correct[:, rows], task.strata[rows], per_class).accuracies().round(12)
        first += (drawn == drawn.max()) / (drawn == drawn.max()).sum()
    shares = [each.first for each in rank_intervals([task], draws=3000)]
    assert shares == pytest.approx((first / 3000).tolist(), abs=0.03)


def test_areas_of_repeated_examples_are_as_certain_as_those_of_one_of_each() -> None:
    random = np.random.default_rng(2)
    labels = (np.arange(80) % 2).astype(np.int64)
    scores = [labels + random.normal(size=80) * spread for spread in (0.7, 1.0)]
    once = compare_areas(scores, labels)
    groups = np.arange(80).repeat(6)
    repeated = compare_areas([each.repeat(6) for each in scores], labels.repeat(6), groups)
    assert repeated.areas[0].value == pytest.approx(auc(scores[0], labels))
    for one, other in zip(once.areas, repeated.areas, strict=True):
        assert other.standard_error == pytest.approx(one.standard_error, rel=0.02)
    assert repeated.pairs[0].p == pytest.approx(once.pairs[0].p, rel=0.1)
    assert (
        compare_areas([each.repeat(6) for each in scores], labels.repeat(6)).pairs[0].p < repeated.pairs[0].p
    )


def test_groups_of_other_lengths_are_refused() -> None:
    with pytest.raises(RequestError, match=r"groups are one of each of 4 examples; got \[3\]"):
        Answers(np.ones((1, 4), bool), np.zeros(4, int), groups=np.zeros(3, int))
    with pytest.raises(RequestError, match="groups are one of each"):
        compare_areas([np.arange(4.0)], np.array([0, 1, 0, 1]), np.zeros(3, int))
