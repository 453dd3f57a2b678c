"""Means, tests and correlations against literal loops, SciPy and the numbers recomputed from the paper."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from penultimate import RequestError
from penultimate import statistics as statistics_room
from penultimate.statistics import (
    Summary,
    bold,
    bold_averages,
    leave_two_out,
    mean,
    spearman,
    standard_error,
    summarise,
    two_way_anova,
    welch,
)
from tests.oracles import claims as claims_oracle
from tests.oracles import statistics as oracle

seeds = st.integers(0, 10_000)


def runs(seed: int, n: int, center: float = 0.0) -> list[float]:
    return (np.random.default_rng(seed).normal(size=n) + center).tolist()


@given(seed=seeds, n=st.integers(2, 12), offset=st.sampled_from([0.0, 1e6]))
@settings(max_examples=30, deadline=None)
def test_means_and_standard_errors(seed: int, n: int, offset: float) -> None:
    values = runs(seed, n, offset)
    summary = summarise(values)
    assert summary.mean == mean(values) == pytest.approx(np.mean(values), rel=1e-15)
    assert (
        summary.standard_error
        == standard_error(iter(values))
        == pytest.approx(scipy.stats.sem(values), rel=1e-7)
    )
    assert summary.standard_error == pytest.approx(oracle.standard_error(values), rel=1e-7)
    assert summarise(summary) is summary


def test_one_run_has_no_standard_error_and_says_so() -> None:
    assert summarise([3.0]).is_single
    assert math.isnan(standard_error([3.0]))
    assert not summarise([3.0, 3.0]).is_single


@given(seed=seeds, n=st.integers(2, 9), m=st.integers(2, 9), shift=st.floats(0, 3), scale=st.floats(0.1, 10))
@settings(max_examples=40, deadline=None)
def test_welch_equals_scipy(seed: int, n: int, m: int, shift: float, scale: float) -> None:
    a, b = runs(seed, n), [scale * value + shift for value in runs(seed + 1, m)]
    ours, theirs = welch(a, b), scipy.stats.ttest_ind(a, b, equal_var=False)
    assert ours.t == pytest.approx(theirs.statistic, rel=1e-9)
    assert ours.degrees_of_freedom == pytest.approx(theirs.df, rel=1e-9)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-7)
    assert welch(summarise(a), b).p == ours.p
    assert welch(b, a).t == -ours.t


def test_runs_that_do_not_vary() -> None:
    assert welch([1.0, 1.0], [1.0, 1.0, 1.0]).p == 1
    apart = welch([1.0, 1.0], [2.0, 2.0])
    assert (apart.t, apart.p) == (-math.inf, 0)
    assert 0 < welch([1.0, 1.0], [1.0, 2.0]).p < 1


def test_bold_is_what_is_not_significantly_worse_than_the_best() -> None:
    column = {"best": [10.0, 10.2, 10.1], "close": [9.9, 10.2, 10.0], "far": [8.0, 8.1, 8.2]}
    found = bold(column)
    assert found.best == ("best",)
    assert found.bold == {"best", "close"}
    assert found.p_values["close"] == welch(column["close"], column["best"]).p >= 0.05
    assert "far" not in found
    assert "close" in found
    assert found.note == ""
    assert bold(column, higher_is_better=False).bold == {"far"}
    assert bold(column, level=0.9).bold == {"best"}
    assert bold({"alone": [1.0]}).note == ""


def test_bold_from_printed_means_and_standard_errors() -> None:
    """Table 3's top-1: sigmoid and cosine softmax share the best mean; the next is far below."""
    printed = {
        "softmax": (77.0, 0.06),
        "sigmoid": (77.9, 0.05),
        "logit_penalty": (77.7, 0.04),
        "cosine": (77.9, 0.02),
    }
    found = bold({name: Summary(*numbers, n=8) for name, numbers in printed.items()})
    assert set(found.best) == found.bold == {"sigmoid", "cosine"}
    assert set(found.p_values) == {"softmax", "logit_penalty"}


def test_one_run_is_bold_only_as_the_best() -> None:
    mixed = bold({"best": [3.0, 3.1], "twin": [3.04], "other": [3.0, 3.05]})
    assert mixed.bold == {"best", "other"}
    assert "twin" in mixed.note
    single_best = bold({"best": [5.0], "other": [4.9, 5.0]})
    assert single_best.bold == {"best"}
    assert single_best.p_values == {}
    assert bold({"a": [1.0], "b": [2.0], "c": [2.0]}).bold == {"b", "c"}
    assert "only the best" in bold({"a": [1.0], "b": [2.0]}).note


