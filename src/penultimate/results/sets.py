"""The names of data sets in figures and files."""

from __future__ import annotations

from penultimate.data.catalog import CARDS
from penultimate.data.readers.entries import ENTRIES
from penultimate.results.text import as_name


def name_on(figure: str, target: str) -> str:
    """Return the name of a panel that shows a figure on a data set.

    A data set of a user's own may be called like another panel: "mean", "scale", "published-pets".

    >>> name_on("figureD2", "digits"), name_on("figureD2", "mean"), name_on("figureD2", "My pets")
    ('figureD2-digits', 'figureD2--mean', 'figureD2--My_pets---e21fef100836')
    """
    return f"{figure}-{target}" if target in CARDS or target in ENTRIES else f"{figure}--{as_name(target)}"
