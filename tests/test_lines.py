"""Lines of least squares and tests of equivalence, against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from penultimate.errors import RequestError
from penultimate.statistics import equivalence, least_squares, partial_slopes

RANDOM = np.random.default_rng(11)


@pytest.mark.parametrize("n", [2, 3, 5, 40])
def test_a_line_is_scipys(n: int) -> None:
    x, y = RANDOM.normal(0.4, 0.05, n), RANDOM.normal(80, 1, n)
    ours, theirs = least_squares(x, y), stats.linregress(x, y)
    assert ours is not None
    assert math.isclose(ours.slope, theirs.slope, rel_tol=1e-9)
    assert math.isclose(ours.height(0.4), theirs.intercept + 0.4 * theirs.slope, rel_tol=1e-9)


def test_no_line_goes_through_points_above_each_other() -> None:
    assert least_squares([0.4], [1.0]) is None
    assert least_squares([0.4, 0.4, 0.4 + 1e-17], [1.0, 2.0, 3.0]) is None


@pytest.mark.parametrize("shift", [-0.9, -0.3, 0.0, 0.5, 2.0])
def test_equivalence_is_the_larger_p_of_two_one_sided_tests(shift: float) -> None:
    values = RANDOM.normal(shift, 0.4, 5)
    above = stats.ttest_1samp(values, -0.75, alternative="greater").pvalue
    below = stats.ttest_1samp(values, 0.75, alternative="less").pvalue
    assert math.isclose(equivalence(values, 0.75) or 0, max(above, below), rel_tol=1e-9)


def test_equivalence_of_equal_values_and_of_too_few() -> None:
    assert equivalence([0.25, 0.25, 0.25], 0.75) == 0.0
    assert equivalence([0.875, 0.875, 0.875], 0.75) == 1.0
    assert equivalence([0.2], 0.75) is None
    with pytest.raises(RequestError, match="a margin above zero; got 0"):
        equivalence([0.2, 0.1], 0)


def test_the_slope_within_groups_needs_points_that_differ_and_a_degree_of_freedom() -> None:
    x, y = [0.3, 0.4, 0.5], [81.0, 80.0, 79.2]
    found = partial_slopes("aaa", [x], y)
    assert found is not None
    theirs = stats.linregress(x, y)
    assert (found[0].slope, found[0].error) == pytest.approx((theirs.slope, theirs.stderr))
    assert partial_slopes("aa", [x[:2]], y[:2]) is None
    assert partial_slopes("aaa", [[0.4, 0.4, 0.4]], y) is None
    assert partial_slopes("aabb", [[0.1, 0.1, 0.3, 0.3]], [1.0, 2.0, 3.0, 5.0]) is None
