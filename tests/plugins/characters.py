"""The pretraining characters, each a class of its own, of few images."""

import dataclasses

from penultimate import register
from penultimate.data import DatasetCard
from penultimate.data.world.atlas import Atlas, Typefaces
from penultimate.data.world.tasks import glyph_task
from penultimate.data.world.world import one_thread, render_split

COUNTS = {"train": 2, "holdout": 1, "test": 2, "further_test": 1}


@register.dataset
def characters(draw):
    """As glyphs_512 draws them."""
    typefaces = Typefaces()
    task = dataclasses.replace(glyph_task("glyphs_512", typefaces), counts=COUNTS)
    atlas, first_id = Atlas(typefaces, task.glyphs), 0
    for split in COUNTS:
        with one_thread():
            images = render_split(task, atlas, draw, split, first_id)
        first_id += len(images)
        yield split, images


SIZES = {split: 512 * count for split, count in COUNTS.items()}
characters.card = DatasetCard("characters", "Characters", 512, SIZES, "top1", "none", "DejaVu", "DejaVu")
