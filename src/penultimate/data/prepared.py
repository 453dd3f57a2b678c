"""A prepared copy of a data set: its images resized once, in a few large files beside their names and labels.

FOLDER/prepared.json       what it is a copy of, how it was resized, the sha256 of its files; sealed
FOLDER/SPLIT-(index).npz   of each image that could be read where it lies, its label, id and name
FOLDER/SPLIT-00000.bin     512 images one after another: JPEGs, or the bytes of their pixels
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.data.entries import ENTRIES
from penultimate.data.listing import Listing
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import canonical_json, digest_bytes, read_sealed

MADE = "prepared.json"
SCHEMA = 2
SHARD = 512
"""Images of a file."""


@dataclass(frozen=True)
class Packed:
    """A `Source`: images one after another in files of SHARD each.

    stops     int64 [n], in its file where each ends
    sizes     int64 [n 2], its height and width
    starts    int64 [n], where each begins
    raw       whether they are the bytes of pixels; else they are JPEGs
    """

    files: tuple[Path, ...]
    names: tuple[str, ...]
    shards: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    sizes: np.ndarray
    raw: bool

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, place: int) -> bytes | np.ndarray:
        path, start, stop = self.files[self.shards[place]], int(self.starts[place]), int(self.stops[place])
        try:
            with path.open("rb", buffering=0) as file:
                content = os.pread(file.fileno(), stop - start, start)
        except OSError as error:
            raise DamagedFileError(f"'{path}' cannot be read ({error.strerror})") from None
        if len(content) != stop - start:
            raise DamagedFileError(f"'{path}' ends within '{self.names[place]}'")
        if not self.raw:
            return content
        return np.frombuffer(content, np.uint8).reshape(*self.sizes[place].tolist(), 3)

    def name(self, place: int) -> str:
        return self.names[place]


@dataclass(frozen=True)
class Copy:
    """What a prepared copy says of itself.

    name, where   the data set that it is a copy of, and where that lay
    side          pixels of the shorter side, of images that had more
    quality       of the JPEGs; 0: the bytes of pixels
    sources       of each split the `source_digest` of its listing
    files         of each split the sha256 and bytes of its files, by name: the index, then the images
    left_out      of each split the images that could not be read, and why
    """

    folder: Path
    name: str
    where: str
    side: int
    quality: int
    sources: dict[str, str]
    whole: bool = False
    files: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    left_out: dict[str, list[list[str]]] = field(default_factory=dict)
    class_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What made it."""
        what = f"{self.name} --root {self.where}" if self.name in ENTRIES else self.where
        form = " --raw" if not self.quality else ""
        return f"penultimate data prepare {what} --to {self.folder} --size {self.side}{form}"

    @property
    def told(self) -> list[str]:
        """What a reader of results must know of it."""
        form = f"JPEG of quality {self.quality}" if self.quality else "uncompressed"
        lacking = [
            f"{len(images):,} {split} images could not be read, '{images[0][0]}' among them"
            for split, images in self.left_out.items()
            if images
        ]
        return [*self.notes, f"a prepared copy, the shorter side at {self.side} pixels, {form}", *lacking]

    def listing(self, split: str) -> Listing:
        """A split; raises DamagedFileError where a file is not what was written."""
        for name, facts in self.files[split].items():
            path = self.folder / name
            there = path.stat().st_size if path.is_file() else None
            if there != facts["bytes"]:
                found = "is gone" if there is None else f"has {there:,} bytes of {facts['bytes']:,}"
                raise DamagedFileError(f"'{path}' {found}; make it anew: {self.command}")
        first, *shards = sorted(self.files[split])
        index = self._read(first, self.files[split][first]["sha256"])
        names = bytes(index["names"]).decode(errors="surrogateescape").split("\0")
        places = {name: index[name] for name in ("shards", "starts", "stops", "sizes")}
        paths = tuple(self.folder / name for name in shards)
        source = Packed(paths, tuple(names), raw=not self.quality, **places)
        return Listing(
            source,
            np.arange(len(names)),
            index["labels"],
            index["ids"],
            self.class_names,
            cropped=bool(index["cropped"]),
        )

    def _read(self, index: str, digest: str) -> dict[str, np.ndarray]:
        path = self.folder / index
        content = path.read_bytes()
        if digest_bytes(content) != digest:
            raise DamagedFileError(f"'{path}' is not what was written; make it anew: {self.command}")
        with np.load(io.BytesIO(content)) as arrays:
            return dict(arrays)


def file_of(split: str, shard: int | None) -> str:
    """The file of so many images of a split, or its index, which is sorted before them.

    >>> file_of("train", 3), file_of("fog/3", None)
    ('train-00003.bin', 'fog_3-(index).npz')
    """
    stem = split.replace("/", "_")
    return f"{stem}-(index).npz" if shard is None else f"{stem}-{shard:05}.bin"


def source_digest(listing: Listing) -> str:
    """sha256 of the names, labels and classes of the images of a listing, and of the sizes of its files."""
    names = [listing.name(row) for row in range(len(listing))]
    sizes = [path.stat().st_size if path.is_file() else -1 for path in listing.source.files]
    parts = [names, listing.labels.tolist(), list(listing.class_names), sizes]
    return digest_bytes(canonical_json(parts).encode(errors="replace"))


def read_copy(folder: Path) -> Copy | None:
    """The prepared copy in a folder, whole or not; None where there is none. Raises DamagedFileError."""
    if not (folder / MADE).is_file():
        return None
    facts = read_sealed(folder / MADE, SCHEMA, mend="prepare it again, into an empty folder")
    for name in ("class_names", "notes"):
        facts[name] = tuple(facts[name])
    return Copy(folder, **facts)


def expect_matching(copy: Copy, split: str, source: Listing | None) -> None:
    """Raise RequestError where a split of a copy is not of these images."""
    if source is None or copy.sources.get(split) != source_digest(source):
        raise RequestError(
            f"'{copy.folder}' is a prepared copy that does not match its source: the {split} images in"
            f" '{copy.where}' were changed since; make another: {copy.command}"
        )
