"""The data sets of the embedded world: callables from a draw to the images of their splits.

An image depends only on (data set or its family, draw, split, class, its number), not on the other classes,
the order of rendering or the number of threads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from penultimate.data.catalog import CARDS, DatasetCard, card
from penultimate.data.images import ImageSet
from penultimate.data.seeding import derived_generator
from penultimate.data.world.atlas import Atlas, Typefaces
from penultimate.data.world.nuisance import SIZE
from penultimate.data.world.tasks import GlyphTask, glyph_task


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Render on one thread, since the thread count changes how sums are split; restore it afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def render_split(task: GlyphTask, atlas: Atlas, draw: int, split: str, first_id: int = 0) -> ImageSet:
    """Return all images of one split: image j of class k is at position j K + k, so every prefix is balanced.

    >>> typefaces = Typefaces()
    >>> task = glyph_task("syllabics_smoke", typefaces)
    >>> len(render_split(task, Atlas(typefaces, task.glyphs), 0, "test"))
    96
    """
    count, classes = task.counts[split], len(task.classes)
    images = np.empty((count, classes, SIZE, SIZE, 3), np.uint8)
    for label, (name, glyphs) in enumerate(task.classes.items()):
        generator = derived_generator(task.family or task.name, draw, split, name)
        members = torch.randint(len(glyphs), (count,), generator=generator)
        masks = atlas.select(glyphs)[members]
        images[:, label] = task.render(masks, task.nuisances, generator).numpy()
    return ImageSet(
        images=images.reshape(-1, SIZE, SIZE, 3),
        labels=np.tile(np.arange(classes), count),
        ids=np.arange(first_id, first_id + count * classes),
        class_names=tuple(task.classes),
    )


@dataclass(frozen=True)
class GlyphWorld:
    """A data set of the world: called with a draw, it yields (split, images), one split after another.

    Called with a number of classes too, it draws that many of them, and as many images in all.
    """

    name: str

    @property
    def card(self) -> DatasetCard:
        return card(self.name)

    def __call__(self, draw: int, *, classes: int = 0) -> Iterator[tuple[str, ImageSet]]:
        with one_thread():
            typefaces = Typefaces()
            task = glyph_task(self.name, typefaces, classes)
            atlas = Atlas(typefaces, task.glyphs)
            first_id = 0
            for split in task.counts:
                images = render_split(task, atlas, draw, split, first_id)
                first_id += len(images)
                yield split, images


def __getattr__(name: str) -> GlyphWorld:
    """Return the data set of that name: `glyphs`, `syllabics`, ..."""
    if name not in CARDS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return GlyphWorld(name)
