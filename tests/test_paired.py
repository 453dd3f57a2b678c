"""Intervals and paired tests of networks that answered the same examples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binomtest

from penultimate.errors import RequestError
from penultimate.statistics.paired import (
    Answers,
    answers,
    compared,
    difference_interval,
    intervals,
    paired_p,
    places,
)


def drawn(accuracies: tuple[float, ...], examples: int, seed: int = 0, per_class: bool = False) -> Answers:
    random = np.random.default_rng(seed)
    correct = random.random((len(accuracies), examples)) < np.array(accuracies)[:, None]
    return Answers(correct, np.arange(examples) % 7, per_class)


@pytest.mark.parametrize(("right", "of"), [(31, 31), (0, 31), (1, 1), (7, 20), (399, 400)])
def test_the_interval_of_one_task_is_exact(right: int, of: int) -> None:
    (found,) = intervals([Answers(np.arange(of)[None] < right, np.zeros(of, int))])
    literal = binomtest(right, of).proportion_ci(method="exact")
    assert found.value == pytest.approx(right / of)
    assert (found.low, found.high) == pytest.approx((literal.low, literal.high))


TASKS = {
    "two far apart": ((1040, 960), (0.886, 0.222)),
    "eight": ((1600, 1320, 1320, 1040, 1440, 960, 1697, 1600), (0.95, 0.9, 0.85, 0.77, 0.6, 0.52, 0.4, 0.3)),
    "four of one size": ((500,) * 4, (0.9, 0.7, 0.5, 0.3)),
}


def coverage(sizes: tuple[int, ...], accuracies: tuple[float, ...], draws: int) -> float:
    """How often the interval of a mean over tasks holds the true mean."""
    random = np.random.default_rng(0)
    tasks = [
        Answers(random.random((draws, size)) < accuracy, np.zeros(size, int))
        for size, accuracy in zip(sizes, accuracies, strict=True)
    ]
    truth = float(np.mean(accuracies))
    found = intervals(tasks)
    assert all(each.low < each.value < each.high or each.value in (0, 1) for each in found)
    return float(np.mean([each.low <= truth <= each.high for each in found]))


@pytest.mark.parametrize("name", TASKS)
def test_the_interval_of_a_mean_over_tasks_covers_it_as_often_as_it_says(name: str) -> None:
    """Of 20,000 studies, whose share has a standard error of 0.15 %."""
    sizes, accuracies = TASKS[name]
    assert 0.946 <= coverage(sizes, accuracies, 20_000) <= 0.955


@pytest.mark.parametrize(
    ("sizes", "accuracies"),
    [
        ((40,) * 40, tuple(np.linspace(0.4, 0.99, 40))),
        ((10,) * 100, tuple(np.linspace(0.4, 0.99, 100))),
        ((3,) * 100, tuple(np.linspace(0.4, 0.99, 100))),
    ],
)
def test_a_mean_over_classes_is_covered_however_small_these_are(
    sizes: tuple[int, ...], accuracies: tuple[float, ...]
) -> None:
    random, labels = np.random.default_rng(1), np.repeat(np.arange(len(sizes)), sizes)
    correct = random.random((4000, len(labels))) < np.repeat(accuracies, sizes)
    found = intervals([Answers(correct, labels, per_class=True)])
    truth = float(np.mean(accuracies))
    assert 0.94 <= np.mean([each.low <= truth <= each.high for each in found]) <= 0.96


@pytest.mark.parametrize(
    ("sizes", "accuracies"),
    [((300, 30), (1.0, 0.95)), ((5,) * 20, (0.97,) * 20), ((20, 40, 60), (0.5, 0.6, 0.9))],
)
def test_near_the_ends_and_with_few_examples_it_covers_too(
    sizes: tuple[int, ...], accuracies: tuple[float, ...]
) -> None:
    assert 0.94 <= coverage(sizes, accuracies, 4000) <= 0.99


def test_a_mean_over_tasks_with_groups_is_covered_as_often() -> None:
    random, hits = np.random.default_rng(3), 0
    for _ in range(2000):
        grouped, alone = random.random(60) < 0.8, random.random(400) < 0.3
        tasks = [
            Answers(np.repeat(grouped, 5)[None], np.zeros(300, int), groups=np.arange(300) // 5),
            Answers(alone[None], np.zeros(400, int)),
        ]
        (found,) = intervals(tasks)
        hits += found.low <= 0.55 <= found.high
    assert 0.94 <= hits / 2000 <= 0.965


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


def test_the_interval_of_a_difference_is_near_that_of_bonett_and_price() -> None:
    ahead, behind, of = 30, 14, 400
    correct = np.zeros((2, of), bool)
    correct[0, :ahead] = correct[1, ahead : ahead + behind] = True
    found = difference_interval([Answers(correct, np.zeros(of, int))], 0, 1)
    first, second = ((count + 1) / (of + 2) for count in (ahead, behind))
    reach = 1.96 * ((first + second - (first - second) ** 2) / (of + 2)) ** 0.5
    assert found.value == pytest.approx((ahead - behind) / of)
    assert (found.high - found.low) / 2 == pytest.approx(reach, rel=0.02)
    turned = difference_interval([Answers(correct, np.zeros(of, int))], 1, 0)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


@pytest.mark.parametrize(
    ("size", "per_class", "of_group"), [(20, False, 1), (60, True, 1), (200, False, 1), (240, False, 8)]
)
def test_the_interval_of_a_difference_holds_the_truth_as_often_as_it_says(
    size: int, per_class: bool, of_group: int
) -> None:
    """Planted: the first is right where the second is not in 15 % of examples, the other way in 5 %."""
    random = np.random.default_rng(4)
    groups = np.arange(size) // of_group
    hits = 0
    for _ in range(1000):
        drawn_once = random.random(groups.max() + 1)[groups]
        correct = np.stack(
            [(drawn_once < 0.15) | (drawn_once > 0.5), (drawn_once >= 0.15) & (drawn_once < 0.2)]
        )
        correct[1] |= drawn_once > 0.5
        task = Answers(correct, np.arange(size) % 3, per_class, None if of_group == 1 else groups)
        found = difference_interval([task], 0, 1)
        hits += found.low <= 0.1 <= found.high
    assert hits >= 930


def test_what_tasks_differ_by_is_no_error_of_a_difference() -> None:
    """Planted: the first network is 30 points ahead on one task and as far behind on the other."""
    random, hits = np.random.default_rng(5), []
    for _ in range(4000):
        first = random.random((2, 200)) < [[0.8], [0.5]]
        second = random.random((2, 300)) < [[0.4], [0.7]]
        tasks = [Answers(first, np.zeros(200, int)), Answers(second, np.zeros(300, int))]
        found = difference_interval(tasks, 0, 1)
        hits.append(found.low <= 0 <= found.high)
    assert 0.94 <= np.mean(hits) <= 0.96


def test_few_equal_answers_are_not_sure_to_be_equal() -> None:
    task = Answers(np.ones((2, 30), bool), np.zeros(30, int))
    found = difference_interval([task, task], 0, 1)
    assert -0.1 < found.low < -0.03 < 0.03 < found.high < 0.1


def test_networks_that_answer_alike_are_not_told_apart() -> None:
    task = drawn((0.7,), 50)
    same = Answers(np.repeat(task.correct, 2, 0), task.strata)
    (pair,) = compared([same])
    assert (pair.difference, pair.p) == (0.0, 1.0)
    assert places([pair], 2) == [(1, 2), (1, 2)]


def test_under_chance_alone_few_are_told_apart() -> None:
    told = sum(
        any(pair.is_told_apart for pair in compared([drawn((0.7, 0.7, 0.7), 150, seed)]))
        for seed in range(60)
    )
    assert told <= 8


def test_what_is_far_ahead_is_first_and_the_others_share_the_places_behind() -> None:
    tasks = [drawn((0.9, 0.6, 0.6), 300, seed) for seed in (3, 4)]
    assert places(compared(tasks), 3) == [(1, 1), (2, 3), (2, 3)]


@pytest.mark.parametrize("seed", range(8))
def test_places_and_paired_tests_never_contradict_each_other(seed: int) -> None:
    """Whoever is better beyond chance is ahead in the best and in the worst place that may be."""
    pairs = compared([drawn((0.9, 0.8, 0.75, 0.7), 60, seed, per_class=seed % 2 == 0)])
    ends = places(pairs, 4)
    beaten = {pair.other for pair in pairs if pair.is_told_apart}
    assert {network for network, (best, _) in enumerate(ends) if best == 1} == {*range(4)} - beaten
    for pair in pairs:
        if not pair.is_told_apart:
            assert max(ends[pair.one][0], ends[pair.other][0]) <= min(ends[pair.one][1], ends[pair.other][1])


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
