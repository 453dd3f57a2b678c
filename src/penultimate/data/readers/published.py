"""Readers of published data sets: each gives the `Listing` of one split.

Where torchvision has a data set, its class says which images a split holds and what they show; nothing of
its own is decoded. An image that is listed but absent is named in `Listing.missing` and shifts no label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from penultimate.data.listing import Listing
from penultimate.data.readers import imagenet
from penultimate.data.readers.entries import PublishedSet
from penultimate.data.readers.reading import (
    SPAN,
    base_of,
    first_of,
    lines_of,
    listing_of,
    not_there,
)
from penultimate.data.readers.tables import MARKS, read_table
from penultimate.data.seeding import derived_generator
from penultimate.errors import DamagedFileError, RequestError

SPLITS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "Food101": {"train": ("train",), "test": ("test",)},
        "Flowers102": {"train": ("train", "val"), "test": ("test",)},
        "OxfordIIITPet": {"train": ("trainval",), "test": ("test",)},
        "StanfordCars": {"train": ("train",), "test": ("test",)},
    }
)
"""The data sets of files that torchvision lists, each with its names of our splits."""
PATHOLOGIES = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion")
"""The five of CheXpert's competition, and of the paper's Table D.1."""
CHEXPERT_HELD_OUT, CHEXPERT_IMAGES = 22_431, 223_414


def read_published(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Return a split of a data set in its folder, or in the folder that holds it.

    Raises RequestError, saying what goes where, for a folder that is not laid out as published.
    """
    return _READERS[entry.reader](entry, root, split)


def _torchvision(entry: PublishedSet, root: Path, **settings: Any) -> Any:
    """Return torchvision's data set; raises RequestError with its words where it finds none."""
    try:
        import torchvision.datasets
    except ImportError:
        raise RequestError(
            f"torchvision reads {entry.card.title}: pip install 'penultimate[models]'"
        ) from None
    base = base_of(entry, root, "")
    if base.name != entry.folder:
        raise not_there(entry, root, f"torchvision looks for a folder called {entry.folder}")
    try:
        return getattr(torchvision.datasets, entry.torchvision)(base.parent, **settings)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise not_there(entry, root, f"torchvision says: {error}") from None


