"""The image processors of transformers, read as a `Preparation` and compared with what they do themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from penultimate.data.augmentation.transforms import normalise
from penultimate.data.decoding import Interpolation, middle_square
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.errors import RequestError

RESAMPLING: Mapping[int, Interpolation] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
"""Pillow's numbers for ways of resizing; the others are of no use for photographs."""
DONE = ("do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb")
"""The steps of a processor that a preparation has."""
FURTHER = ("rescale_offset", "include_top")
"""Settings of single processors that change the numbers in further ways."""
AT_LEAST_ONCE = 384
"""The size from which ConvNeXt's processor squashes an image and crops nothing."""
LEVELS = 3.0
"""The levels of 255 by which a processor's numbers may differ: torchvision and Pillow resize bytes so."""
LIKE = (97, 131)
"""The sides of the picture on which a preparation is compared with its processor."""


def translated(said: Mapping[str, Any]) -> Preparation:
    """Return what an image processor does, from its configuration.

    An image is resized by its shorter side and cropped in the middle, or squashed; x in 0..255 becomes
    (x f - mean) / std, f the processor's factor, which is (x / 255 - mean / (255 f)) / (std / (255 f)).

    Raise RequestError for steps that no preparation has, and for images that are not square.

    >>> said = {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, "resample": 3}
    >>> found = translated({**said, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "do_center_crop": True})
    >>> found.resize, found.crop, found.interpolation, found.squash
    (256, 224, 'bicubic', False)
    """
    others = [name for name, value in said.items() if name.startswith("do_") and value and name not in DONE]
    others += [name for name in FURTHER if said.get(name)]
    if others:
        raise RequestError(f"its image processor does what is not supported: {', '.join(sorted(others))}")
    filter_: Any = said.get("resample")
    resample = 2 if filter_ is None else int(filter_)
    if resample not in RESAMPLING:
        raise RequestError(f"its image processor resizes by Pillow's filter {resample}; known are 0 to 3")
    resize, crop, squash = _sizes(said)
    factor = float(said.get("rescale_factor", 1 / 255)) if said.get("do_rescale", True) else 1.0
    of_numbers = said.get("do_normalize", True)
    mean = tuple(said["image_mean"]) if of_numbers else (0.0,) * 3
    std = tuple(said["image_std"]) if of_numbers else (1.0,) * 3
    if not np.isclose(255 * factor, 1):
        mean, std = (tuple(value / (255 * factor) for value in each) for each in (mean, std))
    statistics = ChannelStatistics(tuple(map(float, mean)), tuple(map(float, std)))
    is_cropped = crop < resize or not squash
    return Preparation(resize, crop, RESAMPLING[resample], statistics, squash, floor=is_cropped)


def _sizes(said: Mapping[str, Any]) -> tuple[int, int, bool]:
    """Return the side that an image is resized to, that of the crop, and whether it is squashed."""
    size, crops = said.get("size"), said.get("do_center_crop", False)
    if not said.get("do_resize", True) or size is None:
        raise RequestError("its image processor resizes no images, which are of one size then; say crop=224")
    size = {"shortest_edge": size} if isinstance(size, int) else {k: v for k, v in dict(size).items() if v}
    if "longest_edge" in size or not size.keys() & {"shortest_edge", "height"}:
        raise RequestError(f"its image processor resizes to {size}; squares are supported alone")
    shortest: Any = size.get("shortest_edge")
    if shortest and (share := said.get("crop_pct")):
        of_middle = shortest < AT_LEAST_ONCE
        return (int(shortest / share), shortest, False) if of_middle else (shortest, shortest, True)
    squash = shortest is None
    sides: list[Any] = [size["height"], size["width"]] if squash else [shortest, shortest]
    crop: Any = said.get("crop_size") if crops else None
    ends = sides
    if crop is not None:
        ends = [crop, crop] if isinstance(crop, int) else [crop["height"], crop["width"]]
    if sides[0] != sides[1] or ends[0] != ends[1] or not (squash or crop):
        cut = f", cropped to {crop}" if crop else ""
        raise RequestError(f"its image processor makes images of {size}{cut}; squares are supported alone")
    return int(sides[0]), int(ends[0]), squash


def expect_alike(processor: Any, prepared: Preparation) -> None:
    """Raise RequestError if a processor makes of a smooth picture other numbers than the preparation does."""
    picture = smooth(*LIKE)
    theirs = torch.as_tensor(np.asarray(processor(images=picture, return_tensors="np")["pixel_values"]))
    ours = of_picture(picture, prepared)
    levels = 255 * torch.tensor(prepared.statistics.std)[:, None, None]
    if theirs.shape != ours.shape or float(((theirs - ours).abs() * levels).max()) > LEVELS:
        raise RequestError(
            f"its image processor, {type(processor).__name__}, prepares images in a way that its"
            " configuration does not say, and which is not supported"
        )


def smooth(width: int, height: int) -> Image.Image:
    """Return a picture whose colours change slowly."""
    across, down = np.linspace(0, 255, width)[None, :], np.linspace(0, 255, height)[:, None]
    channels = (across + 0 * down, 0 * across + down, (across + down) / 2)
    return Image.fromarray(np.stack(channels, -1).round().astype(np.uint8))


def of_picture(picture: Image.Image, prepared: Preparation) -> torch.Tensor:
    """Return a picture as a network is shown it, float [1 3 crop crop]."""
    square = middle_square(Path("a picture"), picture.convert("RGB"), *prepared.geometry)
    return normalise(torch.from_numpy(square.copy())[None], prepared.statistics)
