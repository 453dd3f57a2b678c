"""A data set: its splits, as images with labels and ids, and a card that says what they are.

    penultimate check mine.py
    penultimate run smoke --plugin mine.py --set targets=gratings,digits_smoke
    penultimate run smoke --plugin mine.py --set source=gratings --set "measure=accuracy, linear"

A target has the splits train and test; a data set that networks are trained on has a holdout too. Every id
occurs in one split only, which shows that no test image is trained on. Images that never change ignore the
draw.

A file that it reads must be declared, by its path beside this one, as in
@register.dataset(files=("images.npz",)), so that results are computed again when it changes.
"""

import numpy as np

from penultimate import register
from penultimate.data import DatasetCard, ImageSet

CLASSES = ("level", "rising", "upright", "falling")


@register.dataset
def gratings(draw):
    """Coloured gratings in four directions, with noise."""
    generator = np.random.default_rng([draw, 7])
    down, across = np.mgrid[:24, :24]
    first = 0
    for split, size in gratings.card.sizes.items():
        labels = np.arange(size) % len(CLASSES)
        angles = (labels * np.pi / 4)[:, None, None]
        period, phase = generator.uniform(4, 9, (2, size, 1, 1))
        waves = np.sin((np.cos(angles) * down + np.sin(angles) * across) * 2 * np.pi / period + phase)
        colours = generator.uniform(0.3, 1, (size, 1, 1, 3))
        pixels = 128 + 60 * waves[..., None] * colours + generator.normal(0, 20, (size, 24, 24, 3))
        images = pixels.clip(0, 255).astype(np.uint8)
        yield split, ImageSet(images, labels, np.arange(first, first + size), CLASSES)
        first += size


gratings.card = DatasetCard(
    name="gratings",
    title="Gratings",
    classes=len(CLASSES),
    sizes={"train": 320, "holdout": 80, "test": 160},
    accuracy="top1",  # or "mean_per_class"; "auc" where labels are [n l]: 1, 0, or -1 for uncertain
    relation="a factor orthogonal to the pretraining classes",
    licence="public domain",
    citation="made here",
)
