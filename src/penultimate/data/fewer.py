"""Fewer classes of a pretraining set, and as many images in all: the number of classes as a setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

from penultimate.data.catalog import CARDS, DatasetCard
from penultimate.errors import RequestError

_Class = TypeVar("_Class")
DRAWN = tuple(name for name, known in CARDS.items() if known.relation == "the pretraining classes")
"""The data sets that can draw more images of each class."""
WITHOUT = ("further_test",)
"""The splits that are not drawn: of further test images nothing but accuracy is measured."""


def of_fewer(described: DatasetCard, classes: int) -> DatasetCard:
    """Return the card of a data set with K = `classes` of its classes; with K = 0, its own card.

    Every split has as many images as before, or the nearest lower number that gives each class as many. There
    are no further test images. Raise RequestError unless K is from 2 up to the number of classes that there
    are, and for a data set of which no more images can be drawn.

    >>> from penultimate.data.catalog import card
    >>> few = of_fewer(card("glyphs"), 16)
    >>> few.sizes["train"] == card("glyphs").sizes["train"], few.sizes["train"] // few.classes
    (True, 704)
    >>> of_fewer(card("glyphs"), 300)
    Traceback (most recent call last):
    penultimate.errors.RequestError: 'glyphs' has 128 classes, and 300 are asked for; set classes to a ...
    """
    if not classes:
        return described
    if described.name not in DRAWN:
        raise RequestError(
            f"'{described.name}' cannot have fewer classes and as many images: more of a class can be drawn"
            f" only of {', '.join(DRAWN)}; leave classes at 0"
        )
    if not 2 <= classes <= described.classes:
        raise RequestError(
            f"'{described.name}' has {described.classes} classes, and {classes} are asked for; set classes to"
            f" a number from 2 to {described.classes}, or to 0 for all as they are"
        )
    kept = {split: size for split, size in described.sizes.items() if split not in WITHOUT}
    sizes = {split: size // classes * classes for split, size in kept.items()}
    return dataclasses.replace(described, classes=classes, sizes=sizes)


def evenly(members: Sequence[_Class], count: int) -> list[_Class]:
    """Return that number of members, evenly spaced; half of that are among twice of that.

    >>> evenly("abcdefgh", 4), evenly("abcdefgh", 2), evenly("abcde", 3)
    (['a', 'c', 'e', 'g'], ['a', 'e'], ['a', 'b', 'd'])
    """
    return [members[place * len(members) // count] for place in range(count)]
