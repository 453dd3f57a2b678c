"""Angular visual hardness and cosine distances as steps: the functions' numbers, of the bank they name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.measures.steps import Parents, measured, value
from tests.measures.worlds import network

from penultimate.features.bank import FeatureBank
from penultimate.metrics.activations import cosine_distances
from penultimate.metrics.hardness import angular_visual_hardness, hardness_density
from penultimate.networks.trained import load_network

FEATURES = np.maximum(np.random.default_rng(0).normal(size=(60, 8)), 0).astype(np.float32)
BANK = FeatureBank(FEATURES, np.arange(60) % 4)


def test_hardness_is_of_the_angles_to_the_final_layers_weights(tmp_path: Path) -> None:
    folder = network(tmp_path, "softmax")
    rows = measured("hardness", Parents(tmp_path).network(folder).bank("test", BANK)).rows
    weight = load_network(folder).head_weight
    scores = angular_visual_hardness(FEATURES, BANK.labels, weight)
    assert value(rows, "angular_visual_hardness", split="test") == float(scores.mean())
    with np.load(tmp_path / "out" / "hardness_density.npz") as arrays:
        assert arrays["density"].tolist() == hardness_density(scores, 4).density.tolist()


def test_distances_are_of_as_many_examples_as_are_asked_for(tmp_path: Path) -> None:
    rows = measured("distances", Parents(tmp_path).bank("train", BANK), {"count": 30, "seed": 3}).rows
    expected = cosine_distances(FEATURES, BANK.labels, 30, 3)
    assert value(rows, "cosine_distance_within", split="train") == expected.mean_within
    assert value(rows, "cosine_distance_between", split="train") == expected.mean_between
    with np.load(tmp_path / "out" / "cosine_distance_density.npz") as arrays:
        for name in ("points", "within", "between"):
            assert arrays[name].tolist() == getattr(expected, name).tolist()
