"""Parts of ImageNet and CIFAR: with training images held out, and ImageNet's of a hundred classes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from penultimate.data.listing import Listing
from penultimate.data.readers.entries import ENTRIES, PublishedSet
from penultimate.data.readers.imagenet import imagenet
from penultimate.data.readers.published import cifar10, cifar100

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


def held_out(entry: PublishedSet, root: Path, split: str) -> Listing:
    """ImageNet's training images but for the holdout, the holdout, or its validation images.

    Held out are the images whose names have the smallest sha256: 50,046, or as many of a part of ImageNet as
    that is of the whole, one at least.
    """
    whole = imagenet(ENTRIES["imagenet"], root, "test" if split == "test" else "train")
    return _part_of(entry, whole, split, lambda name: Path(name).name)


def cifar_held_out(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Return CIFAR's training images but for the holdout, the holdout, or its test images.

    Held out are 5,000 of 50,000, or as many of a part: those whose places in the batches have the smallest
    sha256.
    """
    read, published = {"cifar10_tuning": (cifar10, "cifar10"), "cifar100_tuning": (cifar100, "cifar100")}[
        entry.card.name
    ]
    whole = read(ENTRIES[published], root, "test" if split == "test" else "train")
    return _part_of(entry, whole, split, str)


def _part_of(entry: PublishedSet, whole: Listing, split: str, called: Callable[[str], str]) -> Listing:
    """Return the training images of a listing that are in a split; test images are all of theirs."""
    if split == "test":
        return whole
    sizes = entry.card.sizes
    share = sizes["holdout"] / (sizes["train"] + sizes["holdout"])
    names = (called(whole.name(row)) for row in range(len(whole)))
    order = np.argsort([hashlib.sha256(name.encode()).hexdigest() for name in names], kind="stable")
    chosen = np.zeros(len(whole), bool)
    chosen[order[: max(1, round(share * len(whole)))]] = True
    kept = whole.subset(chosen if split == "holdout" else ~chosen)
    return replace(kept, missing=whole.missing if split == "train" else ())


def hundred(entry: PublishedSet, root: Path, split: str) -> Listing:
    """Return the images of a hundred classes, which are numbered again;
    those of other classes are left out.
    """
    whole = imagenet(ENTRIES["imagenet"], root, split)
    places = [number for number, name in enumerate(whole.class_names) if name[:9] in HUNDRED]
    kept = whole.subset(np.isin(whole.labels, places))
    names = tuple(whole.class_names[place] for place in places)
    return replace(kept, labels=np.searchsorted(places, kept.labels).astype(np.int64), class_names=names)
