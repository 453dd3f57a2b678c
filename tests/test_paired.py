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


def test_classes_of_one_size_are_as_one_share() -> None:
    labels = np.repeat(np.arange(10), 6)
    correct = np.random.default_rng(0).random((3, 60)) < 0.9
    one, several = (intervals([Answers(correct, labels, per_class)]) for per_class in (False, True))
    for share, mean in zip(one, several, strict=True):
        assert (mean.value, mean.low, mean.high) == pytest.approx((share.value, share.low, share.high))


def covered(sizes: tuple[int, ...], accuracies: tuple[float, ...], draws: int = 400) -> tuple[float, float]:
    """How often the interval of a mean over classes lies above and below the true mean."""
    random, labels = np.random.default_rng(0), np.repeat(np.arange(len(sizes)), sizes)
    correct = random.random((draws, len(labels))) < np.repeat(accuracies, sizes)
    found = intervals([Answers(correct, labels, per_class=True)])
    truth = float(np.mean(accuracies))
    assert all(each.low < each.high for each in found)
    return tuple(
        np.mean([[each.low > truth, each.high < truth] for each in found], axis=0).tolist()  # type: ignore[return-value]
    )


@pytest.mark.parametrize(
    ("sizes", "accuracies"),
    [
        ((5,) * 20, (0.97,) * 20),
        ((300, 30), (1.0, 0.95)),
        ((200,) * 9 + (20,), (1.0,) * 9 + (0.9,)),
        ((1,) + (30,) * 9, (0.5,) + (0.95,) * 9),
        ((20, 40, 60), (0.5, 0.6, 0.9)),
    ],
)
def test_an_interval_of_a_mean_covers_it_as_often_as_it_says(
    sizes: tuple[int, ...], accuracies: tuple[float, ...]
) -> None:
    """Resampling gives a perfect network no width, and too little to what rests on one small class."""
    above, below = covered(sizes, accuracies)
    assert max(above, below) <= 0.025 + 2.5 * (0.025 * 0.975 / 400) ** 0.5


def test_a_mean_over_tasks_holds_where_the_smallest_may_be_wrong() -> None:
    """All right on 2,000 and on 31 images: the small task alone may be as low as 88.8 %, half of the mean."""
    tasks = [Answers(np.ones((1, count), bool), np.zeros(count, int)) for count in (2000, 31)]
    (found,) = intervals(tasks)
    assert 0.5 + binomtest(31, 31).proportion_ci(method="exact").low / 2 == pytest.approx(0.944, abs=1e-3)
    assert 0.93 < found.low <= 0.944
    assert found.high == 1


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
