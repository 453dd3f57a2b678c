"""Means, tests and correlations against literal loops, SciPy and the numbers recomputed from the paper."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from penultimate import RequestError
from penultimate.statistics import (
    Anova,
    MeanWithError,
    bold,
    leave_two_out,
    mean,
    proportion_interval,
    spearman,
    summarise,
    two_way_anova,
)
from tests.oracles import claims as oracle

seeds = st.integers(0, 10_000)


def runs(seed: int, n: int, center: float = 0.0) -> list[float]:
    return (np.random.default_rng(seed).normal(size=n) + center).tolist()


@given(seed=seeds, n=st.integers(2, 12), offset=st.sampled_from([0.0, 1e6]))
@settings(max_examples=30)
def test_means_and_standard_errors(seed: int, n: int, offset: float) -> None:
    values = runs(seed, n, offset)
    summary = summarise(values)
    assert summary.mean == mean(values) == pytest.approx(np.mean(values), rel=1e-15)
    assert summary.standard_error == pytest.approx(scipy.stats.sem(values), rel=1e-7)
    assert summarise(summary) is summary


def test_one_run_has_no_standard_error_and_says_so() -> None:
    assert summarise([3.0]).is_single
    assert math.isnan(summarise([3.0]).standard_error)
    assert not summarise([3.0, 3.0]).is_single


def crossed(seed: int, sizes: list[list[int]]) -> dict[str, dict[str, list[float]]]:
    """As many runs of each objective on each task as said, objectives and tasks apart."""
    return {
        f"objective {a}": {
            f"task {d}": runs(31 * seed + 7 * a + d, size, center=0.4 * a + 3 * d)
            for d, size in enumerate(row)
        }
        for a, row in enumerate(sizes)
    }


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "sizes", [[[3] * 4] * 3, [[2, 3], [4, 2], [3, 5]], [[1] * 5] * 3], ids=["equal", "unequal", "single"]
)
def test_two_way_analysis_of_variance_is_that_of_statsmodels(sizes: list[list[int]], seed: int) -> None:
    """Type III, each factor coded to sum to 0; without runs to vary, the interaction is the error."""
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    cells = crossed(seed, sizes)
    rows = [(a, d, y) for a, row in cells.items() for d, values in row.items() for y in values]
    single = max(map(max, sizes)) == 1
    frame = pd.DataFrame(rows, columns=["objective", "task", "y"])
    fit = ols(f"y ~ C(objective, Sum) {'+' if single else '*'} C(task, Sum)", frame).fit()
    table = anova_lm(fit, typ=3)
    found = two_way_anova(cells)
    assert found.f == pytest.approx(table["F"]["C(objective, Sum)"], rel=1e-8)
    assert found.p == pytest.approx(table["PR(>F)"]["C(objective, Sum)"], rel=1e-7)
    degrees = table["df"][["C(objective, Sum)", "Residual"]]
    assert [found.degrees_of_freedom, found.error_degrees_of_freedom] == list(degrees)
    assert found.error == ("interaction" if single else "within cells")


def test_analysis_of_variance_of_runs_that_do_not_vary_and_of_one_task() -> None:
    still = {"x": [1.0, 1.0], "y": [2.0, 2.0]}
    assert two_way_anova({"a": still, "b": {"x": [2.0, 2.0], "y": [3.0, 3.0]}}).p == 0
    assert two_way_anova({"a": still, "b": still}) == Anova(0.0, 1, 4, 1.0, "within cells")
    one, other = runs(1, 5), runs(2, 4)
    student = scipy.stats.ttest_ind(one, other)
    assert two_way_anova({"a": {"x": one}, "b": {"x": other}}).p == pytest.approx(student.pvalue)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"a": {"x": [1.0]}, "b": {"y": [1.0]}}, "'a' has no run on 'y'"),
        ({"a": {"x": [1.0, 2.0]}}, "two objectives or more"),
        ({"a": {"x": [1.0]}, "b": {"x": [2.0]}}, "nothing to measure"),
        ({"a": {"x": [1.0, math.nan]}, "b": {"x": [2.0, 3.0]}}, "the value nan: leave diverged runs out"),
        ({}, "got none"),
    ],
)
def test_what_cannot_be_analysed_is_told(cells: dict[str, dict[str, list[float]]], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        two_way_anova(cells)


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
    assert bold(column, level=0.001).entries == {"a", "b"}


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
    assert -1 < found.low < found.rho < found.high < 1
    assert [found.low, found.high] == pytest.approx(oracle.rank_interval(found.rho, n), abs=1e-7)
    assert spearman(x, y, confidence=0.5).low > found.low
    assert spearman(np.exp(x), -(y**3)).rho == pytest.approx(-found.rho, abs=1e-14)
    assert spearman(y, x).p == pytest.approx(found.p, abs=1e-14)


def test_perfect_agreement_has_no_interval_and_few_pairs_no_t() -> None:
    perfect = spearman(range(8), range(8, 0, -1))
    assert (perfect.rho, perfect.p_t) == (-1, 0)
    assert perfect.p_exact == pytest.approx(2 / math.factorial(8))
    assert math.isnan(perfect.low)
    two = spearman([1, 2], [3, 4])
    assert (two.rho, two.p_exact) == (1, 1)
    assert math.isnan(two.p_t)


def test_the_interval_covers_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    pairs = random.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=(400, 15))
    truth = 6 / math.pi * math.asin(0.35)  # Spearman's rho of a bivariate normal with r = 0.7
    intervals = [spearman(sample[:, 0], sample[:, 1]) for sample in pairs]
    assert 0.9 < np.mean([found.low < truth < found.high for found in intervals]) < 0.99


def test_bad_input_is_named() -> None:
    for call, message in [
        (lambda: mean([]), "mean of no runs"),
        (lambda: summarise([1.0, math.nan]), "run 1 of 2 has the value nan: leave diverged runs out"),
        (lambda: MeanWithError(1.0, -0.1, 3), "no negative standard error"),
        (lambda: MeanWithError(1.0, 0.1, 0), "n >= 1"),
        (lambda: bold({"a": {0: 1.0}}, level=5), "level of a test"),
        (lambda: bold({"a": {0: "high"}}), "runs of 'a' must be a list of numbers"),
        (lambda: spearman([1, 2, 3], [1, 2]), "takes pairs; got 3 and 2"),
        (lambda: spearman([1], [1]), "two pairs or more"),
        (lambda: spearman([1, 2, math.nan], [1, 2, 3]), "pair 2 is"),
        (lambda: spearman([1, 2, 3, 4], [1, 2, 4, 3], confidence=95), "confidence of an interval"),
    ]:
        with pytest.raises(RequestError, match=message):
            call()


@given(seed=seeds, n=st.integers(5, 8))
@settings(max_examples=30)
def test_any_two_may_be_left_out(seed: int, n: int) -> None:
    x, y = runs(seed, n), runs(seed + 1, n)
    left = leave_two_out(x, y)
    found = oracle.without_two(x, y)
    assert left is not None
    assert (left.low, left.high) == pytest.approx((min(found), max(found)))
    kept = [place for place in range(n) if place not in left.pair]
    assert left.rho == pytest.approx(oracle.rho([x[i] for i in kept], [y[i] for i in kept]))
    moved = [abs(rho - oracle.rho(x, y)) for rho in found]
    assert abs(left.rho - oracle.rho(x, y)) == pytest.approx(max(moved))
    assert left.ties == sum(one == pytest.approx(max(moved)) for one in moved)


@given(of=st.integers(1, 60), share=st.floats(0, 1), level=st.sampled_from([0.5, 0.9, 0.95, 0.999]))
@settings(max_examples=60)
def test_the_interval_of_a_proportion_is_clopper_and_pearsons(of: int, share: float, level: float) -> None:
    right = round(share * of)
    lower, upper = proportion_interval(right, of, level)
    beside = scipy.stats.binomtest(right, of).proportion_ci(level, method="exact")
    assert (lower, upper) == pytest.approx((beside.low, beside.high), abs=1e-9)
    assert 0 <= lower <= right / of <= upper <= 1
    assert lower < upper
    mirrored = proportion_interval(of - right, of, level)
    assert mirrored == pytest.approx((1 - upper, 1 - lower), abs=1e-12)


@pytest.mark.parametrize("of", [1, 5, 31])
def test_the_interval_of_a_proportion_covers_at_least_as_often_as_it_says(of: int) -> None:
    intervals = [proportion_interval(right, of) for right in range(of + 1)]
    for truth in np.linspace(0.005, 0.995, 100):
        chances = scipy.stats.binom.pmf(np.arange(of + 1), of, truth)
        covers = [lower <= truth <= upper for lower, upper in intervals]
        assert chances[covers].sum() >= 0.95


@pytest.mark.parametrize(
    ("right", "of", "level", "message"),
    [
        (3, 2, 0.95, "got 3, 2 and 0.95"),
        (-1, 2, 0.95, "got -1, 2"),
        (math.nan, 2, 0.95, "got nan, 2"),
        (1, 2, 95, "got 1, 2 and 95"),
    ],
)
def test_counts_that_make_no_proportion_are_named(right: int, of: int, level: float, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        proportion_interval(right, of, level)
