"""Images that are copies of each other, byte for byte: in training and test, in two classes, or twice."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
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
Pairs = list[tuple[Place, Place]]


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
        across: dict[tuple[str, str], Pairs] = {}
        within: dict[str, Pairs] = {}
        mixed: Pairs = []
        for group in self.groups:
            kept: dict[str, Place] = {}
            for place in group:
                if kept.setdefault(place[0], place) != place:
                    within.setdefault(place[0], []).append((place, kept[place[0]]))
            for split, other in itertools.combinations(kept, 2):
                pairs = [(place, kept[other]) for place in group if place[0] == split]
                across.setdefault((split, other), []).extend(pairs)
            differing = [place for place in group if self._label(place) != self._label(group[0])]
            mixed += [(group[0], place) for place in differing[:1]]
        notes = [
            self._note(
                f"{counted(len(pairs), f'{split} image')} of {len(self.splits[split]):,}",
                (f"an exact copy of a {other} image", f"exact copies of {other} images"),
                pairs,
            )
            for (split, other), pairs in across.items()
        ]
        notes += [
            self._note(counted(len(pairs), f"{split} image"), ("there more than once",) * 2, pairs)
            for split, pairs in within.items()
        ]
        return [
            *notes,
            *([self._note(counted(len(mixed), "image"), (self.differing,) * 2, mixed)] if mixed else []),
        ]

    def _label(self, place: Place) -> str:
        return str(self.splits[place[0]].labels[place[1]].tolist())

    def _note(self, what: str, one_or_many: tuple[str, str], pairs: Pairs) -> str:
        are = f"is {one_or_many[0]}" if len(pairs) == 1 else f"are {one_or_many[1]}"
        names = [
            " and ".join(f"'{self.splits[split].name(row)}'" for split, row in pair) for pair in pairs[:3]
        ]
        return f"{what} {are}: {', '.join(names)}{', ...' if len(pairs) > 3 else ''}"


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
            tried: Callable[[Place], object] = partial(_tried, look, looked)
            for at in range(0, len(places), BLOCK):  # `map` holds a future for each of its images
                block = places[at : at + BLOCK]
                found = map(tried, block) if look is _size else pool.map(tried, block)
                for place, key in zip(block, found, strict=True):
                    if key is not None:
                        keys.setdefault(key, []).append(place)
            groups = [group for group in keys.values() if len(group) > 1]
            places = [place for group in groups for place in group]
    return Copies(looked, tuple(map(tuple, groups)))


def _tried(look: Callable[[Listing, int], object], splits: Mapping[str, Listing], place: Place) -> object:
    try:
        return look(splits[place[0]], place[1])
    except (OSError, DamagedFileError, RequestError):
        return None


def _size(listing: Listing, row: int) -> object:
    image = listing.image(row)
    if isinstance(image, Path):
        return image.stat().st_size
    return len(image) if isinstance(image, bytes) else image.nbytes


def _tail(listing: Listing, row: int) -> object:
    image = listing.image(row)
    if isinstance(image, Path):
        with image.open("rb") as file:
            file.seek(max(0, image.stat().st_size - TAIL))
            return digest_bytes(file.read())
    return digest_bytes(image[-TAIL:]) if isinstance(image, bytes) else listing.digest_of(row)


def _digest(listing: Listing, row: int) -> object:
    return listing.digest_of(row)
