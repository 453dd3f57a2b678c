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
    calibration_of_logits,
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
    seen = calibration_of_logits(logits, labels, bins=bins)
    assert seen.expected_calibration_error == pytest.approx(ece, abs=1e-12)
    assert seen.negative_log_likelihood == pytest.approx(nll, rel=1e-12)
    narrow = calibration_of_logits(logits.astype(np.float32), labels, bins=bins)
    assert narrow.negative_log_likelihood == pytest.approx(nll, rel=2e-6)


def test_reliability_against_scikit_learn() -> None:
    logits, labels = example(3, n=400)
    rows = np.array(probabilities_of(logits))
    seen = calibration_of_logits(logits, labels)
    accuracy, confidence = calibration_curve(rows.argmax(1) == labels, rows.max(1), n_bins=15)
    assert [one.accuracy for one in seen.reliability] == pytest.approx(accuracy.tolist())
    assert [one.confidence for one in seen.reliability] == pytest.approx(confidence.tolist())
    assert all(one.lower < one.confidence <= one.upper for one in seen.reliability)
    assert seen.negative_log_likelihood == pytest.approx(log_loss(labels, rows))
    total = sum(one.examples * abs(one.accuracy - one.confidence) for one in seen.reliability)
    assert seen.expected_calibration_error == pytest.approx(total / 400)


def test_each_example_may_have_a_temperature_of_its_own() -> None:
    logits, labels = example(4)
    temperatures = torch.linspace(0.5, 3, len(labels), dtype=torch.float64)
    found = calibration_of_logits(logits, labels, temperatures)
    assert found == calibration_of_logits(logits / temperatures.numpy()[:, None], labels)
    assert found != calibration_of_logits(logits, labels)


def test_edges_belong_to_the_bin_below_in_the_precision_of_the_probabilities() -> None:
    assert expected_calibration_error([[0.05, 0.95], [1.0, 0.0]], [1, 1]) == pytest.approx(0.475, abs=1e-15)
    for dtype in (np.float32, np.float64, np.float16):
        for tenths in (6, 7, 8, 9, 10):
            rows = np.array(
                [[tenths / 10, 1 - tenths / 10], [(tenths - 0.5) / 10, 1.05 - tenths / 10]], dtype
            )
            # both lie in one bin, so that the errors of a right and a wrong example cancel
            gap = abs(rows.astype(float)[:, 0].sum() - 1) / 2
            assert expected_calibration_error(rows, [0, 1], 10) == pytest.approx(gap, abs=1e-12)


def test_equal_probabilities_predict_the_smallest_class() -> None:
    rows = [[0.4, 0.4, 0.2], [0.4, 0.4, 0.2]]
    assert expected_calibration_error(rows, [0, 0]) == pytest.approx(0.6)
    assert expected_calibration_error(rows, [1, 1]) == pytest.approx(0.4)


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
    ours = calibration_of_logits(logits, labels, fit_temperature(logits, labels))
    assert ours.negative_log_likelihood == pytest.approx(log_loss(labels, scaled), rel=1e-9)
    assert ours.expected_calibration_error == pytest.approx(
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
    assert calibration_of_logits(wide, labels)[:2] == pytest.approx(calibration_of_logits(logits, labels)[:2])


def test_every_objective_is_served_through_its_log_probabilities() -> None:
    logits, labels = example(7)
    for name in ("softmax", "sigmoid"):
        objective = pu.objective(name, num_features=2, num_classes=5)
        scores = objective.log_probabilities(torch.from_numpy(logits))
        best = fit_temperature(scores, labels)
        scaled = objective.probabilities(torch.from_numpy(logits), best)
        lowest = calibration_of_logits(scores, labels, best).negative_log_likelihood
        assert negative_log_likelihood(scaled, labels) == pytest.approx(lowest)
        for other in (0.9 * best, 1.1 * best):
            worse = objective.probabilities(torch.from_numpy(logits), other)
            assert negative_log_likelihood(worse, labels) > lowest
        if name == "softmax":
            assert best == pytest.approx(fit_temperature(logits, labels), rel=1e-9)


def test_what_has_no_best_temperature_is_said() -> None:
    for logits, labels, reason in [
        ([[2.0, 1.0], [0.0, 5.0]], [0, 1], "all 2 labels have the largest logit"),
        ([[1.0, 1.0]], [0], "every temperature is as good"),
        ([[1.0, 1.0, 1.0], [-7.0, -7.0, -7.0]], [2, 0], "every temperature is as good"),
        ([[0.0, 0.0]] * 4, [1, 1, 1, 1], "every temperature is as good"),
        ([[2.0, 1.0]], [1], "no higher than those of the other classes"),
        ([[2.0, 1.0], [2.0, 1.0]], [0, 1], "labels and logits in the same order"),
        ([[0.0, -math.inf], [1.0, 0.0]], [1, 0], r"the label's logit is -inf in row 0"),
    ]:
        with pytest.raises(UndefinedError, match=reason):
            fit_temperature(logits, labels)
    one = fit_temperature([[0.0, 1.0, -9.0]], [0])
    assert one == pytest.approx(oracle.best_temperature([[0.0, 1.0, -9.0]], [0]), rel=1e-6)


def test_extremes_stay_finite() -> None:
    seen = calibration_of_logits(np.array([[1e4, -1e4], [1e4, -1e4]], np.float32), [0, 1])
    assert seen.negative_log_likelihood == pytest.approx(1e4)
    assert seen.expected_calibration_error == 0.5
    assert negative_log_likelihood([[0.0, 1.0]], [0]) == math.inf
    assert negative_log_likelihood([[0, 1]], [1]) == 0
    assert expected_calibration_error([[1.0]], [0]) == 0


ROWS, LABELS = np.full((4, 2), 0.5), np.array([0, 1, 0, 1])
SPOILT = np.where(np.arange(4)[:, None] == 2, np.nan, ROWS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expected_calibration_error(2 * ROWS, LABELS), "distribution.*rows 0, 1, 2 and 3"),
        (lambda: expected_calibration_error(SPOILT, LABELS), "distribution.*not so in row 2"),
        (lambda: expected_calibration_error([[1.5, -0.5]], [0]), "distribution.*row 0"),
        (lambda: expected_calibration_error(ROWS[:0], LABELS[:0]), "are empty"),
        (lambda: expected_calibration_error(ROWS, LABELS, 0), "bins must be a whole number"),
        (lambda: calibration_of_logits(SPOILT, LABELS), r"NaN or \+inf, or only -inf, in row 2"),
        (lambda: calibration_of_logits(ROWS, LABELS, 0), "temperature must be a number"),
        (lambda: fit_temperature(SPOILT, LABELS), r"NaN or \+inf, or only -inf, in row 2"),
        (lambda: fit_temperature(ROWS, LABELS[1:]), "4 examples, but 3 labels"),
        (lambda: fit_temperature(1e200 * np.eye(2)[[0, 0, 1]], [0, 1, 1]), "too large or too close"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
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
