"""Augmentation against pixel loops, its distribution; normalisation against its equation; bad input."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import data as oracle

from penultimate.data import Augmentation, ChannelStatistics, augment, normalise


def pixels(n: int, h: int, w: int, c: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (n, h, w, c), np.uint8))


def found_shifts(image: np.ndarray, out: np.ndarray, most: int) -> list[tuple[int, int]]:
    """The shifts that explain an augmented image (at the image's own size, two may be one and the same)."""
    return [
        (down, across)
        for down in range(-most, most + 1)
        for across in range(-most, most + 1)
        if np.array_equal(oracle.shifted(image, down, across), out)
    ]


@settings(max_examples=15)
@given(
    h=st.integers(5, 9),
    w=st.integers(5, 9),
    c=st.integers(1, 4),
    shift=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_every_image_is_its_own_reflected_shift(h: int, w: int, c: int, shift: int, seed: int) -> None:
    images = pixels(4, h, w, c, seed)
    out = augment(images, Augmentation(shift=shift), torch.Generator().manual_seed(seed))
    assert out.shape == images.shape
    for before, after in zip(images.numpy(), out.numpy(), strict=True):
        assert len(found_shifts(before, after, shift)) == 1


def test_flip_mirrors_about_half_the_images() -> None:
    images = pixels(400, 3, 4, 3)
    out = augment(images, Augmentation(shift=0, flip=True), torch.Generator().manual_seed(1))
    same = (out == images).flatten(1).all(1)
    mirrored = (out == images.flip(2)).flatten(1).all(1)
    assert bool((same ^ mirrored).all())
    assert 150 < int(mirrored.sum()) < 250


def test_normalise_is_its_equation_and_lies_channels_last() -> None:
    images = pixels(3, 5, 4, 3)
    statistics = ChannelStatistics((0.5, 0.25, 0.1), (0.25, 0.3, 0.0))
    expected = oracle.normalised(images.numpy(), statistics.mean, statistics.std)
    out = normalise(images, statistics)
    assert out.dtype == torch.float32
    assert out.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(out.numpy(), expected, rtol=2e-6, atol=2e-6)
    half = normalise(images, statistics, torch.bfloat16)
    assert half.dtype == torch.bfloat16
    assert torch.equal(half, out.to(torch.bfloat16))


def test_channel_statistics_agree_with_numpy() -> None:
    images = pixels(7, 3, 5, 2).numpy()
    statistics = ChannelStatistics.of(images)
    scaled = images.astype(np.float64) / 255
    np.testing.assert_allclose(statistics.mean, scaled.mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(statistics.std, scaled.std((0, 1, 2)), rtol=1e-12)
