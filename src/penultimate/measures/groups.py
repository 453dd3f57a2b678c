"""The groups of a task's images, such as their patients, by which intervals and tests treat them."""

from __future__ import annotations

from collections.abc import Iterator

from penultimate.measures.declaration import Pixels, Yield
from penultimate.measures.inputs import Arrays, Inputs, Number
from penultimate.registry import register


@register.measurement(
    version=1,
    per="study_target",
    needs=(Pixels("train"), Pixels("test")),
    yields=(
        Yield("groups", "count"),
        Yield("crossing_groups", "count"),
        Yield("crossing_images", "count"),
        Yield("test_groups", "points", ("ids", "groups")),
    ),
    several_labels=None,
    seconds=0.1,
)
def groups(inputs: Inputs) -> Iterator[Number | Arrays]:
    """The groups of images that a place names (`group='patient'`), and those that a split parts."""
    import numpy as np

    from penultimate.data.disk.listed import LISTING, ListedSplits

    folder = inputs.image_folder("test")
    splits = ListedSplits.of(folder) if (folder / LISTING).is_file() else None
    listings = {split: splits.listing(split) for split in ("train", "test")} if splits else {}
    named = {split: of.groups for split, of in listings.items() if of.groups is not None}
    if len(named) < 2:
        yield Number("crossing_groups", 0, "count", "test")
        return
    shared = np.intersect1d(named["train"], named["test"])
    for split, of in named.items():
        yield Number("groups", len(np.unique(of)), "count", split)
        yield Number("crossing_images", int(np.isin(of, shared).sum()), "count", split)
    yield Number("crossing_groups", len(shared), "count", "test")
    codes = np.unique(named["test"], return_inverse=True)[1]
    yield Arrays("test_groups", {"ids": listings["test"].ids, "groups": codes}, "test")
