"""Images that are copies of each other, byte for byte: in training and test, in two classes, or twice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penultimate.data.listing import BLOCK, Listing
from penultimate.errors import DamagedFileError, RequestError, counted
from penultimate.files import digest_bytes

ORDER = ("test", "validation", "holdout", "train")
"""The splits that copies are looked for in, and the order in which one of them is kept."""
TAIL = 4096
"""Bytes at the end of a file by which most files of one size are told apart."""
Place = tuple[str, int]
"""A split, and a row in it."""


@dataclass(frozen=True)
class Copies:
    """Groups of images that are equal, each with the images that are tested on first."""

    splits: Mapping[str, Listing]
    groups: tuple[tuple[Place, ...], ...]

    @property
    def differing(self) -> str:
        """What is said of copies that are labelled in two ways."""
        several = any(listing.labels.ndim > 1 for listing in self.splits.values())
        return "of different labels" if several else "of several classes"

    def left_out(self) -> dict[str, np.ndarray]:
        """Return the rows of each split to leave out so that one image of each group is kept.

        Of a group whose images are of different classes, or have different sets of labels, none is kept, for
        none of them is known to be right.
        """
        rows: dict[str, list[int]] = {split: [] for split in self.splits}
        for group in self.groups:
            for split, row in group[1:] if len({*map(self._label, group)}) == 1 else group:
                rows[split].append(row)
        return {split: np.array(sorted(these), np.int64) for split, these in rows.items()}

    def notes(self) -> list[str]:
        """Return what a reader must know, in sentences; none where there are no copies."""
        across: dict[Place | tuple[str, str], list[tuple[Place, Place]]] = {}
        within: dict[str, list[tuple[Place, Place]]] = {}
        mixed = []
        for group in self.groups:
            kept: dict[str, Place] = {}
            for place in group:
                if kept.setdefault(place[0], place) != place:
                    within.setdefault(place[0], []).append((place, kept[place[0]]))
            for split, other in itertools.combinations(kept, 2):
                of = [(place, kept[other]) for place in group if place[0] == split]
                across.setdefault((split, other), []).extend(of)
            if differing := [place for place in group if self._label(place) != self._label(group[0])]:
                mixed.append((group[0], differing[0]))
        notes = [
            f"{counted(len(pairs), f'{split} image')} of {len(self.splits[split]):,}"
            + (
                f" is an exact copy of a {other} image"
                if len(pairs) == 1
                else f" are exact copies of {other} images"
            )
            + f": {self._named(pairs)}"
            for (split, other), pairs in across.items()
        ]
        notes += [
            f"{counted(len(pairs), f'{split} image')} {_are(pairs)} there more than once:"
            f" {self._named(pairs)}"
            for split, pairs in within.items()
        ]
        if mixed:
            notes.append(
                f"{counted(len(mixed), 'image')} {_are(mixed)} {self.differing}: {self._named(mixed)}"
            )
        return notes

    def _label(self, place: Place) -> str:
        return str(self.splits[place[0]].labels[place[1]].tolist())

    def _named(self, pairs: Sequence[tuple[Place, Place]]) -> str:
        names = [
            " and ".join(f"'{self.splits[split].name(row)}'" for split, row in pair) for pair in pairs[:3]
        ]
        return ", ".join(names) + (", ..." if len(pairs) > 3 else "")


def _are(of: Sequence[object]) -> str:
    return "is" if len(of) == 1 else "are"


def exact_copies(splits: Mapping[str, Listing]) -> Copies:
    """Find the images that are equal, byte for byte; what cannot be read is equal to none.

    A file is read only where another one has its size and its last bytes: of 1,000 photographs hardly any.
    """
    looked = {split: splits[split] for split in ORDER if split in splits}
    places: list[Place] = [(split, row) for split in looked for row in range(len(looked[split]))]
    groups: list[list[Place]] = []
    with ThreadPoolExecutor() as pool:
        for look in (_size, _tail, _digest):
            keys: dict[object, list[Place]] = {}
            for at in range(0, len(places), BLOCK):  # `map` holds a future for each of its images
                block = places[at : at + BLOCK]
                read = [(look, looked[split], row) for split, row in block]
                for place, key in zip(
                    block, map(_tried, read) if look is _size else pool.map(_tried, read), strict=True
                ):
                    if key is not None:
                        keys.setdefault(key, []).append(place)
            groups = [group for group in keys.values() if len(group) > 1]
            places = [place for group in groups for place in group]
    return Copies(looked, tuple(map(tuple, groups)))


def _tried(of: tuple[Callable[[Listing, int], object], Listing, int]) -> object:
    look, listing, row = of
    try:
        return look(listing, row)
    except (OSError, DamagedFileError, RequestError):
        return None


def _size(listing: Listing, row: int) -> object:
    image = listing.image(row)
    return (
        image.stat().st_size
        if isinstance(image, Path)
        else len(image)
        if isinstance(image, bytes)
        else image.nbytes
    )


def _tail(listing: Listing, row: int) -> object:
    image = listing.image(row)
    if isinstance(image, Path):
        with image.open("rb") as file:
            file.seek(max(0, image.stat().st_size - TAIL))
            return digest_bytes(file.read())
    return digest_bytes(image[-TAIL:]) if isinstance(image, bytes) else listing.digest_of(row)


def _digest(listing: Listing, row: int) -> object:
    return listing.digest_of(row)
