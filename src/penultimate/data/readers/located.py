"""The data sets of a study that lie on disk, published or a user's own: opened by name and place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.data.catalog import DatasetCard
from penultimate.data.listing import Files, Listing
from penultimate.data.readers.class_order import ClassOrder, in_class_order
from penultimate.data.readers.entries import ENTRIES
from penultimate.data.readers.opening import OpenedDataset, open_dataset
from penultimate.data.readers.places import is_table, read_place
from penultimate.data.readers.saved import is_saved
from penultimate.data.readers.walking import entries_of, images_below
from penultimate.errors import RequestError

SPLITS = ("train", "test")
"""What a study asks of a data set."""
HOLDOUT = "holdout"
HELD_OUT = 0.1
"""The share of the training images that is held out where a network is trained on images of your own."""


@dataclass(frozen=True)
class Located:
    """A data set at a place, under the name that the study gives it; nothing of it is decoded.

    `asked` are the splits that the study looks at: of a source that is no task, the training images need not
    even be listed. Where "holdout" is asked for, it is drawn from the training images.
    Classes are numbered in the `class_order`, where one is said.
    """

    name: str
    where: str
    asked: tuple[str, ...]
    opened: OpenedDataset
    class_order: ClassOrder = ()

    @cached_property
    def splits(self) -> Mapping[str, Listing]:
        """The listings of those splits that there are."""
        there = {split: self.opened.splits[split] for split in self.asked if split in self.opened.splits}
        if self.class_order:
            there = {split: in_class_order(self.name, of, self.class_order) for split, of in there.items()}
        if HOLDOUT in self.asked and HOLDOUT not in there and "train" in there:
            held = held_out(there["train"], HELD_OUT)
            there[HOLDOUT] = there["train"].subset(held)
            there["train"] = there["train"].subset(~held)
        return {split: there[split] for split in self.asked if split in there}

    @cached_property
    def note(self) -> str:
        """What a reader of results must know: how the splits came about, and what is not there."""
        lacking = (self.opened.shortfall(split) for split in self.splits if split in self.opened.splits)
        drawn = ""
        if HOLDOUT in self.splits and HOLDOUT not in self.opened.splits:
            count = len(self.splits[HOLDOUT])
            drawn = f"{count:,} of {count + len(self.splits['train']):,} training images are held out"
        return "; ".join(filter(None, (*self.opened.notes, *lacking, drawn))) or "splits as it has them"

    @cached_property
    def card(self) -> DatasetCard:
        """What studies and pages know of it, with the numbers of images that are there."""
        sizes = {split: len(listing) for split, listing in self.splits.items()}
        first = next(iter(self.splits.values()))
        classes = len(first.class_names)
        if self.opened.entry is not None:
            published = self.opened.entry.card
            classes = classes if self.class_order else published.classes
            return replace(published, name=self.name, classes=classes, sizes=sizes, note=self.note, source="")
        relation = f"images of your own: {self.note}"
        accuracy = "auc" if first.labels.ndim == 2 else self.opened.accuracy
        return DatasetCard(self.name, self.name, classes, sizes, accuracy, relation, "unknown", "", self.note)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the images' names and labels and of their files' sizes and times: changes as they do."""
        table = [
            [
                split,
                listing.names,
                listing.labels.tolist(),
                listing.class_names,
                [_state(file) for file in listing.source.files],
                *(() if listing.groups is None else (listing.groups.tolist(),)),
            ]
            for split, listing in self.splits.items()
        ]
        digest = hashlib.sha256()
        for piece in json.JSONEncoder(separators=(",", ":")).iterencode(table):  # it may have a million rows
            digest.update(piece.encode())
        return digest.hexdigest()


def located(
    name: str, where: str, asked: tuple[str, ...] = SPLITS, reading: Mapping[str, Any] | None = None
) -> Located:
    """Return the data set at a place, read as a study says (`Study.reading`).

    Raises RequestError, which says what is expected, if no data set is there.
    """
    said = (reading or {}).get("class_order", ())
    opened = open_whole if (reading or {}).get("whole") else open_dataset
    try:
        order = said if isinstance(said, str) else tuple(said)
        found = Located(name, where, asked, opened(name, where), order)
        listed = found.splits
    except RequestError as error:
        raise RequestError(f"data '{name}': {error}") from None
    if not listed:
        raise RequestError(
            f"data '{name}': {found.opened.title} has the splits {', '.join(found.opened.splits)}, but none"
            f" of {', '.join(asked)}"
        )
    return found


def open_whole(name: str, where: str) -> OpenedDataset:
    """Return every image below a folder as test images of one class, whatever folders they lie in.

    Of a published data set, a table or arrays, which say what is tested on, it is the test images with their
    classes. Raises RequestError for a folder without images.
    """
    place = read_place(where)
    if name in ENTRIES or not place.path.is_dir() or _says_more(place.path):
        return open_dataset(name, where)
    place.expect_only("images whose classes are not read")
    paths = tuple(images_below(place.path))
    if not paths:
        raise RequestError(f"'{place.path}' holds no images")
    order = np.arange(len(paths))
    listing = Listing(Files(place.path, paths), order, np.zeros(len(paths), np.int64), order, ("images",))
    notes = (f"all {len(paths):,} images in the folder, whatever their classes",)
    return OpenedDataset(name, name, "top1", {"test": listing}, notes)


def _says_more(path: Path) -> bool:
    """Return whether a folder holds arrays or tables, which say what its images are."""
    return is_saved(path) or any(
        entry.name.endswith(".npy") or is_table(Path(entry.path)) for entry in entries_of(path)
    )


def held_out(listing: Listing, share: float) -> np.ndarray:
    """Return which training images are held out: the share whose names have the smallest sha256,
    one at least.

    Raises RequestError where none would be left to train on.
    """
    count = max(1, round(share * len(listing)))
    if count >= len(listing):
        raise RequestError(f"{len(listing)} training images are too few to hold any out")
    texts = (f"{HOLDOUT}\0{name}".encode(errors="surrogateescape") for name in listing.names)
    digests = [hashlib.sha256(text).digest() for text in texts]
    held = np.zeros(len(listing), bool)
    held[sorted(range(len(listing)), key=digests.__getitem__)[:count]] = True
    return held


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0  # whoever reads it says so
    return found.st_size, found.st_mtime_ns
