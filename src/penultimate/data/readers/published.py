"""Readers of published data sets: each gives the `Listing` of one split.

Where torchvision has a data set, its class says which images a split holds and what they show; nothing of
its own is decoded. An image that is listed but absent is named in `Listing.missing` and shifts no label.

Labels of ImageNet and of the sets that share its classes are places among the thousand sorted WordNet ids, in
ImageNet-A and -R too: those that occur are the subset to which predictions are restricted there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from penultimate.data.listing import Files, Listing
from penultimate.data.readers.entries import ENTRIES, PublishedSet
from penultimate.data.readers.found import SPAN, Found, listings
from penultimate.data.readers.tables import MARKS, read_table
from penultimate.data.readers.walking import are_there, first_of, folders_in, images_in, lines_of
from penultimate.data.seeding import derived_generator
from penultimate.errors import DamagedFileError, RequestError, nearest

PATHOLOGIES = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion")
"""The five of CheXpert's competition, and of the paper's Table D.1."""
CHEXPERT_HELD_OUT, CHEXPERT_IMAGES = 22_431, 223_414


def read_published(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Return a split of a data set in its folder, or in the folder that holds it.

    Raises RequestError, saying what goes where, for a folder that is not laid out as published.
    """
    return _READERS[entry.reader](entry, root, split)


def what_goes_where(name: str) -> str:
    """Return how an error ends that is of the layout of a data set."""
    return (
        f" What goes where: penultimate data check {name} --root DIR. Images of your own go by another"
        f" name than '{name}'."
    )


def _not_there(entry: PublishedSet, root: Path, why: str) -> RequestError:
    return RequestError(
        f"'{root}' is not {entry.card.title} as it is published: {why}.{what_goes_where(entry.card.name)}"
    )


def _base_of(entry: PublishedSet, root: Path) -> Path:
    """Return a published data set's folder: in --root, or --root itself."""
    if not root.is_dir():
        raise RequestError(
            f"'{root}' {'is a file' if root.exists() else 'does not exist'}; it is to hold {entry.card.title}"
        )
    return root / entry.folder if (root / entry.folder).is_dir() else root


def _listing(
    entry: PublishedSet,
    base: Path,
    split: str,
    paths: Sequence[str],
    labels: Sequence[int] | np.ndarray,
    names: Sequence[str],
) -> Listing:
    """Return the images of a published split that are there; those listed that are not are in `missing`."""
    labels = np.array(labels, np.int64)
    least, most = (-1, 1) if labels.ndim == 2 else (0, len(names) - 1)
    if labels.size and not least <= labels.min() <= labels.max() <= most:
        raise DamagedFileError(
            f"{entry.card.title}, {split}: its list gives an image a class that is unknown"
        )
    found = {"": Found(Files(base, tuple(paths)), labels, there=are_there(base, paths))}
    listed = listings(base, found, names)[0].get("")
    if listed is None:
        raise _not_there(entry, base, f"no image of the {split} split is there")
    return replace(listed, ids=[*entry.card.sizes].index(split) * SPAN + listed.ids)


def _torchvision(entry: PublishedSet, root: Path, **settings: Any) -> Any:
    """Return torchvision's data set; raises RequestError with its words where it finds none."""
    try:
        import torchvision.datasets
    except ImportError:
        raise RequestError(
            f"torchvision reads {entry.card.title}: pip install 'penultimate[models]'"
        ) from None
    base = _base_of(entry, root)
    if base.name != entry.folder:
        raise _not_there(entry, root, f"torchvision looks for a folder called {entry.folder}")
    try:
        return getattr(torchvision.datasets, entry.torchvision)(base.parent, **settings)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise _not_there(entry, root, f"torchvision says: {error}") from None


