"""Scores of images outside the classes against loops, scikit-learn and a bootstrap; bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.neighbors import NearestNeighbors
from tests.oracles import confidence as oracle

from penultimate import RequestError
from penultimate.metrics.auc import auc_interval
from penultimate.metrics.outside import Mahalanobis, false_positive_rate
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
    found = false_positive_rate(inside, outside, kept)
    literal = oracle.false_positive_rate(inside.tolist(), outside.tolist(), kept)
    assert found.value == pytest.approx(literal, abs=1e-15)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


def test_areas_and_false_positives_against_scikit_learn() -> None:
    random = np.random.default_rng(0)
    inside, outside = random.normal(1, 1, 400), random.normal(0, 1, 300)
    scores, is_inside = np.concatenate([inside, outside]), np.arange(700) < 400
    area = auc_interval(scores, is_inside)
    assert area.value == pytest.approx(roc_auc_score(is_inside, scores), abs=1e-12)
    false, true, _ = roc_curve(is_inside, scores, drop_intermediate=False)
    assert false_positive_rate(inside, outside).value == pytest.approx(false[true >= 0.95].min(), abs=1e-15)


def test_the_interval_of_false_positives_is_that_of_a_bootstrap_over_both_samples() -> None:
    random = np.random.default_rng(1)
    inside, outside = random.normal(1.5, 1, 500), random.normal(0, 1, 400)
    found = false_positive_rate(inside, outside)
    thresholds = np.sort(random.choice(inside, (1000, 500)), 1)[:, 25]  # 475 of 500 reach it
    drawn = (random.choice(outside, (1000, 400)) >= thresholds[:, None]).mean(1)
    assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]).tolist(), abs=0.02)


def test_the_interval_covers_the_true_share() -> None:
    """Over 150 pairs of samples; the share is that of a normal deviate above the 5 % quantile of another."""
    from statistics import NormalDist

    random = np.random.default_rng(2)
    truth = 1 - NormalDist(-2, 1).cdf(NormalDist(0, 1).inv_cdf(0.05))
    found = [
        false_positive_rate(random.normal(0, 1, 200), random.normal(-2, 1, 200), confidence=0.9)
        for _ in range(150)
    ]
    covered = np.mean([each.low <= truth <= each.high for each in found])
    assert 0.84 <= covered <= 0.98


@pytest.mark.parametrize(("shift", "value"), [(-9.0, 0.0), (9.0, 1.0)])
def test_samples_that_do_not_overlap_have_an_interval_of_more_than_a_point(
    shift: float, value: float
) -> None:
    random = np.random.default_rng(4)
    found = false_positive_rate(random.random(80), random.random(50) + shift)
    assert found.value == value
    assert 0.03 < found.high - found.low < 0.2


@given(seed=seeds, m=st.integers(1, 6))
@settings(max_examples=20)
def test_distances_from_classes_against_a_pseudo_inverse(seed: int, m: int) -> None:
    features, labels = clustered(seed, m=m)
    queries = np.random.default_rng(seed + 1).normal(size=(7, m)) * 3
    expected = oracle.mahalanobis(features, labels.tolist(), queries)
    for as_given in (labels, [f"class {label}" for label in labels]):
        assert Mahalanobis(features, as_given).squared(queries) == pytest.approx(expected, rel=1e-9)


def test_directions_in_which_no_class_varies_are_left_out() -> None:
    features, labels = clustered(6, m=3)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    flat = np.hstack([features, 1000 + labels[:, None] * [[0.0, 0.0]]]) @ turn  # of rank three in five
    narrow, wide = Mahalanobis(features, labels), Mahalanobis(flat, labels)
    assert (narrow.rank, wide.rank) == (3, 3)
    assert wide.squared(flat) == pytest.approx(narrow.squared(features), rel=1e-6)
    few = Mahalanobis(np.random.default_rng(1).normal(size=(10, 40)), np.arange(10) % 2)
    assert few.rank == 8


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
        (lambda: false_positive_rate([1.0], []), r"outside scores are \[n\], one or more"),
        (lambda: false_positive_rate([1.0, float("nan")], [1.0]), "inside scores are not numbers: row 1"),
        (lambda: false_positive_rate([1.0], [1.0], kept=101), "kept"),
        (lambda: Mahalanobis([[1.0], [float("nan")]], [0, 0]), "row 1"),
        (lambda: Mahalanobis([[1.0], [2.0]], [0]), "labels"),
        (lambda: Mahalanobis(np.zeros((0, 2)), []), "there are none"),
        (lambda: Mahalanobis([[1.0], [2.0]], [0, 0]).squared([[1.0, 2.0]]), "2 dimensions, those of the"),
        (lambda: Mahalanobis([[1.0], [2.0]], [0, 0]).squared([[float("inf")]]), "row 0"),
        (lambda: KthNeighbour([[1.0], [2.0]], 3), "no neighbour number 3 among 2 examples"),
        (lambda: KthNeighbour([[1.0], [2.0]], 0), "k"),
        (lambda: KthNeighbour([[1.0], [float("nan")]], 1), "row 1"),
        (lambda: KthNeighbour([[1.0], [2.0]], 1).distances([[1.0, 2.0]]), "2 dimensions, the examples 1"),
    ],
)
def test_what_has_no_score_is_refused(call: Any, told: str) -> None:
    with pytest.raises(RequestError, match=told):
        call()
