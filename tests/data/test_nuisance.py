"""Nuisances: strokes against SciPy's morphology, colours against the rule, drawing against its equation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from tests.oracles import data as oracle

from penultimate.data.world import nuisance
from penultimate.data.world.nuisance import Nuisances, compose, push_apart

STILL = Nuisances(**dict.fromkeys(Nuisances.__dataclass_fields__, 0.0))


def random_masks(n: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (n, 48, 48), np.uint8))


def test_strokes_are_grey_morphology() -> None:
    masks = random_masks(3)
    array = masks.numpy()
    # Outside the square there is no ink: growing sees 0 there; shrinking is not cut short by it.
    grown = np.stack([ndimage.grey_dilation(m, (3, 3), mode="constant", cval=0) for m in array])
    shrunk = np.stack([ndimage.grey_erosion(m, (3, 3), mode="constant", cval=255) for m in array])
    np.testing.assert_array_equal(nuisance.bolder(masks).numpy(), grown)
    np.testing.assert_array_equal(nuisance.thinner(masks).numpy(), np.maximum(shrunk, array // 2))
    np.testing.assert_array_equal(nuisance.outline(masks).numpy(), grown - shrunk)


colours = st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3)


@settings(max_examples=200)
@given(foreground=colours, background=colours)
def test_near_colours_end_up_apart_and_others_stay(foreground: list[float], background: list[float]) -> None:
    before = np.array([foreground, background])
    pair = push_apart(torch.tensor([foreground]), torch.tensor([background]))
    after = np.stack([colour[0].double().numpy() for colour in pair])
    assert after.min() >= -1e-6
    assert after.max() <= 1 + 1e-6
    old = oracle.luminance(before[0]) - oracle.luminance(before[1])
    new = oracle.luminance(after[0]) - oracle.luminance(after[1])
    if abs(old) > 0.4501:
        np.testing.assert_allclose(after, before, atol=1e-6)
    elif abs(old) < 0.4499:
        assert abs(new) == pytest.approx(0.55, abs=1e-5)
        assert old * new >= 0 or abs(old) < 1e-6
    assert abs(new) > 0.4499


def test_without_nuisances_an_image_is_its_halved_mask_between_two_colours() -> None:
    masks = random_masks(4)
    images = compose(masks, STILL, torch.Generator().manual_seed(0)).numpy().astype(float) / 255
    for mask, image in zip(masks.numpy(), images, strict=True):
        cover = oracle.halved(mask / 255.0)
        for channel in range(3):
            slope, ground = np.polyfit(cover.reshape(-1), image[..., channel].reshape(-1), 1)
            expected = ground + slope * cover
            # Rounding to 1/255 leaves at most half a step, and the fitted line as much again.
            np.testing.assert_allclose(image[..., channel], expected, atol=1 / 255)
    blank, full = torch.zeros(1, 48, 48, dtype=torch.uint8), torch.full((1, 48, 48), 255, dtype=torch.uint8)
    for mask in (blank, full):
        assert len(compose(mask, STILL, torch.Generator()).reshape(-1, 3).unique(dim=0)) == 1


@pytest.mark.parametrize("kind", sorted(Nuisances.__dataclass_fields__))
def test_each_nuisance_alone_changes_images(kind: str) -> None:
    masks = torch.zeros(12, 48, 48, dtype=torch.uint8)
    masks[:, 8:40, 14:30] = 255
    alone = Nuisances(**{**vars(STILL), kind: 1.0 if kind in ("stroke", "bar", "blur") else 0.2})
    still = compose(masks, STILL, torch.Generator().manual_seed(1))
    moved = compose(masks, alone, torch.Generator().manual_seed(1))
    changed = (still != moved).flatten(1).any(1).float().mean()
    assert changed > 0.6
