"""Rank intervals, tie groups and detectable differences, with differences that were planted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, rankdata

from penultimate.errors import RequestError
from penultimate.statistics.paired import Answers, Pair, compared
from penultimate.statistics.ranks import detectable_difference, rank_intervals, tie_groups


def answered(accuracies: list[float], n: int, seed: int = 0, per_class: bool = False) -> Answers:
    """Return independent answers of networks with these true accuracies, of four classes."""
    right = np.random.default_rng(seed).random((len(accuracies), n)) < np.array(accuracies)[:, None]
    return Answers(right, np.arange(n) % 4, per_class)


@pytest.mark.parametrize("per_class", [False, True])
def test_ranks_of_planted_differences_are_certain_and_those_of_equal_networks_are_not(
    per_class: bool,
) -> None:
    task = answered([0.9, 0.7, 0.7, 0.5], 2000, per_class=per_class)
    found = rank_intervals([task])
    assert [(each.low, each.high) for each in found] == [(1, 1), (2, 3), (2, 3), (4, 4)]
    assert found[0].first == 1.0
    assert [(each.low, each.high) for each in rank_intervals([answered([0.9, 0.7], 12)])] == [(1, 2)] * 2


def test_intervals_agree_with_a_bootstrap_one_draw_after_another() -> None:
    task = answered([0.75, 0.72, 0.7, 0.6, 0.6], 300, 3)
    random = np.random.default_rng(9)
    rows = [task.correct[:, random.integers(0, 300, 300)].mean(1) for _ in range(4000)]
    ranks = np.stack([rankdata(-values) for values in rows])
    found = rank_intervals([task], draws=4000)
    first = np.mean([(values == values.max()) / (values == values.max()).sum() for values in rows], axis=0)
    assert [each.first for each in found] == pytest.approx(first, abs=0.03)
    assert [each.rank for each in found] == rankdata(-task.accuracies()).tolist()
    for place, each in enumerate(found):
        assert abs(each.low - np.quantile(ranks[:, place], 0.025)) <= 1
        assert abs(each.high - np.quantile(ranks[:, place], 0.975)) <= 1
        assert each.low <= each.rank <= each.high


def test_a_lead_on_most_tasks_is_certain_for_these_tasks_and_not_for_others() -> None:
    """The first network is far ahead on two tasks of three, and behind on the third."""
    ahead, behind = [0.9, 0.8], [0.6, 0.75]
    tasks = [answered(each, 2000, seed) for seed, each in enumerate((ahead, ahead, behind))]
    assert [(each.low, each.high) for each in rank_intervals(tasks)] == [(1, 1), (2, 2)]
    assert [(each.low, each.high) for each in rank_intervals(tasks, over_tasks=True)] == [(1, 2)] * 2
    always = [answered(ahead, 2000, seed) for seed in range(3)]
    assert [each.high for each in rank_intervals(always, over_tasks=True)] == [1, 2]


def test_equal_answers_give_equal_intervals_whatever_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [answered([0.7, 0.68, 0.66], 200, seed) for seed in range(2)]
    whole = rank_intervals(tasks)
    assert rank_intervals(tasks) == whole
    monkeypatch.setattr("penultimate.statistics.ranks.BLOCK", 50)
    assert [each.low for each in rank_intervals(tasks)] == [each.low for each in whole]


def test_one_network_and_networks_with_equal_answers() -> None:
    alone = rank_intervals([answered([0.5], 10)])[0]
    assert (alone.rank, alone.low, alone.high, alone.first) == (1.0, 1, 1, 1.0)
    right = np.tile(np.arange(10) < 6, (3, 1))
    for each in rank_intervals([Answers(right, np.zeros(10, int))]):
        assert (each.rank, each.low, each.high) == (2.0, 2, 2)
        assert each.first == pytest.approx(1 / 3)


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(RequestError, match="one task or more"):
        rank_intervals([])
    with pytest.raises(RequestError, match="the same networks"):
        rank_intervals([answered([0.5], 9), answered([0.5, 0.6], 9)])


def test_tie_groups_are_the_maximal_cliques_of_networks_that_are_level() -> None:
    random = np.random.default_rng(1)
    for count in (1, 2, 5, 7):
        for _ in range(8):
            pairs = [
                Pair(*both, 0.1, float(random.random() < 0.6))
                for both in itertools.combinations(range(count), 2)
            ]
            level = {frozenset((pair.one, pair.other)) for pair in pairs if pair.p > 0.05}
            cliques = [
                {*group}
                for size in range(1, count + 1)
                for group in itertools.combinations(range(count), size)
                if all(frozenset(both) in level for both in itertools.combinations(group, 2))
            ]
            largest = [one for one in cliques if not any(one < other for other in cliques)]
            assert tie_groups(pairs, count) == sorted(tuple(sorted(group)) for group in largest)


def test_planted_groups_are_found() -> None:
    task = answered([0.9, 0.9, 0.6, 0.6, 0.6], 3000, 2)
    assert tie_groups(compared([task]), 5) == [(0, 1), (2, 3, 4)]


def exact_power(n: int, differing: float, difference: float, level: float) -> float:
    """Return the power of McNemar's exact test, by summing over how many examples differ."""
    found = 0.0
    for count in range(n + 1):
        outcomes = np.arange(count + 1)
        p = np.minimum(1, 2 * binom.cdf(np.minimum(outcomes, count - outcomes), count, 0.5))
        ahead = binom.pmf(outcomes, count, (differing + difference) / (2 * differing))
        found += binom.pmf(count, n, differing) * ahead[p <= level].sum()
    return found


