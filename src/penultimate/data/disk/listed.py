"""Images that stay on disk: each batch is decoded when it is asked for, as one network wants it.

What a study's `data` step leaves of such a data set:

FOLDER/listing.json            where the data set lies, and which of its images cannot be read; sealed
FOLDER/manifest.json, *.npy    of those that can be read a small picture each (see `data.images`)
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from penultimate.data.disk.loading import decoded
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import (
    ChannelStatistics,
    ImageSet,
    Manifest,
    Transform,
    prepare_folder,
    save_images,
)
from penultimate.data.listing import Listing
from penultimate.data.readers.copies import exact_copies
from penultimate.data.readers.located import Located, located
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import canonical_json, digest_bytes, read_sealed, write_sealed

LISTING = "listing.json"
SCHEMA = 1
SIDE = 72
"""Pixels of a side of a small picture."""
_PICTURE = Preparation(SIDE, SIDE, "bilinear", ChannelStatistics((0.0,) * 3, (1.0,) * 3))
NAMED = 10
"""Of the images that cannot be read that many are named with the reason."""


@dataclass(frozen=True)
class ListedImages:
    """`Images` of a listing: batches uint8 [n crop crop 3], resized and cropped as the preparation says.

    EXIF rotations are applied. `workers` processes decode (0: this one). Asking for a batch raises
    DamagedFileError for an image that cannot be read.
    """

    listing: Listing
    preparation: Preparation
    workers: int = 0

    @property
    def labels(self) -> np.ndarray:
        return self.listing.labels

    @property
    def ids(self) -> np.ndarray:
        return self.listing.ids

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.listing.class_names

    def __len__(self) -> int:
        return len(self.listing)

    @property
    def digest(self) -> str:
        """sha256 of the listing's content and of how it is resized and cropped."""
        return digest_bytes(canonical_json([self.listing.digest, self.preparation.geometry]).encode())

    def batches(
        self, size: int, order: np.ndarray | None = None, transform: Transform | None = None
    ) -> Iterator[tuple[Tensor, np.ndarray]]:
        """Batches in the given order or, without one, as listed, with the positions of their images."""
        listing = self.listing if order is None else self.listing.subset(order)
        for batch in decoded(listing, [self.preparation], size, self.workers):
            for _, why in batch.left_out:
                raise DamagedFileError(f"{why}; it could be read when the study began")
            pixels = batch.prepared(self.preparation)
            places = batch.rows if order is None else order[batch.rows]
            yield pixels if transform is None else transform(pixels), places

    def subset(self, indices: Sequence[int] | slice | np.ndarray) -> ListedImages:
        """Return the images at these positions (a slice, positions or a mask)."""
        return replace(self, listing=self.listing.subset(indices))

    def in_memory(self) -> ImageSet:
        """Return all of them, decoded."""
        side = self.preparation.crop
        images = np.empty((len(self), side, side, 3), np.uint8)
        for batch, places in self.batches(64):
            images[places] = batch.numpy()
        return ImageSet(images, self.labels, self.ids, self.class_names)


@dataclass(frozen=True)
class ListingNotes:
    """What was found while a data set was listed.

    left_out   the images of each split that cannot be read, up to NAMED, with the reasons
    remarks    what is not read of others
    copies     which images are copies of each other, in sentences
    images     how many there are to be used
    """

    manifest: Manifest
    left_out: dict[str, list[str]]
    remarks: dict[str, list[str]]
    copies: list[str]
    images: dict[str, int]


