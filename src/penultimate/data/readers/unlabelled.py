"""Images whose classes do not matter: every image below a folder, whatever folders it lies in."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penultimate.data.listing import Files, Listing
from penultimate.data.readers.entries import ENTRIES
from penultimate.data.readers.opening import OpenedDataset, open_dataset
from penultimate.data.readers.places import is_table, read_place
from penultimate.data.readers.prepared import read_copy
from penultimate.data.readers.walking import OtherContents
from penultimate.errors import RequestError

ALL = "images"
"""The name of the one class of images whose classes are not read."""


def open_whole(name: str, where: str) -> OpenedDataset:
    """Return every image below a folder as test images of one class.

    Of a published data set, a prepared copy, a table or arrays, which say what is tested on, it is the test
    images with their classes. Raise RequestError for a folder without images.
    """
    place = read_place(where)
    if name in ENTRIES or not place.path.is_dir() or _says_more(place.path) or read_copy(place.path):
        return open_dataset(name, where)
    place.expect_only("images whose classes are not read")
    seen = OtherContents(place.path)
    try:
        paths = tuple(path.removeprefix("./") for path in seen.images(place.path) or ())
    except OSError as error:
        raise RequestError(
            f"'{error.filename or where}' cannot be read ({error.strerror or error})"
        ) from None
    if not paths:
        hidden = "; images in it are hidden by a dot before their names" if seen.hidden else ""
        raise RequestError(f"'{place.path}' holds no images{hidden}")
    order = np.arange(len(paths))
    listing = Listing(Files(place.path, paths), order, np.zeros(len(paths), np.int64), order, (ALL,))
    notes = (f"all {len(paths):,} images in the folder, whatever their classes",)
    return OpenedDataset(name, name, "top1", {"test": listing}, notes)


def _says_more(path: Path) -> bool:
    """Return whether a folder holds arrays or tables, which say what their images are."""
    return any(
        entry.suffix == ".npy" or entry.name in ("dataset_dict.json", "state.json") or is_table(entry)
        for entry in path.iterdir()
        if not entry.name.startswith(".")
    )
