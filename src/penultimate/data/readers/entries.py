"""Published image data sets, read from `published.toml`: a new one is a block in it.

Splits are those of Kornblith et al. (2021), table A.2, corrected: "train" is all that is not tested on, and
so the official validation images of Flowers are in it; ImageNet is tested on its validation images.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from penultimate.data.catalog import DatasetCard
from penultimate.data.corruptions.catalogue import PUBLISHED, SEVERITIES
from penultimate.errors import unknown

FILE = Path(__file__).with_name("published.toml")


@dataclass(frozen=True)
class PublishedSet:
    """A published data set that a user has on disk.

    card          what it is, with the official number of images of each split and the official score
    reader        what reads it, by its name in `published`
    folder        what its folder is called; --root is that folder, or the one that holds it
    layout        which files go where in it
    obtain        where to get it
    torchvision   torchvision's class of it, if there is one
    downloads     whether that class downloads it
    """

    card: DatasetCard
    reader: str
    folder: str
    layout: str
    obtain: str
    torchvision: str = ""
    downloads: bool = False


def _read() -> dict[str, PublishedSet]:
    found = {}
    for said in tomllib.loads(FILE.read_text("utf-8"))["set"]:
        card: dict[str, Any] = {"accuracy": "top1", "note": "", "source": ""}
        if said["reader"] == "corrupted":
            said["sizes"] = {f"{kind}/{severity}": 50000 for kind in PUBLISHED for severity in SEVERITIES}
        card |= {name: said.pop(name) for name in DatasetCard.__dataclass_fields__ if name in said}
        found[card["name"]] = PublishedSet(DatasetCard(**card), **said)
    return found


def _part(whole: PublishedSet, reader: str, **changes: Any) -> PublishedSet:
    """Return a part of a data set, which is read from the same folder."""
    return replace(whole, card=replace(whole.card, **changes), reader=reader)


def _with_holdout(whole: PublishedSet, count: int, reader: str, which: str) -> PublishedSet:
    card, sizes = whole.card, whole.card.sizes
    return _part(
        whole,
        reader,
        name=f"{card.name}_tuning",
        title=f"{card.title.partition(' (')[0]} with a holdout",
        sizes={"train": sizes["train"] - count, "test": sizes["test"], "holdout": count},
        note=f"Of its training images {count:,} are held out, as in Kornblith et al. (2021); {which} the"
        " paper does not say: those whose names have the smallest sha256.",
    )


def _parts(whole: Mapping[str, PublishedSet]) -> tuple[PublishedSet, ...]:
    return (
        _with_holdout(whole["imagenet"], 50_046, "imagenet_held_out", "which"),
        _part(
            whole["imagenet"],
            "imagenet100",
            name="imagenet100",
            title="ImageNet-100",
            classes=100,
            sizes={"train": 126689, "test": 5000},
            citation="Tian et al., Contrastive Multiview Coding, ECCV 2020, whose hundred classes these are",
            note="A hundred of ImageNet's classes, drawn by the authors cited. Tested on its validation"
            " images.",
        ),
        *(
            _with_holdout(whole[name], 5_000, "cifar", "how many and which")
            for name in ("cifar10", "cifar100")
        ),
    )


_SETS = _read()
ENTRIES: Mapping[str, PublishedSet] = MappingProxyType(
    {**_SETS, **{entry.card.name: entry for entry in _parts(_SETS)}}
)


def entry(name: str) -> PublishedSet:
    """Return the entry of that name; an unknown one raises with the nearest."""
    if name not in ENTRIES:
        raise unknown("published data set", name, ENTRIES)
    return ENTRIES[name]
