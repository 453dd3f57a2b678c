"""Fewer classes of a pretraining set, with as many images in all: cards, images, and the steps of a study."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from penultimate.data.catalog import card
from penultimate.data.fewer import evenly, of_fewer
from penultimate.data.images import load_images
from penultimate.data.world.generation import generate
from penultimate.data.world.world import glyphs_smoke


@pytest.mark.parametrize(("classes", "each"), [(16, 704), (32, 352), (64, 176), (128, 88), (100, 112)])
def test_the_images_of_a_split_stay_as_many(classes: int, each: int) -> None:
    few = of_fewer(card("glyphs"), classes)
    assert (few.classes, few.sizes["train"]) == (classes, each * classes)
    assert card("glyphs").sizes["train"] - few.sizes["train"] < classes
    assert list(few.sizes) == ["train", "holdout", "test", "relearn"]
    assert of_fewer(card("glyphs"), 0) is card("glyphs")


def test_the_classes_of_few_are_among_those_of_more() -> None:
    counts = (16, 32, 64, 128)
    kept = [evenly(range(128), count) for count in counts]
    assert [len({*of}) for of in kept] == list(counts)
    assert all({*few} < {*more} for few, more in itertools.pairwise(kept))
    assert evenly(range(128), 100)[-1] == 126


def test_images_are_drawn_of_those_classes_alone_and_balanced(tmp_path: Path) -> None:
    whole = dict(glyphs_smoke(3))
    manifest = generate("glyphs_smoke", 3, tmp_path, classes=4)
    assert {split: of["images"] for split, of in manifest["splits"].items()} == {
        split: len(images) for split, images in whole.items()
    }
    train = load_images(tmp_path, "train")
    assert train.class_names == whole["train"].class_names[::4]
    assert np.bincount(train.labels).tolist() == [96] * 4
    again = dict(glyphs_smoke(3, classes=4))
    assert again["train"].digest == train.digest
    ids = np.concatenate([images.ids for images in again.values()])
    assert len({*ids.tolist()}) == len(ids)
