"""Probes of few labels as a step: paired over networks, and bad input."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.neighbors import NearestCentroid
from tests.measures.steps import Parents, measured

from penultimate.engine.execute import Outcome
from penultimate.features.bank import FeatureBank
from penultimate.probes.episodes import episode_order

SETTINGS = {"shots": (1, 2, 60), "percent": (10, 100), "episodes": 4}


def bank(seed: int, n: int = 120, classes: int = 3, spread: float = 1.0) -> FeatureBank:
    random = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    features = random.normal(size=(n, 8)) + spread * np.eye(classes, 8)[labels]
    return FeatureBank(features.astype(np.float32), labels, None, np.arange(n))


def made(root: Path, train: FeatureBank, test: FeatureBank, accuracy: str = "top1", **more: Any) -> Outcome:
    parents = Parents(root, target="digits").bank("train", train).bank("test", test)
    return measured("few_labels", parents, {**SETTINGS, **more}, accuracy=accuracy)


@pytest.mark.parametrize("accuracy", ["top1", "mean_per_class"])
def test_numbers_are_means_over_literal_episodes(tmp_path: Path, accuracy: str) -> None:
    train, whole = bank(0), bank(1, 50)
    test = dataclasses.replace(whole, labels=np.minimum(whole.labels, 1 + np.arange(50) % 2))
    outcome = made(tmp_path, train, test, accuracy)
    settings = {row.setting for row in outcome.rows if row.setting}
    assert settings == {"shots=1", "shots=2", "percent=10", "percent=100"}
    expected = []
    for episode in range(4):
        mask = episode_order(train.labels, "digits", 0, episode, train.ids) < 2
        predicted = NearestCentroid().fit(train.features[mask], train.labels[mask]).predict(test.features)
        right = predicted == test.labels
        by_class = [right[test.labels == each].mean() for each in np.unique(test.labels)]
        expected.append(right.mean() if accuracy == "top1" else np.mean(by_class))
    (found,) = (
        row.value
        for row in outcome.rows
        if (row.metric, row.setting) == (f"few_centroid_{accuracy}", "shots=2")
    )
    assert found == pytest.approx(np.mean(expected), rel=1e-12)
    assert outcome.facts["notes"] == ["shots=60 takes all 120 training images: see percent=100"]


def test_every_network_sees_the_same_episodes(tmp_path: Path) -> None:
    one = made(tmp_path / "one", bank(0), bank(1, 50))
    other = made(tmp_path / "other", bank(5, spread=3.0), bank(6, 50, spread=3.0))
    assert one.facts["episodes"] == other.facts["episodes"]
    seeded = made(tmp_path / "seeded", bank(0), bank(1, 50), seed=1)
    assert seeded.facts["episodes"] != one.facts["episodes"]


def test_classes_with_fewer_images_give_all_of_them(tmp_path: Path) -> None:
    whole = bank(0)
    scarce = (whole.labels != 2) | (np.arange(120) < 9)
    train = FeatureBank(whole.features[scarce], whole.labels[scarce])
    outcome = made(tmp_path, train, bank(1, 30), shots=(5,))
    assert outcome.facts["notes"][0] == "shots=5: 1 of 3 classes have fewer, and give all"


def test_one_class_and_constant_features_have_no_value(tmp_path: Path) -> None:
    one = made(tmp_path / "one", bank(0, classes=1), bank(1, 30))
    same = FeatureBank(np.ones((6, 2), np.float32), np.arange(6) % 2)
    constant = made(tmp_path / "same", same, same)
    for outcome in (one, constant):
        assert "two classes or more, and features that differ" in outcome.facts["undefined"]
    assert not [*one.rows, *constant.rows]
