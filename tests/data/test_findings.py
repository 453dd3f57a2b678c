"""Images of several letters: what a scene holds is what its labels and pixels say; the same every time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from penultimate.data import ImageSet, card
from penultimate.data.catalog import TRANSFER_SPLITS
from penultimate.data.world.atlas import SIDE, Atlas, Typefaces
from penultimate.data.world.characters import FACES, selected
from penultimate.data.world.findings import CHANCES, FAINT, FILLED, PLACES, drawn, findings, scenes


@pytest.fixture(scope="module")
def splits() -> dict[str, ImageSet]:
    return dict(findings(0))


def test_sizes_labels_and_ids_are_as_the_card_says(splits: dict[str, ImageSet]) -> None:
    described = card("findings")
    assert {split: len(images) for split, images in splits.items()} == dict(described.sizes)
    assert described.has_several_labels
    assert set(described.splits) == {*TRANSFER_SPLITS, "validation"}
    for split, images in splits.items():
        assert images.labels.shape == (len(images), described.classes)
        assert len(set(images.class_names)) == described.classes
        found = {0, 1} if split == "validation" else {-1, 0, 1}
        assert all(set(column) == found for column in images.labels.T.tolist())
        assert images.images.reshape(len(images), -1).std(1).min() > 2
    ids = np.concatenate([images.ids for images in splits.values()])
    assert np.unique(ids).size == ids.size


def test_labels_are_as_frequent_as_their_chances(splits: dict[str, ImageSet]) -> None:
    """One label of five has no place; of findings FAINT are uncertain, and half of these are there."""
    turn = PLACES / len(CHANCES)
    for split, images in splits.items():
        for chance, column in zip(CHANCES, images.labels.T, strict=True):
            clear = turn * chance * (1 - FAINT)
            shares = {1: clear, -1: turn * chance * FAINT}
            if split == "validation":
                shares = {1: clear + turn * chance * FAINT / 2}
            for value, share in shares.items():
                spread = (share * (1 - share) / len(images)) ** 0.5
                assert abs((column == value).mean() - share) < 4 * spread


def test_a_scene_holds_what_its_labels_say_and_its_mask_shows_it() -> None:
    letters = 12
    scene = scenes(2000, letters, torch.Generator().manual_seed(3))
    for label in range(len(CHANCES)):
        there = (scene.letter == label).sum(1)
        assert torch.equal(there > 0, scene.truth[:, label])
        assert int(there.max()) == 1
        certain = ~scene.faint[:, label] & scene.truth[:, label]
        assert bool((scene.ink[certain][scene.letter[certain] == label] == 1).all())
    assert torch.equal((scene.ink < 1).sum(1), scene.faint.sum(1))
    assert bool((scene.letter[scene.ink < 1] >= 0).all())
    sure = scene.faint.sum(1) == 0
    empty = (scene.letter[sure] < 0).sum() / (scene.letter[sure] < len(CHANCES)).sum()
    assert 0 < float(empty) < 1 - FILLED
    characters, faces = selected("findings"), FACES["findings"]
    atlas = Atlas(Typefaces(), [(each, face) for each in characters for face in faces])
    masks = drawn(scene, atlas.masks.view(letters, -1, SIDE, SIDE), torch.Generator().manual_seed(4))
    half = SIDE // 2
    for place in range(PLACES):
        row, column = divmod(place, 2)
        part = masks[:, row * half : (row + 1) * half, column * half : (column + 1) * half]
        assert torch.equal(part.flatten(1).amax(1) > 0, scene.letter[:, place] >= 0)
        assert bool((part[scene.ink[:, place] < 1].flatten(1).amax(1) <= 0.4 * 255 + 1).all())