def torchvision_files(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read the files that a data set of torchvision's lists."""
    base, rows, names = base_of(entry, root, ""), list[tuple[str, int]](), list[str]()
    for part in SPLITS[entry.torchvision][split]:
        held = vars(_torchvision(entry, root, split=part))
        names = held["classes"] if "classes" in held else _class_names(entry)
        files = held.get("_image_files") or held.get("_images")
        pairs = zip(files, held["_labels"], strict=True) if files else held["_samples"]
        rows += [(Path(file).relative_to(base).as_posix(), int(label)) for file, label in pairs]
    if entry.card.name == "pets":  # torchvision capitals its names, by which counterparts are known no more
        shown = {label: Path(path).stem.rpartition("_")[0].replace("_", " ") for path, label in rows}
        names = [shown.get(label, name) for label, name in enumerate(names)]
    return listing_of(entry, base, split, rows, names)


def _class_names(entry: PublishedSet) -> list[str]:
    import torchvision.datasets

    return list(getattr(torchvision.datasets, entry.torchvision).classes)


@dataclass(frozen=True)
class Cifar:
    """A `ImageSource`: the images of torchvision's CIFAR-10 or CIFAR-100, read in each process again."""

    entry: PublishedSet
    root: Path
    trained: bool

    @cached_property
    def held(self) -> Any:
        return _torchvision(self.entry, self.root, train=self.trained)

    def __getstate__(self) -> dict[str, Any]:
        return {"entry": self.entry, "root": self.root, "trained": self.trained}

    def __len__(self) -> int:
        return len(self.held.data)

    def __getitem__(self, place: int) -> np.ndarray:
        return np.asarray(self.held.data[place])

    def name(self, place: int) -> str:
        """Return the file of an image, and its place there: data_batch_2[17]."""
        each = len(self) // len(self._batches)
        return f"{self._batches[place // each]}[{place % each}]"

    @property
    def _batches(self) -> list[str]:
        lists = self.held.train_list if self.trained else self.held.test_list
        return [name for name, _ in lists]

    @property
    def files(self) -> Sequence[Path]:
        return [base_of(self.entry, self.root, "") / name for name in self._batches]


def cifar(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read CIFAR's arrays; of a set with a holdout, 5,000 of 50,000 or as many of a part are held out: those
    whose places in the batches have the smallest sha256."""
    source = Cifar(entry, root, split != "test")
    labels = np.array(source.held.targets, np.int64)
    order = np.arange(len(labels))
    ids = list(entry.card.sizes).index("test" if split == "test" else "train") * SPAN + order
    whole = Listing(source, order, labels, ids, tuple(source.held.classes))
    return imagenet.part_of_training(entry, whole, split, str) if "holdout" in entry.card.sizes else whole


def birdsnap(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read its lists images.txt, species.txt and test_images.txt."""
    base = base_of(entry, root, "images.txt")
    species = read_table(base / "species.txt")
    place = {key: label for label, key in enumerate(species["id"])}
    tested = {*lines_of(base / "test_images.txt")}
    images = first_of(base / "download/images", base / "images") or base / "download/images"
    folder = images.relative_to(base).as_posix()
    table = read_table(base / "images.txt")
    rows = [
        (f"{folder}/{path}", place.get(number, -1))
        for path, number in zip(table["path"], table["species_id"], strict=True)
        if (path in tested) == (split == "test")
    ]
    return listing_of(entry, base, split, rows, [*species["common"]])


def sun397(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read the first of its partitions, which torchvision does not have."""
    base = base_of(entry, root, "a/abbey")
    lists = [base, base.parent, root, *(folder / "Partitions" for folder in (base, base.parent))]
    partition, classes = (
        first_of(*(folder / name for folder in lists)) or base / name
        for name in ("Training_01.txt" if split == "train" else "Testing_01.txt", "ClassName.txt")
    )
    names = lines_of(classes)
    place = {name: label for label, name in enumerate(names)}
    rows = [(line.lstrip("/"), place.get(line.rpartition("/")[0], -1)) for line in lines_of(partition)]
    return listing_of(entry, base, split, rows, [name[3:] for name in names])  # "/a/abbey"


def chexpert(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read CheXpert's tables: 1 (present), 0 or blank (absent) and -1 (uncertain) of each pathology.

    "validation" are its 234 official images. Of the training images 22,431 (or as many of a part) are "test":
    those of patients drawn once and for all, so that no patient is in two splits.
    """
    folders = (root, *(root / name for name in ("CheXpert-v1.0", "CheXpert-v1.0-small")))
    base = next((folder for folder in folders if (folder / "train.csv").is_file()), None)
    if base is None:
        raise not_there(entry, root, "it holds no train.csv")
    file = base / ("valid.csv" if split == "validation" else "train.csv")
    table = read_table(file)
    lacking = [name for name in ("Path", *PATHOLOGIES) if name not in table.columns]
    if lacking:
        raise DamagedFileError(f"'{file}' has no column '{lacking[0]}'")
    paths = [path.partition("/")[2] if path.startswith("CheXpert") else path for path in table["Path"]]
    texts = [[str(cell or "0").strip().removesuffix(".0") for cell in table[name]] for name in PATHOLOGIES]
    cells = [[MARKS.get(text) for text in column] for column in texts]
    if any(None in column for column in cells):
        raise DamagedFileError(f"'{file}': a pathology is 1, 0, -1 or blank")
    rows = np.arange(len(paths))
    first = 0 if split != "validation" else len(read_table(base / "train.csv"))
    if split != "validation":
        tested = _held_out_patients(file, [path.split("/")[1] for path in paths])
        rows = np.flatnonzero(tested if split == "test" else ~tested)
    labels = np.array(cells, np.int64).T[rows]
    listing = listing_of(entry, base, split, [(paths[row], 0) for row in rows], PATHOLOGIES)
    kept = listing.ids % SPAN
    return Listing(
        listing.source, listing.places, labels[kept], rows[kept] + first, PATHOLOGIES, listing.missing
    )


def _held_out_patients(file: Path, patients: Sequence[str]) -> np.ndarray:
    """Return which rows are tested on: those of patients in a random order, whole, while there is room."""
    import torch

    names, of_row, counts = np.unique(patients, return_inverse=True, return_counts=True)
    left = max(1, round(CHEXPERT_HELD_OUT * len(patients) / CHEXPERT_IMAGES))
    chosen = np.zeros(len(names), bool)
    for place in torch.randperm(len(names), generator=derived_generator("chexpert", "test")).tolist():
        if counts[place] <= left:
            chosen[place], left = True, left - int(counts[place])
    if left or chosen.all():
        raise RequestError(f"'{file}': whole patients cannot be held out; is it complete?")
    tested: np.ndarray = chosen[of_row]
    return tested


_READERS: Mapping[str, Callable[[PublishedSet, Path, str], Listing]] = MappingProxyType(
    {
        "torchvision": torchvision_files,
        "cifar": cifar,
        "birdsnap": birdsnap,
        "sun397": sun397,
        "chexpert": chexpert,
        "imagenet": imagenet.imagenet,
        "imagenet_held_out": imagenet.held_out,
        "imagenet100": imagenet.hundred,
        "wnid_folders": imagenet.wnid_folders,
        "corrupted": imagenet.corrupted,
    }
)
