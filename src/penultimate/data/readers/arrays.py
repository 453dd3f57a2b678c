"""Images of a user's own that lie in arrays, and in data sets that Hugging Face's `save_to_disk` wrote."""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from penultimate.data.listing import ImageSource, Listing
from penultimate.data.readers.columns import text_of_cell
from penultimate.data.readers.groups import expect_free, expect_values
from penultimate.data.readers.labels import Labels, read_labels
from penultimate.data.readers.places import Place
from penultimate.data.readers.reading import SPAN, visible
from penultimate.data.readers.sources import Array, Arrow, arrow, image_column, label_column, read_array
from penultimate.data.readers.split_names import SPLITS, expect_one_each, part_of
from penultimate.data.readers.walking import some
from penultimate.errors import DamagedFileError, RequestError, unknown


def names_in_archive(path: Path) -> list[str]:
    """Return the names of the arrays in an npz file; raises DamagedFileError for any other file."""
    try:
        with zipfile.ZipFile(path) as packed:
            return [name.removesuffix(".npy") for name in packed.namelist()]
    except (zipfile.BadZipFile, OSError) as error:
        raise DamagedFileError(f"'{path}' is not a whole npz file: {error}") from None


def arrays(
    path: Path, files: Mapping[str, Path], class_names: Sequence[str] = ()
) -> tuple[dict[str, Listing], list[str]]:
    """Read images and labels: images, labels; train_images, train_labels, ...; x_train, y_train, ... .

    train.images, train.labels and train.ids are those of `penultimate.data.generate`. `class_names` are those
    of a folder whose manifest names its classes; an array `class_names` comes before them.
    """
    pairs: dict[str, tuple[str, str]] = {}
    for said, part in {"": "", **SPLITS}.items():
        forms = [(f"{said}_images", f"{said}_labels"), (f"x_{said}", f"y_{said}"), (f"{said}_x", f"{said}_y")]
        forms += [(f"{said}.images", f"{said}.labels")] if said else []
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
    names = [str(name) for name in np.ravel(read.get("class_names", class_names))]
    columns = {part: _column(path, labels, read[labels]) for part, (_, labels) in pairs.items()}
    labels_of = read_labels(path, columns, names)
    sources: dict[str, ImageSource] = {}
    for part, (images, labels) in pairs.items():
        sources[part] = Array(files[images], "" if files[images].suffix == ".npy" else images)
        if len(sources[part]) != len(columns[part]):
            raise RequestError(f"'{path}': {len(sources[part])} {images}, but {len(columns[part])} {labels}")
    paired = {"class_names", *itertools.chain(*pairs.values())}
    paired |= {f"{images.removesuffix('.images')}.ids" for images, _ in pairs.values()}
    left = [name for name in files if name not in paired]
    lying = some(left, "array", "arrays")
    notes = [f"in no pair of images and labels, and left out: {lying}"] if left else []
    return _listings(sources, labels_of), [*notes, *labels_of.notes]


def _column(path: Path, name: str, labels: np.ndarray) -> np.ndarray:
    labels = labels[:, 0] if labels.shape[1:] == (1,) else labels
    if labels.ndim != 1 or labels.dtype.kind not in "biufUS" or not labels.size:
        raise RequestError(
            f"'{path}': {name} is {labels.dtype} {list(labels.shape)}; a whole number or a name for each"
            " image is expected"
        )
    return labels


def hugging_face(place: Place) -> tuple[dict[str, Listing], list[str]]:
    """Read what `save_to_disk` wrote: a DatasetDict of splits, or one Dataset."""
    path = place.path
    folders, notes = {path: ""}, list[str]()
    if (path / "dataset_dict.json").is_file():
        entries = [entry for entry in visible(path) if entry.is_dir()]
        folders = {entry: part for entry in entries if (part := part_of(entry.name))}
        others = [entry.name for entry in entries if entry not in folders]
        if not folders:
            raise unknown(f"split of '{path}'", ", ".join(others), SPLITS)
        expect_one_each(path, ((folder.name, part) for folder, part in folders.items()))
        notes += [f"left out: {some(others, 'split', 'splits')}"] if others else []
    columns = {}
    groups: dict[str, np.ndarray] = {}
    sources: dict[str, ImageSource] = {}
    named: set[tuple[str, ...]] = set()
    for folder, part in folders.items():
        table = arrow(folder)
        column = label_column(table, place)
        image = image_column(table, place)
        sources[part], columns[part] = Arrow(folder, image), list(table[column])
        if place.group != "":
            if isinstance(place.group, int):
                raise RequestError(
                    f"'{path}' has no folders; name the column of groups:"
                    f" {place.with_setting('group', 'NAME')}"
                )
            if place.group not in table.column_names:
                raise unknown(f"column of '{path}'", place.group, table.column_names)
            expect_free(place, place.group, (image, column))
            cells = [*map(text_of_cell, table[place.group])]
            groups[part] = np.array(expect_values(place, cells, range(1, len(cells) + 1)), str)
        named.add(tuple(getattr(_of_one(table.features[column]), "names", None) or ()))
    if len(named) > 1:
        raise RequestError(f"'{path}': its splits name their classes differently")
    labels_of = read_labels(path, columns, named.pop())
    made = _listings(sources, labels_of)
    if groups:
        made = {part: replace(of, groups=groups[part][of.places]) for part, of in made.items()}
    return made, [*notes, *labels_of.notes]


def _of_one(feature: object) -> object:
    """Return the feature of a list's members; what is no list is its own."""
    while hasattr(feature, "feature"):
        feature = feature.feature
    return feature[0] if isinstance(feature, list) else feature


def _listings(sources: Mapping[str, ImageSource], labels: Labels) -> dict[str, Listing]:
    """Return the listing of each split, without the images that have no label."""
    parts = {}
    for number, (part, source) in enumerate(sources.items()):
        places = np.flatnonzero(labels.of[part] >= 0)
        if len(places):
            ids = number * SPAN + places
            parts[part] = Listing(source, places, labels.of[part][places], ids, labels.names)
    return parts
