"""Folders of classes of a user's own: one for each class, in a folder for each split or in none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from penultimate.data.listing import Files, Listing
from penultimate.data.readers.groups import groups_by_level
from penultimate.data.readers.places import Place, is_table
from penultimate.data.readers.reading import ENDINGS, SPAN, class_of, images_in, visible
from penultimate.data.readers.split_names import FILLERS, expect_one_each, part_of, words_in_all
from penultimate.data.readers.walking import JUNK, OtherContents, holds_images, some
from penultimate.errors import RequestError, nearest, unknown

_NUMBERED = re.compile(r"(fold|split|part|partition|cv|batch|chunk|shard|subset)[\W_]*\d+", re.IGNORECASE)
"""What folders are called that hold parts of one data set, each with all classes."""


def folders(place: Place) -> tuple[dict[str, Listing], list[str]]:
    """Read a folder for each class, in a folder for each split or in none, or with a folder for each split in
    it; other images below a class are its."""
    path = place.path
    seen = OtherContents(path)
    root = root_of(path)
    named, left, taken = _splits(root, place)
    within: Mapping[Path, Mapping[Path, str]] = {}
    if named == {root: ""} and place.split is not None:
        within, left = _splits_within(root, place)
    for folder in _above(path, (*named, *(inner.parent for each in within.values() for inner in each))):
        seen.look_for_hidden(folder)
    found: dict[str, list[tuple[str, list[str]]]] = {}
    groups: dict[str, list[str]] = {}
    classes: dict[str, set[str]] = {}
    spelt: dict[str, str] = {}
    for folder, part in named.items():
        here: set[str] = set()
        for entry in visible(folder):
            if not entry.is_dir():
                seen.see_outside(entry)
                continue
            if entry.name in JUNK or entry in left:
                continue
            of_parts = [
                (of, seen.images(below), below) for below, of in within.get(entry, {entry: part}).items()
            ]
            name = class_of(entry)
            for of, images, below in of_parts:
                if images is None:
                    continue
                if name in here and entry not in within:
                    raise RequestError(f"'{folder}' holds two folders called '{name}', written in two ways")
                here.add(name)
                classes.setdefault(of, set()).add(name)
                if of == "train" or name not in spelt:
                    spelt[name] = entry.name
                found.setdefault(of, []).append((name, images))
                if place.group != "":
                    inner = [image[len(below.relative_to(path).as_posix()) + 1 :] for image in images]
                    groups.setdefault(of, []).extend(groups_by_level(place, inner, "the class"))
    if not any(images for its in found.values() for _, images in its):
        lying = f"; {some(seen.outside, 'lies', 'lie')} in no class folder" if seen.outside else ""
        if seen.hidden:
            lying += f"; {some(sorted(seen.hidden), 'is', 'are')} hidden by a dot"
        if seen.others:
            lying += f"; {some(seen.others, 'is no image by its name', 'are no images by their names')}"
        if tables := [each.name for each in visible(path) if is_table(each)]:
            lying += f"; the table '{path / tables[0]}' may be given in its place"
        if not lying and not any(below.is_file() for below in path.rglob("*")):
            lying = "; there is no file in it"
        raise RequestError(
            f"'{path}' holds no images in class folders{lying}. Expected: a folder for each class with images"
            f" in it ({', '.join(sorted(e[1:] for e in ENDINGS))}), or train and test with such folders in"
            " each; or a table of paths and labels (.csv)"
        )
    if "train" in classes:
        for part, its in classes.items():
            new = sorted(its - classes["train"])
            if new:
                raise RequestError(
                    f"'{path}': {some(new, 'class folder', 'class folders')} of the {part} images: not"
                    f" among the training images'.{nearest(new[0], classes['train'])}"
                )
    names = sorted(set().union(*classes.values()), key=lambda name: spelt[name])  # as trainers list them
    label_of = {name: label for label, name in enumerate(names)}
    parts = {}
    for number, (part, each) in enumerate(found.items()):
        paths = tuple(image for _, images in each for image in images)
        labels = np.repeat([label_of[name] for name, _ in each], [len(images) for _, images in each])
        order = np.arange(len(paths))
        ids = number * SPAN + order
        grouped = np.array(groups[part], str) if part in groups else None
        parts[part] = Listing(Files(path, paths), order, labels, ids, tuple(names), groups=grouped)
    notes = _of_tables(path, root, names)
    if root != path:
        notes.append(f"read from '{root.relative_to(path)}', the only folder in it that holds images")
    if left:
        others = list(dict.fromkeys(entry.relative_to(path).as_posix() for entry in left))
        notes.append(f"of no split, and left out: {some(others, 'folder', 'folders')}")
    empty = [folder.relative_to(path).as_posix() for folder, part in named.items() if part not in found]
    if empty and not within:
        notes.append(f"without class folders: {some(empty, 'folder', 'folders')}")
    if within:
        notes.append("the splits are those of the folders within the class folders")
    if taken:
        called = some([entry.name for entry in taken], "folder", "folders")
        notes.append(f"taken for a class, and not for the images of a split: {called}")
    return parts, [*notes, *seen.notes()]


def _above(path: Path, folders: Iterable[Path]) -> list[Path]:
    """Return some folders below a path, and those that lie between."""
    return sorted({each for at in folders for each in (at, *at.parents) if each.is_relative_to(path)})


def _of_tables(path: Path, root: Path, names: Sequence[str]) -> list[str]:
    """Return a note on tables that are not read; raises RequestError where folders say no classes."""
    tables = [
        each.relative_to(path).as_posix()
        for folder in dict.fromkeys((path, root))
        for each in visible(folder)
        if is_table(each) and (each.suffix.lower() != ".txt" or part_of(each.stem))
    ]
    tables.sort(key=lambda name: part_of(Path(name).stem) == "test")
    if tables and len(names) < 2:
        raise RequestError(
            f"'{path}' holds images in one folder only, '{names[0]}', which would be one class. Give the"
            f" table that says what they show in its place: '{path / tables[0]}'"
        )
    return [f"not read, for folders say the classes: {some(tables, 'table', 'tables')}"] if tables else []


def root_of(path: Path) -> Path:
    """Return the folder in which classes or splits lie: archives often wrap them in further folders."""
    while True:
        within = _holding(path)
        if len(within) != 1 or images_in(path) or images_in(within[0]) or part_of(within[0].name):
            return path
        if not (deeper := _holding(within[0])) or any(each.resolve() == path.resolve() for each in deeper):
            return path
        path = within[0]


def splits_have_classes(root: Path) -> bool:
    """Return whether a folder that is called like a split holds several class folders."""
    return any(part_of(each.name) and len(_holding(each)) > 1 for each in _holding(root))


def _holding(folder: Path) -> list[Path]:
    """Return the folders in a folder that hold images, in themselves or below."""
    return sorted(
        each
        for each in folder.iterdir()
        if not each.name.startswith(".") and each.name not in JUNK and each.is_dir() and holds_images(each)
    )


def _splits(path: Path, place: Place) -> tuple[dict[Path, str], list[Path], list[Path]]:
    """Return the folders in which class folders lie, each with its split; those that are no split; and those
    that are classes, though they are called like a split.

    A folder that is called like a split is one if it holds class folders; else it is a class, called "train".
    Raises RequestError where it may be either, and for parts that are numbered.
    """
    entries = [each for each in visible(path) if each.is_dir() and each.name not in JUNK]
    if place.test:
        parts = [each for each in entries if _holding(each)]
        lacking = sorted({*place.test} - {each.name for each in parts})
        if lacking:
            raise unknown(f"folder with class folders in '{path}'", lacking[0], [each.name for each in parts])
        return {each: "test" if each.name in place.test else "train" for each in parts}, [], []
    numbered = [each for each in entries if _NUMBERED.fullmatch(each.name)]
    nested_parts = [each for each in numbered if _holding(each) and not images_in(each)]
    if len(nested_parts) > 1 and place.split is not None:
        raise RequestError(
            f"'{path}': {some([each.name for each in nested_parts], 'folder', 'folders')} are called like"
            " parts of the data, and hold folders themselves; say which of them are tested on:"
            f" {place.with_setting('test', nested_parts[-1].name)}, or that they are classes:"
            f" {place.with_setting('split', None)}"
        )
    common = words_in_all(each.name for each in entries)
    named = {each: part for each in entries if (part := part_of(each.name, common))}
    holding = {each: bool(_holding(each)) for each in entries if each in named or holds_images(each)}
    others = [each for each in holding if each not in named]
    if not named or place.split is None:
        return {path: ""}, [], [*named, *numbered]
    nested = [each for each in named if holding[each]]
    if not nested:
        full = [each for each in named if images_in(each)]
        if others and len(full) < 2:
            return {path: ""}, [], full
        if others:
            raise _either(place, path, full[0], others, "holds images, and no class folders")
    elif others and ("train" not in named.values() or len({*named.values()}) < 2):
        shared = {each.name for each in _holding(nested[0])} & {
            below.name for other in others for below in _holding(other)
        }
        if len(nested) == len(named) == 1 and all(holding[other] for other in others) and not shared:
            return {path: ""}, [], nested  # these are classes, and each holds further folders
        raise _either(place, path, nested[0], others, "has class folders")
    expect_one_each(path, ((each.name, part) for each, part in named.items()))
    return _unwrapped(named), others, []


def _splits_within(root: Path, place: Place) -> tuple[dict[Path, dict[Path, str]], list[Path]]:
    """Return the folders of splits that lie in each class folder, and those beside them that are none.

    Raises RequestError where only some of the images lie in such folders.
    """
    within = {entry: _holding(entry) for entry in _holding(root)}
    found = {
        entry: {each: part for each in inner if (part := part_of(each.name))}
        for entry, inner in within.items()
    }
    if not any(len({*parts.values()}) > 1 for parts in found.values()):
        return {}, []
    without = [entry for entry in found if not found[entry] or images_in(entry)]
    if without:
        one = next(entry for entry, parts in found.items() if len({*parts.values()}) > 1)
        raise RequestError(
            f"'{root}': '{one.name}' holds folders of splits ({', '.join(each.name for each in found[one])}),"
            f" and images of {some([each.name for each in without], 'class', 'classes')} lie in none; put all"
            " images of each class into folders of splits, or say that these are none:"
            f" {place.with_setting('split', None)}"
        )
    left = [each for entry, inner in within.items() for each in inner if each not in found[entry]]
    return found, left


def _either(place: Place, path: Path, one: Path, others: Sequence[Path], why: str) -> RequestError:
    tested = f", or say which folder is tested on: {place.with_setting('test', others[0].name)}"
    return RequestError(
        f"'{path}': is '{one.name}' a class, as {some([each.name for each in others], 'folder', 'folders')}"
        f" may be, or does it hold the images of a split? It {why}. If it is a class, say so:"
        f" {place.with_setting('split', None)}; else put all classes into folders called train and test"
        f"{tested if _holding(others[0]) else ''}"
    )


def _unwrapped(named: Mapping[Path, str]) -> dict[Path, str]:
    """Return the folders of splits, or those within them: training_set/training_set/cats is usual."""
    inner = {folder: _holding(folder) for folder in named}
    alike = len({tuple(each.name for each in within) for within in inner.values()}) == 1 and len(named) > 1
    unwrapped = {}
    for folder, part in named.items():
        within = inner[folder]
        is_wrapped = len(within) == 1 and not images_in(folder) and not images_in(within[0])
        if is_wrapped and (
            alike
            or within[0].name.lower() in {folder.name.lower(), *FILLERS}
            or part_of(within[0].name) == part
        ):
            unwrapped[within[0]] = part
        else:
            unwrapped[folder] = part
    return unwrapped
