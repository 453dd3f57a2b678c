"""Readers of ImageNet, of parts of it and of CIFAR, and of the test sets that share ImageNet's classes.

Every label is the place of a class among the sorted WordNet ids of all thousand, in ImageNet-A and -R too:
those that occur are the subset to which predictions are restricted there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from penultimate.data.listing import Listing
from penultimate.data.readers.entries import ENTRIES, PublishedSet
from penultimate.data.readers.reading import base_of, first_of, lines_of, listing_of, not_there
from penultimate.data.readers.walking import entries_of, images_in
from penultimate.errors import DamagedFileError, RequestError, nearest

_PART = {"train": "train", "test": "val"}
WNIDS = """
n01558993 n01692333 n01729322 n01735189 n01749939 n01773797 n01820546 n01855672 n01978455 n01980166
n01983481 n02009229 n02018207 n02085620 n02086240 n02086910 n02087046 n02089867 n02089973 n02090622
n02091831 n02093428 n02099849 n02100583 n02104029 n02105505 n02106550 n02107142 n02108089 n02109047
n02113799 n02113978 n02114855 n02116738 n02119022 n02123045 n02138441 n02172182 n02231487 n02259212
n02326432 n02396427 n02483362 n02488291 n02701002 n02788148 n02804414 n02859443 n02869837 n02877765
n02974003 n03017168 n03032252 n03062245 n03085013 n03259280 n03379051 n03424325 n03492542 n03494278
n03530642 n03584829 n03594734 n03637318 n03642806 n03764736 n03775546 n03777754 n03785016 n03787032
n03794056 n03837869 n03891251 n03903868 n03930630 n03947888 n04026417 n04067472 n04099969 n04111531
n04127249 n04136333 n04229816 n04238763 n04336792 n04418357 n04429376 n04435653 n04485082 n04493381
n04517823 n04589890 n04592741 n07714571 n07715103 n07753275 n07831146 n07836838 n13037406 n13040303
"""
HUNDRED = frozenset(WNIDS.split())
"""The classes of ImageNet-100, by their WordNet ids: Tian et al., ECCV 2020."""


def imagenet(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read class folders in train and val, torchvision's or Kaggle's, whose list says what is in val."""
    home = base_of(entry, root, "")
    kaggle = (place / below for place in (home, root) for below in ("ILSVRC/Data/CLS-LOC", "Data/CLS-LOC"))
    base = first_of(*kaggle) or home
    folder = base / _PART[split]
    if not folder.is_dir():
        raise not_there(entry, root, f"'{folder}' is no folder")
    if split == "train" or any(each.is_dir() for each in entries_of(folder)):
        return _by_wnid(entry, base, folder, split)
    solution = first_of(*(place / "LOC_val_solution.csv" for place in (home, home.parent)))
    if solution is None:
        raise not_there(
            entry,
            root,
            f"the images in '{folder}' lie in no class folders, and Kaggle's LOC_val_solution.csv is not"
            " beside them; penultimate data get imagenet sorts them from ILSVRC2012_img_val.tar",
        )
    shown = dict(line.split(",")[:2] for line in lines_of(solution)[1:])
    place, names = _imagenet_classes(home)
    rows = []
    for name in images_in(folder):
        wnid = shown.get(name.partition(".")[0], "")[:9]
        rows.append((f"{folder.name}/{name}", _label_of(wnid or name, place, solution)))
    return listing_of(entry, base, split, rows, names)


def wnid_folders(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read a folder for each class, named by its WordNet id, or (-V2) by its number among the sorted ids."""
    base = base_of(entry, root, "")
    return _by_wnid(entry, base, base, split)


def corrupted(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read a corruption at a severity, "fog/3"; a folder of the archive's (weather) may stand above it.

    The images are the middle 224 x 224 pixels already, corrupted after the crop: the data set's own code
    (ImageNet-C/test.py) crops them to 224 x 224 and does not resize them.
    """
    base = base_of(entry, root, "")
    above = [base, *(Path(each.path) for each in entries_of(base) if each.is_dir())]
    folder = first_of(*(path / split for path in above))
    if folder is None:
        raise not_there(entry, root, f"'{base}' holds no folder {split}")
    return replace(_by_wnid(entry, base, folder, split), cropped=True)


def _by_wnid(entry: PublishedSet, base: Path, folder: Path, split: str) -> Listing:
    place, names = _imagenet_classes(base)
    if entry.card.name == "imagenet_v2":
        place = {str(number): number for number in range(len(place))}
    found = [each.name for each in entries_of(folder) if each.is_dir()]
    if not found:
        raise not_there(entry, base, f"'{folder}' holds no folders, one for each class")
    below = f"{folder.relative_to(base).as_posix()}/".removeprefix("./")
    rows = [
        (f"{below}{name}/{image}", label)
        for label, name in sorted((_label_of(name, place, folder), name) for name in found)
        for image in images_in(folder / name)
    ]
    return listing_of(entry, base, split, rows, names)


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
    words = {line[:9]: line[10:] for line in lines_of(path)} if path is not None else _timm_words()
    if not words:
        raise RequestError(
            "which of ImageNet's classes is which is written nowhere: pip install 'penultimate[models]',"
            f" which carries the list, or put Kaggle's LOC_synset_mapping.txt into '{root}'"
        )
    wnids = sorted(words)
    names = [f"{wnid} {words[wnid].partition(',')[0]}" for wnid in wnids]
    return {wnid: label for label, wnid in enumerate(wnids)}, names


@lru_cache
def _timm_words() -> dict[str, str]:
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
    return part_of_training(entry, whole, split, lambda name: Path(name).name)


def part_of_training(
    entry: PublishedSet, whole: Listing, split: str, called: Callable[[str], str]
) -> Listing:
    """Return the training images of a listing that are in a split; test images are all of theirs."""
    if split == "test":
        return whole
    sizes = entry.card.sizes
    share = sizes["holdout"] / (sizes["train"] + sizes["holdout"])
    order = np.argsort(
        [hashlib.sha256(called(name).encode()).hexdigest() for name in whole.names], kind="stable"
    )
    chosen = np.zeros(len(whole), bool)
    chosen[order[: max(1, round(share * len(whole)))]] = True
    kept = whole.subset(chosen if split == "holdout" else ~chosen)
    return replace(kept, missing=whole.missing if split == "train" else ())


def hundred(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Read the images of a hundred classes, which are numbered again; others are left out."""
    whole = imagenet(ENTRIES["imagenet"], root, split)
    places = [number for number, name in enumerate(whole.class_names) if name[:9] in HUNDRED]
    kept = whole.subset(np.isin(whole.labels, places))
    names = tuple(whole.class_names[place] for place in places)
    return replace(kept, labels=np.searchsorted(places, kept.labels).astype(np.int64), class_names=names)
