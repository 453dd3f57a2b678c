"""Image processors of transformers, read as preparations: against plain arithmetic, and refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from penultimate.data.disk.preparation import Preparation
from penultimate.errors import RequestError
from penultimate.networks.processors import expect_alike, of_picture, smooth, translated

USUAL = {
    "do_resize": True,
    "size": {"shortest_edge": 40},
    "do_center_crop": True,
    "crop_size": {"height": 33, "width": 33},
    "resample": 3,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.25, 0.3],
}


class Literal:
    """What transformers' processors do with Pillow and NumPy, step by step."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.said = said

    def __call__(self, images: Image.Image, return_tensors: str) -> dict[str, np.ndarray]:
        said, (width, height) = self.said, images.size
        shortest = said["size"]["shortest_edge"]
        long = int(shortest * max(width, height) / min(width, height))
        sized = images.resize((shortest, long) if width < height else (long, shortest), said["resample"])
        pixels = np.asarray(sized).astype(np.float64)
        crop = said["crop_size"]["height"]
        top, left = (pixels.shape[0] - crop) // 2, (pixels.shape[1] - crop) // 2
        values = pixels[top : top + crop, left : left + crop] * said["rescale_factor"]
        values = (values - np.array(said["image_mean"])) / np.array(said["image_std"])
        return {"pixel_values": values.transpose(2, 0, 1)[None]}


@pytest.mark.parametrize("factor", [1 / 255, 1 / 127.5, 1.0])
@pytest.mark.parametrize("size", [(97, 131), (131, 97), (60, 60)])
def test_a_preparation_gives_the_numbers_of_its_processor(size: tuple[int, int], factor: float) -> None:
    said = {**USUAL, "rescale_factor": factor}
    prepared = translated(said)
    random = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    for picture in (Image.fromarray(random), smooth(*size)):
        theirs = Literal(said)(picture, "np")["pixel_values"]
        ours = of_picture(picture, prepared).numpy()
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-4 * factor * 255)
    expect_alike(Literal(said), prepared)


def test_an_odd_rest_of_pixels_is_cut_as_in_transformers() -> None:
    picture = smooth(97, 131)  # resized to 40 x 54: 21 rows beyond the crop
    floor = translated(USUAL)
    half = Preparation(40, 33, "bicubic", floor.statistics)
    assert (floor.geometry, half.geometry) == ((40, 33, "bicubic", False, True), (40, 33, "bicubic", False))
    top = translated({**USUAL, "crop_size": {"height": 31, "width": 31}})  # 23 rows: 11 above, or 12
    assert not torch.equal(of_picture(picture, top), of_picture(picture, replace(top, floor=False)))
    assert repr(floor) == repr(half)  # the identities of other networks do not change


def test_forms_of_sizes() -> None:
    plain = {**USUAL, "do_center_crop": False, "size": {"height": 24, "width": 24}, "resample": None}
    found = translated(plain)
    assert (found.resize, found.crop, found.interpolation, found.squash) == (24, 24, "bilinear", True)
    share = {**USUAL, "do_center_crop": None, "size": {"shortest_edge": 224}, "crop_pct": 0.875}
    assert translated(share).geometry == (256, 224, "bicubic", False, True)
    assert translated({**share, "size": {"shortest_edge": 384}}).geometry == (384, 384, "bicubic", True)
    bare = translated({**USUAL, "do_normalize": False, "crop_size": 40, "size": 40})
    assert (bare.crop, bare.statistics.mean, bare.statistics.std) == (40, (0.0,) * 3, (1.0,) * 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"do_flip_channel_order": True}, "not supported: do_flip_channel_order"),
        ({"do_pad": True}, "not supported: do_pad"),
        ({"rescale_offset": True}, "not supported: rescale_offset"),
        ({"resample": 4}, "Pillow's filter 4"),
        ({"do_resize": False}, "resizes no images"),
        ({"size": {"shortest_edge": 40, "longest_edge": 80}}, "squares are supported alone"),
        ({"size": {"height": 20, "width": 30}}, "squares are supported alone"),
        ({"do_center_crop": False}, "squares are supported alone"),
        ({"crop_size": {"height": 64, "width": 64}}, "a crop has 1 to 40 pixels"),
    ],
)
def test_what_no_preparation_does_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        translated({**USUAL, **change})


def test_a_processor_that_does_otherwise_than_it_says_is_refused() -> None:
    with pytest.raises(RequestError, match="prepares images in a way that its configuration does not"):
        expect_alike(Literal({**USUAL, "image_mean": [0.3, 0.4, 0.5]}), translated(USUAL))