def leave_listing(
    found: Located,
    folder: Path,
    draw: int,
    progress: Callable[[dict[str, object]], None],
    reading: Mapping[str, Any] | None = None,
) -> ListingNotes:
    """Decode every image once and leave in a folder what this module says.

    Images that cannot be read are left out, and so are copies where `reading` drops them; no label is
    shifted. However many images there are, a batch of them is in memory. Raises RequestError if none can be
    read, or a split has none.
    """
    reading = reading or {}
    copies = exact_copies(found.splits)
    dropped = copies.left_out() if reading.get("copies") == "drop" else {}
    notes = ListingNotes({}, {}, {}, copies.notes(), {})
    lacking: dict[str, list[int]] = {}
    prepare_folder(folder)
    for split, listing in found.splits.items():
        without = dropped.get(split, np.arange(0))
        single = np.delete(np.arange(len(listing)), without)
        rows, reasons, remarks = [np.arange(0)], list[str](), dict[str, list[int]]()
        lacking[split] = without.tolist()
        with tempfile.TemporaryFile(dir=folder) as pictures:
            for batch in decoded(listing.subset(single), [_PICTURE], workers=0):
                pictures.write(np.ascontiguousarray(batch.images[_PICTURE.geometry]).data)
                rows.append(single[batch.rows])
                lacking[split] += [int(single[row]) for row, _ in batch.left_out]
                reasons += [why for _, why in batch.left_out]
                for row, what in batch.remarks:
                    remarks.setdefault(what, []).append(int(single[row]))
                progress({"dataset": found.name, "split": split, "images": batch.stop})
            kept = listing.subset(np.concatenate(rows))
            if not len(kept):
                why = f"no image of the {split} split is there, in '{found.where}'"
                if len(listing):
                    first = reasons[0] if reasons else "each is a copy of another, and left out"
                    why = f"none of {len(listing)} {split} images can be used; {first}"
                raise RequestError(f"data '{found.name}': {why}")
            pictures.flush()
            pixels = np.memmap(pictures, np.uint8, "r", shape=(len(kept), SIDE, SIDE, 3))
            small = ImageSet(pixels, kept.labels, kept.ids, kept.class_names)
            manifest = save_images(folder, split, small, name=found.name, draw=draw)
        notes.manifest.update(manifest)
        notes.images[split] = len(kept)
        if reasons:
            notes.left_out[split] = _named(reasons)
        if remarks:
            notes.remarks[split] = [
                f"{len(of):,} of {len(listing):,} images {what}; the first is {listing.name(of[0])}"
                for what, of in remarks.items()
            ]
    facts = {"name": found.name, "where": found.where, "splits": [*found.asked], "reading": {**reading}}
    left_out = {split: sorted(those) for split, those in lacking.items() if those}
    write_sealed(folder / LISTING, {**facts, "content": found.fingerprint, "left_out": left_out}, SCHEMA)
    if dropped and notes.copies:
        count = sum(map(len, dropped.values()))
        notes.copies.append(
            f"of these copies {count:,} are left out: all but one of each, and all {copies.differing}"
        )
    return notes


def _named(reasons: list[str]) -> list[str]:
    more = len(reasons) - NAMED
    return [*reasons[:NAMED], *([f"and {more} more"] if more > 0 else [])]


@dataclass(frozen=True)
class ListedSplits:
    """What `leave_listing` left in a folder: the splits of a data set that has not changed since."""

    found: Located
    left_out: Mapping[str, Sequence[int]]

    @classmethod
    def of(cls, folder: Path) -> ListedSplits:
        """Look at every file of the data set, once for all splits; raises RequestError if it has changed."""
        facts = read_sealed(folder / LISTING, SCHEMA)
        found = located(facts["name"], facts["where"], tuple(facts["splits"]), facts.get("reading"))
        if found.fingerprint != facts["content"]:
            raise RequestError(
                f"the images in '{facts['where']}' were changed since the study began; start it again"
            )
        return cls(found, facts["left_out"])

    def images(self, split: str, preparation: Preparation, workers: int = 0) -> ListedImages:
        """Return a split as a network wants it."""
        return ListedImages(self.listing(split), preparation, workers)

    def listing(self, split: str) -> Listing:
        """Return the images of a split that can be read."""
        listing = self.found.splits[split]
        return listing.subset(np.delete(np.arange(len(listing)), self.left_out.get(split, [])))


def listed_images(folder: Path, split: str, preparation: Preparation, workers: int = 0) -> ListedImages:
    """Return a split as a network wants it, from what `leave_listing` left
    in a folder (see `ListedSplits`).
    """
    return ListedSplits.of(folder).images(split, preparation, workers)
