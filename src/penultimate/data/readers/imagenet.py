"""Readers of ImageNet and of the test sets that share its classes, as they are published.

Every label is the place of a class among the sorted WordNet ids of all thousand, in ImageNet-A and -R too:
those that occur are the subset to which predictions are restricted there.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from penultimate.data.corruptions.catalogue import check_corruption
from penultimate.data.listing import Listing
from penultimate.data.readers.entries import PublishedSet
from penultimate.data.readers.matlab import elements
from penultimate.data.readers.reading import (
    base_of,
    first_of,
    images_in,
    is_image,
    label_of,
    lines_of,
    listing_of,
    not_there,
    rows_of,
    visible,
    whole_listing,
)
from penultimate.data.readers.sources import members
from penultimate.errors import DamagedFileError, RequestError

DEVKIT = "ILSVRC2012_devkit_t12"
TRUTH = "ILSVRC2012_validation_ground_truth.txt"
_PART = {"train": "train", "test": "val"}


def imagenet(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Folders or archives; torchvision's, the challenge's and Kaggle's arrangement."""
    home = base_of(entry, root, "")
    kaggle = (place / below for place in (home, root) for below in ("ILSVRC/Data/CLS-LOC", "Data/CLS-LOC"))
    base = first_of(*kaggle) or home
    place, names = _imagenet_classes(home)
    archive = first_of(*(f / f"ILSVRC2012_img_{_PART[split]}.tar" for f in (base, home, root)))
    folder = base / _PART[split]
    if folder.is_dir() and (split == "train" or any(path.is_dir() for path in folder.iterdir())):
        return _by_wnid(entry, base, folder, split, place, names)
    if folder.is_dir():
        truth = _validation_wnids(home)
        rows = [
            (f"{folder.name}/{name}", label_of(truth(name), place, folder))
            for name in sorted(images_in(folder))
        ]
        return listing_of(entry, base, split, rows, names)
    if archive is None:
        raise not_there(entry, root, f"{_PART[split]} is neither a folder nor an archive in '{base}'")
    source = members(archive)
    truth = _validation_wnids(home) if split == "test" else lambda name: name.partition("/")[0]
    places = [number for number, name in enumerate(source.names) if is_image(name)]
    labels = [label_of(truth(source.names[number]), place, archive) for number in places]
    return whole_listing(entry, source, split, np.array(labels, np.int64), names, np.array(places, np.int64))


