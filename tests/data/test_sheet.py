"""Contact sheets: the tiles are the images themselves, captions fit their columns, sizes add up."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from penultimate.data import ImageSet, contact_sheet
from penultimate.data.world import sheet


def some_images(classes: int, channels: int = 3, names: tuple[str, ...] | None = None) -> ImageSet:
    pixels = np.random.default_rng(0).integers(0, 256, (4 * classes, 6, 6, channels), np.uint8)
    labels = np.arange(4 * classes) % classes
    return ImageSet(pixels, labels, np.arange(4 * classes), names or tuple(f"c{k}" for k in range(classes)))


def opened(png: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(png)) as image:
        assert image.format == "PNG"
        return np.asarray(image)


def test_tiles_are_the_images_enlarged() -> None:
    images = some_images(3)
    drawn = opened(contact_sheet([("Three", images)], columns=3, rows=2, zoom=4))
    height, width = drawn.shape[:2]
    assert width == 3 * (24 + sheet.GAP) - sheet.GAP + 2 * sheet.MARGIN
    for column in range(3):
        for row in range(2):
            tile = images.images[images.labels == column][row].repeat(4, 0).repeat(4, 1)
            top = height - sheet.MARGIN - (2 - row) * (24 + sheet.GAP) + sheet.GAP
            left = sheet.MARGIN + column * (24 + sheet.GAP)
            np.testing.assert_array_equal(drawn[top : top + 24, left : left + 24], tile)
