"""Published image data sets, read from `published.toml`: a new one is a block in it.

Splits are those of Kornblith et al. (2021), table A.2, corrected: "train" is all that is not tested on, and
so the official validation images of Flowers are in it; ImageNet is tested on its validation images.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    parts         torchvision's names of our splits
    wnids         the WordNet ids of the classes that a part of ImageNet has
    """

    card: DatasetCard
    reader: str
    folder: str
    layout: str
    obtain: str
    torchvision: str = ""
    downloads: bool = False
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    wnids: str = ""


def _read() -> dict[str, PublishedSet]:
    blocks: dict[str, dict[str, Any]] = {}
    found = {}
    for block in tomllib.loads(FILE.read_text("utf-8"))["set"]:
        said = blocks[block["name"]] = {**blocks.get(block.pop("of", ""), {}), **block}
        if said["reader"] == "corrupted":
            said["sizes"] = {f"{kind}/{severity}": 50000 for kind in PUBLISHED for severity in SEVERITIES}
        card = {name: said[name] for name in DatasetCard.__dataclass_fields__ if name in said}
        others = {name: value for name, value in said.items() if name not in card}
        found[said["name"]] = PublishedSet(DatasetCard(**{"accuracy": "top1", **card}), **others)
    return found


ENTRIES: Mapping[str, PublishedSet] = MappingProxyType(_read())


def entry(name: str) -> PublishedSet:
    """Return the entry of that name; an unknown one raises with the nearest."""
    if name not in ENTRIES:
        raise unknown("published data set", name, ENTRIES)
    return ENTRIES[name]
