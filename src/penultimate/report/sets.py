"""What exhibits say of a data set: its official score, its name over a column."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.text import plain


def is_embedded(source: str) -> bool:
    """Return whether a data set is pretraining images of the embedded world,
    which every draw holds others of.
    """
    return source.startswith("glyphs")


def official_accuracy(target: str) -> str:
    """Return the official score of a data set, as its card says: top1, mean_per_class,
    or the auc of each label.
    """
    return str(card(target).accuracy)


def short_title(name: str) -> str:
    """Return a data set's name as a column heading.

    >>> short_title("newfaces")
    'Newfaces'
    """
    return plain(name.replace("_", " ")).capitalize()
