"""How many seeds a study needs: against SciPy's noncentral t, simulated studies, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from penultimate import RequestError
from penultimate.statistics import power, seeds_needed


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


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((0.5, 0.0, 5), "spread"),
        ((0.5, float("nan"), 5), "spread"),
        ((float("inf"), 1.0, 5), "difference"),
        ((0.5, 1.0, 1), "two seeds"),
        ((0.5, 1.0, 5, 0), "one comparison"),
        ((0.5, 1.0, 5, 1, 1.0), "level"),
    ],
)
def test_what_no_test_can_be_planned_for_is_refused(arguments: tuple[float, ...], part: str) -> None:
    with pytest.raises(RequestError, match=part):
        power(*arguments)  # type: ignore[arg-type]


def test_nothing_is_planned_for_no_difference_and_of_no_two_values() -> None:
    for difference in (0.0, -0.5, float("nan")):
        with pytest.raises(RequestError, match="above 0"):
            seeds_needed(difference, 1.0)
