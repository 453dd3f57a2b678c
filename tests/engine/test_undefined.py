"""A measurement without a value on one split costs no row of the other, and is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.measures.steps import Parents, measured

from penultimate.features.bank import FeatureBank


def test_constant_test_features_leave_the_training_rows(tmp_path: Path) -> None:
    labels = np.arange(12) % 3
    features = np.random.default_rng(0).random((12, 4)).astype(np.float32)
    parents = Parents(tmp_path).bank("train", FeatureBank(features, labels))
    outcome = measured("class_separation", parents.bank("test", FeatureBank(np.ones_like(features), labels)))
    assert [(row.split, row.metric) for row in outcome.rows] == [
        ("train", "class_separation"),
        ("train", "class_separation_cosine_centered"),
        ("train", "class_separation_euclidean"),
        ("train", "class_separation_unbiased"),
    ]
    assert "class_separation (test): class separation is undefined" in outcome.facts["undefined"]
