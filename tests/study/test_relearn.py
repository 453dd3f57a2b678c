"""The relearning step takes as many images of each class as it says, in whatever order they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penultimate.bank import FeatureBank
from penultimate.errors import RequestError
from penultimate.study.context import Context
from penultimate.study.graph import Step
from penultimate.study.steps import relearn

CLASSES, EACH, SHOTS = 3, 8, 4


def bank(labels: np.ndarray, seed: int) -> FeatureBank:
    """Clusters so far apart that a few images of each class are enough."""
    noise = 0.1 * np.random.default_rng(seed).standard_normal((len(labels), CLASSES))
    return FeatureBank((5 * np.eye(CLASSES)[labels] + noise).astype(np.float32), labels)


def relearned(folder: Path, fresh: FeatureBank, shots: int = SHOTS) -> dict[str, float]:
    own, few = folder / "own", folder / "few"
    for one in (own, few):
        one.mkdir(exist_ok=True)
    bank(np.arange(60) % CLASSES, 1).save(own / "test.npz")
    fresh.save(few / "relearn.npz")
    about = {"slug": "softmax", "objective": "softmax", "source": "glyphs", "seed": 0, "target": "glyphs"}
    step = Step("relearn", {"shots": shots, "seed": 0, "threads": 1}, ("extract.a", "extract.b"), about)
    rows = relearn(Context(step, folder, {"extract": own, "extract.b": few}, lambda news: None)).rows
    return {row.metric: row.value for row in rows}


def test_images_that_lie_class_by_class_are_taken_from_each(tmp_path: Path) -> None:
    fresh = bank(np.repeat(np.arange(CLASSES), EACH), 0)
    assert relearned(tmp_path, fresh)["relearn_top1"] == 1


def test_the_first_of_each_class_are_taken_in_their_order(tmp_path: Path) -> None:
    balanced = bank(np.arange(CLASSES * EACH) % CLASSES, 0)
    start = np.arange(CLASSES * SHOTS)
    alone = FeatureBank(balanced.features[start], balanced.labels[start])
    assert relearned(tmp_path, balanced) == relearned(tmp_path, alone)


def test_a_class_of_too_few_images_is_named(tmp_path: Path) -> None:
    labels = np.array([0] * 8 + [1] * 3 + [2] * 8)
    with pytest.raises(RequestError, match="class 1 has 3"):
        relearned(tmp_path, bank(labels, 0))
