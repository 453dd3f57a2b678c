"""A user's own images: folders of classes, a table of paths and labels, arrays, Hugging Face data sets.

What says which images are tested on is used; where nothing does, a fifth of each class is drawn. Validation
images are trained on: whatever is tuned holds out images of its own.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.data.listing import Chain, Files, Listing
from penultimate.data.reading import ENDINGS, SPAN, class_of, is_image, listed, text_of, visible
from penultimate.data.sources import Array, Arrow, arrow, image_column, label_column, read_array
from penultimate.data.walking import Seen, some
from penultimate.errors import DamagedFileError, RequestError, counted, nearest, unknown

TRAIN = ("train", "training")
VALIDATION = ("val", "valid", "validation", "dev")
TEST = ("test", "testing")
SPLITS = {
    name: part
    for part, names in (("train", TRAIN), ("validation", VALIDATION), ("test", TEST))
    for name in names
}
"""What a folder, a column or an array calls its splits."""
PATHS = ("path", "file", "filename", "file_name", "filepath", "image", "image_path", "img")
LABELS = ("label", "labels", "class", "class_name", "target", "category", "species", "y")
PARTITIONS = ("split", "subset", "partition", "set", "fold")
TEST_SHARE = 0.2
Splits = dict[str, Listing]
Notes = list[str]


def read_own(path: Path, seed: int = 0, test_share: float = TEST_SHARE) -> tuple[Splits, Notes]:
    """The splits "train" and "test" of what lies at a path, and what a reader of results must know of them.

    Raises RequestError for what holds no images, DamagedFileError for what cannot be read.
    """
    if not 0 < test_share < 1:
        raise RequestError(f"the share of test images lies between 0 and 1; got {test_share}")
    if path.is_dir():
        if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
            parts, notes = _hugging_face(path)
        elif any(entry.suffix == ".npy" for entry in path.iterdir()):
            parts, notes = _arrays(path, {entry.stem: entry for entry in sorted(path.glob("*.npy"))})
        else:
            parts, notes = _folders(path)
    elif path.suffix.lower() == ".npz" and path.is_file():
        parts, notes = _arrays(path, dict.fromkeys(_names_in(path), path))
    elif path.suffix.lower() in (".csv", ".tsv", ".txt") and path.is_file():
        parts, notes = _table(path)
    elif path.exists():
        raise RequestError(
            f"'{path}' is none of: a folder of images, a table (.csv, .tsv) of paths and labels, arrays"
            " (.npz, or a folder of .npy), what Hugging Face's save_to_disk wrote; unpack an archive first"
        )
    else:
        raise RequestError(f"'{path}' does not exist")
    return _trained_and_tested(path, parts, notes, seed, test_share)


def stratified(names: Sequence[str], labels: np.ndarray, seed: int, share: float) -> np.ndarray:
    """Which images are tested on: of each class the share whose sha256 of (seed, name) is smallest.

    A class keeps an image to be trained on, and gives one to the test if it has two. An image that is added
    or removed moves at most one other of its class.

    >>> stratified(["a", "b", "c", "d", "e", "f"], np.array([0, 0, 0, 0, 0, 1]), 0, 0.4).sum()
    np.int64(2)
    """
    order = np.array(
        [hashlib.sha256(f"{seed}\0{name}".encode(errors="surrogateescape")).hexdigest() for name in names]
    )
    tested = np.zeros(len(names), bool)
    for label in np.unique(labels):
        its = np.flatnonzero(labels == label)
        count = min(max(round(share * its.size), 1), its.size - 1)
        tested[its[np.argsort(order[its], kind="stable")][:count]] = True
    return tested


def _trained_and_tested(
    path: Path, parts: Splits, notes: Notes, seed: int, share: float
) -> tuple[Splits, Notes]:
    """ "train" and "test", whatever there is: validation images join one of them, and are said to."""
    names = next(iter(parts.values())).class_names
    if "" in parts:
        whole = parts[""]
        if len(whole) < 2:
            lost = len(whole.missing)
            listed = f"; {lost:,} that it lists are not there, such as '{whole.missing[0]}'" if lost else ""
            raise RequestError(
                f"'{path}' holds {counted(len(whole), 'image')}; there is none to be tested on{listed}"
            )
        tested = stratified([whole.name(i) for i in range(len(whole))], whole.labels, seed, share)
        if not tested.any():
            raise RequestError(f"'{path}': no class has two images, one to train on and one to test on")
        notes.append(
            f"nothing says which images are tested on: {share:.0%} of each class, {tested.sum():,} of"
            f" {len(whole):,} images, were drawn with seed {seed}"
        )
        parts = {"train": replace(whole.subset(~tested), missing=whole.missing), "test": whole.subset(tested)}
    elif "train" in parts and "test" not in parts and "validation" in parts:
        parts = {"train": parts["train"], "test": parts["validation"]}
        notes.append("there are no test images: the validation images are tested on")
    elif "validation" in parts and "train" in parts:
        validation = parts.pop("validation")
        parts["train"] = _joined(parts["train"], validation)
        notes.append(f"the {len(validation):,} validation images are trained on, as in the paper")
    if set(parts) != {"train", "test"}:
        raise RequestError(
            f"'{path}' holds {' and '.join(sorted(parts))} images only; images to train on and to test on are"
            " expected (train, test), or classes without a split"
        )
    for split, listing in parts.items():
        if not len(listing):
            raise RequestError(f"'{path}': no image of the {split} split is there")
    untrained = np.setdiff1d(parts["test"].labels, parts["train"].labels)
    if untrained.size:
        raise RequestError(
            f"'{path}': {some([names[label] for label in untrained], 'class is', 'classes are')} tested on,"
            " but not trained on"
        )
    untested = np.setdiff1d(parts["train"].labels, parts["test"].labels)
    empty = sorted(set(range(len(names))) - set(parts["train"].labels.tolist()))
    if untested.size:
        notes.append(f"no test image: {some([names[label] for label in untested], 'class', 'classes')}")
    if empty:
        notes.append(f"no image at all: {some([names[label] for label in empty], 'class', 'classes')}")
    if len(names) - len(empty) < 2:
        notes.append("all images are of one class: there is nothing to tell apart")
    return {split: parts[split] for split in ("train", "test")}, notes


def _joined(first: Listing, second: Listing) -> Listing:
    return Listing(
        Chain(first.source, second.source),
        np.concatenate([first.places, second.places + len(first.source)]),
        np.concatenate([first.labels, second.labels]),
        np.concatenate([first.ids, second.ids]),
        first.class_names,
        first.missing + second.missing,
    )


def _folders(path: Path) -> tuple[Splits, Notes]:
    """A folder for each class, in a folder for each split or in none; images below a class folder are its."""
    folders = [entry for entry in visible(path) if entry.is_dir()]
    named = {entry: SPLITS[entry.name.lower()] for entry in folders if entry.name.lower() in SPLITS}
    if ("train" not in named.values() and len(named) < len(folders)) or not named:
        named = {path: ""}
    elif set(named.values()) == {"train"}:
        named = dict.fromkeys(named, "")
    _expect_one_each(path, named)
    seen = Seen(path)
    found: dict[str, list[tuple[str, list[str]]]] = {}
    classes: dict[str, set[str]] = {}
    for folder, part in named.items():
        for entry in visible(folder):
            if not entry.is_dir():
                seen.outside += [entry.name] if is_image(entry.name) else []
                continue
            if (images := seen.images(entry)) is None:
                continue
            name = class_of(entry)
            if name in classes.setdefault(part, set()):
                raise RequestError(f"'{folder}' holds two folders called '{name}', written in two ways")
            classes[part].add(name)
            found.setdefault(part, []).append((name, images))
    if not any(images for its in found.values() for _, images in its):
        lying = f"; {some(seen.outside, 'lies', 'lie')} in no class folder" if seen.outside else ""
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
    names = in_order(set().union(*classes.values()))
    place = {name: label for label, name in enumerate(names)}
    parts = {}
    for number, (part, each) in enumerate(found.items()):
        paths = tuple(image for _, images in each for image in images)
        labels = np.repeat([place[name] for name, _ in each], [len(images) for _, images in each])
        order = np.arange(len(paths))
        parts[part] = Listing(Files(path, paths), order, labels, number * SPAN + order, tuple(names))
    return parts, seen.notes()


def _expect_one_each(path: Path, named: Mapping[Path, str]) -> None:
    for part in set(named.values()) - {""}:
        same = [repr(folder.name) for folder, its in named.items() if its == part]
        if len(same) > 1:
            raise RequestError(f"'{path}': {' and '.join(same)} both stand for the {part} images; keep one")


def _table(path: Path) -> tuple[Splits, Notes]:
    """A header, then lines of a path (below the table's folder, or absolute), a label and perhaps a split."""
    text = text_of(path)
    head = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=head.count), restval="")
    columns = {(name or "").strip().lower(): name for name in reader.fieldnames or ()}
    image, label = (_column(path, columns, kinds) for kinds in (PATHS, LABELS))
    split = next((columns[name] for name in PARTITIONS if name in columns), None)
    found: dict[str, list[tuple[str, str]]] = {}
    try:
        for row in reader:
            where, name = (str(row[column] or "").strip() for column in (image, label))
            if not where or not name:
                raise RequestError(f"'{path}', line {reader.line_num}: a path and a label are expected")
            if any(row.get(None, ())):
                raise RequestError(
                    f"'{path}', line {reader.line_num}: more values than columns; put what holds a delimiter"
                    " in quotes"
                )
            part = "" if split is None else str(row[split] or "").strip()
            if split is not None and part.lower() not in SPLITS:
                raise unknown(f"split in line {reader.line_num} of '{path}'", part, SPLITS)
            found.setdefault(SPLITS.get(part.lower(), ""), []).append((where.replace("\\", "/"), name))
    except csv.Error as error:
        raise DamagedFileError(f"'{path}', line {reader.line_num}: {error}") from None
    if not found:
        raise RequestError(f"'{path}' lists no images")
    names = in_order({unicodedata.normalize("NFC", name) for rows in found.values() for _, name in rows})
    place = {name: label for label, name in enumerate(names)}
    times = Counter(os.path.normpath(where) for rows in found.values() for where, _ in rows)
    twice = [where for where, count in times.items() if count > 1]
    if twice:  # one would be trained on, the other tested on
        raise RequestError(f"'{path}': {some(twice, 'image is', 'images are')} listed more than once")
    parts = {
        part: listed(
            path.parent,
            [(where, place[unicodedata.normalize("NFC", name)]) for where, name in rows],
            names,
            number * SPAN,
            str(path),
            anywhere=True,
        )
        for number, (part, rows) in enumerate(found.items())
    }
    return parts, []


