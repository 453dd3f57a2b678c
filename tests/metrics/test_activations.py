"""Non-zero shares, singular values and cosine distances: literal equations, outside libraries, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from tests.oracles import activations as oracle
from tests.oracles.hardness import gaussian_density

from penultimate import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.activations import (
    SpectrumAccumulator,
    class_centroids,
    cosine_distances,
    nonzero_share,
    singular_values,
)


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
    assert nonzero_share(torch.from_numpy(features).bfloat16()) == pytest.approx(expected)
    assert nonzero_share(features.reshape(40, 2, 3)) == nonzero_share(features)
    assert nonzero_share([[0.0, -0.0, 5e-324, -1.0]]) == 0.5


@pytest.mark.parametrize("shape", [(50, 8), (8, 50), (1, 1), (7, 7)])
def test_singular_values_equal_the_dense_ones(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(2).normal(size=shape)
    expected = np.linalg.svd(matrix, compute_uv=False)
    assert singular_values(matrix).numpy() == pytest.approx(expected, rel=1e-12)


def test_spectra_of_bad_matrices() -> None:
    with pytest.raises(UndefinedError, match="without rows"):
        SpectrumAccumulator().compute()
    with pytest.raises(RequestError, match=r"rows hold NaN, infinity .* in row 1"):
        singular_values([[1.0], [np.inf]])
    with pytest.raises(RequestError, match="rows have 3 dimensions, where 2 are expected"):
        SpectrumAccumulator().update([[1.0, 2.0]]).update([[1.0, 2.0, 3.0]])


def test_centroids_are_the_means_of_the_classes_that_have_examples() -> None:
    features, labels = example(4)
    moved = np.array([0, 5, 1_000_000_007, 2])[labels]
    found = class_centroids(features + 30, moved).numpy()
    expected = np.stack([features[moved == label].mean(0) + 30 for label in np.unique(moved)])
    assert found == pytest.approx(expected, rel=1e-14)
    with pytest.raises(UndefinedError, match="no examples"):
        class_centroids(features[:0], labels[:0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distances_equal_all_pairs(dtype: type) -> None:
    features, labels = example(5)
    features = features.astype(dtype)
    found = cosine_distances(features, labels, points=41, bandwidth=0.05)
    within, between = oracle.pair_distances(features.tolist(), labels.tolist())
    assert (found.pairs_within, found.pairs_between) == (len(within), len(between))
    assert found.pairs_within + found.pairs_between == 40 * 39 // 2
    tolerance = 1e-13 if dtype is np.float64 else 1e-6
    assert found.mean_within == pytest.approx(np.mean(within), abs=tolerance)
    assert found.mean_between == pytest.approx(np.mean(between), abs=tolerance)
    points = np.linspace(0, 2, 41)
    assert found.points.tolist() == pytest.approx(points.tolist())
    for density, distances in ((found.within, within), (found.between, between)):
        exact = gaussian_density(distances, points.tolist(), 0.05)
        # distances are rounded to bins of 1/8192, and a Gaussian's slope is at most 0.242 / h^2
        assert density.numpy() == pytest.approx(exact, abs=0.242 / 0.05**2 / 16384)


def test_distances_equal_scipys() -> None:
    features, _ = example(6, examples=30)
    found = cosine_distances(np.r_[features, features[:1]], [*range(30), 0])
    assert found.pairs_within == 1
    assert found.mean_within == pytest.approx(0, abs=1e-15)
    again = pdist(np.r_[features, features[:1]], "cosine")
    assert found.mean_between * found.pairs_between == pytest.approx(again.sum())


def test_examples_are_drawn_by_the_seed_without_replacement() -> None:
    features, labels = example(8, examples=60)
    found = cosine_distances(features, labels, count=25, seed=3)
    assert found.pairs_within + found.pairs_between == 25 * 24 // 2
    same = cosine_distances(torch.from_numpy(features), torch.from_numpy(labels), count=25, seed=3)
    assert found[3:] == same[3:]
    assert found[3:] != cosine_distances(features, labels, count=25, seed=4)[3:]
    unique = np.eye(60)  # every distance of different rows is 1: a row drawn twice would show as 0
    assert cosine_distances(unique, np.arange(60) // 30, count=25).mean_within == 1


def test_distances_of_bad_input() -> None:
    features, labels = example(9)
    with pytest.raises(UndefinedError, match="hold one class alone"):
        cosine_distances(features, np.zeros(40, int))
    with pytest.raises(UndefinedError, match="hold no two of one class"):
        cosine_distances(features[:3], [0, 1, 2])
    with pytest.raises(RequestError, match="count must be a whole number of at least 2; got 1"):
        cosine_distances(features, labels, count=1)
    features[7] = np.nan
    with pytest.raises(RequestError, match=r"features hold NaN, infinity .* in row 7"):
        cosine_distances(features, labels)
