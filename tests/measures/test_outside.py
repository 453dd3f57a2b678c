"""Images outside the classes as a step: numbers by three scores, and what a network lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tests.measures.steps import KEY, Parents, measured, value
from tests.oracles import outside as oracle

from penultimate import FeatureBank
from penultimate.engine.execute import Outcome
from penultimate.graph import Supply
from penultimate.measures.outside import SCORES

CLASSES, WIDTH = 3, 5


def bank(seed: int, n: int, shift: float = 0.0, logits: bool = True) -> FeatureBank:
    """Features around class means, which logits follow; outside ones are shifted."""
    random, means = np.random.default_rng(seed), 2 * np.eye(CLASSES, WIDTH)
    labels = np.arange(n) % CLASSES
    features = (random.normal(size=(n, WIDTH)) + means[labels] + shift).astype(np.float32)
    return FeatureBank(
        features, labels, (features @ means.T).astype(np.float32) if logits else None, np.arange(n)
    )


def step(root: Path, train: FeatureBank, test: FeatureBank, other: FeatureBank, k: int = 4) -> Outcome:
    """The outcome for banks of the source and of an outside set."""
    stage = Parents(root / "stage").bank("train", train).bank("test", test)
    measured("outside_scores", stage, {"k": k})
    parents = Parents(root, target="digits").bank("test", other)
    parents.made("outside_scores", root / "stage" / "out")
    folder = root / "extract.source"
    folder.mkdir()
    train.save(folder / "train.npz")
    parents.add(Supply("features", "extract.source", "train", "glyphs", KEY), folder)
    return measured("outside", parents, {"k": k})


def scores_of(train: FeatureBank, test: FeatureBank, name: str) -> list[float]:
    """The scores of a bank by the oracle."""
    assert test.logits is not None
    features, queries = train.features.astype(float), test.features.astype(float)
    match name:
        case "msp":
            return [oracle.max_probability(row) for row in test.logits.astype(float).tolist()]
        case "mahalanobis":
            return [-d for d in oracle.mahalanobis(features, train.labels.tolist(), queries)]
    return [-d for d in oracle.kth_distance(features, queries, 4)]


def test_each_score_has_its_area_and_its_false_positives(tmp_path: Path) -> None:
    train, test, other = bank(1, 60), bank(2, 45), bank(3, 30, shift=1.0)
    outcome = step(tmp_path, train, test, other)
    assert outcome.facts == {}
    for name in SCORES:
        own, others = scores_of(train, test, name), scores_of(train, other, name)
        truth = np.arange(75) < 45
        found = value(outcome.rows, "outside_auroc", setting=f"score={name}")
        assert found == pytest.approx(roc_auc_score(truth, [*own, *others]), abs=1e-9)
        passed = value(outcome.rows, "outside_fpr95", setting=f"score={name}")
        assert passed == pytest.approx(oracle.false_positive_rate(own, others, 95), abs=1e-12)


def test_without_logits_the_scores_of_features_are_left(tmp_path: Path) -> None:
    given = [bank(seed, 30, shift, logits=False) for seed, shift in ((1, 0.0), (2, 0.0), (3, 2.0))]
    outcome = step(tmp_path, *given)
    assert {row.settings["score"] for row in outcome.rows} == {"mahalanobis", "knn"}
    assert outcome.facts["undefined"] == "msp: the network has no final layer for the source's classes"


def test_constant_features_have_no_mahalanobis_distance(tmp_path: Path) -> None:
    same = [replace(bank(seed, 12), features=np.ones((12, WIDTH), np.float32)) for seed in (1, 2, 3)]
    outcome = step(tmp_path, *same, k=50)  # more than there are images
    assert value(outcome.rows, "outside_auroc", setting="score=knn") == 0.5
    assert value(outcome.rows, "outside_fpr95", setting="score=knn") == 1
    assert "mahalanobis: the features of each class are constant" in outcome.facts["undefined"]
