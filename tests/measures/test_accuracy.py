"""Accuracy on the test images, and on further ones where the source has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.measures.steps import Parents, measured
from tests.measures.worlds import network, world

from penultimate.data.images import ImageSet, load_images, save_images
from penultimate.features.bank import FeatureBank
from penultimate.features.extraction import extract
from penultimate.metrics.accuracy import top_k
from penultimate.networks.trained import load_network


def logits(bank: FeatureBank) -> np.ndarray:
    assert bank.logits is not None
    return bank.logits


def test_accuracy_is_that_of_test_and_further_images_together(tmp_path: Path) -> None:
    data, folder = world(tmp_path), network(tmp_path, "softmax")
    pixels = np.random.default_rng(1).integers(0, 256, (36, 16, 16, 3), dtype=np.uint8)
    save_images(data, "further_test", ImageSet(pixels, np.arange(36) % 4, np.arange(36), tuple("abcd")))
    loaded = load_network(folder)
    banks = {split: extract(loaded, load_images(data, split)) for split in ("train", "test", "further_test")}
    parents = Parents(tmp_path).bank("train", banks["train"]).bank("test", banks["test"])
    before = measured("accuracy", parents).rows
    after = measured("accuracy", parents.images("further_test", data).network(folder)).rows
    both = [banks["test"], banks["further_test"]]
    labels = np.concatenate([bank.labels for bank in both])
    for k in (1, 5):
        found = {row.split: row.value for row in after if row.metric == f"top{k}"}
        alone = {row.split: row.value for row in before if row.metric == f"top{k}"}
        assert found["test"] == top_k(np.concatenate([logits(bank) for bank in both]), labels, k)
        assert alone["test"] == top_k(logits(banks["test"]), banks["test"].labels, k)
        assert found["train"] == alone["train"]
    top1 = [top_k(logits(bank), bank.labels) for bank in both]
    assert top1[0] != top1[1]
