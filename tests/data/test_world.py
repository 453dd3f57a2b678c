"""The embedded world: counts, masks, coverage, independence of draws, splits and classes, determinism."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from penultimate.data import CARDS, ImageSet, card
from penultimate.data.catalog import SHARES, TRANSFER_SPLITS
from penultimate.data.world.atlas import Atlas, Typefaces
from penultimate.data.world.characters import STIX, pretraining_classes
from penultimate.data.world.tasks import glyph_task
from penultimate.data.world.world import GlyphWorld, one_thread, render_split

LIKE_ANOTHER = ("digits", "digits_smoke", "glyphs_tuning", "glyphs_512", "findings", "findings_smoke")
"""Not drawn here: handwriting, glyphs with a large holdout or more classes, and images of several letters."""
DRAWN = [name for name in CARDS if name not in LIKE_ANOTHER and not card(name).source]
TRANSFER = [name for name in DRAWN if card(name).splits == TRANSFER_SPLITS]


@pytest.fixture(scope="module")
def worlds() -> dict[str, dict[str, ImageSet]]:
    """Draw 0 of every data set, rendered once."""
    return {name: dict(GlyphWorld(name)(0)) for name in DRAWN}


def hashes(images: ImageSet) -> set[bytes]:
    return {hashlib.sha256(image.tobytes()).digest() for image in images.images}


@pytest.mark.long
@pytest.mark.parametrize("name", DRAWN)
def test_counts_types_and_ids(worlds: dict[str, dict[str, ImageSet]], name: str) -> None:
    described, splits = card(name), worlds[name]
    assert {split: len(images) for split, images in splits.items()} == dict(described.sizes)
    for images in splits.values():
        assert images.images.shape[1:] == (24, 24, 3)
        assert images.num_classes == len(set(images.class_names)) == described.classes
        counts = np.bincount(images.labels, minlength=described.classes)
        assert set(counts) == {len(images) // described.classes}
        # Every prefix is balanced: the first k images are one of each class.
        np.testing.assert_array_equal(images.labels[: described.classes], np.arange(described.classes))
    ids = np.concatenate([images.ids for images in splits.values()])
    assert np.unique(ids).size == ids.size


def test_no_image_is_shared_between_splits_data_sets_or_draws(worlds: dict[str, dict[str, ImageSet]]) -> None:
    mixed = {"shared_25", "shared_50", "shared_75"}  # composed of the classes of shared_0 and shared_100
    sets = [images for name in worlds.keys() - mixed for images in worlds[name].values()]
    sets += [images for name in ("glyphs_smoke", "typeface") for _, images in GlyphWorld(name)(1)]
    assert len(set().union(*map(hashes, sets))) == sum(map(len, sets))


def test_a_class_does_not_depend_on_the_others(worlds: dict[str, dict[str, ImageSet]]) -> None:
    typefaces = Typefaces()
    task = glyph_task("syllabics", typefaces)
    label, name = 7, list(task.classes)[7]
    alone = dataclasses.replace(task, classes={name: task.classes[name]})
    with one_thread():
        images = render_split(alone, Atlas(typefaces, alone.glyphs), 0, "test").images
    whole = worlds["syllabics"]["test"]
    np.testing.assert_array_equal(images, whole.images[whole.labels == label])


@pytest.mark.long
def test_the_number_of_threads_changes_nothing(worlds: dict[str, dict[str, ImageSet]]) -> None:
    program = (
        "import torch; torch.set_num_threads(3); from penultimate.data.world.world import glyphs_smoke;"
        "from penultimate.files import digest_arrays;"
        "print(digest_arrays(*(images.images for _, images in glyphs_smoke(0))), torch.get_num_threads())"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "3"}
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    from penultimate.files import digest_arrays

    expected = digest_arrays(*(images.images for images in worlds["glyphs_smoke"].values()))
    assert answer.stdout.split() == [expected, "3"]


def test_tasks_of_shared_classes_are_nested_and_differ_in_whole_classes_alone(
    worlds: dict[str, dict[str, ImageSet]],
) -> None:
    names = {name: worlds[name]["train"].class_names for name in SHARES}
    pretraining = {" ".join(members) for members in pretraining_classes()}
    for (name, share), count in zip(SHARES.items(), (0, 4, 8, 12, 16), strict=True):
        assert share == count / 16
        assert names[name] == names["shared_100"][:count] + names["shared_0"][count:]
        assert [one in pretraining for one in names[name]] == [True] * count + [False] * (16 - count)
        assert {face for _, face in glyph_task(name, Typefaces()).glyphs} == set(STIX)
    assert len({glyph_task(name, Typefaces()).nuisances for name in (*SHARES, "newfaces")}) == 1
    assert {len(glyphs) for name in SHARES for glyphs in glyph_task(name, Typefaces()).classes.values()} == {
        16
    }


@pytest.mark.parametrize("split", TRANSFER_SPLITS)
def test_a_class_has_the_same_images_in_each_task_of_shared_classes(
    worlds: dict[str, dict[str, ImageSet]], split: str
) -> None:
    seen: dict[str, np.ndarray] = {}
    for name in SHARES:
        images = worlds[name][split]
        for label, own in enumerate(images.class_names):
            of_class = images.images[images.labels == label]
            np.testing.assert_array_equal(of_class, seen.setdefault(own, of_class))
    assert len(seen) == 32