def _column(path: Path, columns: Mapping[str, str], kinds: Sequence[str]) -> str:
    known = next((columns[name] for name in kinds if name in columns), None)
    if known is None:
        raise RequestError(
            f"'{path}' has the columns {', '.join(columns) or 'of no header'}; one called"
            f" {', '.join(kinds[:-1])} or {kinds[-1]} is expected"
        )
    return known


def _names_in(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as packed:
            return [name.removesuffix(".npy") for name in packed.namelist()]
    except (zipfile.BadZipFile, OSError) as error:
        raise DamagedFileError(f"'{path}' is not a whole npz file: {error}") from None


def _arrays(path: Path, files: Mapping[str, Path]) -> tuple[Splits, Notes]:
    """Images and labels: images, labels; train_images, train_labels, ...; x_train, y_train, ... ."""
    pairs: dict[str, tuple[str, str]] = {}
    for said, part in {"": "", **SPLITS}.items():
        forms = [(f"{said}_images", f"{said}_labels"), (f"x_{said}", f"y_{said}"), (f"{said}_x", f"{said}_y")]
        for images, labels in (tuple(name.strip("_") for name in form) for form in forms):
            if images in files and labels in files:
                pairs[part] = images, labels
    if not pairs:
        raise RequestError(
            f"'{path}' holds {', '.join(files) or 'nothing'}; expected are images and labels, or"
            " train_images, train_labels, test_images, test_labels, or x_train, y_train, x_test, y_test"
        )
    read = {
        name: read_array(file, "" if file.suffix == ".npy" else name)
        for name, file in files.items()
        if name == "class_names" or name in {labels for _, labels in pairs.values()}
    }
    given = [str(name) for name in np.ravel(read.get("class_names", ()))]
    columns = {labels: _labels(path, labels, read[labels]) for _, labels in pairs.values()}
    found = {str(value) for column in columns.values() for value in np.unique(column)}
    text = not given or any(column.dtype.kind == "U" for column in columns.values())
    given = given or in_order(found)
    place = _places(found, given, text)
    parts = {}
    for number, (part, (images, labels)) in enumerate(pairs.items()):
        source = Array(files[images], "" if files[images].suffix == ".npy" else images)
        column = columns[labels]
        if len(source) != len(column):
            raise RequestError(f"'{path}': {len(source)} {images}, but {len(column)} {labels}")
        values, which = np.unique(column, return_inverse=True)
        unnamed = [str(value) for value in values if str(value) not in place]
        if unnamed:
            raise RequestError(f"'{path}': {labels} has {unnamed[0]}; there are {len(given)} class_names")
        placed = np.array([place[str(value)] for value in values], np.int64)[which]
        order = np.arange(len(column))
        parts[part] = Listing(source, order, placed, number * SPAN + order, tuple(given))
    return parts, []


def _places(values: Set[str], names: Sequence[str], text: bool) -> dict[str, int]:
    """The label of each value: text is a name, a whole number a place among the names.

    Where not every value is one, but every value is the other, it is that.
    """
    by_name = {name: label for label, name in enumerate(names)}
    by_place = {str(label): label for label in range(len(names))}
    meant, other = (by_name, by_place) if text else (by_place, by_name)
    return other if values <= other.keys() and not values <= meant.keys() else meant


def _labels(path: Path, name: str, labels: np.ndarray) -> np.ndarray:
    labels = labels[:, 0] if labels.shape[1:] == (1,) else labels
    if labels.ndim != 1 or labels.dtype.kind not in "iuU" or not labels.size:
        raise RequestError(
            f"'{path}': {name} is {labels.dtype} {list(labels.shape)}; a whole number or a name for each"
            " image is expected"
        )
    return labels


def _hugging_face(path: Path) -> tuple[Splits, Notes]:
    """What `save_to_disk` wrote: a DatasetDict of splits, or one Dataset."""
    folders, notes = {path: ""}, Notes()
    if (path / "dataset_dict.json").is_file():
        entries = [entry for entry in visible(path) if entry.is_dir()]
        folders = {entry: SPLITS[entry.name] for entry in entries if entry.name in SPLITS}
        others = [entry.name for entry in entries if entry not in folders]
        if not folders:
            raise unknown(f"split of '{path}'", ", ".join(others), SPLITS)
        _expect_one_each(path, folders)
        notes += [f"left out: {some(others, 'split', 'splits')}"] if others else []
    read: dict[str, list[Any]] = {}
    sources: dict[str, Arrow] = {}
    named: set[tuple[str, ...]] = set()
    for folder, part in folders.items():
        table = arrow(folder)
        column = label_column(table, folder)
        sources[part], read[part] = Arrow(folder, image_column(table, folder)), list(table[column])
        classes = tuple(getattr(table.features[column], "names", None) or ())
        named.add(classes)
        unlabelled = sum(value is None or bool(classes and value < 0) for value in read[part])
        if unlabelled:
            raise RequestError(f"'{path}': {unlabelled} of {len(read[part])} {part} images have no label")
    if len(named) > 1:
        raise RequestError(f"'{path}': its splits name their classes differently")
    names = list(named.pop())
    if not names:
        names = in_order({str(value) for values in read.values() for value in values})
        place = {name: label for label, name in enumerate(names)}
        read = {part: [place[str(value)] for value in values] for part, values in read.items()}
    parts = {}
    for number, (part, values) in enumerate(read.items()):
        order = np.arange(len(values))
        labels = np.array(values, np.int64)
        parts[part] = Listing(sources[part], order, labels, number * SPAN + order, tuple(names))
    return parts, notes


def in_order(names: Iterable[str]) -> list[str]:
    """Class names sorted: as numbers where all are, else as text.

    >>> in_order(["10", "9", "2"]), in_order(["10", "9", "b"])
    (['2', '9', '10'], ['10', '9', 'b'])
    """
    names = list(names)
    if all(name.isdecimal() for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)
