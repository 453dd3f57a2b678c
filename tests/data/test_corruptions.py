"""Corruptions: the published definitions at 224 pixels, their lengths at others, randomness by example."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage
from tests.oracles import corruptions as oracle

from penultimate import RequestError
from penultimate.data.corruptions import SEVERITIES, TITLES, corrupt
from penultimate.data.corruptions.filters import disc, enlarged
from penultimate.data.corruptions.lengths import SIDE
from penultimate.data.corruptions.randomness import generators
from penultimate.data.corruptions.weather import ice

DRAWN = (*oracle.PARAMETERS,)
NOT_GROWING = ("glass_blur", "elastic_transform", "frost", "snow")
RANDOM = {
    *("gaussian_noise", "shot_noise", "impulse_noise", "glass_blur", "motion_blur"),
    *("snow", "frost", "fog", "elastic_transform"),
}


def picture(side: int, seed: int = 0, width: int | None = None) -> np.ndarray:
    """Coloured shapes on a gradient: edges, flat areas, pure grey, black and white."""
    random = np.random.default_rng(seed)
    width = width or side
    y, x = np.mgrid[:side, :width] / side
    image = np.stack([255 * y, 128 + 100 * np.sin(9 * x), 200 * (1 - x) + 30 * y], -1)
    for _ in range(12):
        cy, cx, r = random.uniform(0.1, 0.9), random.uniform(0, width / side), random.uniform(0.03, 0.2)
        image[(y - cy) ** 2 + (x - cx) ** 2 < r**2] = random.integers(0, 256, 3)
    image[: side // 6, : side // 6] = 0
    image[: side // 6, side // 6 : side // 3] = 255
    image[side // 6 : side // 4, : side // 6] = 90
    return np.clip(image, 0, 255).astype(np.uint8)


def agrees(ours: np.ndarray, levels: np.ndarray, slack: float = 0.01, share: float = 0) -> None:
    """The truncated levels, or one beside them where a level lies within `slack` of a whole number.

    `share` of the values may be one off besides: where a step before the last truncates too.
    """
    levels = np.clip(levels, 0, 255)
    off = np.abs(ours.astype(float) - np.floor(levels))
    assert off.max() <= 1
    excused = np.abs(levels - np.rint(levels)) < slack
    assert ((off > 0) & ~excused).mean() <= share


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in DRAWN if name != "frost"])
def test_at_224_pixels_it_is_the_published_definition(name: str) -> None:
    image = picture(SIDE)
    severities = (2, 5) if name in ("glass_blur", "brightness", "fog") else SEVERITIES
    for severity in severities:
        (draw,) = generators(3, name, severity, [11])
        parameters = oracle.PARAMETERS[name][severity - 1]
        levels = getattr(oracle, name)(image.astype(np.float64), parameters, draw)
        ours = corrupt(image[None], name, severity, seed=3, indices=[11])[0]
        # A place that float32 rounds by 1e-5 pixels takes 0.01 levels more or less at a sharp edge.
        slack = 0.05 if name == "elastic_transform" else 0.01
        agrees(ours, levels, slack, 0.001 if name in ("glass_blur", "snow") else 0)


def test_frost_is_the_published_mixture_with_a_texture_of_ours() -> None:
    image = picture(SIDE)
    for severity, (kept, added) in enumerate(oracle.PARAMETERS["frost"], 1):
        texture = ice(generators(0, "frost", severity, [0]), SIDE, SIDE)[0]
        agrees(corrupt(image[None], "frost", severity)[0], kept * image + added * 255 * texture)
    assert texture.min() >= 0.2
    assert texture.max() <= 1
    assert texture.std() > 0.05
    assert "procedural" in TITLES["frost"]


@pytest.mark.parametrize("side", [24, 32, 112, 299])
def test_lengths_are_shares_of_the_shorter_side(side: int) -> None:
    image, scale = picture(side, width=side + 8), side / SIDE
    levels = image.astype(np.float64)
    (draw,) = generators(0, "motion_blur", 4, [0])
    agrees(
        corrupt(image[None], "motion_blur", 4)[0],
        oracle.motion_blur(levels, (15 * scale, 12 * scale), draw),
        slack=0.5,
    )
    (draw,) = generators(0, "glass_blur", 4, [0])
    most = max(1, int(3 * scale + 0.5))
    glassy = oracle.glass_blur(levels, (1.1 * scale, most, 2), draw)
    agrees(corrupt(image[None], "glass_blur", 4)[0], glassy, share=0.002)


def covered(radius: float, y: int, x: int) -> float:
    """The area that a disc about (0, 0) shares with the pixel about (y, x), by thin strips."""
    strips = x - 0.5 + (np.arange(2000) + 0.5) / 2000
    half = np.sqrt(np.clip(radius**2 - strips**2, 0, None))
    return float(np.clip(np.minimum(half, y + 0.5) - np.maximum(-half, y - 0.5), 0, None).mean())


@pytest.mark.parametrize("side", [24, 64, 448])
@pytest.mark.parametrize("severity", [1, 2, 3, 5])
def test_a_defocused_point_covers_a_disc(side: int, severity: int) -> None:
    radius = oracle.PARAMETERS["defocus_blur"][severity - 1][0] * side / SIDE
    kernel = disc(oracle.PARAMETERS["defocus_blur"][severity - 1][0], 0.5, side / SIDE)
    reach = len(kernel) // 2
    assert reach + 0.5 >= radius > reach - 0.5
    shares = [[covered(radius, y - reach, x - reach) for x in range(len(kernel))] for y in range(len(kernel))]
    np.testing.assert_allclose(kernel, np.array(shares) / np.sum(shares), atol=0.01 / radius)


@pytest.mark.parametrize("shape", [(40, 40), (31, 47)])
@pytest.mark.parametrize("factor", [1.0, 1.07, 1.5, 3, 4.5])
def test_enlarging_is_scipys_zoom(shape: tuple[int, int], factor: float) -> None:
    random = np.random.default_rng(1)
    images = random.random((2, *shape, 3)).astype(np.float32)
    ours = enlarged(images, factor)
    tops = [(side - -(-side // factor)) // 2 for side in shape]
    for image, own in zip(images, ours, strict=True):
        kept = [int(np.ceil(side / factor)) for side in shape]
        tops = [(side - k) // 2 for side, k in zip(shape, kept, strict=True)]
        crop = image[tops[0] : tops[0] + kept[0], tops[1] : tops[1] + kept[1]]
        grown = ndimage.zoom(crop.astype(float), (factor, factor, 1), order=1)
        start = [(g - side) // 2 for g, side in zip(grown.shape, shape, strict=False)]
        expected = grown[start[0] : start[0] + shape[0], start[1] : start[1] + shape[1]]
        np.testing.assert_allclose(own, expected, atol=1e-5)


@pytest.mark.parametrize("name", TITLES)
def test_an_examples_corruption_is_its_own(name: str) -> None:
    """Split, order, the other images and repetition change nothing; seed and severity do."""
    images = np.stack([picture(24, seed) for seed in range(6)])
    before = images.copy()
    whole = corrupt(images, name, 4, seed=2, indices=range(100, 106))
    parts = [corrupt(images[i : i + 2], name, 4, 2, [100 + i, 101 + i]) for i in (4, 0, 2)]
    np.testing.assert_array_equal(np.concatenate([parts[1], parts[2], parts[0]]), whole)
    np.testing.assert_array_equal(images, before)
    assert whole.dtype == np.uint8
    assert whole.shape == images.shape
    assert (corrupt(images, name, 5, 2, range(100, 106)) != whole).any()
    for changed in (corrupt(images, name, 4, 3, range(100, 106)), corrupt(images, name, 4, 2)):
        assert (changed != whole).any() == (name in RANDOM)


@pytest.mark.parametrize("name", TITLES)
@pytest.mark.parametrize("shape", [(8, 8), (9, 40), (41, 23)])
def test_any_size_and_extreme_images_are_taken(name: str, shape: tuple[int, int]) -> None:
    flat = np.stack([np.full((*shape, 3), level, np.uint8) for level in (0, 255, 127)])
    for severity in SEVERITIES:
        with np.errstate(all="raise", under="ignore"):
            changed = corrupt(flat, name, severity)
        assert changed.shape == flat.shape
    if name in ("contrast", "defocus_blur", "zoom_blur", "pixelate", "elastic_transform"):
        np.testing.assert_array_equal(changed, flat)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((picture(24)[None], "fogg", 1), r"unknown corruption 'fogg'\. Did you mean 'fog'"),
        ((picture(24)[None], "fog", 6), "a severity is a whole number from 1 to 5, not 6"),
        ((picture(24)[None], "fog", True), "not True"),
        ((picture(24), "fog", 1), r"uint8 array \[n h w 3\]; these are uint8 \[24, 24, 3\]"),
        ((picture(24)[None] / 255, "fog", 1), "these are float64"),
        (
            (picture(24)[None, ..., :1], "fog", 1),
            "grey ones repeat their channel.; these are 24 x 24 with 1 channels",
        ),
        ((picture(24)[None, :7], "fog", 1), "at least 8 x 8 pixels .*; these are 7 x 24"),
        ((picture(24)[None], "fog", 1, 0, [1, 2]), "indices name each of the 1 images"),
        ((picture(24)[None], "fog", 1, 0, [-1]), "from 0 up"),
        (([1], "fog", 1), "these are list"),
        ((picture(24)[None], "fog", 1.0), "from 1 to 5, not 1.0"),
    ],
)
def test_what_cannot_be_corrupted_is_said(arguments: tuple, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        corrupt(*arguments)