def cells_of(seed: int, sizes: list[list[int]]) -> list[list[list[float]]]:
    random = np.random.default_rng(seed)
    return [
        [(random.normal(size=n) + 2 * d + 0.3 * a).tolist() for d, n in enumerate(row)]
        for a, row in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    "sizes",
    [
        [[3, 3, 3], [3, 3, 3]],
        [[2, 2], [2, 2], [2, 2]],
        [[1, 1, 1], [1, 1, 1]],
        [[1, 3, 2], [4, 1, 2]],
        [[5], [3]],
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_anova_is_least_squares_with_and_without_the_objective(sizes: list[list[int]], seed: int) -> None:
    cells = cells_of(seed, sizes)
    named = {f"a{i}": {f"d{j}": values for j, values in enumerate(row)} for i, row in enumerate(cells)}
    f, degrees, error_degrees = oracle.objective_f(cells)
    found = two_way_anova(named)
    assert found.f == pytest.approx(f, rel=1e-8, abs=1e-10)
    assert (found.degrees_of_freedom, found.error_degrees_of_freedom) == (degrees, error_degrees)
    assert found.p == pytest.approx(scipy.stats.f.sf(f, degrees, error_degrees), rel=1e-7)
    assert found.error == ("interaction" if all(n == 1 for row in sizes for n in row) else "within cells")


def test_anova_of_one_dataset_is_students_t_and_without_runs_a_paired_t() -> None:
    a, b = runs(1, 5), runs(2, 4)
    one = two_way_anova({"a": {"d": a}, "b": {"d": b}})
    student = scipy.stats.ttest_ind(a, b)
    assert one.f == pytest.approx(student.statistic**2)
    assert one.p == pytest.approx(student.pvalue)
    paired = two_way_anova(
        {"a": {str(i): [v] for i, v in enumerate(a)}, "b": {str(i): [v] for i, v in enumerate([*b, 0.3])}}
    )
    test = scipy.stats.ttest_rel(a, [*b, 0.3])
    assert paired.f == pytest.approx(test.statistic**2)
    assert paired.p == pytest.approx(test.pvalue)


def test_bold_averages() -> None:
    base = {"food": [70.0, 70.2, 70.1], "cars": [50.0, 50.3, 50.1]}
    close = {"food": [70.1, 70.1, 70.0], "cars": [50.0, 50.2, 50.0]}
    far = {"cars": [48.0, 48.3, 48.1], "food": [70.0, 70.2, 70.1]}
    found = bold_averages({"base": base, "close": close, "far": far})
    assert found.best == ("base",)
    assert found.bold == {"base", "close"}
    assert found.p_values["far"] == two_way_anova({"far": far, "base": base}).p < 0.05
    assert found.note == ""
    single = {
        name: {d: v[:1] for d, v in row.items()}
        for name, row in [("base", base), ("close", close), ("far", far)]
    }
    assert "interaction" in bold_averages(single).note
    lone = bold_averages({"a": {"d": [1.0]}, "b": {"d": [2.0]}})
    assert (lone.bold, lone.p_values) == ({"b"}, {})
    assert "one run cannot be tested" in lone.note
    still = {"a": {"x": [1.0, 1.0], "y": [2.0, 2.0]}, "b": {"x": [2.0, 2.0], "y": [3.0, 3.0]}}
    assert two_way_anova(still).p == 0
    assert two_way_anova({"a": still["a"], "b": still["a"]}).p == 1


def test_two_single_runs_of_one_dataset_cannot_be_tested_whatever_the_others_are() -> None:
    column = {"softmax": {"food": [1.0, 1.2]}, "sigmoid": {"food": [3.0]}, "dropout": {"food": [2.9]}}
    found = bold_averages(column)
    assert found.best == ("sigmoid",)
    assert "dropout" not in found
    assert set(found.p_values) == {"softmax"}
    assert "one run" in found.note


@given(seed=seeds, n=st.integers(2, 6), values=st.integers(2, 9))
@settings(max_examples=40, deadline=None)
def test_spearman_with_ties_counts_every_order(seed: int, n: int, values: int) -> None:
    random = np.random.default_rng(seed)
    x, y = random.integers(0, values, n).tolist(), random.integers(0, values, n).tolist()
    found = spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(found.rho)
        assert math.isnan(found.p)
        return
    assert found.rho == pytest.approx(oracle.spearman(x, y), abs=1e-14)
    assert found.p_exact == pytest.approx(oracle.spearman_p(x, y), abs=1e-12)
    if n > 2 and abs(found.rho) < 1:
        theirs = scipy.stats.spearmanr(x, y)
        assert found.rho == pytest.approx(theirs.statistic, abs=1e-12)
        assert found.p_t == pytest.approx(theirs.pvalue, abs=1e-9)


@given(seed=seeds, n=st.integers(7, 20))
@settings(max_examples=20, deadline=None)
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
    assert [found.low, found.high] == pytest.approx(
        oracle.spearman_interval(found.rho, n, 1.959964), abs=1e-7
    )
    assert spearman(x, y, confidence=0.5).low > found.low
    assert spearman(np.exp(x), -(y**3)).rho == pytest.approx(-found.rho, abs=1e-14)
    assert spearman(y, x).p == pytest.approx(found.p, abs=1e-14)


def test_the_exact_p_of_twelve_pairs_is_close_to_a_large_sample_of_orders() -> None:
    random = np.random.default_rng(0)
    x, y = np.arange(12.0), random.permutation(12).astype(float)
    found = spearman(x, y)
    orders = np.array([random.permutation(12) for _ in range(20_000)])
    centred = x - 5.5
    sampled = np.mean(np.abs((orders - 5.5) @ centred) >= abs(centred @ (y - 5.5)) - 1e-9)
    assert found.p_exact == pytest.approx(sampled, abs=0.015)


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
        (lambda: Summary(1.0, -0.1, 3), "no negative standard error"),
        (lambda: Summary(1.0, 0.1, 0), "n >= 1"),
        (lambda: welch([1.0], [1.0, 2.0]), "two runs or more"),
        (lambda: bold({}), "empty column"),
        (lambda: bold({"a": [1.0]}, level=5), "level of a test"),
        (lambda: two_way_anova({"a": {"x": [1.0]}, "b": {"y": [1.0]}}), "'a' has no run on 'y'"),
        (lambda: two_way_anova({"a": {"x": [1.0, 2.0]}}), "two objectives or more"),
        (lambda: two_way_anova({"a": {"x": [1.0]}, "b": {"x": [2.0]}}), "nothing to measure"),
        (lambda: bold_averages({}), "got none"),
        (lambda: spearman([1, 2, 3], [1, 2]), "takes pairs; got 3 and 2"),
        (lambda: spearman([1], [1]), "two pairs or more"),
        (lambda: spearman([1, 2, math.nan], [1, 2, 3]), "pair 2 is"),
        (lambda: spearman([1, 2, 3, 4], [1, 2, 4, 3], confidence=95), "confidence of an interval"),
        (lambda: statistics_room.kendall, "no attribute 'kendall'"),
    ]:
        with pytest.raises((RequestError, AttributeError), match=message):
            call()


def test_importing_the_room_imports_no_heavy_library() -> None:
    code = (
        "import sys, penultimate.statistics, penultimate.published\n"
        "import penultimate.records.table, penultimate.metrics\n"
        "heavy = {'torch', 'scipy', 'numpy', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@given(seed=seeds, n=st.integers(5, 8))
@settings(max_examples=30, deadline=None)
def test_any_two_may_be_left_out(seed: int, n: int) -> None:
    x, y = runs(seed, n), runs(seed + 1, n)
    left = leave_two_out(x, y)
    found = claims_oracle.without_two(x, y)
    assert left is not None
    assert (left.low, left.high) == pytest.approx((min(found), max(found)))
    kept = [place for place in range(n) if place not in left.pair]
    assert left.rho == pytest.approx(claims_oracle.rho([x[i] for i in kept], [y[i] for i in kept]))
    moved = [abs(rho - claims_oracle.rho(x, y)) for rho in found]
    assert abs(left.rho - claims_oracle.rho(x, y)) == pytest.approx(max(moved))
    assert left.ties == sum(one == pytest.approx(max(moved)) for one in moved)


def test_too_few_pairs_cannot_spare_two() -> None:
    assert leave_two_out([1, 2, 3, 4], [1, 2, 4, 3]) is None
    assert leave_two_out([1, 1, 1, 1, 1], [1, 2, 4, 3, 5]) is None
