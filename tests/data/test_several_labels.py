"""Labels [n l]: in memory, on disk and in banks, and refused where one class each is meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.measures.worlds import network
from torch import nn

import penultimate as pu
from penultimate import FeatureBank, register, registry
from penultimate.checking import check_entry
from penultimate.data import CARDS, DatasetCard, ImageSet, contact_sheet
from penultimate.data.images import load_images, save_images
from penultimate.data.world.generation import generate
from penultimate.errors import RequestError
from penultimate.features.extraction import extract
from penultimate.layers.profiles import profile_layers
from penultimate.metrics.transferability import FeatureScores
from penultimate.networks.trained import load_network
from penultimate.training import train
from penultimate.training.recipe import Recipe

NAMES = ("a", "b", "c")
LABELS = np.random.default_rng(0).integers(-1, 2, (12, 3))


def images(labels: np.ndarray = LABELS, first: int = 0) -> ImageSet:
    pixels = np.random.default_rng(1).integers(0, 256, (len(labels), 16, 16, 3), np.uint8)
    return ImageSet(pixels, labels, np.arange(first, first + len(labels)), NAMES)


def test_they_come_back_from_disk_and_go_into_banks(tmp_path: Path) -> None:
    save_images(tmp_path / "data", "train", images())
    loaded = load_images(tmp_path / "data", "train")
    np.testing.assert_array_equal(loaded.labels, LABELS)
    assert loaded.digest == images().digest != images(abs(LABELS)).digest
    np.testing.assert_array_equal(loaded.subset([3, 1]).labels, LABELS[[3, 1]])
    trained = load_network(network(tmp_path, "softmax"))
    bank = extract(trained, loaded)
    bank.save(tmp_path / "bank.npz")
    again = FeatureBank.load(tmp_path / "bank.npz")
    np.testing.assert_array_equal(again.labels, LABELS)
    assert again.digest() == bank.digest()
    batches = [(torch.rand(4, 5), torch.from_numpy(LABELS[start : start + 4])) for start in (0, 4, 8)]
    np.testing.assert_array_equal(extract(nn.Linear(5, 2), batches).labels, LABELS)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (LABELS * 2, r"label -?2 \(image \d+, '[abc]'\) is not 1 \(present\), 0 \(absent\) or -1"),
        (
            LABELS[:, :2],
            r"int64 \[12, 3\], one for each image and label; these are int64 \[12, 2\]",
        ),
        (LABELS.astype(np.int8), r"these are int8 \[12, 3\]"),
        (LABELS[:, 0], "out of range: 3 classes have the labels 0 to 2"),
    ],
)
def test_labels_of_another_form_are_refused(labels: np.ndarray, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        images(labels)


FEATURES = np.random.default_rng(2).normal(size=(12, 4)).astype(np.float32)
BANK = FeatureBank(FEATURES, LABELS)
OF_ONE_CLASS: dict[str, Callable[[Path], object]] = {
    "train": lambda folder: train("softmax", "glyphnet", images(), None, Recipe(epochs=1), 0, folder),
    "train_holdout": lambda folder: train(
        "softmax", "glyphnet", images(LABELS[:, 0].clip(0)), images(), Recipe(epochs=1), 0, folder
    ),
    "profile_layers": lambda folder: profile_layers(load_network(network(folder, "softmax")), images()),
    "LinearProbe": lambda folder: pu.LinearProbe().fit(BANK),
    "KNNProbe": lambda folder: pu.KNNProbe().fit(BANK),
    "class_separation": lambda folder: pu.class_separation(BANK),
    "neural_collapse": lambda folder: pu.neural_collapse(BANK.features, BANK.labels, FEATURES[:3]),
    "FeatureScores": lambda folder: FeatureScores(FEATURES, LABELS),
}


@pytest.mark.parametrize("name", OF_ONE_CLASS)
def test_what_takes_one_class_each_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        RequestError, match=r"one class each; these have 3 labels each|1d array|class indices"
    ):
        OF_ONE_CLASS[name](tmp_path)


def test_a_sheet_shows_the_images_that_have_a_label() -> None:
    drawn = contact_sheet([("Several", images())], columns=3, rows=2, zoom=1)
    none = contact_sheet([("Several", images(np.zeros_like(LABELS)))], columns=3, rows=2, zoom=1)
    assert drawn[:4] == b"\x89PNG"
    assert len(none) < len(drawn)


def own(accuracy: str, labels: np.ndarray) -> Callable[[int], dict[str, ImageSet]]:
    def several(draw: int) -> dict[str, ImageSet]:
        generator = np.random.default_rng(draw)
        return {
            split: ImageSet(
                generator.integers(0, 256, (12, 16, 16, 3), np.uint8), labels, first + np.arange(12), NAMES
            )
            for split, first in (("train", 0), ("test", 12))
        }

    several.card = DatasetCard(  # type: ignore[attr-defined]
        "several",
        "Several",
        3,
        {"train": 12, "test": 12},
        accuracy,
        "",
        "",
        "",  # type: ignore[arg-type]
    )
    return several


def test_a_plug_in_with_several_labels_is_checked_and_one_with_another_card_refused(tmp_path: Path) -> None:
    try:
        register.dataset(own("auc", LABELS))
        findings = check_entry(registry.entry("dataset", "several"))
        assert [finding.sentence for finding in findings if not finding.ok] == []
        assert "3 classes, scored by auc" in findings[1].sentence
        registry.forget("dataset", "several")
        register.dataset(own("top1", LABELS))
        with pytest.raises(
            RequestError, match="accuracy='top1', for images with a class each; these have sev"
        ):
            generate("several", 0, tmp_path / "one")
        registry.forget("dataset", "several")
        register.dataset(own("auc", np.arange(12) % 3))
        with pytest.raises(
            RequestError, match="for images with several labels each; these have a class each"
        ):
            generate("several", 0, tmp_path / "other")
    finally:
        registry.forget("dataset", "several")


def test_cards_that_count_labels_are_those_scored_by_auc() -> None:
    assert {name for name in CARDS if CARDS[name].has_several_labels} == {"findings", "findings_smoke"}
