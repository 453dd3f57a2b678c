"""Opening a data set, published or a user's own, by name or by path."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from penultimate.data.catalog import Accuracy
from penultimate.data.listing import Listing
from penultimate.data.readers.entries import ENTRIES, PublishedSet
from penultimate.data.readers.own import TEST_SHARE, read_own
from penultimate.data.readers.places import read_place
from penultimate.data.readers.prepared import Copy, expect_matching, read_copy
from penultimate.errors import RequestError, nearest
from penultimate.files import nearest_beside
from penultimate.registry import names


class _Lazily(Mapping[str, Listing]):
    """Splits that are listed when they are first asked for: ImageNet-C has 95."""

    def __init__(self, names: tuple[str, ...], read: Callable[[str], Listing]) -> None:
        self.names, self.read = names, read
        self.known: dict[str, Listing] = {}

    def __getitem__(self, name: str) -> Listing:
        if name not in self.names:
            raise KeyError(name)
        if name not in self.known:
            self.known[name] = self.read(name)
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class OpenedDataset:
    """A data set on disk: nothing is decoded.

    splits     the `Listing` of "train" and "test"; of test sets with ImageNet's classes of "test" only, of
               ImageNet-C of "fog/3" and the like. Each is read when it is asked for.
    accuracy   the official score
    notes      what a reader of results must know of it: how test images were drawn, what was left out
    entry      what is known of a published one; None for a user's own
    """

    name: str
    title: str
    accuracy: Accuracy
    splits: Mapping[str, Listing]
    notes: tuple[str, ...] = ()
    entry: PublishedSet | None = None

    def shortfall(self, split: str) -> str:
        """Return what a split lacks of what it should hold, in a sentence; empty if nothing."""
        listing = self.splits[split]
        official = None if self.entry is None else self.entry.card.sizes[split]
        there, expected = len(listing), official or len(listing) + len(listing.missing)
        if there == expected:
            return ""
        named = f", '{listing.missing[0]}' among them" if listing.missing else ""
        lacking = (
            f"{expected - there:,} are missing{named}" if there < expected else "more than were published"
        )
        return f"{self.title}, {split}: {there:,} of {expected:,} images are there; {lacking}"


def open_dataset(
    name: str,
    root: Path | str | None = None,
    *,
    seed: int = 0,
    test_share: float = TEST_SHARE,
    cache: Path | None = None,
) -> OpenedDataset:
    """Return a published data set in the folder `root`, or, under any other name, what a user has at `root`.

    Without `root`, `name` is a path: a folder of images, a table (.csv, .jsonl) of paths and labels, arrays
    (.npz, or a folder of .npy), a data set that Hugging Face's `save_to_disk` wrote; which column means what
    may stand behind it, "t.csv(label='species')" (see `readers.places`). Where nothing in it says what is
    tested on, a `test_share` of each class is drawn with `seed`. Digests of images are kept in `cache`.

    Raises RequestError for what is not there or is not laid out as expected, DamagedFileError.
    """
    entry = ENTRIES.get(name)
    place = read_place(name if root is None else root)
    if place.group and entry is not None:
        raise RequestError(
            f"group=... is of images of your own: {entry.card.title} is split as it was published"
        )
    copy = read_copy(place.path)
    if copy is not None:
        if place.group:
            raise RequestError(
                f"'{place.path}' is a prepared copy, whose splits are made: say group=... of the images that"
                f" it is made of, {place.with_setting('group', place.group)}, to penultimate data prepare"
            )
        return _open_copy(copy, name, root, entry)
    if entry is not None:
        if root is None:
            raise RequestError(
                f"where {entry.card.title} lies is not said: give a folder to '{name}', or --root"
            )
        folder, card = place.path, entry.card

        def read(split: str) -> Listing:
            module, _, function = entry.reader.partition(":")
            listing: Listing = getattr(
                importlib.import_module(f"penultimate.data.readers.{module}"), function
            )(entry, folder, split)
            return replace(listing, cache=cache)

        return OpenedDataset(name, card.title, card.accuracy, _Lazily(card.splits, read), (), entry)
    path = place.path
    if root is None and not path.exists() and name in names("dataset"):
        raise RequestError(
            f"'{name}' is drawn by this package: penultimate.data.generate('{name}', 0, 'FOLDER') writes it"
            " into a folder, which can be opened"
        )
    if root is None and not path.exists():
        raise RequestError(
            f"'{name}' is neither a published data set (penultimate list datasets) nor a file or folder."
            f"{nearest(name, ENTRIES) or nearest_beside(path)}"
        )
    try:
        splits, notes = read_own(place, seed, test_share)
    except OSError as error:  # a folder in it belongs to another user, say
        where, why = error.filename or path, error.strerror or error
        raise RequestError(f"'{where}' cannot be read ({why}); mend who may read it") from None
    kept = {split: replace(listing, cache=cache) for split, listing in splits.items()}
    title = path.resolve().name if root is None else name
    return OpenedDataset(title, title, "top1", kept, tuple(notes))


def _open_copy(copy: Copy, name: str, root: Path | str | None, entry: PublishedSet | None) -> OpenedDataset:
    """Return a prepared copy in place of its data set, with which it is compared where
    that is to be found.
    """
    if not copy.whole:
        raise RequestError(f"'{copy.folder}' holds a copy that is not finished; go on: {copy.command}")
    if entry is not None and copy.name != name:
        raise RequestError(f"'{copy.folder}' is a prepared copy of '{copy.name}', not of '{name}'")
    entry = ENTRIES.get(copy.name)
    where, notes = read_place(copy.where).path, copy.remarks
    is_empty = where.is_dir() and not any(where.iterdir())  # as where a disk is not mounted
    if where.exists() and not is_empty:
        source = open_dataset(copy.name, where) if entry is not None else open_dataset(copy.where)
    else:
        source = None
        notes.append(f"its source was at '{where}', and is not here to be compared with it")

    def read(split: str) -> Listing:
        listing = copy.listing(split)
        if source is None:
            return listing
        own = source.splits.get(split)
        expect_matching(copy, split, own)
        if own is None or own.groups is None:
            return listing
        groups = dict(zip(own.ids.tolist(), own.groups.tolist(), strict=True))
        return replace(listing, groups=np.array([groups[each] for each in listing.ids.tolist()], str))

    title = name if root is not None else copy.folder.name
    splits = _Lazily(tuple(copy.sources), read)
    if entry is not None:
        return OpenedDataset(copy.name, entry.card.title, entry.card.accuracy, splits, tuple(notes), entry)
    return OpenedDataset(title, title, "top1", splits, tuple(notes))
