"""Folders of classes of a user's own: one for each class, in a folder for each split or in none."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from penultimate.data.listing import Files, Listing
from penultimate.data.readers.found import Found, listings
from penultimate.data.readers.places import Place, tables_in
from penultimate.data.readers.split_names import (
    FILLERS,
    OF_TABLES,
    expect_one_each,
    part_of,
    words_in_all,
    words_of,
)
from penultimate.data.readers.tables import Table, groups_by_level
from penultimate.data.readers.walking import (
    are_there,
    first_of,
    folders_in,
    folders_with_images,
    images_below,
    images_in,
    lines_of,
    some,
)
from penultimate.errors import DamagedFileError, RequestError, nearest, unknown

_NUMBERED = re.compile(r"(fold|split|part|partition|cv|batch|chunk|shard|subset)[\W_]*\d+", re.IGNORECASE)
"""What folders are called that hold parts of one data set, each with all classes."""
_LIKE_A_SPLIT = re.compile(r"train|test|valid", re.IGNORECASE)
EXPECTED = "Expected: a folder for each class, in train and test or not; or a table: path,label,split"


def folders(place: Place) -> tuple[dict[str, Listing], list[str]]:
    """Read a folder for each class, in a folder for each split or in none, or with a folder for each split in
    it; other images below a class are its.
    """
    return _Folders(place).read()


def root_of(path: Path) -> Path:
    """Return the folder in which classes or splits lie: archives often wrap them in further folders."""
    within = folders_with_images(path)
    if len(within) != 1 or images_in(path) or images_in(within[0]) or part_of(within[0].name):
        return path
    return root_of(within[0])


def cub(place: Place, flags: Path) -> tuple[dict[str, Listing], list[str]]:
    """Read class folders whose split is in lists: images.txt and train_test_split.txt, as in CUB-200-2011."""
    place.expect_only("lists of images and of their split")
    named, trained = (
        dict(line.split(maxsplit=1) for line in lines_of(file))
        for file in (flags.with_name("images.txt"), flags)
    )
    names = sorted({path.partition("/")[0] for path in named.values()})
    below = flags.parent.relative_to(place.path) / "images"
    found = {}
    for part, mark in (("train", "1"), ("test", "0")):
        paths = [path for key, path in named.items() if trained.get(key) == mark]
        labels = np.array([names.index(path.partition("/")[0]) for path in paths], np.int64)
        paths = [(below / path).as_posix() for path in paths]
        found[part] = Found(Files(place.path, tuple(paths)), labels, there=are_there(place.path, paths))
    return listings(place.path, found, names)[0], [f"the splits are those of '{flags.name}'"]


@dataclass
class _Folders:
    """What is read of a place: of each split the images, by their paths from it, their classes and groups."""

    place: Place
    images: dict[str, list[str]] = field(default_factory=dict)
    classes: dict[str, list[str]] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root = root_of(self.place.path)

    def read(self) -> tuple[dict[str, Listing], list[str]]:
        empty = set[str]()  # an empty class folder keeps its number
        for folder, part in self._split_folders().items():
            within = folders_with_images(folder)
            if not within and images_in(folder):
                self._read_by_table(folder, part)
            empty |= {each.name for each in folders_in(folder) if within}
            for each in within:
                of_parts = {} if part or self.place.split is None else self._splits_within(each)
                for inner, of in (of_parts or {each: part}).items():
                    self._add(inner, of, each.name, images_below(inner, self.others))
        self._expect_classes()
        names = sorted(empty.union(*self.classes.values()))
        label_of = {name: label for label, name in enumerate(names)}
        found = {
            part: Found(
                Files(self.place.path, tuple(paths)),
                np.array([label_of[name] for name in self.classes[part]], np.int64),
                self.groups.get(part),
            )
            for part, paths in self.images.items()
        }
        if outside := images_in(self.root):
            self.notes.append(f"in no class folder, and left out: {some(outside, 'image', 'images')}")
        if self.others:
            counts = ", ".join(f"{count:,} {ending}" for ending, count in self.others.most_common())
            self.notes.append(f"no images by their names, and left out: {counts}")
        return listings(self.place.path, found, names)[0], self.notes

    def _add(self, folder: Path, part: str, name: str, images: list[str]) -> None:
        below = f"{folder.relative_to(self.place.path).as_posix()}/".removeprefix("./")
        self.images.setdefault(part, []).extend(below + image for image in images)
        self.classes.setdefault(part, []).extend([name] * len(images))
        if self.place.group:
            self.groups.setdefault(part, []).extend(groups_by_level(self.place, images, "the class"))

    def _refused(self, why: str) -> RequestError:
        return RequestError(f"'{self.root}': {why}")

    @property
    def _are_classes(self) -> str:
        return f"that folders are classes is said by {self.place.with_setting('split', None)}"

    def _split_folders(self) -> dict[Path, str]:
        """Return the folders in which class folders lie, each with its split, "" where nothing says it.

        A folder that is called like a split is one if it holds class folders. Without them it is a class
        among two others or more, as in bus, car and train; what may be either is refused.
        """
        inner = folders_with_images(self.root)
        holding = [each for each in inner if folders_with_images(each)]
        if self.place.test:
            if lacking := sorted({*self.place.test} - {each.name for each in holding}):
                known = [each.name for each in holding]
                raise unknown(f"folder with class folders in '{self.root}'", lacking[0], known)
            return {each: "test" if each.name in self.place.test else "train" for each in holding}
        if self.place.split is None:
            return {self.root: ""}
        numbered = [each.name for each in holding if _NUMBERED.fullmatch(each.name) and not images_in(each)]
        if len(numbered) > 1:
            raise self._refused(
                f"{some(numbered, 'folder', 'folders')} are called like parts of the data; say which is"
                f" tested on: {self.place.with_setting('test', numbered[-1])}; {self._are_classes}"
            )
        common = words_in_all(each.name for each in inner)
        named = {each: part for each in inner if (part := part_of(each.name, common))}
        others = [each for each in inner if each not in named]
        nested = [each for each in named if each in holding]
        alike = [each for each in others if _LIKE_A_SPLIT.match(each.name)]
        if not named or (len(named) == 1 and len(others) > 1 and not nested and not alike):
            return {self.root: ""}
        if not nested:
            called = " and ".join(repr(each.name) for each in named)
            raise self._refused(
                f"a split may be meant by {called}, with images in no class folders{self._lying()}."
                f" {EXPECTED}; {self._are_classes}"
            )
        if "train" not in named.values() or ({*named.values()} == {"train"} and {*others} & {*holding}):
            beside = some([each.name for each in others], "folder", "folders")
            raise self._refused(
                f"is '{nested[0].name}' a class, as {beside} may be, or a split? {EXPECTED};"
                f" {self._are_classes}"
            )
        expect_one_each(self.root, ((each.name, part) for each, part in named.items()))
        if others:
            left_out = [each.relative_to(self.place.path).as_posix() for each in others]
            self.notes.append(f"of no split, and left out: {some(left_out, 'folder', 'folders')}")
        return {_unwrapped(each, part): part for each, part in named.items()}

    def _splits_within(self, folder: Path) -> dict[Path, str]:
        """Return the folders of splits within a class folder; {} where it holds none of them or one."""
        inner = folders_with_images(folder)
        named = {each: part for each in inner if (part := part_of(each.name))}
        if len({*named.values()}) < 2 or images_in(folder):
            return {}
        if others := [each.name for each in inner if each not in named]:
            raise self._refused(
                f"'{folder.name}' holds folders of splits, and beside them"
                f" {some(others, 'folder', 'folders')}; {self._are_classes}"
            )
        return named

    def _read_by_table(self, folder: Path, part: str) -> None:
        """Read images that lie in no class folders by the table that is called like their split.

        Without such a table they are left out, as unlabelled test images are.
        """
        name = folder.relative_to(self.place.path).as_posix()
        called = [table for table in tables_in(self.root) if part_of(table.stem, OF_TABLES) == part]
        table = next(iter((*called, *tables_in(folder))), None)
        if table is None:
            self.notes.append(f"in no class folders, and left out: the images in '{name}'")
            return
        try:
            read = Table(replace(self.place, path=table, group=""), part).rows()
        except (RequestError, DamagedFileError) as error:
            raise RequestError(f"the images in '{folder}' lie in no class folders; {error}") from None
        there = np.array(are_there(table.parent, [*read["path"]]))
        for path, label in read.loc[there & read["label"].notna(), ["path", "label"]].itertuples(index=False):
            self._add(table.parent, part, str(label), [path])
        self.notes.append(f"the labels of '{name}' are those of the table '{table.name}'")

    def _lying(self) -> str:
        """Return which table may be given in place of the folder, as a part of a sentence."""
        lying = sorted(self._tables(), key=lambda table: part_of(table.stem) == "test")
        return f"; the table '{lying[0]}' may be given in its place" if lying else ""

    def _tables(self) -> list[Path]:
        return [
            table for folder in dict.fromkeys((self.place.path, self.root)) for table in tables_in(folder)
        ]

    def _expect_classes(self) -> None:
        """Raise RequestError unless the folders are classes: each split's among the training images', and no
        table beside them divides the images otherwise.
        """
        classes = {part: {*names} for part, names in self.classes.items()}
        every = set[str]().union(*classes.values())
        if not every or (len(every) == 1 and ({*words_of(min(every))} <= FILLERS or self._lying())):
            found = f"in one folder, '{min(every)}'" if every else "in no class folders"
            raise self._refused(f"it holds images {found}{self._lying()}. {EXPECTED}")
        for part, names in classes.items():
            if "train" in classes and (new := sorted(names - classes["train"])):
                lists = [
                    table for folder in folders_in(self.root) for table in tables_in(folder)
                ] or self._tables()
                told = f"; '{lists[0]}' may say what they show: give one table of all" if lists else ""
                raise self._refused(
                    f"{some(new, 'class folder', 'class folders')} of the {part} images: not among the"
                    f" training images'{told}.{nearest(new[0], classes['train'])}"
                )
        for table in self._tables() if {*classes} == {""} and self.place.split is not None else ():
            if self._divides_otherwise(table):
                raise self._refused(
                    f"'{table}' lists the images, and divides them otherwise than the folders do: give the"
                    f" table in place of the folder; {self._are_classes}"
                )

    def _divides_otherwise(self, table: Path) -> bool:
        """Return whether a table lists the images and no column of it tells the folders apart."""
        try:
            read = Table(Place(table))
            image, paths = read.images()
        except (RequestError, DamagedFileError):
            return False
        below = f"{table.parent.relative_to(self.place.path).as_posix()}/".removeprefix("./")
        class_of = dict(zip(self.images[""], self.classes[""], strict=True))
        classes = np.array([class_of.get(below + path, "") for path in paths])
        others = read.frame.drop(columns=image)[classes != ""]
        classes = classes[classes != ""]
        if not others.size:
            return False
        one_each = others.groupby(classes).nunique(dropna=False).max() == 1
        return not (one_each & (others.nunique(dropna=False) == len({*classes}))).any()


def cub_lists(path: Path) -> Path | None:
    """Return the list of the split in a folder that is laid out as CUB-200-2011, or None."""
    root = root_of(path)
    return first_of(*(base / "train_test_split.txt" for base in (path, root.parent, root)))


def _unwrapped(folder: Path, part: str) -> Path:
    """Return the folder of a split, or the only one in it: training_set/training_set/cats is usual."""
    within = folders_with_images(folder)
    if len(within) != 1 or images_in(folder) or images_in(within[0]):
        return folder
    inner = within[0]
    is_wrapped = inner.name.lower() in {folder.name.lower(), *FILLERS} or part_of(inner.name) == part
    return inner if is_wrapped else folder
