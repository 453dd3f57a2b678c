"""A data set in exhibits: its official score, and its name over a column."""

from __future__ import annotations

from penultimate.data.catalog import CARDS, card
from penultimate.data.readers.entries import ENTRIES
from penultimate.report.text import as_name, plain


def is_published(source: str) -> bool:
    """Return whether a data set is a published one of photographs, or a part of it."""
    return source in ENTRIES


def official_accuracy(target: str) -> str:
    """Return the official score on a data set's card: top1, mean_per_class, or the auc of each label."""
    return str(card(target).accuracy)


def short_title(name: str) -> str:
    """Return a data set's name as a column heading.

    >>> short_title("newfaces")
    'Newfaces'
    """
    return plain(name.replace("_", " ")).capitalize()


def name_on(figure: str, target: str) -> str:
    """Return the name of a panel that shows a figure on a target.

    A data set of a user's own may be called like another panel: "mean", "scale", "published-pets".

    >>> name_on("figureD2", "digits"), name_on("figureD2", "mean"), name_on("figureD2", "My pets")
    ('figureD2-digits', 'figureD2--mean', 'figureD2--My_pets---e21fef100836')
    """
    return f"{figure}-{target}" if target in CARDS or target in ENTRIES else f"{figure}--{as_name(target)}"
