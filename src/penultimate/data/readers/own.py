"""A user's own images: the layouts that are read, each by a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from penultimate.data.listing import Listing
from penultimate.data.readers.arrays import arrays
from penultimate.data.readers.folders import cub, cub_lists, folders, root_of
from penultimate.data.readers.places import Place, is_table, tables_in
from penultimate.data.readers.saved import is_saved, saved
from penultimate.data.readers.split_names import OF_TABLES, expect_one_each, part_of, words_in_all
from penultimate.data.readers.splitting import TEST_SHARE, Splits, train_and_test
from penultimate.data.readers.tables import IMAGES, LABELS, plain, read_table, tables
from penultimate.data.readers.walking import entries_of, folders_in, folders_with_images, images_in, some
from penultimate.errors import DamagedFileError, RequestError

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet", "_classes.csv")
"""Tables that lie beside their images: Hugging Face's ImageFolder, and Roboflow's."""
Read = tuple[dict[str, Listing], list[str]]


def read_own(place: Place, seed: int = 0, share: float = TEST_SHARE) -> tuple[Splits, list[str]]:
    """Return the splits "train" and "test" of what lies at a place, and what a reader of results must know.

    Raises RequestError for a layout that is none of `LAYOUTS`, DamagedFileError for what cannot be read.
    """
    for layout in LAYOUTS:
        if (read := layout(place)) is not None:
            parts, notes = read
            break
    else:
        if not place.path.exists():
            raise RequestError(f"'{place.path}' does not exist")
        raise RequestError(
            f"'{place.path}' is none of: a folder of images, a table (.csv, .tsv, .jsonl, .parquet) of paths"
            " and labels, arrays (.npz, or a folder of .npy), what Hugging Face's save_to_disk wrote; unpack"
            " an archive first"
        )
    try:
        splits, further = train_and_test(place, parts, seed, share)
    except RequestError as error:
        raise RequestError("; ".join((str(error), *notes))) from None
    return splits, [*notes, *further]


def _saved(place: Place) -> Read | None:
    return saved(place) if is_saved(place.path) else None


def _arrays(place: Place) -> Read | None:
    path = place.path
    is_archive = path.suffix.lower() == ".npz" and path.is_file()
    if not is_archive and not (path.is_dir() and any(e.name.endswith(".npy") for e in entries_of(path))):
        return None
    place.expect_only("arrays")
    return arrays(path)


def _table(place: Place) -> Read | None:
    return tables(place, place.path.parent, {place.path: ""}) if is_table(place.path) else None


def _metadata(place: Place) -> Read | None:
    """Read tables of METADATA in a folder or in its folders of splits, if they say labels."""
    if not place.path.is_dir():
        return None
    parts = {place.path: ""} | {each: part for each in folders_in(place.path) if (part := part_of(each.name))}
    found = {
        folder / name: part
        for folder, part in parts.items()
        for name in METADATA
        if (folder / name).is_file() and (images_in(folder) or _has(folder / name, LABELS))
    }
    expect_one_each(place.path, ((str(file.relative_to(place.path)), part) for file, part in found.items()))
    return _several(place, place.path, {file: part for file, part in found.items() if part} or found)


def _tables_of_splits(place: Place) -> Read | None:
    """Read tables that are called like splits (train.csv, test.csv), unless splits are class folders."""
    if not place.path.is_dir() or place.split is None or place.test:
        return None
    root = root_of(place.path)
    of_splits = (each for each in folders_with_images(root) if part_of(each.name))
    if any(len(folders_with_images(each)) > 1 for each in of_splits):
        return None
    for folder in dict.fromkeys((place.path, root)):
        files = tables_in(folder)
        common = {*words_in_all(each.stem for each in files), *OF_TABLES}
        named = {file: part for file in files if (part := part_of(file.stem, common)) and _has(file, IMAGES)}
        if "train" in named.values():
            expect_one_each(folder, ((file.name, part) for file, part in named.items()))
            place.expect_only("tables that are called like splits", "image", "label", "labels", "group")
            without = [file for file in named if not (place.label or place.labels or _has(file, LABELS))]
            if without and len(without) < len(named):
                first = next(file for file in named if file not in without)
                raise RequestError(
                    f"'{without[0]}' has no column of labels, as '{first.name}' has. If its images have none,"
                    f" give '{first}' alone: what is tested on is drawn from its images"
                )
            return _several(place, folder, dict(sorted(named.items(), key=lambda of: of[1] != "train")))
    return None


def _has(file: Path, names: tuple[str, ...]) -> bool:
    try:
        return any(plain(name) in names for name in read_table(file, 1).columns)
    except (RequestError, DamagedFileError):
        return file.suffix.lower() != ".txt"  # whoever reads it says what is wrong


def _several(place: Place, base: Path, files: Mapping[Path, str]) -> Read | None:
    if not files:
        return None
    found, notes = tables(replace(place, path=base), base, files)
    told = some([file.relative_to(base).as_posix() for file in files], "table", "tables")
    return found, [f"the labels are those of {told}", *notes]


def _cub(place: Place) -> Read | None:
    flags = cub_lists(place.path) if place.path.is_dir() else None
    return None if flags is None else cub(place, flags)


def _folders(place: Place) -> Read | None:
    if not place.path.is_dir():
        return None
    place.expect_only("class folders", "split", "test", "group")
    return folders(place)


LAYOUTS: tuple[Callable[[Place], Read | None], ...] = (
    _saved,
    _arrays,
    _table,
    _metadata,
    _tables_of_splits,
    _cub,
    _folders,
)
"""Each returns what it reads, or None for a place that is laid out otherwise; a new layout is one more."""
