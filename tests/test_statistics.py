"""Means, tests and correlations against literal loops, SciPy and the numbers recomputed from the paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from penultimate import RequestError
from penultimate.statistics import bold, leave_two_out, power, proportion_interval, seeds_needed, spearman
from tests.oracles import claims as oracle

seeds = st.integers(0, 10_000)


def runs(seed: int, n: int, center: float = 0.0) -> list[float]:
    return (np.random.default_rng(seed).normal(size=n) + center).tolist()


def columns(seed: int, names: int, n: int, spread: float) -> dict[str, dict[int, float]]:
    random = np.random.default_rng(seed)
    draws = 5 * random.normal(size=n)
    return {
        str(name): dict(enumerate((draws + spread * name + random.normal(size=n)).tolist()))
        for name in range(names)
    }


@given(seed=seeds, names=st.integers(2, 6), n=st.integers(3, 6), spread=st.sampled_from([0.0, 1.0, 3.0]))
@settings(max_examples=40)
def test_bold_is_what_no_other_beats_in_paired_tests_corrected_by_holm(
    seed: int, names: int, n: int, spread: float
) -> None:
    column = columns(seed, names, n, spread)
    found = bold(column)
    p = {
        (a, b): scipy.stats.ttest_rel(
            list(column[b].values()), list(column[a].values()), alternative="greater"
        ).pvalue
        for a in column
        for b in column
        if a != b
    }
    for a in column:
        others = [b for b in column if b != a]
        closed = oracle.holm_by_closure([p[a, b] for b in others])
        assert [found.p_values[a][b] for b in others] == pytest.approx([min(1, 2 * q) for q in closed])
    ahead = {b for b in column if all(p[a, b] <= 0.025 for a in column if a != b)}
    unbeaten = {a for a in column if (names - 1) * min(p[a, b] for b in column if b != a) > 0.025}
    assert found.entries == (ahead or unbeaten)
    turned = {name: {run: -value for run, value in of.items()} for name, of in column.items()}
    assert bold(turned, higher_is_better=False) == found
    raised = {name: {run: 8 * value for run, value in of.items()} for name, of in column.items()}
    assert bold(raised).entries == found.entries


def test_what_all_share_within_a_seed_tells_nothing_of_an_entry() -> None:
    """Means 80 apart from seed to seed and 1 from entry to entry: paired, the difference is beyond chance."""
    column = {"a": {0: 0.0, 1: 80.0, 2: 160.0}, "b": {0: 1.0, 1: 81.1, 2: 160.9}}
    assert bold(column).entries == {"b"}


def test_entries_that_cannot_be_tested_are_not_bold() -> None:
    assert bold({}).entries == set()
    assert bold({"alone": {0: 1.0, 1: 2.0, 2: 3.0}}).entries == set()
    assert bold({"a": {0: 1.0}, "b": {0: 2.0}}).p_values == {"a": {}, "b": {}}
    assert bold({"a": {0: 1.0, 1: 1.1}, "b": {0: 2.0, 1: 2.2}}).entries == set()
    copies = {"a": {0: 1.0, 1: 2.0, 2: 3.0}, "b": {0: 1.1, 1: 2.1, 2: 3.1}}
    assert bold(copies).entries == set()
    apart = {"a": {0: 1.0, 1: 2.0, 2: 3.0}, "b": {3: 9.0, 4: 9.1, 5: 9.2}}
    assert bold(apart).entries == set()
    few = {"few": {0: 9.0, 1: 9.1}, "a": {0: 1.0, 1: 2.0, 2: 3.0}, "b": {0: 1.2, 1: 2.1, 2: 3.2}}
    assert bold(few).entries == {"b"}


def test_one_that_is_ahead_of_each_needs_no_correction() -> None:
    """Eight paired p values of .025: none is left when corrected for eight, yet "each of them" is shown."""
    gains = [1.0, 1.0, 1.0, 1.0, 3.0]
    column = {**columns(0, 8, 5, 0.0), "best": {}}
    column = {name: {seed: value / 1e6 for seed, value in of.items()} for name, of in column.items()}
    column["best"] = dict(enumerate(gains))
    found = bold(column)
    by_itself = scipy.stats.ttest_1samp(gains, 0).pvalue
    assert found.p_values["0"]["best"] == pytest.approx(8 * by_itself, rel=1e-3)
    assert found.p_values["0"]["best"] > 0.1
    assert found.entries == {"best"}


@given(seed=seeds, n=st.integers(2, 6), values=st.integers(2, 9))
@settings(max_examples=40)
def test_spearman_with_ties_counts_every_order(seed: int, n: int, values: int) -> None:
    random = np.random.default_rng(seed)
    x, y = random.integers(0, values, n).tolist(), random.integers(0, values, n).tolist()
    found = spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(found.rho)
        assert math.isnan(found.p)
        return
    assert found.p_exact == pytest.approx(oracle.p_of_orders(x, y), abs=1e-12)
    if n > 2 and abs(found.rho) < 1:
        theirs = scipy.stats.spearmanr(x, y)
        assert found.rho == pytest.approx(theirs.statistic, abs=1e-12)
        assert found.p_t == pytest.approx(theirs.pvalue, abs=1e-9)


@given(seed=seeds, n=st.integers(7, 20))
@settings(max_examples=20)
def test_spearman_of_longer_samples(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    y = x + random.normal(size=n)
    x[0], y[0], y[1] = 9, -9, 9  # never in perfect agreement
    found, theirs = spearman(x, y), scipy.stats.spearmanr(x, y)
    assert found.rho == pytest.approx(theirs.statistic, abs=1e-12)
    assert found.p_t == pytest.approx(theirs.pvalue, rel=1e-6)
    assert (found.p_exact is None) == (n > 12)
    assert found.p == (found.p_t if n > 12 else found.p_exact)
    assert spearman(np.exp(x), -(y**3)).rho == pytest.approx(-found.rho, abs=1e-14)
    assert spearman(y, x).p == pytest.approx(found.p, abs=1e-14)


def test_perfect_agreement_and_few_pairs() -> None:
    perfect = spearman(range(8), range(8, 0, -1))
    assert (perfect.rho, perfect.p_t) == (-1, 0)
    assert perfect.p_exact == pytest.approx(2 / math.factorial(8))
    two = spearman([1, 2], [3, 4])
    assert (two.rho, two.p_exact) == (1, 1)
    assert math.isnan(two.p_t)


@given(seed=seeds, n=st.integers(5, 8))
@settings(max_examples=30)
def test_any_two_may_be_left_out(seed: int, n: int) -> None:
    x, y = runs(seed, n), runs(seed + 1, n)
    left = leave_two_out(x, y)
    found = oracle.without_two(x, y)
    assert left is not None
    assert (left.low, left.high) == pytest.approx((min(found), max(found)))


@given(of=st.integers(1, 60), share=st.floats(0, 1))
@settings(max_examples=60)
def test_the_interval_of_a_proportion_is_clopper_and_pearsons(of: int, share: float) -> None:
    right = round(share * of)
    lower, upper = proportion_interval(right, of)
    beside = scipy.stats.binomtest(right, of).proportion_ci(method="exact")
    assert (lower, upper) == pytest.approx((beside.low, beside.high), abs=1e-9)
    assert 0 <= lower <= right / of <= upper <= 1
    assert lower < upper
    mirrored = proportion_interval(of - right, of)
    assert mirrored == pytest.approx((1 - upper, 1 - lower), abs=1e-12)


@pytest.mark.parametrize("of", [1, 5, 31])
def test_the_interval_of_a_proportion_covers_at_least_as_often_as_it_says(of: int) -> None:
    intervals = [proportion_interval(right, of) for right in range(of + 1)]
    for truth in np.linspace(0.005, 0.995, 100):
        chances = scipy.stats.binom.pmf(np.arange(of + 1), of, truth)
        covers = [lower <= truth <= upper for lower, upper in intervals]
        assert chances[covers].sum() >= 0.95


def test_what_makes_no_test_is_refused() -> None:
    for call, message in [
        (lambda: spearman([1, 2, 3], [1, 2]), "two pairs of finite numbers or more"),
        (lambda: spearman([1], [1]), "two pairs"),
        (lambda: spearman([1, 2, math.nan], [1, 2, 3]), "finite"),
        (lambda: proportion_interval(3, 2), "got 3 and 2"),
        (lambda: proportion_interval(math.nan, 2), "got nan"),
        (lambda: power(0.5, 0.0, 5), "spread"),
        (lambda: power(math.inf, 1.0, 5), "difference"),
        (lambda: power(0.5, 1.0, 1), "two seeds"),
        (lambda: power(0.5, 1.0, 5, 0), "one comparison"),
        (lambda: seeds_needed(0.0, 1.0), "above 0"),
    ]:
        with pytest.raises(RequestError, match=message):
            call()


@given(st.floats(-3, 3), st.floats(0.05, 5), st.integers(2, 60), st.integers(1, 20))
def test_power_is_the_tail_of_a_noncentral_t(
    difference: float, spread: float, seeds: int, comparisons: int
) -> None:
    threshold = scipy.stats.t.isf(0.025 / comparisons, seeds - 1)
    expected = scipy.stats.nct.sf(threshold, seeds - 1, difference / spread * seeds**0.5)
    assert power(difference, spread, seeds, comparisons) == pytest.approx(expected, abs=1e-8)


def test_as_many_simulated_studies_find_the_difference() -> None:
    studies = np.random.default_rng(0).normal(0.5, 0.4, size=(20_000, 8))
    found = scipy.stats.ttest_1samp(studies, 0.0, axis=1, alternative="greater").pvalue <= 0.025
    assert found.mean() == pytest.approx(power(0.5, 0.4, 8), abs=0.01)


@given(st.floats(0.1, 3), st.floats(0.1, 2), st.integers(1, 10))
def test_fewer_seeds_would_not_do(difference: float, spread: float, comparisons: int) -> None:
    seeds = seeds_needed(difference, spread, comparisons)
    assert seeds is not None
    assert power(difference, spread, seeds, comparisons) >= 0.9
    assert seeds == 2 or power(difference, spread, seeds - 1, comparisons) < 0.9


def test_a_difference_lost_in_noise_takes_more_seeds_than_anyone_has() -> None:
    assert seeds_needed(1e-4, 1.0) is None
