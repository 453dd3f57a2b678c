"""A data set in exhibits: its official score, and its name over a column."""

from __future__ import annotations

from penultimate.data.catalog import card
from penultimate.report.text import plain


def is_embedded(source: str) -> bool:
    """Return whether a data set is from the embedded world, whose pretraining images differ between draws."""
    return source.startswith("glyphs")


def official_accuracy(target: str) -> str:
    """Return the official score on a data set's card: top1, mean_per_class, or the auc of each label."""
    return str(card(target).accuracy)


def short_title(name: str) -> str:
    """Return a data set's name as a column heading.

    >>> short_title("newfaces")
    'Newfaces'
    """
    return plain(name.replace("_", " ")).capitalize()