def torchvision_files(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read the files that a data set of torchvision's lists."""
    base, paths, labels, names = _base_of(entry, root), list[str](), list[int](), list[str]()
    for part in entry.parts[split]:
        data = _torchvision(entry, root, split=part)
        held = vars(data)
        files = held.get("_image_files") or held.get("_images")
        pairs = zip(files, held["_labels"], strict=True) if files else held["_samples"]
        for file, label in pairs:
            paths.append(Path(file).relative_to(base).as_posix())
            labels.append(int(label))
        names = list(data.classes)
    if entry.card.name == "pets":  # torchvision capitals its names, by which counterparts are known no more
        shown = {
            label: Path(path).stem.rpartition("_")[0].replace("_", " ")
            for path, label in zip(paths, labels, strict=True)
        }
        names = [shown.get(label, name) for label, name in enumerate(names)]
    return _listing(entry, base, split, paths, labels, names)


@dataclass(frozen=True)
class Pixels:
    """A `ImageSource`: images in memory, by their names, and the files that they came from."""

    pixels: np.ndarray
    called: Sequence[str]
    files: Sequence[Path]

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, place: int) -> np.ndarray:
        return np.asarray(self.pixels[place])

    def name(self, place: int) -> str:
        return self.called[place]


def cifar(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read CIFAR's arrays; of a set with a holdout, 5,000 of 50,000 or as many of a part are held out: those
    whose places in the batches, data_batch_2[17], have the smallest sha256."""
    held = _torchvision(entry, root, train=split != "test")
    batches = [name for name, _ in (held.test_list if split == "test" else held.train_list)]
    each = len(held.data) // len(batches)
    names = [f"{batches[place // each]}[{place % each}]" for place in range(len(held.data))]
    source = Pixels(held.data, names, [_base_of(entry, root) / name for name in batches])
    order = np.arange(len(names))
    ids = [*entry.card.sizes].index("test" if split == "test" else "train") * SPAN + order
    whole = Listing(source, order, np.array(held.targets, np.int64), ids, tuple(held.classes))
    return _part_of_training(entry, whole, split, str) if "holdout" in entry.card.sizes else whole


def birdsnap(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read its lists images.txt, species.txt and test_images.txt."""
    base = _base_of(entry, root)
    if not (base / "images.txt").exists():
        raise _not_there(entry, root, "it holds no images.txt")
    species, table = read_table(base / "species.txt"), read_table(base / "images.txt")
    tested = table["path"].isin(lines_of(base / "test_images.txt"))
    table = table[tested if split == "test" else ~tested]
    images = first_of(base / "download/images", base / "images") or base / "download/images"
    paths = [f"{images.relative_to(base).as_posix()}/{path}" for path in table["path"]]
    label_of = {key: label for label, key in enumerate(species["id"])}
    labels = [label_of.get(number, -1) for number in table["species_id"]]
    return _listing(entry, base, split, paths, labels, [*species["common"]])


def sun397(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read the first of its partitions, which torchvision does not have."""
    base = _base_of(entry, root)
    places = [base, base.parent, root, *(folder / "Partitions" for folder in (base, base.parent))]
    partition, classes = (
        first_of(*(folder / name for folder in places)) or base / name
        for name in ("Training_01.txt" if split == "train" else "Testing_01.txt", "ClassName.txt")
    )
    names, lines = lines_of(classes), lines_of(partition)
    label_of = {name: label for label, name in enumerate(names)}
    labels = [label_of.get(line.rpartition("/")[0], -1) for line in lines]
    paths = [line.lstrip("/") for line in lines]
    return _listing(entry, base, split, paths, labels, [name[3:] for name in names])  # "/a/abbey"


def chexpert(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read CheXpert's tables: 1 (present), 0 or blank (absent) and -1 (uncertain) of each pathology.

    "validation" are its 234 official images. Of the training images 22,431 (or as many of a part) are "test":
    those of patients drawn once and for all, so that no patient is in two splits.
    """
    folders = (root, *(root / name for name in ("CheXpert-v1.0", "CheXpert-v1.0-small")))
    base = next((folder for folder in folders if (folder / "train.csv").is_file()), None)
    if base is None:
        raise _not_there(entry, root, "it holds no train.csv")
    file = base / ("valid.csv" if split == "validation" else "train.csv")
    table = read_table(file)
    if lacking := [name for name in ("Path", *PATHOLOGIES) if name not in table.columns]:
        raise DamagedFileError(f"'{file}' has no column '{lacking[0]}'")
    paths = [path.partition("/")[2] if path.startswith("CheXpert") else path for path in table["Path"]]
    cells = (
        table[[*PATHOLOGIES]].fillna("0").map(lambda cell: MARKS.get(str(cell).strip().removesuffix(".0")))
    )
    if cells.isna().any(axis=None):
        raise DamagedFileError(f"'{file}': a pathology is 1, 0, -1 or blank")
    rows, first = np.arange(len(paths)), 0
    if split == "validation":
        first = len(read_table(base / "train.csv"))
    else:
        tested = _held_out_patients(file, [path.split("/")[1] for path in paths])
        rows = np.flatnonzero(tested == (split == "test"))
    labels = cells.to_numpy(np.int64)[rows]
    listing = _listing(entry, base, split, [paths[row] for row in rows], labels, PATHOLOGIES)
    return replace(listing, ids=rows[listing.ids % SPAN] + first)


def _held_out_patients(file: Path, patients: Sequence[str]) -> np.ndarray:
    """Return which rows are tested on: those of patients in a random order, whole, while there is room."""
    import torch

    names, of_row, counts = np.unique(patients, return_inverse=True, return_counts=True)
    room = max(1, round(CHEXPERT_HELD_OUT * len(patients) / CHEXPERT_IMAGES))
    chosen = np.zeros(len(names), bool)
    for place in torch.randperm(len(names), generator=derived_generator("chexpert", "test")).tolist():
        if counts[place] <= room:
            chosen[place], room = True, room - int(counts[place])
    if room or chosen.all():
        raise RequestError(f"'{file}': whole patients cannot be held out; is it complete?")
    tested: np.ndarray = chosen[of_row]
    return tested


def imagenet(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read class folders in train and val, torchvision's or Kaggle's, whose list says what is in val."""
    home = _base_of(entry, root)
    kaggle = (place / below for place in (home, root) for below in ("ILSVRC/Data/CLS-LOC", "Data/CLS-LOC"))
    base = first_of(*kaggle) or home
    folder = base / ("val" if split == "test" else "train")
    if not folder.is_dir():
        raise _not_there(entry, root, f"'{folder}' is no folder")
    if split == "train" or folders_in(folder):
        return _by_wnid(entry, base, folder, split)
    solution = first_of(*(place / "LOC_val_solution.csv" for place in (home, home.parent)))
    if solution is None:
        raise _not_there(
            entry,
            root,
            f"the images in '{folder}' lie in no class folders, and Kaggle's LOC_val_solution.csv is not"
            " beside them; penultimate data get imagenet sorts them from ILSVRC2012_img_val.tar",
        )
    shown = dict(line.split(",")[:2] for line in lines_of(solution)[1:])
    place, names = _imagenet_classes(home)
    images = images_in(folder)
    labels = [_label_of(shown.get(Path(name).stem, "")[:9] or name, place, solution) for name in images]
    return _listing(entry, base, split, [f"{folder.name}/{name}" for name in images], labels, names)


def wnid_folders(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read a folder for each class, named by its WordNet id, or (-V2) by its number among the sorted ids."""
    base = _base_of(entry, root)
    return _by_wnid(entry, base, base, split)


def corrupted(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read a corruption at a severity, "fog/3"; a folder of the archive's (weather) may stand above it.

    The images are the middle 224 x 224 pixels already, corrupted after the crop: the data set's own code
    (ImageNet-C/test.py) crops them to 224 x 224 and does not resize them.
    """
    base = _base_of(entry, root)
    folder = first_of(*(path / split for path in (base, *folders_in(base))))
    if folder is None:
        raise _not_there(entry, root, f"'{base}' holds no folder {split}")
    return replace(_by_wnid(entry, base, folder, split), cropped=True)


def _by_wnid(entry: PublishedSet, base: Path, folder: Path, split: str) -> Listing:
    place, names = _imagenet_classes(base)
    if entry.card.name == "imagenet_v2":
        place = {str(number): number for number in range(len(place))}
    classes = [each.name for each in folders_in(folder)]
    if not classes:
        raise _not_there(entry, base, f"'{folder}' holds no folders, one for each class")
    below = f"{folder.relative_to(base).as_posix()}/".removeprefix("./")
    paths, labels = list[str](), list[int]()
    for label, name in sorted((_label_of(name, place, folder), name) for name in classes):
        images = images_in(folder / name)
        paths += [f"{below}{name}/{image}" for image in images]
        labels += [label] * len(images)
    return _listing(entry, base, split, paths, labels, names)


def _label_of(name: str, places: Mapping[str, int], where: Path) -> int:
    if name not in places:
        raise DamagedFileError(
            f"'{where}': '{name}' is not one of the {len(places)} classes.{nearest(name, places)}"
        )
    return places[name]


def _imagenet_classes(root: Path) -> tuple[dict[str, int], list[str]]:
    """Return the label of each WordNet id, which is its place among the sorted ids, and the classes' names,
    from Kaggle's list beside the images or from the list that timm carries.
    """
    path = first_of(*(folder / "LOC_synset_mapping.txt" for folder in (root, *root.parents[:4])))
    words = {line[:9]: line[10:] for line in lines_of(path)} if path is not None else imagenet_words()
    if not words:
        raise RequestError(
            "which of ImageNet's classes is which is written nowhere: pip install 'penultimate[models]',"
            f" which carries the list, or put Kaggle's LOC_synset_mapping.txt into '{root}'"
        )
    wnids = sorted(words)
    names = [f"{wnid} {words[wnid].partition(',')[0]}" for wnid in wnids]
    return {wnid: label for label, wnid in enumerate(wnids)}, names


@lru_cache
def imagenet_words() -> dict[str, str]:
    """Return {WordNet id: words} of timm's files, without importing it, and torch with it."""
    spec = find_spec("timm")
    if spec is None or not spec.submodule_search_locations:
        return {}
    info = Path(spec.submodule_search_locations[0]) / "data/_info"
    lemmas = dict(line.split("\t", 1) for line in lines_of(info / "imagenet_synset_to_lemma.txt"))
    return {wnid: lemmas[wnid] for wnid in lines_of(info / "imagenet_synsets.txt")}


def held_out(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read ImageNet's training images but for the holdout, the holdout, or its validation images.

    Held out are the images whose names have the smallest sha256: 50,046, or as many of a part of ImageNet as
    that is of the whole, one at least.
    """
    whole = imagenet(ENTRIES["imagenet"], root, "test" if split == "test" else "train")
    return _part_of_training(entry, whole, split, lambda name: Path(name).name)


def _part_of_training(
    entry: PublishedSet, whole: Listing, split: str, called: Callable[[str], str]
) -> Listing:
    """Return the training images of a listing that are in a split; test images are all of theirs."""
    if split == "test":
        return whole
    sizes = entry.card.sizes
    share = sizes["holdout"] / (sizes["train"] + sizes["holdout"])
    digests = [hashlib.sha256(called(name).encode()).hexdigest() for name in whole.names]
    chosen = np.zeros(len(whole), bool)
    chosen[np.argsort(digests, kind="stable")[: max(1, round(share * len(whole)))]] = True
    part = whole.subset(chosen if split == "holdout" else ~chosen)
    return replace(part, missing=whole.missing if split == "train" else ())


def hundred(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read the images of the entry's classes alone, which are numbered again."""
    whole = imagenet(ENTRIES["imagenet"], root, split)
    wnids = {*entry.wnids.split()}
    places = [number for number, name in enumerate(whole.class_names) if name[:9] in wnids]
    part = whole.subset(np.isin(whole.labels, places))
    names = tuple(whole.class_names[place] for place in places)
    return replace(part, labels=np.searchsorted(places, part.labels).astype(np.int64), class_names=names)


_READERS: Mapping[str, Callable[[PublishedSet, Path, str], Listing]] = MappingProxyType(
    {
        "torchvision": torchvision_files,
        "cifar": cifar,
        "birdsnap": birdsnap,
        "sun397": sun397,
        "chexpert": chexpert,
        "imagenet": imagenet,
        "imagenet_held_out": held_out,
        "imagenet100": hundred,
        "wnid_folders": wnid_folders,
        "corrupted": corrupted,
    }
)