@pytest.mark.parametrize(("n", "differing", "level"), [(400, 80, 0.05), (400, 120, 0.005), (250, 40, 0.05)])
def test_a_detectable_difference_is_found_in_four_cases_of_five(n: int, differing: int, level: float) -> None:
    right = np.ones((2, n), bool)
    right[0, : differing // 2] = right[1, differing // 2 : differing] = False
    found = detectable_difference([Answers(right, np.zeros(n, int))], 0, 1, level=level)
    assert exact_power(n, differing / n, found, level) == pytest.approx(0.8, abs=0.025)
    less = detectable_difference([Answers(right, np.zeros(n, int))], 0, 1, level=level, power=0.3)
    assert exact_power(n, differing / n, less, level) == pytest.approx(0.3, abs=0.03)


def test_a_difference_of_a_mean_over_tasks_is_found_in_four_cases_of_five() -> None:
    """Two tasks of 300 and 900 images, of which a fifth and a tenth are answered differently."""
    random = np.random.default_rng(0)
    shares, sizes = (0.2, 0.1), (300, 900)
    tasks = []
    for share, size in zip(shares, sizes, strict=True):
        right = np.ones((2, size), bool)
        count = int(share * size)
        right[0, : count // 2] = right[1, count // 2 : count] = False
        tasks.append(Answers(right, np.zeros(size, int)))
    found = detectable_difference(tasks, 0, 1)
    won = 0
    for _ in range(3000):
        difference = variance = 0.0
        for share, size in zip(shares, sizes, strict=True):
            one, other, _ = random.multinomial(size, [(share + found) / 2, (share - found) / 2, 1 - share])
            difference += (one - other) / size / 2
            variance += (one + other) / size**2 / 4
        won += abs(difference) > 1.96 * math.sqrt(variance)
    assert won / 3000 == pytest.approx(0.8, abs=0.03)


def test_where_nothing_could_have_been_found_there_is_no_number() -> None:
    right = np.ones((2, 20), bool)
    assert math.isnan(detectable_difference([Answers(right, np.zeros(20, int))], 0, 1))
    right[0, 0] = False  # one image of twenty can show nothing
    assert math.isnan(detectable_difference([Answers(right, np.zeros(20, int))], 0, 1))
