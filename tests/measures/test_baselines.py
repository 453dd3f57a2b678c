"""Baselines that need no network: their features and their probes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.measures.steps import Parents, measured

from penultimate.data.images import ImageSet, save_images
from penultimate.errors import RequestError
from penultimate.features.baselines import BASELINES, random_convolutions, shrunk_pixels
from penultimate.measures.baselines import NAMES

IMAGES = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8))


def test_features_agree_with_plain_numpy() -> None:
    pixels = IMAGES.numpy().astype(float)
    cells = pixels.reshape(5, 8, 4, 8, 4, 3).mean((2, 4)) / 255
    assert np.allclose(shrunk_pixels(IMAGES), cells.transpose(0, 3, 1, 2).reshape(5, -1), atol=1e-6)
    found = BASELINES["colours"](IMAGES).numpy()
    for image, row in zip(pixels, found, strict=True):
        flat = image.reshape(-1, 3)
        shares, _ = np.histogramdd(flat, bins=[np.arange(0, 257, 64)] * 3)
        expected = [*(flat.mean(0) / 255), *(flat.std(0) / 255), *(shares.ravel() / len(flat))]
        assert np.allclose(row, expected, atol=1e-6)


def test_convolutions_ignore_brightness_and_contrast_and_are_the_same_in_every_call() -> None:
    found = random_convolutions(IMAGES)
    assert torch.equal(found, random_convolutions(IMAGES))
    darker = random_convolutions(IMAGES // 2)
    assert torch.allclose(found, darker, rtol=0.05, atol=0.05)
    assert found.std(0).min() > 0
    flat = random_convolutions(torch.full((2, 9, 7, 1), 200, dtype=torch.uint8))
    assert torch.allclose(flat, torch.zeros(()), atol=1e-5)
    with pytest.raises(RequestError, match=r"images are uint8 \[n h w c\]; these are torch.float32"):
        random_convolutions(IMAGES.float())


def picture_folder(root: Path, labels: np.ndarray) -> Path:
    """Images whose brightness is their class, in two splits."""
    random = np.random.default_rng(1)
    for split, first in (("train", 0), ("test", len(labels))):
        pixels = 60 * labels[:, None, None, None] + random.integers(0, 50, (len(labels), 12, 12, 3))
        ids = np.arange(first, first + len(labels))
        classes = tuple("abc"[: labels.max() + 1])
        save_images(root, split, ImageSet(pixels.astype(np.uint8), labels, ids, classes))
    return root


def test_probes_of_the_baselines_leave_predictions_and_accuracies(tmp_path: Path) -> None:
    folder = picture_folder(tmp_path / "data", np.arange(60) % 3)
    parents = Parents(tmp_path, target="tasks").images("train", folder).images("test", folder)
    rows = measured("baselines", parents, accuracy="top1").rows
    value = {row.setting: row.value for row in rows if row.metric == "baseline_top1"}
    with np.load(tmp_path / "out" / "baseline_predictions.npz") as arrays:
        assert {*arrays} == {"ids", "labels", *NAMES}
        for name in NAMES:
            assert value[f"baseline={name}"] == (arrays[name] == arrays["labels"]).mean()
    assert value["baseline=pixels"] == value["baseline=colours"] == 1.0


def test_a_task_of_one_class_has_no_baselines_but_a_reason(tmp_path: Path) -> None:
    folder = picture_folder(tmp_path / "data", np.zeros(8, np.int64))
    parents = Parents(tmp_path, target="tasks").images("train", folder).images("test", folder)
    outcome = measured("baselines", parents, accuracy="top1")
    assert not outcome.rows
    assert outcome.facts["undefined"].startswith("baselines on 'tasks': y holds one class only")
