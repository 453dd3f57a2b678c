"""The shape of features: each number counted from the features themselves, wherever they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.measures.steps import Parents, measured, value
from tests.measures.worlds import network, world

from penultimate.engine.execute import Outcome
from penultimate.features.bank import FeatureBank
from penultimate.metrics.separation import class_separation
from penultimate.networks.trained import load_network


def of_features(root: Path, features: np.ndarray) -> Outcome:
    images, folder = world(root), network(root, "softmax")
    bank = FeatureBank(features.astype(np.float32), np.arange(len(features)) % 4)
    return measured("geometry", Parents(root).network(folder).images("test", images).bank("test", bank))


def effective_rank(features: np.ndarray) -> float:
    """exp of the entropy of the eigenvalues of the covariance, as shares."""
    shares = np.linalg.eigvalsh(np.cov(features.astype(float), rowvar=False))
    shares = shares[shares > 0] / shares.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def test_each_number_is_that_of_the_features_and_of_the_network(tmp_path: Path) -> None:
    features = np.maximum(np.random.default_rng(0).normal(size=(50, 6)), 0).astype(np.float32)
    features[:, 2] = 0.3
    rows = of_features(tmp_path, features).rows
    assert value(rows, "effective_rank") == pytest.approx(effective_rank(features), rel=1e-9)
    assert value(rows, "nonzero_share") == (features != 0).mean()
    assert value(rows, "feature_size") == pytest.approx((features.astype(float) ** 2).mean() ** 0.5)
    assert value(rows, "class_separation") == class_separation(features, np.arange(50) % 4)
    unbiased = class_separation(features, np.arange(50) % 4, unbiased=True)
    assert value(rows, "class_separation_unbiased") == unbiased
    assert (value(rows, "width"), value(rows, "constant_features")) == (6, 1)
    assert value(rows, "input_side") == 16
    body = load_network(tmp_path / "train.softmax-0").backbone
    assert value(rows, "parameters") == sum(each.numel() for each in body.parameters())
    with np.load(tmp_path / "out" / "feature_spectrum.npz") as arrays:
        centred = features.astype(float) - features.astype(float).mean(0)
        expected = np.linalg.svd(centred, compute_uv=False)
        assert arrays["singular_values"] == pytest.approx(expected, abs=1e-12 * expected[0])


def test_the_effective_rank_does_not_depend_on_how_far_the_features_lie_from_the_origin(
    tmp_path: Path,
) -> None:
    near = np.random.default_rng(0).normal(size=(3000, 4)).round(3)
    far = (near + np.array([3e4, 0, 0, 0])).astype(np.float32)
    assert value(of_features(tmp_path, far).rows, "effective_rank") == pytest.approx(
        effective_rank(far), rel=1e-9
    )
