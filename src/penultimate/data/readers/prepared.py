"""A prepared copy of a data set: its images resized once, in a few large files beside their names and labels.

FOLDER/prepared.json       what it is a copy of, how it was resized, the sha256 of its files; sealed
FOLDER/SPLIT-(index).npz   of each image that could be read where it lies, its label, id and name
FOLDER/SPLIT-00000.bin     512 images one after another: JPEGs, or the bytes of their pixels
FOLDER/SPLIT-00000.json    what those are, and what they are copies of, by which a copy is mended; sealed
FOLDER/checked.json        the size and times at which each file was last found to have its digest; sealed

A split is compared with the digests of its files before any of its images is read. A file that has its size
and its times since it was last compared is taken to be whole; `data check` and `--verify` read all.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.data.listing import Listing
from penultimate.data.readers.entries import ENTRIES
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import (
    OtherVersionError,
    canonical_json,
    digest_bytes,
    digest_file,
    read_sealed,
    size_text,
    write_sealed,
)

MADE, CHECKED = "prepared.json", "checked.json"
SCHEMA = 2
SHARD = 512
"""Images of a file."""
SETTLED = 2.0
"""Seconds after which a change of a file shows in its times, however coarse the clock of its disk is."""
LONG = 4e9
"""The number of bytes above which a line says that they are being read, since that takes seconds."""


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
        where, folder = shlex.quote(self.where), shlex.quote(str(self.folder))
        what = f"{self.name} --root {where}" if self.name in ENTRIES else where
        form = " --raw" if not self.quality else ""
        return f"penultimate data prepare {what} --to {folder} --size {self.side}{form}"

    @property
    def remarks(self) -> list[str]:
        """What a reader of results must know of it."""
        form = f"JPEG of quality {self.quality}" if self.quality else "uncompressed"
        lacking = [
            f"{len(images):,} {split} images could not be read, '{images[0][0]}' among them"
            for split, images in self.left_out.items()
            if images
        ]
        return [*self.notes, f"a prepared copy, the shorter side at {self.side} pixels, {form}", *lacking]

    def listing(self, split: str) -> Listing:
        """Return a split; raises DamagedFileError where a file is not what was written."""
        self.expect_whole(split)
        first, *shards = sorted(self.files[split])
        with np.load(self.folder / first) as arrays:
            index = dict(arrays)
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

    def expect_whole(self, split: str, thorough: bool = False) -> None:
        """Compare the files of a split with their digests; raises DamagedFileError, naming what mends them.

        A `thorough` look reads every byte and notes nothing; another one leaves out files that were compared
        before and are of the size and times that they had then.
        """
        known = {} if thorough else _checked(self.folder)
        began = time.time() - SETTLED
        states = {name: _state(self.folder / name) for name in self.files[split]}
        for name, facts in self.files[split].items():
            state = states[name]
            if state is None or state[0] != facts["bytes"]:
                found = "is gone" if state is None else f"has {state[0]:,} bytes of {facts['bytes']:,}"
                raise DamagedFileError(f"'{self.folder / name}' {found}; to mend it: {self.command}")
        left = {
            name: facts["sha256"]
            for name, facts in self.files[split].items()
            if known.get(name) != [facts["sha256"], *(states[name] or ())]
        }
        size = sum(self.files[split][name]["bytes"] for name in left)
        if size > LONG:
            print(
                f"penultimate: {size_text(size)} of '{self.folder}' are compared with their digests",
                file=sys.stderr,
            )
        with ThreadPoolExecutor() as pool:
            for name, found in zip(
                left, pool.map(_digest, (self.folder / name for name in left)), strict=True
            ):
                if found != left[name]:
                    raise DamagedFileError(
                        f"'{self.folder / name}' is not what was written (its sha256 differs); to mend it:"
                        f" {self.command}"
                    )
        settled = {
            name: [digest, *state]
            for name, digest in left.items()
            if (state := states[name]) is not None and max(state[1:]) < began * 1e9
        }
        if settled and not thorough:
            with suppress(OSError, RequestError):  # every process compares a copy that it may not change
                write_sealed(self.folder / CHECKED, {"files": {**_checked(self.folder), **settled}}, SCHEMA)


def file_of(split: str, shard: int | None) -> str:
    """Return the file of that many images of a split, or its index, which is sorted before them.

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
    """Return the prepared copy in a folder, whether whole or not, or None if the folder holds no copy.

    Raises DamagedFileError, naming the command that mends it, where what it says of itself cannot be read or
    is gone though its images are there.
    """
    if not (folder / MADE).is_file():
        if folder.is_dir() and any(any(folder.glob(of)) for of in ("*-(index).npz", "*-?????.bin")):
            raise DamagedFileError(f"'{folder / MADE}' is gone; to write it again: {_command_for(folder)}")
        return None
    try:
        facts = read_sealed(folder / MADE, SCHEMA, mend="prepare it again, into an empty folder")
        for name in ("class_names", "notes"):
            facts[name] = tuple(facts[name])
        return Copy(folder, **facts)
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; to write it again: {_command_for(folder)}") from None


def expect_sound(places: Iterable[str | Path]) -> None:
    """Read every byte of those of these places that are prepared copies; raises DamagedFileError."""
    for place in places:
        copy = read_copy(Path(place).expanduser())
        if copy is not None and copy.whole:
            for split in copy.files:
                copy.expect_whole(split, thorough=True)


def _command_for(folder: Path) -> str:
    """Return the command that made a copy, as a file beside its images tells it."""
    for path in sorted(folder.glob("*.json")):
        with suppress(DamagedFileError, OtherVersionError, OSError, KeyError):
            facts = read_sealed(path, SCHEMA)
            return Copy(folder, facts["name"], facts["where"], facts["side"], facts["quality"], {}).command
    return f"penultimate data prepare DATA --to {shlex.quote(str(folder))} --size N"


def _checked(folder: Path) -> dict[str, list[object]]:
    """Return of each file that was compared with its digest: the digest, its size and its times then."""
    try:
        found: dict[str, list[object]] = read_sealed(folder / CHECKED, SCHEMA)["files"]
    except (OSError, DamagedFileError, OtherVersionError, KeyError):
        return {}
    return found


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return a file's size and the times of its content and of its entry: these nobody sets back."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _digest(path: Path) -> str:
    try:
        return digest_file(path)
    except OSError as error:
        raise DamagedFileError(f"'{path}' cannot be read ({error.strerror})") from None


def expect_matching(copy: Copy, split: str, source: Listing | None) -> None:
    """Raise RequestError where a split of a copy is not of these images."""
    if source is None or copy.sources.get(split) != source_digest(source):
        raise RequestError(
            f"'{copy.folder}' is a prepared copy that does not match its source: the {split} images in"
            f" '{copy.where}' were changed since; make another: {copy.command}"
        )
