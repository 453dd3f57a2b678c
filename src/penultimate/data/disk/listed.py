"""Images that stay on disk; each batch is decoded on request, as a network's preparation requires.

A study's `data` step leaves these files for such a data set:

FOLDER/listing.json            the place of the data set, and its unreadable images; sealed
FOLDER/manifest.json, *.npy    a small picture of each readable image (see `data.images`)
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
"""The side of a small picture in pixels."""
_PICTURE = Preparation(SIDE, SIDE, "bilinear", ChannelStatistics((0.0,) * 3, (1.0,) * 3))
NAMED = 10
"""The number of unreadable images that are named with the reason."""


@dataclass(frozen=True)
class ListedImages:
    """The `Images` of a listing, in batches uint8 [n crop crop 3] that are resized and cropped as prepared.

    EXIF rotations are applied. `workers` processes decode (0: this one). Reading a batch raises
    DamagedFileError for an unreadable image.
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
        """Return the sha256 of the listing's content and of the resizing and cropping."""
        return digest_bytes(canonical_json([self.listing.digest, self.preparation.geometry]).encode())

    def batches(
        self, size: int, order: np.ndarray | None = None, transform: Transform | None = None
    ) -> Iterator[tuple[Tensor, np.ndarray]]:
        """Yield batches with the positions of their images, in the given order or, by default, as listed."""
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
        """Return all images, decoded."""
        side = self.preparation.crop
        images = np.empty((len(self), side, side, 3), np.uint8)
        for batch, places in self.batches(64):
            images[places] = batch.numpy()
        return ImageSet(images, self.labels, self.ids, self.class_names)


@dataclass(frozen=True)
class Left:
    """The findings from listing a data set.

    left_out   the unreadable images of each split, up to NAMED, with the reasons
    remarks    remarks on content that is not read from other images
    copies     sentences on images that are copies of each other
    images     the number of usable images
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
) -> Left:
    """Decode every image once and write the files that this module describes.

    Unreadable images are left out, and so are copies if `reading` drops them; no label shifts. Only one batch
    of images is in memory at a time. Raises RequestError if no image of a split is present or readable.
    """
    reading = reading or {}
    copies = exact_copies(found.splits)
    dropped = copies.left_out() if reading.get("copies") == "drop" else {}
    left_out: dict[str, list[int]] = {}
    told: dict[str, list[str]] = {}
    remarked: dict[str, list[str]] = {}
    manifest: Manifest = {}
    prepare_folder(folder)
    counts: dict[str, int] = {}
    for split, listing in found.splits.items():
        rows = [np.arange(0)]
        without = dropped.get(split, np.arange(0))
        single = np.delete(np.arange(len(listing)), without)
        left_out[split] = without.tolist()
        remarks: dict[str, list[int]] = {}
        with tempfile.TemporaryFile(dir=folder) as pictures:
            for batch in decoded(listing.subset(single), [_PICTURE], workers=0):
                pictures.write(np.ascontiguousarray(batch.images[_PICTURE.geometry]).data)
                rows.append(single[batch.rows])
                left_out[split] += [int(single[row]) for row, _ in batch.left_out]
                told.setdefault(split, []).extend(why for _, why in batch.left_out)
                for row, what in batch.remarks:
                    remarks.setdefault(what, []).append(int(single[row]))
                progress({"dataset": found.name, "split": split, "images": batch.stop})
            kept = listing.subset(np.concatenate(rows))
            if not len(kept):
                why = f"no image of the {split} split is there, in '{found.where}'"
                if len(listing) and not len(single):
                    why = f"every image of the {split} split is a copy of another, and is left out"
                elif len(listing):
                    why = f"none of {len(listing)} {split} images can be read; {told[split][0]}"
                raise RequestError(f"data '{found.name}': {why}")
            pictures.flush()
            pixels = np.memmap(pictures, np.uint8, "r", shape=(len(kept), SIDE, SIDE, 3))
            small = ImageSet(pixels, kept.labels, kept.ids, kept.class_names)
            manifest = save_images(folder, split, small, name=found.name, draw=draw)
        counts[split] = len(kept)
        remarked[split] = [
            f"{len(of):,} of {len(listing):,} images {what}; the first is {listing.name(of[0])}"
            for what, of in remarks.items()
        ]
    where = {"name": found.name, "where": found.where, "splits": list(found.asked), "reading": dict(reading)}
    lacking = {split: sorted(those) for split, those in left_out.items() if those}
    write_sealed(folder / LISTING, {**where, "content": found.fingerprint, "left_out": lacking}, SCHEMA)
    named = {split: _named(reasons) for split, reasons in told.items() if reasons}
    notes = copies.told()
    if dropped and notes:
        count = sum(map(len, dropped.values()))
        notes.append(
            f"of these copies {count:,} are left out: all but one of each, and all of several classes"
        )
    return Left(manifest, named, {split: these for split, these in remarked.items() if these}, notes, counts)


def _named(reasons: list[str]) -> list[str]:
    more = len(reasons) - NAMED
    return [*reasons[:NAMED], *([f"and {more} more"] if more > 0 else [])]


@dataclass(frozen=True)
class ListedSplits:
    """The splits that `leave_listing` recorded in a folder, for a data set that has not changed since."""

    found: Located
    left_out: Mapping[str, Sequence[int]]

    @classmethod
    def of(cls, folder: Path) -> ListedSplits:
        """Check every file of the data set once for all splits; raises RequestError if any has changed."""
        facts = read_sealed(folder / LISTING, SCHEMA)
        found = located(facts["name"], facts["where"], tuple(facts["splits"]), facts.get("reading"))
        if found.fingerprint != facts["content"]:
            raise RequestError(
                f"the images in '{facts['where']}' have changed since the study began; start it again"
            )
        return cls(found, facts["left_out"])

    def images(self, split: str, preparation: Preparation, workers: int = 0) -> ListedImages:
        """Return a split with the preparation that a network requires."""
        listing = self.found.splits[split]
        kept = np.delete(np.arange(len(listing)), self.left_out.get(split, []))
        return ListedImages(listing.subset(kept), preparation, workers)


def listed_images(folder: Path, split: str, preparation: Preparation, workers: int = 0) -> ListedImages:
    """Return a split from the folder of `leave_listing`, prepared for a network (see `ListedSplits`)."""
    return ListedSplits.of(folder).images(split, preparation, workers)
