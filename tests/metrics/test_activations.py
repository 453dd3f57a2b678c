"""Activations, ranks, distances, densities and angles: literal equations and outside libraries."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from sklearn.neighbors import KernelDensity
from tests.oracles import activations as oracle
from tests.oracles import hardness as angles

import penultimate as pu
from penultimate import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.activations import (
    SMALL,
    class_centroids,
    cosine_distances,
    gaussian_density,
    nonzero_share,
    rankme,
    singular_values,
    stable_rank,
)
from penultimate.metrics.hardness import hardness_density


def example(seed: int, examples: int = 40, dimensions: int = 6, classes: int = 4):
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=examples)
    centers = random.normal(size=(classes, dimensions))
    features = np.maximum(centers[labels] + random.normal(size=(examples, dimensions)), 0)
    features[:, 0] += 0.01
    return features, labels


def test_the_share_of_non_zeros() -> None:
    features, _ = example(0)
    expected = oracle.nonzero_share(features.tolist())
    assert 0.1 < expected < 0.9
    assert nonzero_share(features) == pytest.approx(expected, rel=1e-15)
    assert nonzero_share(features.reshape(40, 2, 3)) == nonzero_share(features)
    assert nonzero_share([[0.0, -0.0, 5e-324, -1.0]]) == 0.5
    with pytest.raises(RequestError, match="NaN, which is neither zero nor not"):
        nonzero_share([[0.0, math.nan]])


@pytest.mark.parametrize("shape", [(50, 8), (8, 50), (1, 1), (7, 7)])
def test_singular_values_equal_the_dense_ones(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = np.random.default_rng(2).normal(size=shape)
    for centred in (False, True):
        expected = np.linalg.svd(matrix - centred * matrix.mean(0), compute_uv=False)
        whole = singular_values(matrix, centred=centred).numpy()
        assert whole == pytest.approx(expected, rel=1e-12, abs=1e-13)
        monkeypatch.setattr("penultimate.metrics.inputs.BLOCK_ELEMENTS", {"cpu": 30})
        assert singular_values(matrix, centred=centred).numpy() == pytest.approx(whole, rel=1e-12, abs=1e-13)


def test_the_ranks_are_numpys() -> None:
    random = np.random.default_rng(2)
    features = random.normal(size=(300, 40)) * np.arange(1, 41.0) ** -0.8 + 0.3
    shares = np.linalg.svd(features, compute_uv=False)
    shares = shares / shares.sum() + SMALL
    assert rankme(features) == pytest.approx(math.exp(-(shares * np.log(shares)).sum()), rel=1e-9)
    variances = np.linalg.eigvalsh(np.cov(features.T))[::-1]
    assert stable_rank(features) == pytest.approx(variances.sum() / variances[0], rel=1e-9)
    with pytest.raises(UndefinedError, match="fills no direction"):
        stable_rank(np.full((5, 3), 2.5))
    with pytest.raises(UndefinedError, match="all 0"):
        rankme(np.zeros((5, 3)))


def test_centroids_are_the_means_of_the_classes_that_have_examples() -> None:
    features, labels = example(4)
    moved = np.array([0, 5, 1_000_000_007, 2])[labels]
    expected = np.stack([features[moved == label].mean(0) + 30 for label in np.unique(moved)])
    assert class_centroids(features + 30, moved).numpy() == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distances_equal_all_pairs(dtype: type) -> None:
    features, labels = example(5)
    features = features.astype(dtype)
    found = cosine_distances(features, labels, points=41, bandwidth=0.05)
    within, between = oracle.pair_distances(features.tolist(), labels.tolist())
    assert (found.pairs_within, found.pairs_between) == (len(within), len(between))
    tolerance = 1e-13 if dtype is np.float64 else 1e-6
    assert found.mean_within == pytest.approx(np.mean(within), abs=tolerance)
    assert found.mean_between == pytest.approx(np.mean(between), abs=tolerance)
    points = np.linspace(0, 2, 41)
    assert found.points.tolist() == pytest.approx(points.tolist())
    for density, distances in ((found.within, within), (found.between, between)):
        exact = angles.gaussian_density(distances, points.tolist(), 0.05)
        # distances are rounded to bins of 1/8192, and a Gaussian's slope is at most 0.242 / h^2
        assert density.numpy() == pytest.approx(exact, abs=0.242 / 0.05**2 / 16384)
    both = pdist(features.astype(float), "cosine").sum()
    assert found.mean_within * len(within) + found.mean_between * len(between) == pytest.approx(
        both, rel=1e-5
    )


def test_examples_are_drawn_by_the_seed_without_replacement() -> None:
    features, labels = example(8, examples=60)
    found = cosine_distances(features, labels, count=25, seed=3)
    assert found.pairs_within + found.pairs_between == 25 * 24 // 2
    assert found[3:] == cosine_distances(features, labels, count=25, seed=3)[3:]
    assert found[3:] != cosine_distances(features, labels, count=25, seed=4)[3:]
    unique = np.eye(60)  # every distance of different rows is 1: a row drawn twice would show as 0
    assert cosine_distances(unique, np.arange(60) // 30, count=25).mean_within == 1
    with pytest.raises(UndefinedError, match="hold no two of one class"):
        cosine_distances(features[:3], [0, 1, 2])


def test_density_equals_the_literal_sum_and_scikit_learns() -> None:
    random = np.random.default_rng(4)
    values, points = random.normal(size=200), np.linspace(-4, 4, 33)
    found = gaussian_density(values, points, 0.2).numpy()
    assert found == pytest.approx(angles.gaussian_density(values.tolist(), points.tolist(), 0.2), rel=1e-12)
    outside = KernelDensity(bandwidth=0.2, rtol=0).fit(values[:, None])
    assert found == pytest.approx(np.exp(outside.score_samples(points[:, None])), rel=1e-9)
    doubled = gaussian_density(values, points, 0.2, np.r_[np.full(100, 2.0), np.zeros(100)])
    assert doubled.numpy() == pytest.approx(gaussian_density(values[:100], points, 0.2).numpy(), rel=1e-12)
    with pytest.raises(RequestError, match="a positive bandwidth, not 0"):
        gaussian_density(values, points, 0)


def test_hardness_density_is_that_of_multiples_of_one_over_the_classes() -> None:
    values = np.random.default_rng(5).uniform(0.6e-3, 1.1e-3, size=500)
    literal = angles.gaussian_density(values[:50].tolist(), [0.8e-3, 0.9e-3], 5e-6)
    few = hardness_density(values[:50], 1000)
    picked = [float(few.density[index]) for index in (400, 450)]
    assert few.points[[400, 450]].tolist() == pytest.approx([0.8, 0.9])
    assert picked == pytest.approx([value / 1000 for value in literal], rel=1e-9)
    assert float(hardness_density(values, 1000).density.sum()) * 0.002 == pytest.approx(1, abs=1e-6)


@given(seed=st.integers(0, 10_000), scale=st.floats(1e-6, 1e6))
@settings(max_examples=20)
def test_hardness_is_the_literal_equation_in_which_only_angles_count(seed: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    features = np.maximum(random.normal(size=(8, 7)) + 0.3, 0) + 0.1
    labels, weight = random.integers(5, size=8), random.normal(size=(5, 7))
    expected = angles.angular_visual_hardness(features.tolist(), labels.tolist(), weight.tolist())
    found = pu.angular_visual_hardness(features, labels, weight)
    assert found.numpy() == pytest.approx(expected, rel=1e-12)
    rotation, renamed = np.linalg.qr(random.normal(size=(7, 7)))[0], random.permutation(5)
    turned = np.empty_like(weight)
    turned[renamed] = weight @ rotation * random.uniform(0.5, 2, size=(5, 1))
    moved = pu.angular_visual_hardness(scale * features @ rotation, renamed[labels], turned)
    assert moved.numpy() == pytest.approx(expected, rel=1e-9)
    shares = [pu.angular_visual_hardness(features, np.full(8, k), weight) for k in range(5)]
    assert torch.stack(shares).sum(0).numpy() == pytest.approx(np.ones(8))


@pytest.mark.parametrize(
    "angle", [0.0, 1e-12, 1e-8, 1e-4, 0.1, 0.2, 1.0, math.pi / 2, math.pi - 1e-7, math.pi]
)
def test_angles_are_right_where_arccos_is_not(angle: float) -> None:
    """One class at `angle` from the features, the other at a right angle to them."""
    features = np.array([[3.0, 0.0, 0.0]])
    weight = np.array([[math.cos(angle), math.sin(angle), 0.0], [0.0, 0.0, 0.5]])
    found = float(pu.angular_visual_hardness(features, [0], weight)[0])
    assert found == pytest.approx(angle / (angle + math.pi / 2), rel=1e-12, abs=1e-15)


def test_a_vector_without_direction_is_at_right_angles_to_all() -> None:
    weight = np.random.default_rng(2).normal(size=(4, 3))
    assert pu.angular_visual_hardness(np.zeros((1, 3)), [2], weight).tolist() == [0.25]
    with pytest.raises(UndefinedError, match="the weights have one row alone"):
        pu.angular_visual_hardness(np.ones((1, 3)), [0], weight[:1])
    with pytest.raises(UndefinedError, match="point along the features of row 1"):
        pu.angular_visual_hardness([[1.0, 1.0], [1.0, 0.0]], [0, 1], [[1.0, 0.0], [2.0, 0.0]])
    with pytest.raises(RequestError, match="for 3 feature dimensions"):
        pu.angular_visual_hardness(np.ones((1, 3)), [0], weight.T)
