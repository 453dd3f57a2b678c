"""Readers of published data sets as they are published: each gives the `Listing` of one split.

A list of a data set's own (a split list, a .mat file, a devkit) decides what belongs to a split and what its
label is, never the folders that happen to be there: an image that is listed but absent is named in
`Listing.missing`, keeps its id to itself, and shifts no label.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penultimate.data.listing import Listing
from penultimate.data.readers.entries import PublishedSet
from penultimate.data.readers.reading import (
    base_of,
    first_of,
    label_of,
    lines_of,
    listing_of,
    mat,
    not_there,
    places_of,
    rows_of,
    whole_listing,
)
from penultimate.data.readers.sources import Batches, unpickled
from penultimate.errors import DamagedFileError


def food101(entry: PublishedSet, root: Path, split: str) -> Listing:
    base = base_of(entry, root, "meta")
    names = lines_of(base / "meta/classes.txt")
    partition, place = base / f"meta/{split}.txt", places_of(names)
    rows = [
        (f"images/{line}.jpg", label_of(line.partition("/")[0], place, partition))
        for line in lines_of(partition)
    ]
    return listing_of(entry, base, split, rows, names)


def cifar10(entry: PublishedSet, root: Path, split: str) -> Listing:
    batches = [f"data_batch_{number}" for number in range(1, 6)] if split == "train" else ["test_batch"]
    return _cifar(entry, root, split, batches, "labels", ("batches.meta", "label_names"))


def cifar100(entry: PublishedSet, root: Path, split: str) -> Listing:
    return _cifar(entry, root, split, [split], "fine_labels", ("meta", "fine_label_names"))


def birdsnap(entry: PublishedSet, root: Path, split: str) -> Listing:
    base = base_of(entry, root, "images.txt")
    species = rows_of(base / "species.txt", "\t", "id", "common")
    place = {row["id"]: label for label, row in enumerate(species)}
    tested = {line for line in lines_of(base / "test_images.txt") if line != "path"}
    images = first_of(base / "download/images", base / "images") or base / "download/images"
    rows = [
        (f"{images.relative_to(base).as_posix()}/{row['path']}", place.get(row["species_id"], -1))
        for row in rows_of(base / "images.txt", "\t", "path", "species_id")
        if (row["path"] in tested) == (split == "test")
    ]
    return listing_of(entry, base, split, rows, [row["common"] for row in species])


def sun397(entry: PublishedSet, root: Path, split: str) -> Listing:
    base = base_of(entry, root, "a/abbey")
    name = "Training_01.txt" if split == "train" else "Testing_01.txt"
    lists = [base, base.parent, root, *(folder / "Partitions" for folder in (base, base.parent))]
    partition = first_of(*(folder / name for folder in lists)) or base / name
    classes = lines_of(first_of(*(folder / "ClassName.txt" for folder in lists)) or base / "ClassName.txt")
    place = places_of(classes)
    rows = [
        (line.lstrip("/"), label_of(line.rpartition("/")[0], place, partition))
        for line in lines_of(partition)
    ]
    return listing_of(entry, base, split, rows, [name[3:] for name in classes])  # "/a/abbey"


def cars(entry: PublishedSet, root: Path, split: str) -> Listing:
    base = base_of(entry, root, "devkit")
    labelled = "cars_test_annos_withlabels.mat"
    annotations = base / "devkit/cars_train_annos.mat"
    if split == "test":
        annotations = first_of(base / labelled, base / "devkit" / labelled) or base / labelled
    folder = (
        f"cars_{split}/cars_{split}" if (base / f"cars_{split}/cars_{split}").is_dir() else f"cars_{split}"
    )

    def image(row: Any) -> tuple[str, int]:
        if not {"fname", "class"} <= set(row):
            raise DamagedFileError(f"'{annotations}' labels no images; is it the file with labels?")
        return f"{folder}/" + row["fname"], int(row["class"]) - 1

    names = mat(base / "devkit/cars_meta.mat", "class_names", str)
    return listing_of(entry, base, split, mat(annotations, "annotations", image), names)


def pets(entry: PublishedSet, root: Path, split: str) -> Listing:
    base = base_of(entry, root, "annotations")
    rows: list[tuple[str, int]] = []
    names: dict[int, str] = {}
    for part in ("trainval", "test"):  # the names are those of both: a class absent from one shifts no other
        path = base / f"annotations/{part}.txt"
        for line in lines_of(path):
            image, number = _fields(line, 2, path)
            names[int(number) - 1] = image.rpartition("_")[0].replace("_", " ")
            if (part == "test") == (split == "test"):
                rows.append((f"images/{image}.jpg", int(number) - 1))
    return listing_of(entry, base, split, rows, [names.get(label, "") for label in range(max(names) + 1)])


def flowers102(entry: PublishedSet, root: Path, split: str) -> Listing:
    base = base_of(entry, root, "jpg")
    labels = mat(base / "imagelabels.mat", "labels", int)
    keys = ("trnid", "valid") if split == "train" else ("tstid",)
    numbers = [number for key in keys for number in mat(base / "setid.mat", key, int)]
    outside = next((number for number in numbers if not 1 <= number <= len(labels)), None)
    if outside is not None:
        raise DamagedFileError(f"'{base / 'setid.mat'}': image {outside} has no label")
    rows = [(f"jpg/image_{number:05}.jpg", labels[number - 1] - 1) for number in numbers]
    return listing_of(entry, base, split, rows, _flower_names(max(labels, default=0)))


def _cifar(
    entry: PublishedSet, root: Path, split: str, batches: list[str], key: str, meta: tuple[str, str]
) -> Listing:
    base = base_of(entry, root, meta[0])
    absent = next((name for name in (*batches, meta[0]) if not (base / name).is_file()), None)
    if absent is not None:
        raise not_there(entry, root, f"'{base / absent}' is missing")
    source = Batches(tuple(base / name for name in batches))
    names = [str(name) for name in unpickled(base / meta[0]).get(meta[1], ())]
    return whole_listing(entry, source, split, source.labels(key), names)


@lru_cache
def _flower_names(count: int) -> list[str]:
    """As torchvision has them; the data set itself only numbers its classes."""
    if count <= 102 and find_spec("torchvision") is not None:
        from torchvision.datasets import Flowers102

        return list(Flowers102.classes)[:count]
    return [f"class {number}" for number in range(1, count + 1)]


def _fields(line: str, count: int, path: Path) -> list[str]:
    found = line.split()[:count]
    if len(found) != count or not found[-1].isdecimal():
        raise DamagedFileError(f"'{path}': the line '{line}' is not 'NAME NUMBER ...'")
    return found
