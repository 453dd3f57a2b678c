"""Closed-form probes against scikit-learn and literal leave-one-out; episodes that no network changes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.neighbors import NearestCentroid

from penultimate.errors import RequestError
from penultimate.probes.closed_form import PENALTIES, nearest_centroid, ridge
from penultimate.probes.episodes import TrainingSize, digest_of, episode_order, sizes_of


def example(n: int, m: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    codes = np.r_[np.arange(classes), random.integers(0, classes, n - classes)]
    features = np.maximum(random.normal(size=(n, m)) + random.normal(size=(classes, m))[codes] + 3, 0)
    return features, codes


@pytest.mark.parametrize(("n", "m", "classes"), [(40, 7, 4), (12, 30, 3), (10, 10, 2), (5, 50, 5)])
def test_ridge_is_scikit_learns_with_the_penalty_of_literal_leave_one_out(
    n: int, m: int, classes: int
) -> None:
    features, codes = example(n, m, classes)
    targets = np.eye(classes)[codes]
    usual = np.square(features - features.mean(0)).sum(1).mean()
    left_out = []
    for relative in PENALTIES:
        errors = [
            targets[i] - Ridge(relative * usual).fit(features[rest], targets[rest]).predict(features[[i]])[0]
            for i in range(n)
            for rest in [np.arange(n) != i]
        ]
        left_out.append(np.square(errors).sum())
    found = ridge(features, codes, classes)
    assert found.penalty == pytest.approx(PENALTIES[int(np.argmin(left_out))] * usual, rel=1e-12)
    fitted = Ridge(found.penalty, solver="svd").fit(features, targets)
    np.testing.assert_allclose(found.weight, fitted.coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.intercept, fitted.intercept_, rtol=1e-9, atol=1e-11)
    chosen = RidgeCV(usual * np.array(PENALTIES)).fit(features, targets)
    assert found.penalty == pytest.approx(chosen.alpha_, rel=1e-12)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_scale_of_features_changes_no_prediction(factor: float) -> None:
    features, codes = example(60, 9, 5)
    queries = example(200, 9, 5, seed=1)[0]
    for fit in (ridge, nearest_centroid):
        one, other = (fit(scale * features, codes, 5).predict(scale * queries) for scale in (1.0, factor))
        assert np.array_equal(one, other)


def test_the_nearest_centroid_is_scikit_learns() -> None:
    features, codes = example(60, 9, 5)
    queries = example(200, 9, 5, seed=1)[0]
    expected = NearestCentroid().fit(features, codes)
    assert np.array_equal(nearest_centroid(features, codes, 5).predict(queries), expected.predict(queries))


def test_classes_without_examples_are_never_predicted() -> None:
    features, codes = example(20, 6, 2)
    for fit in (ridge, nearest_centroid):
        assert set(fit(features, 2 * codes + 1, 5).predict(features).tolist()) == {1, 3}


def test_one_class_constant_features_and_one_example_have_a_prediction() -> None:
    same = np.ones((4, 3))
    assert ridge(same, np.array([0, 1, 1, 1]), 2).predict(same).tolist() == [1] * 4
    assert nearest_centroid(same, np.array([0, 1, 1, 1]), 2).predict(same).tolist() == [0] * 4
    assert ridge(same[:1], np.array([1]), 2).predict(same).tolist() == [1] * 4
    features, _ = example(9, 3, 2)
    assert ridge(features, np.zeros(9, int), 1).predict(features).tolist() == [0] * 9


def test_what_is_not_finite_or_has_other_lengths_is_refused() -> None:
    for fit in (ridge, nearest_centroid):
        with pytest.raises(RequestError, match="NaN or infinity"):
            fit(np.array([[1.0], [np.nan]]), np.array([0, 1]), 2)
        with pytest.raises(RequestError, match=r"codes \[n\]"):
            fit(np.ones((2, 1)), np.array([0]), 2)


def test_episodes_depend_on_the_images_and_the_seed_alone() -> None:
    labels, ids = np.array([0, 1, 2, 1, 0, 1, 1, 0]), np.array([5, 3, 9, 1, 0, 7, 2, 4])
    order = episode_order(labels, "digits", 0, 3, ids)
    moved = np.random.default_rng(0).permutation(8)
    assert np.array_equal(episode_order(labels[moved], "digits", 0, 3, ids[moved]), order[moved])
    for each in range(3):  # every class is counted off from 0
        assert sorted(order[labels == each].tolist()) == [*range(int((labels == each).sum()))]
    others = [
        episode_order(labels, data, seed, episode, ids).tolist()
        for data, seed, episode in (("digits", 1, 3), ("digits", 0, 2), ("letters", 0, 3))
    ]
    assert order.tolist() not in others


def test_an_episode_is_a_fair_draw_of_each_class() -> None:
    labels = np.repeat([0, 1], 4)
    firsts = np.stack([episode_order(labels, "x", 0, episode) == 0 for episode in range(2000)])
    assert (abs(firsts.mean(0) - 0.25) < 0.04).all()


def test_digests_differ_where_episodes_or_labels_do() -> None:
    labels = np.array([0, 1, 0, 1])
    first, second = (episode_order(np.zeros(9, int), "x", 0, each) for each in (0, 1))
    told = {digest_of([first], labels), digest_of([second], labels), digest_of([first], labels[::-1])}
    assert len(told) == 3


def test_sizes_that_classes_fall_short_of_are_told() -> None:
    sizes, notes = sizes_of((20, 1), (100, 1), np.array([1, 1, 1]))
    assert sizes == [TrainingSize("percent", 100)]
    assert notes[0] == "shots=1 takes all 3 training images: see percent=100"
    assert sizes_of((5,), (), np.array([2, 3])) == (
        [],
        ["shots=5 takes all 5 training images: see percent=100"],
    )


def test_seeds_and_ids_are_checked() -> None:
    labels = np.array([0, 1])
    with pytest.raises(RequestError, match="seed"):
        episode_order(labels, "x", -1, 0)
    with pytest.raises(RequestError, match="2 labels, but 1 ids"):
        episode_order(labels, "x", 0, 0, np.array([1]))
