"""The mean corruption error: the definition, its invariances, and what has no value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import robustness as oracle

from penultimate import RequestError
from penultimate.data.corruptions import BENCHMARK
from penultimate.metrics import UndefinedError
from penultimate.metrics.robustness import ALEXNET_ERRORS, corruption_errors, mean_corruption_error

rates = st.lists(st.floats(0, 1), min_size=5, max_size=5)
positive = st.lists(st.floats(0.01, 1), min_size=5, max_size=5)


@given(st.lists(st.tuples(rates, positive), min_size=1, max_size=15))
def test_it_is_the_definition(pairs: list[tuple[list[float], list[float]]]) -> None:
    errors = {name: own for name, (own, _) in zip(BENCHMARK, pairs, strict=False)}
    reference = {name: theirs for name, (_, theirs) in zip(BENCHMARK, pairs, strict=False)}
    expected = oracle.mean_corruption_error(errors, reference)
    assert mean_corruption_error(errors, reference) == pytest.approx(expected, rel=1e-12)
    means = {name: sum(values) / 5 for name, values in reference.items()}
    assert mean_corruption_error(errors, means) == pytest.approx(expected, rel=1e-12)
    assert mean_corruption_error(reference, reference) == pytest.approx(1)


def test_sums_are_taken_before_the_ratio() -> None:
    """Not the mean of ratios: a severity at which the reference hardly errs must not rule."""
    errors, reference = {"fog": [0.1, 0.5]}, {"fog": [0.01, 0.99]}
    assert mean_corruption_error(errors, reference) == pytest.approx(0.6)


def test_alexnet_is_its_own_measure() -> None:
    assert tuple(ALEXNET_ERRORS) == BENCHMARK
    assert mean_corruption_error(ALEXNET_ERRORS) == 1
    # Hendrycks and Dietterich print AlexNet's mean error on ImageNet-C, unnormalised, as 78.9 %.
    assert sum(ALEXNET_ERRORS.values()) / 15 == pytest.approx(0.789, abs=5e-4)
    half = {name: [value / 2] * 5 for name, value in ALEXNET_ERRORS.items()}
    assert mean_corruption_error(half) == pytest.approx(0.5)
    assert corruption_errors(half) == pytest.approx(dict.fromkeys(BENCHMARK, 0.5))


@pytest.mark.parametrize(
    ("errors", "reference", "message"),
    [
        ({}, {"fog": 0.5}, "no corruption"),
        ({"fogg": 0.5}, {"fog": 0.5}, "the reference's errors lack fogg. Did you mean 'fog'"),
        ({"fog": 0.5}, {"fog": 0.5, "snow": 0.5}, "the given errors lack snow"),
        ({"fog": [0.5] * 5}, {"fog": [0.5] * 4}, "errors at 5 severities, the reference's at 4"),
        ({"fog": [0.5] * 4}, {"fog": 0.5}, "errors at 4 severities, the reference's at 5"),
        ({"fog": 0.5}, {"fog": [0.5]}, r"errors at 5 severities, the reference's at 1 \(one number counts"),
        ({"fog": 50.0}, {"fog": 0.5}, r"\[0, 1\]; got 50.0; divide percentages by 100"),
        ({"fog": [0.5, float("nan")]}, {"fog": 0.5}, "got nan"),
        ({"fog": 0.5}, {"fog": -0.5}, "the reference's errors must lie"),
        ({"fog": []}, {"fog": 0.5}, "errors are empty"),
    ],
)
def test_what_cannot_be_compared_is_said(errors: Any, reference: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        mean_corruption_error(errors, reference)


def test_a_reference_without_errors_leaves_no_value() -> None:
    with pytest.raises(UndefinedError, match="fog: the reference makes no error"):
        mean_corruption_error({"fog": [0.1]}, {"fog": [0.0]})
