"""Confidence scores and selective classification against loops, every order of equals, and scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from tests.oracles import confidence as oracle

from penultimate import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.confidence import (
    CONFIDENCES,
    log_max_probability,
    max_logit,
    negative_energy,
    normalised_logit,
)
from penultimate.metrics.selective import augrc, aurc, excess_aurc, risk_coverage

seeds = st.integers(0, 10_000)


@given(seed=seeds, scale=st.sampled_from([0.01, 1.0, 30.0]), p=st.sampled_from([1.0, 2.0, 4.0, 7.5]))
@settings(max_examples=25)
def test_scores_against_loops_over_one_row(seed: int, scale: float, p: float) -> None:
    logits = np.random.default_rng(seed).normal(size=(12, 5)) * scale
    rows = logits.tolist()
    surest = [oracle.max_probability(row) for row in rows]
    assert np.exp(log_max_probability(logits)) == pytest.approx(surest, rel=1e-12)
    assert max_logit(rows).tolist() == [max(row) for row in rows]
    for temperature in (1.0, 2.5):
        energies = [oracle.energy(row, temperature) for row in rows]
        assert negative_energy(logits, temperature) == pytest.approx(energies, rel=1e-12, abs=1e-12)
    apart = [oracle.normalised_logit(row, p) for row in rows]
    assert normalised_logit(logits, p) == pytest.approx(apart, rel=1e-12)
    assert normalised_logit(logits * 1e6 + 3e6, p) == pytest.approx(apart, rel=1e-9)


def test_the_surest_of_saturated_probabilities_are_still_told_apart() -> None:
    logits = np.array([[800.0, 0.0, 0.0], [900.0, 0.0, 0.0], [40.0, 0.0, 0.0], [50.0, 0.0, 0.0]])
    scores = log_max_probability(logits)
    assert scores[2] < scores[3] < 0
    assert (scores <= 0).all()
    assert (1 + scores == 1)[2:].all()  # the probability itself rounds to 1 for both


@pytest.mark.parametrize(
    ("logits", "error", "told"),
    [
        ([[1.0, float("nan"), 2.0], [0.0, 1.0, 2.0]], RequestError, "NaN or infinity in row 0"),
        ([[0.0, 1.0, 2.0], [1.0, float("inf"), 2.0]], RequestError, "NaN or infinity in row 1"),
        ([[1.0], [2.0]], UndefinedError, "with one class"),
        ([1.0, 2.0], RequestError, "examples, classes"),
    ],
)
def test_logits_without_a_score_are_refused(logits: Any, error: type[Exception], told: str) -> None:
    for score in CONFIDENCES.values():
        with pytest.raises(error, match=told):
            score(logits)


@given(
    pairs=st.lists(
        st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 1)), min_size=1, max_size=6
    )
)
@settings(max_examples=60)
def test_ties_count_as_the_mean_over_every_order(pairs: list[tuple[float, int]]) -> None:
    confidence, right = [c for c, _ in pairs], [r for _, r in pairs]
    areas: list[tuple[Callable[..., float], Any]] = [(aurc, oracle.aurc), (augrc, oracle.augrc)]
    for area, literal in areas:
        expected = float(oracle.mean_over_orders(confidence, right, literal))
        assert area(confidence, right) == pytest.approx(expected, abs=1e-14)
    best = float(oracle.aurc(sorted(1 - r for r in right)))
    assert excess_aurc(confidence, right) == pytest.approx(aurc(confidence, right) - best, abs=1e-14)
    assert risk_coverage(confidence, right).risk[-1] == pytest.approx(1 - np.mean(right))


@given(seed=seeds, values=st.sampled_from([3, 1000]))
@settings(max_examples=20)
def test_augrc_is_its_closed_form_with_scikit_learns_auroc(seed: int, values: int) -> None:
    random = np.random.default_rng(seed)
    confidence, right = random.integers(0, values, 200) / values, np.arange(200) % 5 > 0
    accuracy, area = right.mean(), roc_auc_score(right, confidence)
    closed = (1 - area) * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
    assert augrc(confidence, right) == pytest.approx(closed, abs=1e-14)


def test_the_order_of_the_examples_and_a_monotone_change_of_the_score_change_nothing() -> None:
    random = np.random.default_rng(3)
    confidence, right = random.integers(0, 9, 300), random.random(300) < 0.7
    order = random.permutation(300)
    for area in (aurc, augrc, excess_aurc):
        assert area(confidence, right) == pytest.approx(area(confidence[order] ** 3, right[order]), abs=1e-14)
    constant = np.ones(300)
    assert aurc(constant, right) == pytest.approx(1 - right.mean())
    assert augrc(constant, right) == pytest.approx((1 - right.mean()) / 2)
    assert aurc(confidence, np.ones(300)) == augrc(confidence, np.ones(300)) == 0


@pytest.mark.parametrize(
    ("confidence", "right", "told"),
    [
        ([0.5, float("nan")], [1, 0], "confidence is not a number: row 1"),
        ([0.5, 0.2], [1], "one length and not empty"),
        ([], [], "one length and not empty"),
        ([0.5, 0.2], [1, 2], "right is 1 where a prediction is right and else 0, not 2"),
    ],
)
def test_what_is_no_ranking_is_refused(confidence: Any, right: Any, told: str) -> None:
    for area in (aurc, augrc, excess_aurc, risk_coverage):
        with pytest.raises(RequestError, match=told):
            area(confidence, right)
