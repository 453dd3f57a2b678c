"""Relearning takes as many images of each class as it says, in whatever order they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.measures.steps import Parents, measured

from penultimate.errors import RequestError
from penultimate.features.bank import FeatureBank
from penultimate.measures.catalogue import requested

CLASSES, EACH, SHOTS = 3, 8, 4


def bank(labels: np.ndarray, seed: int) -> FeatureBank:
    """Clusters so far apart that a few images of each class are enough."""
    noise = 0.1 * np.random.default_rng(seed).standard_normal((len(labels), CLASSES))
    return FeatureBank((5 * np.eye(CLASSES)[labels] + noise).astype(np.float32), labels)


def relearned(folder: Path, fresh: FeatureBank, shots: object = SHOTS) -> dict[str, float]:
    parents = Parents(folder).bank("test", bank(np.arange(60) % CLASSES, 1)).bank("relearn", fresh)
    rows = measured("relearning", parents, {"shots": shots}).rows
    assert {(row.setting, row.target, row.layer) for row in rows} == {(f"shots={shots}", "glyphs", None)}
    return {row.metric: row.value for row in rows}


def test_heads_are_relearned_from_images_of_training_in_the_same_way(tmp_path: Path) -> None:
    """From the train split in place of the relearn split, under names of its own."""
    balanced, test = bank(np.arange(CLASSES * EACH) % CLASSES, 0), bank(np.arange(60) % CLASSES, 1)
    fresh = relearned(tmp_path / "fresh", balanced)
    parents = Parents(tmp_path / "seen").bank("test", test).bank("train", balanced)
    rows = measured("relearning_from_training", parents, {"shots": SHOTS}).rows
    assert {row.metric: row.value for row in rows} == {
        name.replace("relearn", "relearn_training"): value for name, value in fresh.items()
    }
    assert [(row.split, row.setting) for row in rows] == [("test", "shots=4"), ("train", "shots=4")]
    (seen,) = requested("relearning_from_training").measurement.needs[1:]
    assert seen.split == "train"  # type: ignore[union-attr]


def test_images_that_lie_class_by_class_are_taken_from_each(tmp_path: Path) -> None:
    fresh = bank(np.repeat(np.arange(CLASSES), EACH), 0)
    assert relearned(tmp_path, fresh)["relearn_top1"] == 1


def test_a_class_of_too_few_images_is_named(tmp_path: Path) -> None:
    labels = np.array([0] * 8 + [1] * 3 + [2] * 8)
    with pytest.raises(RequestError, match="class 1 has 3"):
        relearned(tmp_path, bank(labels, 0))


def test_heads_are_relearned_from_test_images_and_scored_on_the_others(tmp_path: Path) -> None:
    plain = bank(np.arange(CLASSES * EACH) % CLASSES, 0)
    start, rest = np.arange(CLASSES * SHOTS), np.arange(CLASSES * SHOTS, CLASSES * EACH)
    logits = np.eye(CLASSES)[plain.labels].astype(np.float32)
    logits[:] = np.where(np.arange(len(logits))[:, None] < len(start) + 3, np.roll(logits, 1, 1), logits)
    whole = FeatureBank(plain.features, plain.labels, logits)
    rows = measured(
        "relearning_from_test", Parents(tmp_path / "a").bank("test", whole), {"shots": SHOTS}
    ).rows
    found = {row.metric: row.value for row in rows}
    assert found["relearn_original_top1"] == (len(rest) - 3) / len(rest)
    parts = (FeatureBank(plain.features[rows], plain.labels[rows]) for rows in (rest, start))
    test, fresh = parts
    parents = Parents(tmp_path / "b").bank("test", test).bank("relearn", fresh)
    apart = {row.metric: row.value for row in measured("relearning", parents, {"shots": SHOTS}).rows}
    assert {name: found[name] for name in apart} == apart
    with pytest.raises(RequestError, match="none is left to score on"):
        measured("relearning_from_test", Parents(tmp_path / "c").bank("test", whole), {"shots": EACH})