def wnid_folders(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Return a folder for each class, named by its WordNet id, or (-V2)
    by its number among the sorted ids.
    """
    base = base_of(entry, root, "")
    place, names = _imagenet_classes(root)
    if entry.card.name == "imagenet_v2":
        place = {str(number): number for number in range(len(place))}
    return _by_wnid(entry, base, base, split, place, names)


def corrupted(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Return a corruption at a severity, "fog/3"; a folder of the archive's (weather) may stand above it.

    The images are the middle 224 x 224 pixels already, corrupted after the crop: the data set's own code
    (ImageNet-C/test.py) crops them to 224 x 224 and does not resize them.
    """
    base = base_of(entry, root, "")
    corruption, _, severity = split.partition("/")
    check_corruption(corruption, int(severity))
    above = [base, *sorted(path for path in visible(base) if path.is_dir())]
    folder = first_of(*(path / split for path in above))
    if folder is None:
        raise not_there(entry, root, f"'{base}' holds no folder {split}")
    return replace(_by_wnid(entry, base, folder, split, *_imagenet_classes(root)), cropped=True)


def _by_wnid(
    entry: PublishedSet, base: Path, folder: Path, split: str, place: Mapping[str, int], names: Sequence[str]
) -> Listing:
    """Return a folder for each class; those present are the class subset to which -A
    and -R restrict predictions.
    """
    rows: list[tuple[str, int]] = []
    folders = [path for path in visible(folder) if path.is_dir()]
    if not folders:
        raise not_there(entry, base, f"'{folder}' holds no folders, one for each class")
    for label, path in sorted((label_of(path.name, place, folder), path) for path in folders):
        below = path.relative_to(base).as_posix()
        rows += [(f"{below}/{name}", label) for name in sorted(images_in(path))]
    return listing_of(entry, base, split, rows, names)


def _imagenet_classes(root: Path) -> tuple[dict[str, int], list[str]]:
    """Return the label of each WordNet id, which is its place among the sorted ids, and the classes' names.

    From the copy's own devkit or Kaggle's list; else from the list that timm carries.
    """
    words = _devkit_words(root) or _kaggle_words(root) or _timm_words()
    if not words:
        raise RequestError(
            f"which of ImageNet's classes is which is written nowhere: put {DEVKIT}.tar.gz into '{root}', or"
            " pip install 'penultimate[models]', which carries the list"
        )
    wnids = sorted(words)
    names = [f"{wnid} {words[wnid].partition(',')[0]}" for wnid in wnids]
    return {wnid: label for label, wnid in enumerate(wnids)}, names


def _devkit_words(root: Path) -> dict[str, str]:
    return dict(_synsets(root).values())


def _synsets(root: Path) -> dict[int, tuple[str, str]]:
    """Return the devkit's number of each class (a synset without children): its WordNet id and its words."""
    content = _devkit(root, "meta.mat")
    if content is None:
        return {}
    synsets = elements(
        content,
        f"{DEVKIT}/data/meta.mat in '{root}'",
        "synsets",
        lambda row: (
            int(row["num_children"]),
            int(row["ILSVRC2012_ID"]),
            str(row["WNID"]),
            str(row["words"]),
        ),
    )
    return {number: (wnid, words) for children, number, wnid, words in synsets if children == 0}


def _devkit(root: Path, name: str) -> bytes | None:
    """Return a file of the devkit, unpacked or as it comes; None where there is no devkit."""
    for base in (root, root.parent):
        if (base / DEVKIT / "data" / name).is_file():
            return (base / DEVKIT / "data" / name).read_bytes()
        if (base / f"{DEVKIT}.tar.gz").is_file():
            try:
                with tarfile.open(base / f"{DEVKIT}.tar.gz") as tar:
                    file = tar.extractfile(f"{DEVKIT}/data/{name}")
                    return None if file is None else file.read()
            except (tarfile.TarError, OSError, EOFError, KeyError, zlib.error) as error:
                raise DamagedFileError(f"'{base / DEVKIT}.tar.gz' is not the whole devkit: {error}") from None
    return None


def _kaggle_words(root: Path) -> dict[str, str]:
    path = first_of(*(folder / "LOC_synset_mapping.txt" for folder in (root, root.parent)))
    return {} if path is None else {line[:9]: line[10:] for line in lines_of(path)}


@lru_cache
def _timm_words() -> dict[str, str]:
    """From timm's files, without importing it, and torch with it."""
    spec = find_spec("timm")
    if spec is None or not spec.submodule_search_locations:
        return {}
    info = Path(spec.submodule_search_locations[0]) / "data/_info"
    lemmas = dict(line.split("\t", 1) for line in lines_of(info / "imagenet_synset_to_lemma.txt"))
    return {wnid: lemmas[wnid] for wnid in lines_of(info / "imagenet_synsets.txt")}


def _validation_wnids(root: Path) -> Callable[[str], str]:
    """Return what gives the WordNet id of a validation image by its file's name."""
    numbers = _devkit(root, TRUTH)
    kaggle = first_of(*(folder / "LOC_val_solution.csv" for folder in (root, root.parent)))
    truth: dict[str, str] = {}
    if numbers is not None:
        synsets = _synsets(root)
        try:
            shown = [synsets.get(int(line), ("", ""))[0] for line in numbers.decode().split()]
        except ValueError as error:
            raise DamagedFileError(f"'{TRUTH}' in the devkit of '{root}' lists no classes: {error}") from None
        truth = {f"ILSVRC2012_val_{number:08}": wnid for number, wnid in enumerate(shown, 1)}
    elif kaggle is not None:
        solutions = rows_of(kaggle, ",", "ImageId", "PredictionString")
        truth = {row["ImageId"]: row["PredictionString"][:9] for row in solutions}
    if truth:
        return lambda name: truth.get(Path(name).stem, Path(name).stem)
    raise RequestError(
        f"the validation images in '{root}' lie in no class folders, and what they show is written nowhere:"
        f" put {DEVKIT}.tar.gz (or Kaggle's LOC_val_solution.csv) into '{root}'"
    )
