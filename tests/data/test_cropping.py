"""What a network is shown of an image file in training is what torchvision gives for the same draws."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.data.photographs import folder_of, hard_files, listing_of, photograph
from torchvision.transforms import v2

from penultimate.data.augmentation.settings import Augmentation
from penultimate.data.disk.cropping import ASPECTS, ShownCrops, box_of, cropped, random_box
from penultimate.errors import DamagedFileError, RequestError

SIZES = [(90, 70), (70, 90), (64, 64), (300, 8), (8, 300), (1, 1), (2, 500), (301, 299)]
PAPER = (0.1, 1.0)
GEOMETRY = (36, 32, "bilinear", False)


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("area", [PAPER, (0.9, 1.0), (0.001, 0.002)])
def test_parts_and_pixels_are_torchvisions_for_the_same_draws(
    width: int, height: int, area: tuple[float, float]
) -> None:
    image = photograph(width, width, height)
    theirs = v2.RandomResizedCrop(48, scale=area, ratio=ASPECTS, antialias=True)
    generator = torch.Generator()
    for seed in range(30):
        generator.manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            expected = np.asarray(theirs(image))
        box = random_box(width, height, area, generator)
        assert np.array_equal(cropped(image, box, 48), expected), (seed, box)


def test_a_part_follows_from_seed_epoch_and_place_alone() -> None:
    drawn = Counter(
        box_of(400, 300, PAPER, seed, epoch, row)
        for seed in (0, 1)
        for epoch in (0, 1)
        for row in range(50)
        for _ in range(2)
    )
    assert len(drawn) == 200
    assert set(drawn.values()) == {2}


@pytest.mark.parametrize("area", [PAPER, None])
def test_what_is_shown_depends_on_no_batch(tmp_path: Path, area: tuple[float, float] | None) -> None:
    shown = ShownCrops(folder_of(tmp_path, images=12), GEOMETRY, area, seed=3)
    together = shown((5, np.arange(12)))
    for rows in (np.array([7]), np.array([3, 11, 0])):
        assert np.array_equal(shown((5, rows)), together[rows])
    assert np.array_equal(shown((6, np.arange(12))), together) == (area is None)


def test_every_kind_of_file_is_shown_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    names = hard_files(tmp_path)
    listing = listing_of(tmp_path, names, np.zeros(len(names), np.int64))
    shown = ShownCrops(listing, GEOMETRY, PAPER, seed=0)
    assert shown((0, np.arange(len(names)))).shape == (len(names), 32, 32, 3)
    (tmp_path / names[4]).write_bytes((tmp_path / names[4]).read_bytes()[:500])
    with pytest.raises(DamagedFileError, match=f"{names[4]}.*start again.*from its last checkpoint"):
        shown((0, np.arange(len(names))))


@pytest.mark.parametrize("crop", [(0.0, 1.0), (0.5, 0.2), (0.1, 1.5), (0.1,), 0.1, "ab", (float("nan"), 1)])
def test_shares_that_are_none_are_refused(crop: object) -> None:
    with pytest.raises(RequestError, match="crop is \\(least, most\\)"):
        Augmentation(crop=crop)  # type: ignore[arg-type]
    assert Augmentation(crop=[0.1, 1]).crop == PAPER  # type: ignore[arg-type]
