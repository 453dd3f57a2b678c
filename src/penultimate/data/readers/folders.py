"""Folders of classes of a user's own: one for each class, in a folder for each split or in none."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from penultimate.data.listing import Files, Listing
from penultimate.data.readers.labels import number_labels
from penultimate.data.readers.places import Place, is_table
from penultimate.data.readers.reading import SPAN
from penultimate.data.readers.split_names import FILLERS, expect_one_each, part_of, words_in_all, words_of
from penultimate.data.readers.tables import groups_by_level, rows_of
from penultimate.data.readers.walking import (
    entries_of,
    folders_with_images,
    images_below,
    images_in,
    some,
)
from penultimate.errors import DamagedFileError, RequestError, nearest, unknown

_NUMBERED = re.compile(r"(fold|split|part|partition|cv|batch|chunk|shard|subset)[\W_]*\d+", re.IGNORECASE)
"""What folders are called that hold parts of one data set, each with all classes."""
COMPARED = 2000
"""Rows of a table that are compared with the folders that its images lie in."""
EXPECTED = (
    "Expected: a folder for each class with images in it, or train and test with such folders in each; or"
    " a table with the columns path,label and perhaps split"
)
Row = tuple[str, str]
"""The path of an image from the place, and its class."""


def folders(place: Place) -> tuple[dict[str, Listing], list[str]]:
    """Read a folder for each class, in a folder for each split or in none, or with a folder for each split in
    it; other images below a class are its."""
    path, notes, others = place.path, list[str](), Counter[str]()
    root = root_of(path)
    rows: dict[str, list[Row]] = {}
    groups: dict[str, list[str]] = {}
    known = set[str]()
    for folder, part in _split_folders(place, root, notes).items():
        classes = folders_with_images(folder)
        if not classes and images_in(folder):
            rows.setdefault(part, []).extend(_by_table(place, root, folder, part, notes))
        if classes:  # an empty class folder keeps its number
            known |= {entry.name for entry in entries_of(folder) if entry.is_dir()}
        for each in classes:
            of_parts = {} if part or place.split is None else _splits_within(place, each)
            for inner, of in (of_parts or {each: part}).items():
                images = images_below(inner, others)
                below = inner.relative_to(path).as_posix()
                rows.setdefault(of, []).extend((f"{below}/{image}", each.name) for image in images)
                if place.group != "":
                    groups.setdefault(of, []).extend(groups_by_level(place, images, "the class"))
    rows = {part: its for part, its in rows.items() if its}
    _expect_classes(place, root, rows)
    names = tuple(sorted(known.union(*({name for _, name in its} for its in rows.values()))))
    label_of = {name: label for label, name in enumerate(names)}
    parts = {}
    for number, (part, its) in enumerate(rows.items()):
        order = np.arange(len(its))
        labels = np.array([label_of[name] for _, name in its], np.int64)
        grouped = np.array(groups[part], str) if part in groups else None
        source = Files(path, tuple(image for image, _ in its))
        parts[part] = Listing(source, order, labels, number * SPAN + order, names, groups=grouped)
    if root != path:
        notes.append(f"read from '{root.relative_to(path)}', the only folder in it that holds images")
    if outside := images_in(root):
        notes.append(f"in no class folder, and left out: {some(outside, 'image', 'images')}")
    if others:
        counts = ", ".join(f"{count:,} {ending}" for ending, count in others.most_common())
        notes.append(f"no images by their names, and left out: {counts}")
    return parts, notes


def root_of(path: Path) -> Path:
    """Return the folder in which classes or splits lie: archives often wrap them in further folders."""
    within = folders_with_images(path)
    if len(within) != 1 or images_in(path) or images_in(within[0]) or part_of(within[0].name):
        return path
    return root_of(within[0])


def splits_have_classes(root: Path) -> bool:
    """Return whether a folder that is called like a split holds several class folders."""
    return any(
        part_of(each.name) and len(folders_with_images(each)) > 1 for each in folders_with_images(root)
    )


def _split_folders(place: Place, root: Path, notes: list[str]) -> dict[Path, str]:
    """Return the folders in which class folders lie, each with its split, "" where nothing says it.

    A folder that is called like a split is one if it holds class folders. Without them it is a class among
    two others or more, as in bus, car and train; what may be either is refused.
    """
    inner = folders_with_images(root)
    holding = {each: bool(folders_with_images(each)) for each in inner}
    if place.test:
        known = [each.name for each in inner if holding[each]]
        if lacking := sorted({*place.test} - {*known}):
            raise unknown(f"folder with class folders in '{root}'", lacking[0], known)
        return {each: "test" if each.name in place.test else "train" for each in inner if holding[each]}
    if place.split is None:
        return {root: ""}
    common = words_in_all(each.name for each in inner)
    named = {each: part for each in inner if (part := part_of(each.name, common))}
    others = [each for each in inner if each not in named]
    numbered = [each for each in inner if _NUMBERED.fullmatch(each.name) and not images_in(each)]
    if len(numbered) > 1:
        raise RequestError(
            f"'{root}': {some([each.name for each in numbered], 'folder', 'folders')} are called like parts"
            f" of the data; say which is tested on: {place.with_setting('test', numbered[-1].name)}, or that"
            f" they are classes: {place.with_setting('split', None)}"
        )
    if not named or (len(named) == 1 and len(others) > 1 and not any(holding[each] for each in named)):
        return {root: ""}
    nested = [each for each in named if holding[each]]
    if not nested:
        called = " and ".join(repr(each.name) for each in named)
        raise RequestError(
            f"'{root}': {called} sounds like a split, and holds images in no class folders"
            f"{_lying(place, root)}. {EXPECTED}. If the folders are classes, say so:"
            f" {place.with_setting('split', None)}"
        )
    if "train" not in named.values() or ({*named.values()} == {"train"} and any(map(holding.get, others))):
        beside = some([each.name for each in others], "folder", "folders")
        raise RequestError(
            f"'{root}': is '{nested[0].name}' a class, as {beside} may be, or a split? If it is a class, say"
            f" so: {place.with_setting('split', None)}; else put all classes into folders called train and"
            " test"
        )
    expect_one_each(root, ((each.name, part) for each, part in named.items()))
    if others:
        left = some([each.relative_to(place.path).as_posix() for each in others], "folder", "folders")
        notes.append(f"of no split, and left out: {left}")
    return {_unwrapped(each, part): part for each, part in named.items()}


def _unwrapped(folder: Path, part: str) -> Path:
    """Return the folder of a split, or the only one in it: training_set/training_set/cats is usual."""
    within = folders_with_images(folder)
    if len(within) != 1 or images_in(folder) or images_in(within[0]):
        return folder
    inner = within[0]
    is_wrapped = inner.name.lower() in {folder.name.lower(), *FILLERS} or part_of(inner.name) == part
    return inner if is_wrapped else folder


def _splits_within(place: Place, folder: Path) -> dict[Path, str]:
    """Return the folders of splits within a class folder; {} where it holds none of them or one."""
    named = {each: part for each in folders_with_images(folder) if (part := part_of(each.name))}
    if len({*named.values()}) < 2 or images_in(folder):
        return {}
    others = [each.name for each in folders_with_images(folder) if each not in named]
    if others:
        raise RequestError(
            f"'{folder}' holds folders of splits, and beside them {some(others, 'folder', 'folders')}; move"
            f" these into a split, or say that they are none: {place.with_setting('split', None)}"
        )
    return named


def _by_table(place: Place, root: Path, folder: Path, part: str, notes: list[str]) -> list[Row]:
    """Return the images of a split that lie in no class folders, by the table that is called like the split.

    Without such a table they are left out, as unlabelled test images are.
    """
    name = folder.relative_to(place.path).as_posix()
    for table in _tables(root) + _tables(folder):
        if part_of(table.stem) != part and table.parent != folder:
            continue
        try:
            read = rows_of(replace(place, path=table), part, notes)
        except (RequestError, DamagedFileError) as error:
            raise RequestError(f"the images in '{folder}' lie in no class folders; {error}") from None
        labels = number_labels(table, {part: read.labels}, read.names)
        below = table.parent.relative_to(place.path).as_posix()
        paths = [path if below == "." else f"{below}/{path}" for path in read.paths]
        notes.append(f"the labels of '{name}' are those of the table '{table.relative_to(place.path)}'")
        return [
            (path, labels.names[label])
            for path, label in zip(paths, labels.of[part], strict=True)
            if label >= 0 and (place.path / path).is_file()
        ]
    notes.append(f"in no class folders, and left out: the images in '{name}'")
    return []


def _tables(folder: Path) -> list[Path]:
    return [Path(entry.path) for entry in entries_of(folder) if is_table(Path(entry.path))]


def _lying(place: Place, root: Path) -> str:
    """Return which table may be given in place of the folder, as a part of a sentence."""
    lying = [each for folder in dict.fromkeys((place.path, root)) for each in _tables(folder)]
    lying.sort(key=lambda table: part_of(table.stem) == "test")
    return f"; the table '{lying[0]}' may be given in its place" if lying else ""


def _expect_classes(place: Place, root: Path, rows: dict[str, list[Row]]) -> None:
    """Raise RequestError unless the folders are classes: each split's among the training images', and no
    table of the folder divides the images otherwise."""
    classes = {part: {name for _, name in its} for part, its in rows.items()}
    every = set[str]().union(*classes.values())
    if not every or (len(every) == 1 and ({*words_of(min(every))} <= FILLERS or _lying(place, root))):
        found = f"in one folder, '{min(every)}'" if every else "in no class folders"
        raise RequestError(f"'{place.path}' holds images {found}{_lying(place, root)}. {EXPECTED}")
    for part, names in classes.items():
        if "train" in classes and (new := sorted(names - classes["train"])):
            listing = [each for folder in root.iterdir() if folder.is_dir() for each in _tables(folder)]
            lists = (
                f"; '{listing[0]}' may say what they show: give one table of all images" if listing else ""
            )
            raise RequestError(
                f"'{place.path}': {some(new, 'class folder', 'class folders')} of the {part} images: not"
                f" among the training images'{lists}.{nearest(new[0], classes['train'])}"
            )
    folder_of = {path: name for its in rows.values() for path, name in its}
    for folder in dict.fromkeys((place.path, root)):
        for table in _tables(folder):
            if place.split is not None and _divides_otherwise(place, table, folder_of):
                raise RequestError(
                    f"'{table}' gives images of one folder different labels: give the table in place of the"
                    f" folder, or say that the folders are the classes: {place.with_setting('split', None)}"
                )


def _divides_otherwise(place: Place, table: Path, folder_of: dict[str, str]) -> bool:
    """Return whether a table with usual columns gives the images of one folder several labels."""
    try:
        read = rows_of(Place(table, split=None), "", [], COMPARED)
        below = table.parent.relative_to(place.path)
        where = [(below / path).as_posix() for path in read.paths]
    except (RequestError, DamagedFileError):
        return False
    pairs = {
        (folder_of[path], str(label))
        for path, label in zip(where, read.labels, strict=True)
        if path in folder_of and label is not None
    }
    return len(pairs) > len({folder for folder, _ in pairs})
