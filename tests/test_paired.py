"""Intervals and paired tests of networks that answered the same examples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binomtest

from penultimate.errors import RequestError
from penultimate.statistics.resampling import Answers, answers, compared, intervals, paired_p, unbeaten


def drawn(accuracies: tuple[float, ...], examples: int, seed: int = 0, per_class: bool = False) -> Answers:
    random = np.random.default_rng(seed)
    correct = random.random((len(accuracies), examples)) < np.array(accuracies)[:, None]
    return Answers(correct, np.arange(examples) % 7, per_class)


def test_an_interval_is_that_of_resamples_of_the_examples() -> None:
    task = drawn((0.8, 0.6), 400)
    random = np.random.default_rng(1)
    rows = random.integers(0, 400, (4000, 400))
    for network, found in enumerate(intervals([task], draws=8000)):
        literal = np.quantile(task.correct[network][rows].mean(1), (0.025, 0.975))
        assert found.value == pytest.approx(task.correct[network].mean())
        assert (found.low, found.high) == pytest.approx(tuple(literal), abs=0.004)


def test_the_mean_per_class_weighs_classes_and_is_resampled_within_them() -> None:
    labels = np.array([0] * 90 + [1] * 10)
    correct = np.array([[True] * 90 + [True] * 5 + [False] * 5])
    (found,) = intervals([Answers(correct, labels, per_class=True)])
    assert found.value == pytest.approx(0.75)
    assert 0.55 < found.low < 0.65
    assert 0.85 < found.high < 0.95


def test_the_paired_test_is_mcnemars_where_examples_weigh_the_same() -> None:
    task = drawn((0.8, 0.7, 0.7), 120)
    for one, other in itertools.combinations(range(3), 2):
        ahead = int((task.correct[one] & ~task.correct[other]).sum())
        behind = int((~task.correct[one] & task.correct[other]).sum())
        literal = binomtest(min(ahead, behind), ahead + behind).pvalue
        assert paired_p([task], one, other) == pytest.approx(literal)
        assert paired_p([task], other, one) == pytest.approx(literal)


def test_flips_of_signs_come_near_the_exact_test() -> None:
    """Two tasks of nearly equal weight, so that the flips stand beside one exact test of both together."""
    first, second = drawn((0.8, 0.7), 200, 1), drawn((0.8, 0.7), 199, 2)
    joined = Answers(
        np.concatenate([first.correct, second.correct], 1), np.concatenate([first.strata, second.strata])
    )
    assert paired_p([first, second], 0, 1) == pytest.approx(paired_p([joined], 0, 1), rel=0.25)


def test_however_many_are_compared_flips_of_signs_tell_apart_what_is_far_apart() -> None:
    """Of 100 networks each p is multiplied by up to 4,950."""
    tasks = [drawn((0.95, 0.4), 200, 1), drawn((0.95, 0.4), 150, 2)]
    assert 4950 * paired_p(tasks, 0, 1) < 0.001


def test_networks_that_answer_alike_are_not_told_apart() -> None:
    task = drawn((0.7,), 50)
    same = Answers(np.repeat(task.correct, 2, 0), task.strata)
    (pair,) = compared([same])
    assert (pair.difference, pair.p) == (0.0, 1.0)
    assert unbeaten([pair], 2) == {0, 1}
    assert {(each.best_place, each.worst_place) for each in intervals([same])} == {(1, 1)}


def test_under_chance_alone_few_are_told_apart() -> None:
    told = sum(
        any(pair.is_told_apart for pair in compared([drawn((0.7, 0.7, 0.7), 150, seed)]))
        for seed in range(60)
    )
    assert told <= 8


def test_what_is_far_ahead_is_alone_unbeaten_and_first() -> None:
    tasks = [drawn((0.9, 0.6, 0.6), 300, seed) for seed in (3, 4)]
    pairs = compared(tasks)
    assert unbeaten(pairs, 3) == {0}
    first = intervals(tasks)[0]
    assert (first.best_place, first.worst_place) == (1, 1)


def test_answers_are_matched_by_the_ids_of_the_examples() -> None:
    truth = {5: 1, 3: 0, 9: 1}
    ids, order = np.array([3, 5, 9]), np.array([2, 0, 1])
    predicted = np.array([0, 0, 1])
    found = answers({"a": (ids, predicted), "b": (ids[order], predicted[order])}, truth, False)
    assert found.correct.tolist() == [[True, False, True]] * 2
    with pytest.raises(RequestError, match="'b' was tested on other images"):
        answers({"a": (ids, predicted), "b": (ids + 1, predicted)}, truth, False)


def test_no_example_is_refused() -> None:
    with pytest.raises(RequestError, match="at least one example"):
        Answers(np.zeros((2, 0), bool), np.zeros(0, int))
