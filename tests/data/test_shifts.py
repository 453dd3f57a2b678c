"""The shifted test sets: the classes of their source, no image of it, drawn as they are said to be."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from penultimate.data import CARDS, ImageSet, card
from penultimate.data.catalog import SHIFTS, shifted
from penultimate.data.world import renderings
from penultimate.data.world.atlas import Typefaces
from penultimate.data.world.nuisance import Nuisances
from penultimate.data.world.tasks import glyph_task
from penultimate.data.world.world import GlyphWorld

SMOKE = list(shifted("glyphs_smoke").values())


@pytest.fixture(scope="module")
def sets() -> dict[str, ImageSet]:
    return {name: dict(GlyphWorld(name)(0))["test"] for name in [*SMOKE, "glyphs_smoke"]}


def test_every_pretraining_set_has_all_four() -> None:
    for source in ("glyphs", "glyphs_smoke"):
        found = shifted(source)
        assert list(found) == list(SHIFTS) == ["v2", "a", "r", "sketch"]
        for name in found.values():
            assert card(name).source == source
            assert card(name).classes == card(source).classes
    assert shifted("digits") == shifted("own") == {}
    assert {name for name in CARDS if card(name).source} == {
        *shifted("glyphs").values(),
        *shifted("glyphs_smoke").values(),
    }


@pytest.mark.parametrize("name", SMOKE)
def test_classes_counts_and_ids(sets: dict[str, ImageSet], name: str) -> None:
    images = sets[name]
    assert len(images) == card(name).sizes["test"]
    assert images.class_names == sets["glyphs_smoke"].class_names
    np.testing.assert_array_equal(images.labels, np.tile(np.arange(16), 5))
    np.testing.assert_array_equal(images.ids, np.arange(80))


def test_the_first_two_are_drawn_as_in_pretraining() -> None:
    typefaces = Typefaces()
    plain = glyph_task("glyphs_smoke", typefaces)
    for shift in ("v2", "a"):
        task = glyph_task(f"glyphs_smoke_{shift}", typefaces)
        assert (task.render, task.nuisances, task.classes) == (plain.render, plain.nuisances, plain.classes)
    for shift in ("r", "sketch"):
        task = glyph_task(f"glyphs_smoke_{shift}", typefaces)
        assert task.render is not plain.render
        assert (task.nuisances, task.classes) == (plain.nuisances, plain.classes)


def test_sketches_are_grey_lines_on_bright_paper(sets: dict[str, ImageSet]) -> None:
    pixels = sets["glyphs_smoke_sketch"].images.astype(int)
    assert np.ptp(pixels, axis=3).mean() < 15
    assert np.median(pixels, axis=(1, 2, 3)).min() > 190
    assert pixels.reshape(len(pixels), -1).min(1).max() < 160
    # A filled square leaves its contour and nothing of its inside.
    square = torch.zeros(1, 48, 48, dtype=torch.uint8)
    square[:, 10:38, 10:38] = 255
    still = Nuisances(rotation=0, scale=0, aspect=0, shear=0, translation=0, elastic=0)
    image = renderings.sketch(square, still, torch.Generator().manual_seed(0))[0].float().mean(2)
    assert image[9:15, 9:15].min() > 190
    assert image[5, 9:15].max() < 160
