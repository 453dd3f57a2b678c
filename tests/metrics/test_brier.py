"""The Brier score, its parts and two more calibration errors, against loops and scikit-learn; bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss
from tests.oracles import calibration as oracle

from penultimate import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.brier import (
    BrierAccumulator,
    adaptive_calibration_error,
    brier_parts,
    brier_score,
    classwise_calibration_error,
)

seeds = st.integers(0, 10_000)


def example(seed: int, n: int = 40, k: int = 4, scale: float = 2.0) -> tuple[list[list[float]], list[int]]:
    """Probabilities that know something of their labels, and the labels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, k, n)
    logits = random.normal(size=(n, k)) * scale + scale * np.eye(k)[labels]
    return [oracle.softmax(row) for row in logits.tolist()], labels.tolist()


@given(seed=seeds, bins=st.integers(1, 30), scale=st.sampled_from([0.1, 1.0, 12.0]))
@settings(max_examples=25)
def test_scores_and_errors_against_loops(seed: int, bins: int, scale: float) -> None:
    rows, labels = example(seed, scale=scale)
    parts = brier_parts(rows, labels, bins)
    assert parts.score == pytest.approx(oracle.brier_score(rows, labels), abs=1e-12)
    literal = oracle.brier_parts(rows, labels, bins)
    assert [parts.reliability, parts.resolution, parts.uncertainty] == pytest.approx(literal, abs=1e-12)
    whole = parts.reliability - parts.resolution + parts.uncertainty + parts.within
    assert parts.score == pytest.approx(whole, abs=1e-12)
    expected = oracle.classwise_calibration_error(rows, labels, bins)
    assert classwise_calibration_error(rows, labels, bins) == pytest.approx(expected, abs=1e-12)
    expected = oracle.adaptive_calibration_error(rows, labels, bins)
    assert adaptive_calibration_error(rows, labels, bins) == pytest.approx(expected, abs=1e-12)


@given(
    examples=st.lists(
        st.tuples(st.sampled_from([0.5, 0.6, 0.75, 1.0]), st.booleans()), min_size=1, max_size=30
    ),
    bins=st.integers(1, 12),
)
@settings(max_examples=60)
def test_equal_confidences_share_a_bin_in_any_order(examples: list[tuple[float, bool]], bins: int) -> None:
    rows = [[1 - p, p] for p, _ in examples]
    labels = [int(right) if p > 0.5 else int(not right) for p, right in examples]
    error = adaptive_calibration_error(rows, labels, bins)
    assert error == pytest.approx(oracle.adaptive_calibration_error(rows, labels, bins), abs=1e-12)
    turned = adaptive_calibration_error(rows[::-1], labels[::-1], bins)
    assert error == pytest.approx(turned, abs=1e-12)


def test_the_three_parts_are_exact_if_each_bin_holds_one_probability() -> None:
    random = np.random.default_rng(0)
    first = (random.integers(0, 10, 300) + 0.5) / 10
    rows, labels = np.stack([first, 1 - first], 1), random.integers(0, 2, 300)
    exact, coarse = brier_parts(rows, labels, 10), brier_parts(rows, labels, 3)
    assert exact.within == pytest.approx(0, abs=1e-13)
    assert abs(coarse.within) > 1e-4


def test_the_score_is_scikit_learns() -> None:
    rows, labels = example(1, n=200)
    assert brier_score(rows, labels) == pytest.approx(brier_score_loss(labels, rows), abs=1e-12)
    binary, truth = example(2, n=100, k=2)
    of_one = brier_score_loss(truth, [row[1] for row in binary])
    assert brier_score(binary, truth) == pytest.approx(2 * of_one, abs=1e-12)


def test_batches_and_logits_come_to_the_same_at_any_temperature() -> None:
    random = np.random.default_rng(3)
    logits, labels = random.normal(size=(90, 5)) * 3, random.integers(0, 5, 90)
    parts = BrierAccumulator(9)
    for some in (slice(0, 40), slice(40, 41), slice(41, 90)):
        parts.update_logits(logits[some], labels[some], 2.5)
    rows = [oracle.softmax(row, 2.5) for row in logits.tolist()]
    assert parts.parts() == pytest.approx(brier_parts(rows, labels, 9), abs=1e-12)
    assert parts.classwise_error() == pytest.approx(classwise_calibration_error(rows, labels, 9), abs=1e-12)
    assert parts.adaptive_error(4) == pytest.approx(adaptive_calibration_error(rows, labels, 4), abs=1e-12)


@pytest.mark.parametrize(
    ("rows", "labels", "told"),
    [
        ([[0.5, 0.4]], [0], "must be a distribution"),
        ([[float("nan"), 1.0]], [0], "must be a distribution"),
        ([[0.5, 0.5]], [2], "labels"),
        ([[0.5, 0.5]], [0, 1], "labels"),
        (np.zeros((0, 2)), [], "no examples"),
    ],
)
def test_what_is_no_distribution_is_refused(rows: Any, labels: Any, told: str) -> None:
    for measure in (brier_score, brier_parts, classwise_calibration_error, adaptive_calibration_error):
        with pytest.raises(RequestError, match=told):
            measure(rows, labels)


def test_no_examples_and_other_classes_are_refused() -> None:
    with pytest.raises(UndefinedError, match="nothing was added"):
        BrierAccumulator().parts()
    with pytest.raises(RequestError, match="batches of 2 and of 3 classes"):
        BrierAccumulator().update([[0.5, 0.5]], [0]).update([[0.5, 0.5, 0.0]], [0])
    with pytest.raises(RequestError, match="bins"):
        brier_parts([[0.5, 0.5]], [0], 0)
    with pytest.raises(RequestError, match="NaN"):
        BrierAccumulator().update_logits([[0.0, float("nan")]], [0])
    certain = brier_parts([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    assert certain == pytest.approx((0.0, 0.0, 0.5, 0.5, 0.0))
