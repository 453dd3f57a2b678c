"""A pretraining data set of two crossing bars: sixteen classes, by where each of them lies."""

import numpy as np

from penultimate import register
from penultimate.data import DatasetCard, ImageSet

SIDE, PLACES = 24, 4
NAMES = tuple(f"row {row}, column {column}" for row in range(PLACES) for column in range(PLACES))


@register.dataset
def bars(draw):
    """A horizontal and a vertical bar on a noisy ground; the class says in which quarter each lies."""
    generator = np.random.default_rng([draw, 11])
    first = 0
    for split, size in bars.card.sizes.items():
        labels = np.arange(size) % len(NAMES)
        images = generator.integers(0, 120, (size, SIDE, SIDE, 3))
        for image, label in zip(images, labels, strict=True):
            row, column = (6 * place + generator.integers(0, 4) for place in divmod(label, PLACES))
            image[row : row + 2] += 120
            image[:, column : column + 2] += 120
        yield (
            split,
            ImageSet(images.clip(0, 255).astype(np.uint8), labels, np.arange(first, first + size), NAMES),
        )
        first += size


bars.card = DatasetCard(
    name="bars",
    title="Bars",
    classes=len(NAMES),
    sizes={"train": 320, "holdout": 64, "test": 160, "relearn": 64},
    accuracy="top1",
    relation="the pretraining classes",
    licence="public domain",
    citation="made here",
)
