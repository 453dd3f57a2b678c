"""A tiny world in memory: coloured squares whose class is their place."""

from __future__ import annotations

import numpy as np

from penultimate.data.images import ImageSet

TINY = "glyphnet(width=8, features=32)"


def squares(count: int, seed: int, classes: int = 4) -> ImageSet:
    random = np.random.default_rng(seed)
    images = random.integers(0, 90, (count, 24, 24, 3), dtype=np.uint8)
    labels = np.arange(count) % classes
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[2 + 12 * row : 10 + 12 * row, 2 + 12 * column : 10 + 12 * column] += 120
    return ImageSet(images, labels.astype(np.int64), np.arange(count), tuple("abcdefgh"[:classes]))
