"""Means over crossed samples: against literal formulas, and how often their intervals cover the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from penultimate.errors import RequestError
from penultimate.statistics.crossed import CrossedMean, crossed_mean


def test_one_sample_alone_is_the_usual_interval() -> None:
    values = np.random.default_rng(0).normal(size=40)
    found = crossed_mean([values.mean()], values)
    low, high = stats.t.interval(0.95, 39, values.mean(), stats.sem(values))
    assert found.interval() == pytest.approx((low, high), rel=1e-9)


def test_both_parts_and_their_degrees_are_those_of_welch() -> None:
    """The sum of two variances of means is that of Welch's test, with its degrees of freedom."""
    random = np.random.default_rng(1)
    episodes, images = random.normal(size=7), random.normal(size=30)
    found = crossed_mean(episodes, images)
    welch = stats.ttest_ind(episodes, images, equal_var=False)
    assert found.degrees == pytest.approx(welch.df, rel=1e-9)
    assert found.error == pytest.approx((episodes.mean() - images.mean()) / welch.statistic, rel=1e-9)


def test_classes_of_one_size_are_strata() -> None:
    random = np.random.default_rng(2)
    images, strata = random.normal(size=(3, 8)), np.repeat(np.arange(3), 8)
    found = crossed_mean([1.0], images.ravel(), strata)
    assert found.error == pytest.approx(np.sqrt((images.var(1, ddof=1) / 8).sum() / 9), rel=1e-9)
    assert found.value == 1.0


@pytest.mark.parametrize(("of_episodes", "of_images"), [(0.1, 0.3), (0.0, 0.4), (0.2, 0.05)])
def test_the_interval_covers_the_truth_about_as_often_as_it_says(
    of_episodes: float, of_images: float
) -> None:
    random, covered = np.random.default_rng(3), []
    for _ in range(400):
        each = of_episodes * random.normal(size=(6, 1)) + of_images * random.normal(size=(1, 25))
        each = each + 0.5 + 0.1 * random.normal(size=(6, 25))
        low, high = crossed_mean(each.mean(1), each.mean(0)).interval()
        covered.append(low <= 0.5 <= high)
    assert 0.92 <= np.mean(covered) <= 0.985


def test_an_accuracy_without_errors_is_no_point() -> None:
    whole = crossed_mean([1.0, 1.0], np.ones(20))
    assert whole.accuracy_interval(20) == pytest.approx(
        tuple(stats.binomtest(20, 20).proportion_ci(method="exact")), rel=1e-9
    )


def test_the_interval_of_an_accuracy_is_that_of_as_many_images_as_its_error_is_worth() -> None:
    found = CrossedMean(0.8, 0.05, 12.0)
    count = 0.16 / 0.05**2 * (stats.t.ppf(0.975, 199) / stats.t.ppf(0.975, 12)) ** 2
    ends = stats.beta.ppf([0.025, 0.975], [0.8 * count, 0.8 * count + 1], [0.2 * count + 1, 0.2 * count])
    assert found.accuracy_interval(200) == pytest.approx(tuple(ends), rel=1e-9)
    few = CrossedMean(0.8, 0.001, 12.0).accuracy_interval(50)  # no surer than 50 images alone
    assert few == pytest.approx(tuple(stats.binomtest(40, 50).proportion_ci(method="exact")), rel=1e-9)


def test_near_one_it_covers_the_truth_too() -> None:
    random, covered = np.random.default_rng(5), []
    for _ in range(400):
        each = random.random((5, 60)) < np.clip(0.98 + 0.01 * random.normal(size=(5, 1)), 0, 1)
        low, high = crossed_mean(each.mean(1), each.mean(0)).accuracy_interval(60)
        assert low < high
        covered.append(low <= 0.98 <= high)
    assert np.mean(covered) >= 0.94


def test_nothing_to_average_is_refused() -> None:
    with pytest.raises(RequestError, match="one of each"):
        crossed_mean([], np.ones(3))
