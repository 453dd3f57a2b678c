"""Scores of images outside the classes against loops, a pseudo-inverse and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_curve
from sklearn.neighbors import NearestNeighbors
from tests.oracles import outside as oracle

from penultimate import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.outside import (
    false_positive_rate,
    log_max_probability,
    mahalanobis_squared,
    within_class_whitening,
)
from penultimate.probes.kth import KthNeighbour

seeds = st.integers(0, 10_000)


def clustered(seed: int, n: int = 60, m: int = 4, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    return random.normal(size=(n, m)) + 3 * random.normal(size=(classes, m))[labels], labels


@given(seed=seeds, n=st.integers(1, 45), m=st.integers(1, 30), kept=st.sampled_from([50, 90, 95, 100]))
@settings(max_examples=60)
def test_false_positives_against_every_threshold(seed: int, n: int, m: int, kept: int) -> None:
    random = np.random.default_rng(seed)
    inside, outside = random.integers(2, 14, n) / 4, random.integers(0, 10, m) / 4  # with ties
    literal = oracle.false_positive_rate(inside.tolist(), outside.tolist(), kept)
    assert false_positive_rate(inside, outside, kept) == pytest.approx(literal, abs=1e-15)


def test_false_positives_against_scikit_learn() -> None:
    random = np.random.default_rng(0)
    inside, outside = random.normal(1, 1, 400), random.normal(0, 1, 300)
    false, true, _ = roc_curve(np.arange(700) < 400, [*inside, *outside], drop_intermediate=False)
    assert false_positive_rate(inside, outside) == pytest.approx(false[true >= 0.95].min(), abs=1e-15)


def test_the_largest_probability_keeps_its_digits_where_it_rounds_to_one() -> None:
    logits = np.random.default_rng(1).normal(size=(12, 5)) * 3
    surest = [oracle.max_probability(row) for row in logits.tolist()]
    assert np.exp(log_max_probability(logits)) == pytest.approx(surest, rel=1e-12)
    forty, fifty = log_max_probability([[40.0, 0.0, 0.0], [50.0, 0.0, 0.0]])
    assert forty < fifty < 0
    assert 1 + forty == 1


@given(seed=seeds, m=st.integers(1, 6))
@settings(max_examples=20)
def test_distances_from_classes_against_a_pseudo_inverse(seed: int, m: int) -> None:
    features, labels = clustered(seed, m=m)
    queries = np.random.default_rng(seed + 1).normal(size=(7, m)) * 3
    expected = oracle.mahalanobis(features, labels.tolist(), queries)
    found = mahalanobis_squared(queries, *within_class_whitening(features, labels))
    assert found == pytest.approx(expected, rel=1e-9)


def test_directions_in_which_no_class_varies_are_left_out() -> None:
    features, labels = clustered(6, m=3)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    flat = np.hstack([features, 1000 + labels[:, None] * [[0.0, 0.0]]]) @ turn  # of rank three in five
    narrow, wide = within_class_whitening(features, labels), within_class_whitening(flat, labels)
    assert narrow.places.shape == wide.places.shape == (3, 3)
    assert mahalanobis_squared(flat, *wide) == pytest.approx(mahalanobis_squared(features, *narrow), rel=1e-6)


@given(seed=seeds, k=st.integers(1, 12))
@settings(max_examples=15)
def test_kth_neighbours_against_a_sort_and_scikit_learn(seed: int, k: int) -> None:
    features, _ = clustered(seed, n=30)
    queries = np.concatenate([np.random.default_rng(seed).normal(size=(6, 4)), features[:2]])
    found = KthNeighbour(features, k).distances(queries)
    assert found == pytest.approx(oracle.kth_distance(features, queries, k), abs=1e-12)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(unit)
    peers = search.kneighbors(queries / np.linalg.norm(queries, axis=1, keepdims=True))[0][:, -1]
    assert found == pytest.approx(peers, abs=1e-7)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: false_positive_rate([], [1.0]), r"inside scores are \[n\], one or more"),
        (lambda: false_positive_rate([1.0, float("nan")], [1.0]), "inside scores hold NaN in row 1"),
        (lambda: false_positive_rate([1.0], [1.0], kept=101), "kept"),
        (lambda: log_max_probability([[0.0, 1.0], [float("inf"), 2.0]]), "NaN or infinity in row 1"),
        (lambda: KthNeighbour([[1.0], [2.0]], 3), "no neighbour number 3 among 2 examples"),
        (lambda: KthNeighbour([[1.0], [float("nan")]], 1), "row 1"),
    ],
)
def test_what_has_no_score_is_refused(call: Any, told: str) -> None:
    with pytest.raises(RequestError, match=told):
        call()


def test_one_class_has_no_softmax_that_tells_anything() -> None:
    with pytest.raises(UndefinedError, match="with one class"):
        log_max_probability([[1.0], [2.0]])
