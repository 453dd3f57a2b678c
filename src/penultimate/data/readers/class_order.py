"""The order in which a network's outputs number the classes, as a user says it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from penultimate.data.listing import Listing
from penultimate.data.readers.walking import some
from penultimate.errors import DamagedFileError, RequestError, nearest
from penultimate.files import given_path

WITHIN = ("class_to_idx", "idx_to_class", "id2label", "label2id", "class_names", "classes", "names")
"""The entries of a configuration that hold an order of classes."""
ClassOrder: TypeAlias = str | tuple[str, ...]
"""The name of a usual order, or the names of the classes in theirs."""


def _natural(name: str) -> list[Any]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name.lower())]


KEYS: Mapping[str, Callable[[str], Any]] = {"text": str, "natural": _natural}
USUAL = {
    "text": "as plain text, as torchvision's ImageFolder, Keras, fastai and Hugging Face number them",
    "natural": "with their numbers as numbers, as timm numbers them",
}
"""The usual orders of class names, and who numbers classes so."""


def read_class_order(said: str | Path | Sequence[str] | Mapping[Any, Any]) -> ClassOrder:
    """Return the order that is said: by a usual one's name, as names, as {name: place} or {place: name}.

    A path stands for a JSON file that holds one of these (a `class_to_idx`, or a configuration with an
    `id2label`), or for a text file with a name in each line. Raises RequestError for anything else.
    """
    if not isinstance(said, str | Path):
        return _names("class_order", said)
    if str(said) in KEYS:
        return str(said)
    path = given_path(said, "class_order", home=True)
    if not path.is_file():
        raise RequestError(
            f"the order of classes is {', '.join(KEYS)} or a JSON file of names; there is no file '{said}'"
        )
    try:
        text = path.read_text("utf-8-sig")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        held = lines if path.suffix.lower() == ".txt" else json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFileError(f"'{path}' is no JSON file of names: {error}") from None
    return _names(f"'{path}'", held)


def _names(what: str, order: Any) -> tuple[str, ...]:
    if isinstance(order, Mapping):
        order = next((order[name] for name in WITHIN if isinstance(order.get(name), dict | list)), order)
    if isinstance(order, Mapping):
        by_name = all(type(place) is int for place in order.values())
        name_of = {str(place): name for name, place in order.items()} if by_name else order
        name_of = {str(place): name for place, name in name_of.items()}
        if name_of.keys() != {*map(str, range(len(order)))}:
            raise RequestError(
                f"{what} does not number its {len(order):,} classes from 0 to {len(order) - 1:,}: {{name:"
                " place} or {place: name} is expected"
            )
        order = [name_of[str(place)] for place in range(len(order))]
    names = tuple(order) if isinstance(order, list | tuple) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise RequestError(
            f"{what} holds no order of classes: a list of names or {{name: place}} is expected"
        )
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise RequestError(f"{what} names {some(twice, 'class', 'classes')} more than once")
    return names


def in_class_order(where: object, listing: Listing, order: ClassOrder) -> Listing:
    """Return a listing whose classes are numbered in an order.

    The order may name classes that have no images. Raises RequestError for an order that lacks a class.
    """
    if listing.labels.ndim > 1:
        raise RequestError(f"'{where}' has several labels for an image, and no order of classes")
    old = listing.class_names
    names = tuple(sorted(sorted(old), key=KEYS[order])) if isinstance(order, str) else order
    place = {name: label for label, name in enumerate(names)}
    if lacking := [old[label] for label in np.unique(listing.labels) if old[label] not in place]:
        raise RequestError(
            f"the order of classes lacks {some(lacking, 'class', 'classes')} of '{where}', which has"
            f" {some(old, 'class', 'classes')}.{nearest(lacking[0], names)}"
        )
    moved = np.array([place.get(name, -1) for name in old], np.int64)
    return replace(listing, labels=moved[listing.labels], class_names=tuple(names))
