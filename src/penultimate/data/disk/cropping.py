"""What a network is shown of an image file in training: a random part of it, resized to a square.

Pixel for pixel torchvision's RandomResizedCrop of a PIL image. The part that is drawn for an image depends
on the seed, the epoch and the image's place in its listing alone: on no batch, no worker and no rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image

from penultimate.data.decoding import middle_square
from penultimate.data.disk.preparation import Geometry
from penultimate.data.listing import Listing
from penultimate.data.seeding import derived_generator
from penultimate.errors import DamagedFileError, RequestError

ASPECTS = (3 / 4, 4 / 3)
"""Between which the width of a part lies, relative to its height."""
TRIES = 10
"""Draws of a part that does not fit into the image, before its middle is taken."""
Box: TypeAlias = tuple[int, int, int, int]
"""Top, left, height and width in pixels."""
_LOG_ASPECTS = torch.log(torch.tensor(ASPECTS))


def random_box(width: int, height: int, area: tuple[float, float], generator: torch.Generator) -> Box:
    """Return a part of an image: its share of the area is uniform on `area`,
    the logarithm of its aspect on ASPECTS.

    Of parts that do not fit, TRIES are drawn; then it is the largest in the middle with such an aspect. The
    draws are torchvision's, in its order.

    Szegedy et al., CVPR 2015, section 6.

    >>> random_box(90, 70, (0.1, 1.0), torch.Generator().manual_seed(0))
    (12, 16, 54, 63)
    """
    for _ in range(TRIES):
        share = torch.empty(1).uniform_(*area, generator=generator).item()
        low, high = _LOG_ASPECTS
        aspect = torch.exp(torch.empty(1).uniform_(low, high, generator=generator)).item()
        w = round(math.sqrt(height * width * share * aspect))
        h = round(math.sqrt(height * width * share / aspect))
        if 0 < w <= width and 0 < h <= height:
            top = int(torch.randint(0, height - h + 1, (1,), generator=generator))
            return top, int(torch.randint(0, width - w + 1, (1,), generator=generator)), h, w
    w, h = width, height
    if width / height < ASPECTS[0]:
        h = round(width / ASPECTS[0])
    elif width / height > ASPECTS[1]:
        w = round(height * ASPECTS[1])
    return (height - h) // 2, (width - w) // 2, h, w


def box_of(width: int, height: int, area: tuple[float, float], seed: int, epoch: int, row: int) -> Box:
    """Return the part that image `row` of a listing is shown in an epoch."""
    return random_box(width, height, area, derived_generator("crop", seed, epoch, row))


def cropped(image: Image.Image, box: Box, size: int) -> UInt8[np.ndarray, "size size 3"]:
    """Return a part of an image, resized to `size` pixels a side: bilinear, with antialiasing."""
    top, left, height, width = box
    part = image.crop((left, top, left + width, top + height))
    return np.asarray(part.resize((size, size), Image.Resampling.BILINEAR))


@dataclass(frozen=True)
class ShownCrops:
    """Reads what a network is shown in training of images of a listing: what a worker is sent.

    area       between which shares of an image the part of it lies that is shown; None: its middle, as
               `geometry` says, which is what networks are tested on
    """

    listing: Listing
    geometry: Geometry
    area: tuple[float, float] | None
    seed: int

    def __call__(self, piece: tuple[int, np.ndarray]) -> UInt8[np.ndarray, "n size size 3"]:
        """Return the images at these places [n] in an epoch; raises DamagedFileError for one
        that cannot be read.
        """
        epoch, rows = piece
        size = self.geometry[1]
        squares = np.empty((len(rows), size, size, 3), np.uint8)
        for place, row in enumerate(rows.tolist()):
            try:
                image, _ = self.listing.colours(row)
                if self.area is None:
                    squares[place] = middle_square(Path(self.listing.name(row)), image, *self.geometry)
                else:
                    box = box_of(*image.size, self.area, self.seed, epoch, row)
                    squares[place] = cropped(image, box, size)
            except (DamagedFileError, RequestError) as error:
                raise DamagedFileError(
                    f"{error}; put it in order and start again: the training goes on from its last checkpoint"
                ) from None
        return squares
