"""Calibration against literal sums, golden-section search, scikit-learn; edges, extremes and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from tests.oracles import calibration as oracle

import penultimate as pu
from penultimate import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.calibration import (
    CalibrationAccumulator,
    expected_calibration_error,
    negative_log_likelihood,
)
from penultimate.metrics.temperature import fit_temperature

seeds = st.integers(0, 10_000)


def example(seed: int, n: int = 60, k: int = 5, scale: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Logits that know something of their labels, and the labels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, k, n)
    return random.normal(size=(n, k)) * scale + scale * np.eye(k)[labels], labels


def probabilities_of(logits: np.ndarray) -> list[list[float]]:
    return [oracle.softmax(row) for row in logits.tolist()]


@given(seed=seeds, bins=st.integers(1, 40), scale=st.sampled_from([0.1, 1.0, 8.0]))
@settings(max_examples=30)
def test_ece_and_nll_against_the_literal_sums(seed: int, bins: int, scale: float) -> None:
    logits, labels = example(seed, scale=scale)
    rows = probabilities_of(logits)
    ece = oracle.expected_calibration_error(rows, labels.tolist(), bins)
    nll = oracle.negative_log_likelihood(rows, labels.tolist())
    for given_as in (rows, np.array(rows), torch.tensor(rows, dtype=torch.float64)):
        assert expected_calibration_error(given_as, labels, bins) == pytest.approx(ece, abs=1e-12)
        assert negative_log_likelihood(given_as, labels) == pytest.approx(nll, rel=1e-12)
    seen = CalibrationAccumulator(bins).update_logits(logits, labels)
    assert seen.expected_calibration_error() == pytest.approx(ece, abs=1e-12)
    assert seen.negative_log_likelihood() == pytest.approx(nll, rel=1e-12)
    narrow = CalibrationAccumulator(bins).update_logits(logits.astype(np.float32), labels)
    assert narrow.negative_log_likelihood() == pytest.approx(nll, rel=2e-6)


def test_reliability_against_scikit_learn() -> None:
    logits, labels = example(3, n=400)
    rows = np.array(probabilities_of(logits))
    seen = CalibrationAccumulator(15).update(rows, labels)
    right = rows.argmax(1) == labels
    accuracy, confidence = calibration_curve(right, rows.max(1), n_bins=15)
    assert [one.accuracy for one in seen.reliability()] == pytest.approx(accuracy.tolist())
    assert [one.confidence for one in seen.reliability()] == pytest.approx(confidence.tolist())
    assert all(one.lower < one.confidence <= one.upper for one in seen.reliability())
    assert seen.accuracy() == right.mean()
    assert seen.negative_log_likelihood() == pytest.approx(log_loss(labels, rows))
    total = sum(one.examples * abs(one.accuracy - one.confidence) for one in seen.reliability())
    assert seen.expected_calibration_error() == pytest.approx(total / 400)


def test_confidence_one_belongs_to_the_last_bin_and_edges_to_the_bin_below() -> None:
    assert expected_calibration_error([[0.05, 0.95], [1.0, 0.0]], [1, 1]) == pytest.approx(0.475, abs=1e-15)
    for dtype in (np.float32, np.float64, np.float16):
        for tenths in (6, 7, 8, 9, 10):
            rows = np.array([[tenths / 10, 1 - tenths / 10]], dtype)
            (only,) = CalibrationAccumulator(10).update(rows, [0]).reliability()
            assert only.upper == tenths / 10
    uniform = np.full((1, 15), 1 / 15, np.float32)
    assert CalibrationAccumulator(15).update(uniform, [0]).counts[0] == 1


def test_equal_probabilities_predict_the_smallest_class() -> None:
    rows = [[0.4, 0.4, 0.2], [0.4, 0.4, 0.2]]
    assert expected_calibration_error(rows, [0, 0]) == pytest.approx(0.6)
    assert expected_calibration_error(rows, [1, 1]) == pytest.approx(0.4)
    assert CalibrationAccumulator().update_logits([[1.0, 1.0]], [1]).accuracy() == 0


@given(seed=seeds, scale=st.sampled_from([0.7, 2.0]))
@settings(max_examples=6)
def test_temperature_against_golden_section(seed: int, scale: float) -> None:
    logits, labels = example(seed, n=25, k=4, scale=scale)
    expected = oracle.best_temperature(logits.tolist(), labels.tolist())
    assert fit_temperature(logits, labels) == pytest.approx(expected, rel=1e-6)


class Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose logits are its inputs."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> Given:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, x: np.ndarray) -> np.ndarray:
        return x

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.classes_[x.argmax(1)]


def test_temperature_against_scikit_learn() -> None:
    logits, labels = example(5, n=500)
    outside = CalibratedClassifierCV(
        FrozenEstimator(Given().fit(logits, labels)), method="temperature", ensemble=False
    )
    scaled = outside.fit(logits, labels).predict_proba(logits)
    ours = CalibrationAccumulator().update_logits(logits, labels, fit_temperature(logits, labels))
    assert ours.negative_log_likelihood() == pytest.approx(log_loss(labels, scaled), rel=1e-9)
    assert ours.expected_calibration_error() == pytest.approx(
        expected_calibration_error(scaled, labels), abs=1e-6
    )


@given(seed=seeds, power=st.integers(-40, 40), shift=st.floats(-1e3, 1e3))
@settings(max_examples=30)
def test_temperature_scales_with_the_logits_and_ignores_a_shift(seed: int, power: int, shift: float) -> None:
    logits, labels = example(seed, n=20, k=3)
    expected = fit_temperature(logits, labels)
    assert fit_temperature(2.0**power * logits, labels) == pytest.approx(2.0**power * expected, rel=1e-9)
    assert fit_temperature(logits + shift, labels) == pytest.approx(expected, rel=1e-6)


def test_masked_classes_have_no_part_in_the_temperature() -> None:
    logits, labels = example(2)
    wide = np.concatenate([logits, np.full((len(labels), 2), -np.inf)], 1)
    assert fit_temperature(wide, labels) == pytest.approx(fit_temperature(logits, labels), rel=1e-12)
    seen, plain = (CalibrationAccumulator().update_logits(z, labels) for z in (wide, logits))
    assert seen.negative_log_likelihood() == pytest.approx(plain.negative_log_likelihood())


def test_every_objective_is_served_through_its_log_probabilities() -> None:
    logits, labels = example(7)
    for name in ("softmax", "sigmoid"):
        objective = pu.objective(name, num_features=2, num_classes=5)
        scores = objective.log_probabilities(torch.from_numpy(logits))
        best = fit_temperature(scores, labels)
        scaled = objective.probabilities(torch.from_numpy(logits), best)
        seen = CalibrationAccumulator().update_logits(scores, labels, best)
        assert negative_log_likelihood(scaled, labels) == pytest.approx(seen.negative_log_likelihood())
        for other in (0.9 * best, 1.1 * best):
            worse = objective.probabilities(torch.from_numpy(logits), other)
            assert negative_log_likelihood(worse, labels) > seen.negative_log_likelihood()
        if name == "softmax":
            assert best == pytest.approx(fit_temperature(logits, labels), rel=1e-9)


def test_what_has_no_best_temperature_is_said() -> None:
    for logits, labels, reason in [
        ([[2.0, 1.0], [0.0, 5.0]], [0, 1], "all 2 labels have the largest logit"),
        ([[1.0, 1.0]], [0], "every temperature is as good"),
        ([[1.0, 1.0, 1.0], [-7.0, -7.0, -7.0]], [2, 0], "every temperature is as good"),
        ([[0.0, 0.0]] * 4, [1, 1, 1, 1], "every temperature is as good"),
        ([[2.0, 1.0]], [1], "no higher than those of the other classes"),
        ([[2.0, 1.0], [2.0, 1.0]], [0, 1], "T goes to infinity"),
        ([[0.0, -math.inf], [1.0, 0.0]], [1, 0], r"the label's logit is -inf in row 0"),
    ]:
        with pytest.raises(UndefinedError, match=reason):
            fit_temperature(logits, labels)
    one = fit_temperature([[0.0, 1.0, -9.0]], [0])
    assert one == pytest.approx(oracle.best_temperature([[0.0, 1.0, -9.0]], [0]), rel=1e-6)


def test_extremes_stay_finite() -> None:
    seen = CalibrationAccumulator().update_logits(np.array([[1e4, -1e4], [1e4, -1e4]], np.float32), [0, 1])
    assert seen.negative_log_likelihood() == pytest.approx(1e4)
    assert seen.expected_calibration_error() == 0.5
    assert negative_log_likelihood([[0.0, 1.0]], [0]) == math.inf
    assert negative_log_likelihood([[0, 1]], [1]) == 0
    assert expected_calibration_error([[1.0]], [0]) == 0


def test_bad_input_is_named() -> None:
    rows, labels = np.full((4, 2), 0.5), np.array([0, 1, 0, 1])
    spoilt, logits = rows.copy(), rows.copy()
    spoilt[2, 1] = np.nan
    accumulator = CalibrationAccumulator()
    for call, message in [
        (
            lambda: expected_calibration_error(rows, labels + 1),
            r"labels must be 0\.\.1; not so in rows 1 and 3",
        ),
        (lambda: expected_calibration_error(rows, labels[1:]), "4 examples, but 3 labels"),
        (
            lambda: expected_calibration_error(2 * rows, labels),
            r"distribution.*rows 0, 1, 2 and 3.*sums to 2",
        ),
        (lambda: expected_calibration_error(spoilt, labels), r"distribution.*not so in row 2"),
        (lambda: expected_calibration_error([[1.5, -0.5]], [0]), r"row 0 .*smallest entry is -0\.5"),
        (lambda: expected_calibration_error(rows[:0], labels[:0]), "no examples"),
        (lambda: expected_calibration_error(rows[0], labels), r"\[examples, classes\]"),
        (lambda: expected_calibration_error(rows, labels, 0), "bins must be a whole number"),
        (lambda: expected_calibration_error(rows, labels, True), "bins must be a whole number"),
        (lambda: negative_log_likelihood(rows, [0.0, 1.0, 0.0, 1.0]), "integer class indices"),
        (lambda: accumulator.update_logits(spoilt, labels), r"NaN or \+inf, or only -inf, in row 2"),
        (lambda: accumulator.update_logits(logits, labels, 0), "temperature must be a number"),
        (lambda: accumulator.update_logits(logits, labels, math.inf), "temperature must be a number"),
        (lambda: accumulator.expected_calibration_error(), "no examples"),
        (lambda: fit_temperature(spoilt, labels), r"NaN or \+inf, or only -inf, in row 2"),
        (lambda: fit_temperature(rows, labels[1:]), "4 examples, but 3 labels"),
        (lambda: fit_temperature(1e200 * np.eye(2)[[0, 0, 1]], [0, 1, 1]), "beyond 1e150"),
    ]:
        with pytest.raises(RequestError, match=message):
            call()


def test_the_temperature_of_probabilities_is_refused() -> None:
    random = np.random.default_rng(0)
    logits, labels = random.normal(size=(200, 4)), random.integers(0, 4, 200)
    logits[np.arange(200), labels] += 1
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    for wrong in (probabilities, probabilities.astype(np.float32), torch.from_numpy(probabilities).half()):
        with pytest.raises(RequestError, match="these are probabilities"):
            fit_temperature(wrong, labels)
    assert fit_temperature(np.log(probabilities), labels) == pytest.approx(fit_temperature(logits, labels))
