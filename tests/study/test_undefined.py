"""A measure without a value on one split costs no row of the other, and is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penultimate.bank import FeatureBank
from penultimate.study.context import Context
from penultimate.study.graph import Step
from penultimate.study.steps import class_separation


def test_constant_test_features_leave_the_training_rows(tmp_path: Path) -> None:
    labels = np.arange(12) % 3
    features = np.random.default_rng(0).random((12, 4)).astype(np.float32)
    FeatureBank(features, labels).save(tmp_path / "train.npz")
    FeatureBank(np.ones((12, 4), np.float32), labels).save(tmp_path / "test.npz")
    about = {"slug": "softmax", "objective": "softmax", "source": "glyphs", "seed": 0, "target": "glyphs"}
    step = Step("class_separation", {"splits": ["train", "test"], "threads": 1}, ("extract.a",), about)
    found = class_separation(Context(step, tmp_path, {"extract": tmp_path}, lambda news: None))
    assert [(row.split, row.metric) for row in found.rows] == [
        ("train", "class_separation"),
        ("train", "class_separation_cosine_centered"),
        ("train", "class_separation_euclidean"),
    ]
    assert "class_separation (test): class separation is undefined" in found.facts["undefined"]
