"""The paper's printed numbers: one CSV file per table, with notes on their meaning and misprints (NOTES.md).

They are shown beside a study's own numbers and never mixed with them. Tables are named after their files:
`neurips_table1_linear` (Kornblith et al., NeurIPS 2021) or `iclr_table1_accuracy` (the earlier version).
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import TypeAlias

from penultimate.errors import unknown
from penultimate.registry import declare

PAPER = "Kornblith, Chen, Lee and Norouzi, NeurIPS 2021"
Value: TypeAlias = str | int | float | None

_FOLDER = resources.files(__name__)


@cache
def tables() -> tuple[str, ...]:
    """Return the names of all tables.

    >>> len(tables()), tables()[0]
    (27, 'iclr_table1_accuracy')
    """
    return tuple(sorted(file.name[:-4] for file in _FOLDER.iterdir() if file.name.endswith(".csv")))


def objectives() -> tuple[str, ...]:
    """Return the nine objectives that the paper compares, in the order of its tables.

    >>> len(objectives()), objectives()[0]
    (9, 'softmax')
    """
    return tuple(row["objective"] for row in printed("neurips_table3_class_separation"))


def printed(name: str) -> list[dict[str, str]]:
    """Return the rows of a table digit for digit: {column: text}, trailing zeros kept, an empty cell as ''.

    Raises RequestError for an unknown name (with the nearest).

    >>> printed("neurips_table1_linear")[0]["imagenet_top5_percent"]
    '93.40'
    """
    if name not in tables():
        raise unknown("published table", name, tables())
    return list(csv.DictReader((_FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()))


def table(name: str) -> list[dict[str, Value]]:
    """Return the rows of a table, in its order: {column: value}, numbers as numbers, an empty cell as None.

    A column of whole numbers holds ints, a column of numbers floats, any other text. `*_percent` runs from 0
    to 100, `*_se` is the standard error in the unit of the value that it follows.

    >>> table("neurips_table3_class_separation")[0]["class_separation_r2"]
    0.349
    """
    rows = printed(name)
    columns = {column: _typed([row[column] for row in rows]) for column in rows[0]}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _typed(cells: list[str]) -> list[Value]:
    """Return a column's cells as ints, floats or text, whichever first fits all of them."""
    for kind in (int, float):
        try:
            return [kind(cell) if cell else None for cell in cells]
        except ValueError:
            continue
    return [cell or None for cell in cells]


def __getattr__(name: str) -> tuple[dict[str, str], ...]:
    """Return the printed rows of a table as an attribute, which is how they are registered."""
    if name not in tables():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return tuple(printed(name))


for _name in tables():
    declare("printed", _name, f"{__name__}:{_name}", paper=PAPER)
