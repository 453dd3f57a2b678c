"""Angular visual hardness and kernel densities: literal equations, known angles, scikit-learn, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KernelDensity
from tests.oracles import hardness as oracle

import penultimate as pu
from penultimate import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.density import gaussian_density
from penultimate.metrics.hardness import angular_visual_hardness, hardness_density


def example(seed: int, examples: int = 30, classes: int = 5, dimensions: int = 7):
    random = np.random.default_rng(seed)
    features = np.maximum(random.normal(size=(examples, dimensions)) + 0.3, 0)
    return features, random.integers(classes, size=examples), random.normal(size=(classes, dimensions))


def test_equals_the_literal_equation() -> None:
    for seed in range(5):
        features, labels, weight = example(seed)
        expected = oracle.angular_visual_hardness(features.tolist(), labels.tolist(), weight.tolist())
        assert angular_visual_hardness(features, labels, weight).numpy() == pytest.approx(expected, rel=1e-12)
        single = features.astype(np.float32)
        found = angular_visual_hardness(torch.from_numpy(single), labels, weight)
        assert found.numpy() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "angle", [0.0, 1e-12, 1e-8, 1e-4, 0.1, 0.2, 1.0, math.pi / 2, math.pi - 1e-7, math.pi]
)
def test_angles_are_right_where_arccos_is_not(angle: float) -> None:
    """One class at `angle` from the features, the other at a right angle to them."""
    features = np.array([[3.0, 0.0, 0.0]])
    weight = np.array([[math.cos(angle), math.sin(angle), 0.0], [0.0, 0.0, 0.5]])
    found = float(angular_visual_hardness(features, [0], weight)[0])
    assert found == pytest.approx(angle / (angle + math.pi / 2), rel=1e-12, abs=1e-15)


@given(seed=st.integers(0, 10_000), scale=st.floats(1e-6, 1e6))
@settings(max_examples=20)
def test_lengths_rotation_and_names_do_not_matter_and_shares_add_up(seed: int, scale: float) -> None:
    features, labels, weight = example(seed, 8)
    random = np.random.default_rng(seed + 1)
    features += 0.1
    rotation = np.linalg.qr(random.normal(size=(7, 7)))[0]
    renamed = random.permutation(5)
    turned = np.empty_like(weight)
    turned[renamed] = weight @ rotation * random.uniform(0.5, 2, size=(5, 1))
    expected = angular_visual_hardness(features, labels, weight)
    found = angular_visual_hardness(scale * features @ rotation, renamed[labels], turned)
    assert found.numpy() == pytest.approx(expected.numpy(), rel=1e-9)
    shares = [angular_visual_hardness(features, np.full(8, k), weight) for k in range(5)]
    assert torch.stack(shares).sum(0).numpy() == pytest.approx(np.ones(8))


def test_a_vector_without_direction_is_at_right_angles_to_all() -> None:
    weight = np.random.default_rng(2).normal(size=(4, 3))
    assert angular_visual_hardness(np.zeros((1, 3)), [2], weight).tolist() == [0.25]
    weight[1] = 0
    found = angular_visual_hardness(np.ones((1, 3)), [1], weight)
    expected = oracle.angular_visual_hardness([[1.0, 1.0, 1.0]], [1], weight.tolist())
    assert found.tolist() == pytest.approx(expected)


def test_bad_input_is_named() -> None:
    features, labels, weight = example(3)
    with pytest.raises(RequestError, match=r"weights of 3 rows\) must be 0\.\.2; not so in rows"):
        angular_visual_hardness(features, labels, weight[:3])
    with pytest.raises(RequestError, match="for features of 7 dimensions, which its transpose would fit"):
        angular_visual_hardness(features, labels, weight.T)
    features[4, 0] = np.nan
    with pytest.raises(RequestError, match=r"features hold NaN, infinity .* in row 4"):
        angular_visual_hardness(features, labels, weight)
    with pytest.raises(UndefinedError, match="the weights have one row alone"):
        angular_visual_hardness(features[:1], [0], weight[:1])
    with pytest.raises(UndefinedError, match="point along the features of row 1"):
        angular_visual_hardness([[1.0, 1.0], [1.0, 0.0]], [0, 1], [[1.0, 0.0], [2.0, 0.0]])
    assert len(pu.angular_visual_hardness(features[:0], labels[:0], weight)) == 0


def test_density_equals_the_literal_sum_and_scikit_learns() -> None:
    random = np.random.default_rng(4)
    values, points = random.normal(size=200), np.linspace(-4, 4, 33)
    found = gaussian_density(values, points, 0.2).numpy()
    assert found == pytest.approx(oracle.gaussian_density(values.tolist(), points.tolist(), 0.2), rel=1e-12)
    outside = KernelDensity(bandwidth=0.2, rtol=0).fit(values[:, None])
    assert found == pytest.approx(np.exp(outside.score_samples(points[:, None])), rel=1e-9)
    doubled = gaussian_density(values, points, 0.2, np.r_[np.full(100, 2.0), np.zeros(100)])
    assert doubled.numpy() == pytest.approx(gaussian_density(values[:100], points, 0.2).numpy(), rel=1e-12)
    fine = np.linspace(-6, 6, 2001)
    assert float(gaussian_density(values, fine, 0.2).sum()) * (fine[1] - fine[0]) == pytest.approx(
        1, abs=1e-9
    )


def test_hardness_density_is_that_of_multiples_of_one_over_the_classes() -> None:
    values = np.random.default_rng(5).uniform(0.6e-3, 1.1e-3, size=500)
    found = hardness_density(values, 1000)
    literal = oracle.gaussian_density(values[:50].tolist(), [0.8e-3, 0.9e-3], 5e-6)
    few = hardness_density(values[:50], 1000)
    picked = [float(few.density[index]) for index in (400, 450)]
    assert few.points[[400, 450]].tolist() == pytest.approx([0.8, 0.9])
    assert picked == pytest.approx([value / 1000 for value in literal], rel=1e-9)
    assert float(found.density.sum()) * 0.002 == pytest.approx(1, abs=1e-6)
