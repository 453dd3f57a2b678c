"""Images whose shorter side is brought to that many pixels, and which are otherwise whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from penultimate.data.decoding import MOST_PIXELS
from penultimate.data.disk.loading import colours_of
from penultimate.data.listing import Listing
from penultimate.errors import RequestError


def shrunk(image: Image.Image, side: int) -> Image.Image:
    """Return the image with a shorter side of `side` pixels, bilinear with antialiasing;
    a smaller one as it is.

    Pixel for pixel torchvision's Resize. Raises RequestError for more than MOST_PIXELS.

    >>> shrunk(Image.new("RGB", (300, 200)), 100).size, shrunk(Image.new("RGB", (30, 20)), 100).size
    ((150, 100), (30, 20))
    """
    shorter = min(image.size)
    if shorter <= side:
        return image
    width, height = (int(side * length / shorter) for length in image.size)
    if width * height > MOST_PIXELS:
        raise RequestError(f"resized, it would be {width} x {height}, more than {MOST_PIXELS:,} pixels")
    return image.resize((width, height), Image.Resampling.BILINEAR)


@dataclass(frozen=True)
class Shrunk:
    """Reads images of a listing, shrunk: what a worker is sent."""

    listing: Listing
    side: int

    def __call__(self, rows: range) -> list[np.ndarray]:
        """uint8 [h w 3] of each; raises DamagedFileError for one that cannot be read."""
        images = (colours_of(self.listing, row)[0] for row in rows)
        return [np.array(shrunk(image, self.side)) for image in images]
