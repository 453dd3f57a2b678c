"""Listings of files that a table or a list of a data set names, and which of them are there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from penultimate.data.listing import Files, Listing
from penultimate.data.readers.entries import PublishedSet
from penultimate.data.readers.walking import some
from penultimate.errors import DamagedFileError, RequestError

SPAN = 1 << 32
"""The ids of the k-th split count from k times this."""


def listed(
    base: Path,
    paths: Sequence[str],
    labels: np.ndarray,
    names: Sequence[str],
    first: int,
    groups: Sequence[str] | None = None,
) -> Listing:
    """Return a listing of files below a folder; those that are not there are named in `missing`."""
    kept = _are_there(base, paths)
    return Listing(
        Files(base, tuple(path for path, there in zip(paths, kept, strict=True) if there)),
        np.arange(kept.sum()),
        np.asarray(labels, np.int64)[kept],
        (first + np.arange(len(paths)))[kept],
        tuple(names),
        tuple(path for path, there in zip(paths, kept, strict=True) if not there),
        groups=None if groups is None else np.array(groups, str)[kept],
    )


def _are_there(base: Path, paths: Sequence[str]) -> np.ndarray:
    """Return which of the paths are there, each folder read once."""
    names: dict[str, set[str]] = {}
    there = np.zeros(len(paths), bool)
    for place, path in enumerate(paths):
        folder, _, name = path.rpartition("/")
        if folder not in names:
            names[folder] = names_in(base / folder)
        there[place] = name in names[folder]
    return there


def names_in(folder: Path) -> set[str]:
    """Return the names in a folder; none where there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries}
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return set()


def expect_once(where: object, paths: Sequence[str]) -> None:
    """Refuse an image that is listed twice: it could be trained and tested on."""
    if len({*map(os.path.normpath, paths)}) < len(paths):
        twice = [path for path, count in Counter(map(os.path.normpath, paths)).items() if count > 1]
        raise RequestError(f"'{where}': {some(twice, 'image', 'images')} listed more than once")


def lines_of(path: Path) -> list[str]:
    """Return the lines of a text file that are not empty; raises RequestError where it cannot be read."""
    try:
        return [line.strip() for line in path.read_text("utf-8-sig").split("\n") if line.strip()]
    except FileNotFoundError:
        raise RequestError(f"'{path}' is missing; the data set is read by it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedFileError(f"'{path}' is no list of images: {error}") from None


def listing_of(
    entry: PublishedSet, base: Path, split: str, rows: Sequence[tuple[str, int]], names: Sequence[str]
) -> Listing:
    """Return the images of a published split that are there; those listed that are not are in `missing`."""
    what = f"{entry.card.title}, {split}"
    for path, label in rows:
        if path.startswith("/") or ".." in path.split("/"):
            raise DamagedFileError(f"{what}: its list names '{path}', which lies outside '{base}'")
        if not 0 <= label < len(names):
            raise DamagedFileError(f"{what}: its list gives '{path}' a class that is none of {len(names)}")
    labels = np.array([label for _, label in rows], np.int64)
    first = list(entry.card.sizes).index(split) * SPAN
    return listed(base, [path for path, _ in rows], labels, names, first)


def base_of(entry: PublishedSet, root: Path, holds: str) -> Path:
    """Return a published data set's folder: in --root, or --root itself."""
    if (root / entry.folder).is_dir():
        return root / entry.folder
    if not root.is_dir():
        raise RequestError(
            f"'{root}' {'is a file' if root.exists() else 'does not exist'}; it is to hold {entry.card.title}"
        )
    if holds and not (root / holds).exists():
        raise not_there(entry, root, f"it holds neither a folder {entry.folder} nor what is in one ({holds})")
    return root


def what_goes_where(name: str) -> str:
    """Return how an error ends that is of the layout of a data set."""
    return (
        f" What goes where: penultimate data check {name} --root DIR. Images of your own go by another"
        f" name than '{name}'."
    )


def not_there(entry: PublishedSet, root: Path, why: str) -> RequestError:
    """Return the error for a folder that is not laid out as a data set was published."""
    name = entry.card.name
    return RequestError(
        f"'{root}' is not {entry.card.title} as it is published: {why}.{what_goes_where(name)}"
    )


def first_of(*paths: Path) -> Path | None:
    """Return the first of some paths that exists."""
    return next((path for path in paths if path.exists()), None)
