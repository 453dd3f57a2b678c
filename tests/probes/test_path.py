"""Optima and their certificates, against Newton's method on all parameters at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.oracles import probes as oracle
from tests.probes.conftest import blobs

from penultimate.probes import certificate as certificates
from penultimate.probes import logistic, path
from penultimate.probes.certificate import Certifier
from penultimate.probes.descent import Descent
from penultimate.probes.logistic import LogisticProblem, residuals
from penultimate.probes.path import Solver, trace
from penultimate.probes.rows import Rows

ROUNDING = 1e-9


def problems():
    """Sizes, separable or not, features of any scale and offset."""
    return st.tuples(
        st.integers(0, 1000),
        st.integers(5, 24),
        st.integers(1, 3),
        st.integers(2, 4),
        st.sampled_from([0.1, 1.0, 3.0]),
        st.sampled_from([1e-3, 1.0, 1e2]),
        st.sampled_from([0.0, 30.0]),
    )


def drawn(parameters):
    seed, examples, features, classes, spread, scale, offset = parameters
    points, codes = blobs(seed, examples, features, classes, spread)
    return scale * (points + offset), codes, classes


@settings(max_examples=25)
@given(problems(), st.floats(-6, 5))
def test_the_certified_gap_bounds_the_true_one(parameters, exponent):
    features, codes, classes = drawn(parameters)
    penalty = 10.0**exponent
    (found,) = trace(features, codes, classes, [penalty])
    _, _, least = oracle.optimum(features, codes, classes, penalty)
    value = oracle.objective(found.weight, found.intercept, features, codes, penalty)
    assert value == pytest.approx(found.objective, rel=1e-7)
    assert found.gap <= 1e-4
    assert value <= (1 + found.gap) * least * (1 + ROUNDING)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("spread", [0.2, 2.0])
def test_the_whole_path_reaches_its_minima(dtype, spread):
    features, codes = blobs(3, 30, 3, 3, spread)
    features = features.astype(dtype)
    penalties = np.logspace(-6, 5, 12)
    for found in trace(features, codes, 3, penalties):
        _, _, least = oracle.optimum(features, codes, 3, found.penalty)
        assert found.gap <= 1e-4
        assert least * (1 - ROUNDING) <= found.objective <= (1 + found.gap) * least * (1 + ROUNDING)


def test_the_hard_case_is_tiny_and_still_certified():
    features, codes = blobs(1, 60, 5, 3, 0.1)
    (found,) = trace(features, codes, 3, [1e-6])
    assert found.objective < 1e-3
    assert found.gap <= 1e-4
    assert found.objective == pytest.approx(oracle.optimum(features, codes, 3, 1e-6)[2], rel=1e-4)


@settings(max_examples=25)
@given(problems(), st.floats(-6, 3), st.floats(0, 1), st.booleans())
@example((325, 19, 1, 2, 0.1, 100.0, 30.0), 0.0, 0.875, False)  # whose Newton step is no number
def test_a_certificate_holds_anywhere_not_only_near_the_optimum(parameters, exponent, away, solve_intercept):
    features, codes, classes = drawn(parameters)
    penalty = 10.0**exponent
    weight, intercept, least = oracle.optimum(features, codes, classes, penalty)
    generator = np.random.default_rng(parameters[0])
    weight = weight * (1 + away * generator.normal(size=weight.shape))
    intercept = intercept + away * generator.normal(size=classes)
    mean = features.mean(0)
    radius = float(np.linalg.norm(features - mean, axis=1).max())
    with pytest.MonkeyPatch.context() as patch:
        if not solve_intercept:
            patch.setattr(certificates, "INTERCEPT_STEPS", 1)
        certifier = Certifier(Rows(features), codes, mean, radius, [slice(0, 4), slice(4, len(codes))])
        value, improved, gap = certifier.certify(weight, intercept, penalty, 1e-4)
    assert value == pytest.approx(oracle.objective(weight, improved, features, codes, penalty), rel=1e-7)
    assert value <= oracle.objective(weight, intercept, features, codes, penalty) * (1 + ROUNDING)
    assert gap == math.inf or value <= (1 + gap) * least * (1 + ROUNDING)


def test_a_gap_that_is_not_closed_is_reported(problem):
    features, codes = problem
    mean = features.mean(0)
    certifier = Certifier(Rows(features), codes, mean, 10.0, [slice(0, len(codes))])
    found = certifier.certify(np.zeros((3, 3)), np.zeros(3), 1.0, 1e-4)
    assert found.gap > 0.1


def test_residuals_keep_the_small_losses():
    logits = np.array([[40.0, 0.0, 5e3], [0.0, 1.0, -5e3], [-1.0, 0.0, 0.0]])
    losses = residuals(logits, np.array([0, 1, 1]))
    assert losses[0] == pytest.approx(math.exp(-40) + math.exp(-41), rel=1e-12)
    assert losses[1] == pytest.approx(math.log(2 + math.e) - 1, rel=1e-12)
    assert losses[2] == 1e4
    assert logits[0, 0] == pytest.approx(-math.exp(-40) - math.exp(-41), rel=1e-12)
    np.testing.assert_allclose(logits.sum(0), 0, atol=1e-15)


def test_value_and_gradient_are_those_of_the_definition(problem, monkeypatch):
    features, codes = problem
    monkeypatch.setattr(logistic, "LEAST_ROWS", 7)
    monkeypatch.setattr(logistic, "BLOCK_LOGITS", {"host": 1, "device": 1})
    task = LogisticProblem(Rows(features), codes, 3, "float64")
    assert len(task.blocks) == 6
    theta = np.random.default_rng(0).normal(size=12)
    for part in task.split(theta):
        part -= part.mean(0)
    value, gradient = task.evaluate(theta, task.own_penalty(0.7))
    weight, intercept = task.original(theta)
    expected, _ = oracle.derivatives(weight, intercept, features, codes, 0.7)
    expected = expected.reshape(3, 4)
    slope, intercept_slope = task.split(gradient)
    assert value == pytest.approx(oracle.objective(weight, intercept, features, codes, 0.7), rel=1e-12)
    np.testing.assert_allclose(intercept_slope, expected[:, 3], atol=1e-11)
    centered = expected[:, :3] - np.outer(expected[:, 3], features.mean(0))
    np.testing.assert_allclose(slope @ task.rotation.T * task.unit, centered, atol=1e-11)
    np.testing.assert_allclose(task.rotated(weight, intercept), theta, atol=1e-12)


def test_moving_lambda_is_exact_and_costs_no_pass(problem):
    features, codes = problem
    task = LogisticProblem(Rows(features), codes, 3, "float64")
    descent = Descent(task, task.start(), 10.0)
    descent.run(1e-4, 100)
    steps = [pair.step.copy() for pair in descent.pairs]
    passes = task.passes
    descent.move(2.0)
    assert task.passes == passes
    value, gradient = task.evaluate(descent.theta, 2.0)
    assert descent.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(descent.gradient, gradient, atol=1e-10)
    assert len(steps) == len(descent.pairs) > 1
    latest = descent.pairs[-1]
    _, before = task.evaluate(descent.theta - latest.step, 2.0)
    np.testing.assert_allclose(latest.change, gradient - before, atol=1e-9)


def test_float32_that_does_not_get_there_gives_way_to_float64(monkeypatch):
    features, codes = blobs(5, 80, 4, 3, 1.0)
    monkeypatch.setitem(path.MOST_PASSES, "float32", 3)
    solver = Solver(Rows(features.astype(np.float32)), codes, 3, 1e-4)
    assert solver.solve(1e5).gap <= 1e-4
    assert solver.problem.dtype == "float32"
    found = solver.solve(1e-2)
    assert solver.problem.dtype == "float64"
    assert found.gap <= 1e-4
    assert found.passes > 3
    assert solver.solve(1e-3).gap <= 1e-4


@pytest.mark.parametrize("shape", [(9, 20), (30, 6)])
def test_tensors_are_computed_with_as_tensors(shape):
    features, codes = blobs(2, shape[0], shape[1], 3, 1.0)
    penalties = [1e-3, 1.0, 1e2]
    by_numpy = list(trace(features, codes, 3, penalties, 1e-9))
    by_torch = list(trace(torch.from_numpy(features), codes, 3, penalties, 1e-9))
    for ours, theirs in zip(by_numpy, by_torch, strict=True):
        assert isinstance(theirs.weight, np.ndarray)
        assert theirs.gap <= 1e-9
        np.testing.assert_allclose(theirs.objective, ours.objective, rtol=1e-8)
        np.testing.assert_allclose(theirs.weight, ours.weight, rtol=1e-3, atol=1e-3)


def test_more_features_than_examples_lie_in_the_row_space():
    features, codes = blobs(4, 12, 30, 3, 1.0)
    (found,) = trace(features, codes, 3, [0.1], 1e-8)
    basis = np.linalg.svd(features - features.mean(0), full_matrices=False)[2][:11]
    np.testing.assert_allclose(found.weight @ basis.T @ basis, found.weight, atol=1e-9)
    assert found.gap <= 1e-8
