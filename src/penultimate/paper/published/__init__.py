"""The paper's printed numbers: one CSV file per table, with notes on their meaning and misprints.

They are shown beside a study's own numbers and never mixed with them. Tables are named after their files:
`neurips_table1_linear` (Kornblith et al., NeurIPS 2021) or `iclr_table1_accuracy` (the earlier version); the
prefix `neurips_` may be left out, and `table3` is enough if no other table has that number.
"""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib import resources
from typing import TypeAlias

from penultimate.errors import RequestError, unknown
from penultimate.registry import declare

PAPER = "Kornblith, Chen, Lee and Norouzi, NeurIPS 2021"
Value: TypeAlias = str | int | float | None

__all__ = ["notes", "objectives", "printed", "table", "tables", "value"]


def tables() -> tuple[str, ...]:
    """Return the names of all tables.

    >>> len(tables()), tables()[0]
    (27, 'iclr_table1_accuracy')
    """
    return tuple(
        sorted(file.name.removesuffix(".csv") for file in _FOLDER.iterdir() if file.name.endswith(".csv"))
    )


def objectives() -> tuple[str, ...]:
    """Return the nine objectives that the paper compares, in the order of its tables.

    The package may have more presets, but statements about the paper's objectives refer to these nine.

    >>> len(objectives()), objectives()[0]
    (9, 'softmax')
    """
    return tuple(row["objective"] for row in _rows("neurips_table3_class_separation"))


def table(name: str) -> list[dict[str, Value]]:
    """Return the rows of a table, in its order: {column: value}, numbers as numbers, an empty cell as None.

    A column of whole numbers holds ints, a column of numbers floats, any other text. `*_percent` runs from 0
    to 100, `*_se` is the standard error in the unit of the value that it follows. Raises RequestError for an
    unknown name (with the nearest).

    >>> table("neurips_table3_class_separation")[0]["class_separation_r2"]
    0.349
    """
    columns = _columns(_resolve(name))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def printed(name: str) -> list[dict[str, str]]:
    """Return the rows of a table digit for digit: {column: text}, trailing zeros kept, an empty cell as ''.

    >>> printed("table1_linear")[0]["imagenet_top5_percent"]
    '93.40'
    """
    return [dict(row) for row in _rows(_resolve(name))]


def value(name: str, objective: str | None, column: str, **where: Value) -> Value:
    """Return one number of a table, by objective (None in a table without objectives) and column.

    If an objective has several rows, `where` selects one: column=value. Raises RequestError when no row fits,
    several do (with the columns in which they differ), or the column is unknown (with the nearest).

    >>> value("table3", "squared_error", "class_separation_r2")
    0.845
    >>> value("table4", None, "imagenet_top1_percent", temperature=0.05)
    77.6
    """
    resolved = _resolve(name)
    rows = table(resolved)
    wanted = where if objective is None else {"objective": objective, **where}
    for key in (column, *wanted):
        if key not in rows[0]:
            raise unknown(f"column of {resolved}", key, rows[0])
    fitting = [row for row in rows if all(row[key] == cell for key, cell in wanted.items())]
    if len(fitting) == 1:
        return fitting[0][column]
    conditions = ", ".join(f"{key}={cell!r}" for key, cell in wanted.items())
    if fitting:
        differing = [key for key in rows[0] if len({row[key] for row in fitting}) > 1]
        raise RequestError(
            f"{resolved} has {len(fitting)} rows with {conditions}; they differ in {', '.join(differing)}"
        )
    raise RequestError(f"{resolved} has no row with {conditions}. Its first column: {_listed(rows)}.")


def notes(name: str | None = None) -> str:
    """Return the notes on a table (source, number of runs, misprints), or on all tables without a name.

    >>> notes("table4").splitlines()[0]
    'NeurIPS table 4. One value a cell; the number of runs is not stated.'
    """
    sections = _sections()
    return sections["Conventions"] if name is None else sections[_resolve(name)]


_FOLDER = resources.files(__name__)


def __getattr__(name: str) -> tuple[dict[str, str], ...]:
    """Return the printed rows of a table as an attribute, which is how they are registered."""
    if name not in tables():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return tuple(printed(name))


def _resolve(name: str) -> str:
    """Return the table that a name means: exactly, after `neurips_`, or by its unique beginning."""
    known = tables()
    for exact in (name, f"neurips_{name}"):
        if exact in known:
            return exact
    matches = [other for other in known if other.startswith((f"{name}_", f"neurips_{name}_"))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RequestError(f"published table '{name}' could be any of {', '.join(matches)}")
    raise unknown("published table", name, known)


@cache
def _rows(name: str) -> tuple[dict[str, str], ...]:
    return tuple(csv.DictReader((_FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()))


@cache
def _columns(name: str) -> dict[str, tuple[Value, ...]]:
    rows = _rows(name)
    return {column: _typed([row[column] for row in rows]) for column in rows[0]}


def _typed(cells: list[str]) -> tuple[Value, ...]:
    """Return a column's cells as ints, floats or text, whichever first fits all of them."""
    for kind in (int, float):
        try:
            return tuple(kind(cell) if cell else None for cell in cells)
        except ValueError:
            continue
    return tuple(cell or None for cell in cells)


@cache
def _sections() -> dict[str, str]:
    """Return the sections of NOTES.md by heading."""
    text = (_FOLDER / "NOTES.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {heading: body.strip() for heading, body in zip(parts[::2], parts[1::2], strict=True)}


def _listed(rows: list[dict[str, Value]]) -> str:
    first = next(iter(rows[0]))
    return ", ".join(dict.fromkeys(str(row[first]) for row in rows))


for _name in tables():
    declare("printed", _name, f"{__name__}:{_name}", paper=PAPER)
