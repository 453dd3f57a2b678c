"""The tidy table of results: one row for every number that was measured, and nothing else.

A row says what was measured (`metric`, `value`, `unit`), of which network (`objective`, `backbone`, `arm`,
`seed`, `draw`: its `NetworkKey`), on what (`source`, `target`, `split`, `layer`), under which `setting`, and
which step measured it; where two networks are compared, `objective_b`, `seed_b` and `layer_b` name the other.
Rows hold no times, so that the same work leaves the same bytes. Imports no NumPy until numbers are asked for.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import operator
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from sys import intern
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

from penultimate.errors import DamagedFileError, RequestError, nearest, unknown
from penultimate.files import write_given
from penultimate.notebook import frame

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

STATUSES = ("done", "diverged", "limited")
ROWS = "rows.jsonl"
"""The file of a step's rows in its folder."""
Value: TypeAlias = str | int | float | None


FORMER = {"sparsity": ("layers", "nonzero_share")}
"""What finished steps of earlier call a metric: the kind of step that did, and its name now."""


def renamed(cells: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a row that was stored, with its metric as it is called now.

    >>> renamed({"step": "layers.s0.0f3c", "metric": "sparsity", "value": 0.25})["metric"]
    'nonzero_share'
    """
    kind, metric = FORMER.get(cells["metric"], ("", ""))
    return {**cells, "metric": metric} if kind and str(cells.get("step")).startswith(f"{kind}.") else cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured number. A column that does not apply is None; a value that does not exist is NaN.

    `epoch` is None for a final value, else the epoch of a curve's point. `setting` says under which condition
    a number was taken, as "name=value, name=value" (`settings` reads it; `setting_text` writes it). `status`
    is "done", "diverged" (the run ended on a loss that is not a number) or "limited" (too small a run to be
    evidence). Accuracies are fractions in [0, 1]. Raises RequestError on a value of the wrong type (which
    column).

    >>> row = Row(step="accuracy.0f3c", objective="softmax", metric="top1", value=0.77, unit="fraction")
    >>> row.status, row.epoch
    ('done', None)
    >>> Row(metric="corruption_error", value=0.4, setting="corruption=fog, severity=3").settings
    {'corruption': 'fog', 'severity': '3'}
    """

    step: str | None = None
    objective: str | None = None
    backbone: str | None = None
    arm: str | None = None
    seed: int | None = None
    draw: int | None = None
    source: str | None = None
    target: str | None = None
    setting: str | None = None
    epoch: int | None = None
    split: str | None = None
    layer: str | None = None
    objective_b: str | None = None
    seed_b: int | None = None
    layer_b: str | None = None
    metric: str
    value: float
    unit: str | None = None
    status: str = "done"

    def __post_init__(self) -> None:
        if not {*map(type, _texts(self))} <= {str, NoneType}:
            for name, text in zip(TEXTS, _texts(self), strict=True):
                if text is not None and not isinstance(text, str):
                    raise RequestError(f"a row's {name} is text or None; got {text!r}")
        if not {*map(type, _integers(self))} <= {int, NoneType}:
            for name, number in zip(INTEGERS, _integers(self), strict=True):
                if number is not None:
                    object.__setattr__(self, name, _integer(name, number))
        if type(self.value) is not float or self.value != self.value:
            object.__setattr__(self, "value", _number(self.value))
        if not self.metric:
            raise RequestError(f"a row needs the name of its metric; got {self.metric!r}")
        if self.status not in STATUSES:
            raise unknown("status", str(self.status), STATUSES)

    @property
    def settings(self) -> dict[str, str]:
        """The condition under which the number was taken, by name; nothing of text that is no condition."""
        parts = (part.partition("=") for part in (self.setting or "").split(", "))
        return {name: value for name, sign, value in parts if sign}


COLUMNS: tuple[str, ...] = tuple(field.name for field in dataclasses.fields(Row))
INTEGERS = ("seed", "draw", "epoch", "seed_b")
TEXTS = tuple(name for name in COLUMNS if name not in (*INTEGERS, "value"))
_cells = operator.attrgetter(*COLUMNS)
_texts, _integers = operator.attrgetter(*TEXTS), operator.attrgetter(*INTEGERS)


def setting_text(values: Mapping[str, Value]) -> str | None:
    """Return a condition as a row holds it; None for no condition.

    >>> setting_text({"severity": 3, "corruption": "fog"}), setting_text({})
    ('corruption=fog, severity=3', None)
    """
    for name, value in values.items():
        if any(sign in f"{name}{value}" for sign in "=,"):
            raise RequestError(f"a setting's name and value hold neither '=' nor ','; got {name}={value!r}")
    return ", ".join(f"{name}={values[name]}" for name in sorted(values)) or None


class Table:
    """Rows that are read by column. Immutable; an index of a column is made when it is first asked for.

    >>> measured = [("softmax", 0, 0.75), ("softmax", 1, 0.5), ("sigmoid", 0, 0.25)]
    >>> table = Table(Row(objective=o, seed=s, metric="top1", value=value) for o, s, value in measured)
    >>> table.where(objective="softmax", metric="top1").values().mean()
    np.float64(0.625)
    >>> {objective: len(rows) for objective, rows in table.by("objective").items()}
    {'softmax': 2, 'sigmoid': 1}
    """

    __slots__ = ("_index", "_rows")

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._rows = tuple(rows)
        self._index: dict[tuple[str, ...], dict[Any, array[int]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __getitem__(self, position: int) -> Row:
        return self._rows[position]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._rows == other._rows

    def __hash__(self) -> int:
        return hash(self._rows)

    def __add__(self, other: Iterable[Row]) -> Table:
        return Table((*self._rows, *other))

    def __repr__(self) -> str:
        metrics = ", ".join(str(name) for name in self.by("metric"))
        return f"Table({len(self)} rows: {metrics})"

    def where(self, **columns: Value | Collection[Value]) -> Table:
        """Return the rows whose columns have these values; a tuple, list or set allows each of its values.

        None asks for rows to which the column does not apply: `epoch=None` is the final value. Raises
        RequestError on a column that there is not.
        """
        if not columns:
            return self
        allowed = {
            name: set(wanted) if isinstance(wanted, Collection) and not isinstance(wanted, str) else {wanted}
            for name, wanted in columns.items()
        }
        fewest = min(
            allowed,
            key=lambda name: sum(len(self._places_by(name).get(value, ())) for value in allowed[name]),
        )
        places = sorted(
            place for value in allowed[fewest] for place in self._places_by(fewest).get(value, ())
        )
        others = [(operator.attrgetter(name), values) for name, values in allowed.items() if name != fewest]
        rows = (self._rows[place] for place in places)
        return Table(row for row in rows if all(cell(row) in values for cell, values in others))

    def by(self, *names: str) -> dict[Any, Table]:
        """Return the rows apart by the value of a column (by tuples of values, of several),
        as they first appear.
        """
        if not names:
            raise RequestError("by() wants a column to tell rows apart by")
        rows = self._rows
        return {
            value: Table(rows[place] for place in places) for value, places in self._places_by(*names).items()
        }

    def column(self, name: str) -> tuple[Any, ...]:
        """Return one column, with a value for each row."""
        return tuple(map(_cells_of(name), self._rows))

    def values(self) -> npt.NDArray[np.float64]:
        """Return the measured numbers [n], NaN where there is none."""
        import numpy as np

        return np.array([row.value for row in self._rows], dtype=np.float64)

    def only(self) -> Row:
        """Return the one row; raises RequestError when there is none,
        or more than one (what tells them apart).
        """
        if len(self._rows) != 1:
            several = [name for name in COLUMNS if name != "value" and len(self._places_by(name)) > 1]
            hint = f", which differ in {', '.join(several)}" if several else ""
            raise RequestError(f"one row was asked for; there are {len(self._rows)}{hint}")
        return self._rows[0]

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame; raises RequestError where pandas is not installed.

        Whole-number columns are of pandas' nullable Int64.
        """
        whole = frame([_cells(row) for row in self._rows], COLUMNS)
        return whole.astype({**dict.fromkeys(INTEGERS, "Int64"), "value": "float64"})

    def to_csv(self) -> str:
        """Return the table as CSV with a header; None and NaN are empty cells,
        numbers read back to the same value.

        Text that a spreadsheet would run as a formula (begun by =, +, - or @), or begun by one, gets a
        leading apostrophe; a carriage return in it becomes a newline.
        """
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        texts = {*chain.from_iterable(map(_texts, self._rows))} - {None}
        as_they_are = all(_csv_cell(text) == text for text in texts)
        writer.writerows(
            _cells(row) if as_they_are and row.value == row.value else map(_csv_cell, _cells(row))
            for row in self._rows
        )
        return file.getvalue()

    def _places_by(self, *names: str) -> dict[Any, array[int]]:
        """Return the places of the rows by their value of a column, or by their values of several."""
        if names not in self._index:
            index: dict[Any, array[int]] = defaultdict(lambda: array("q"))
            for place, cells in enumerate(map(_cells_of(*names), self._rows)):
                index[cells].append(place)
            self._index[names] = dict(index)
        return self._index[names]


def write_rows(path: Path | str, rows: Iterable[Row]) -> None:
    """Write rows as `encode_rows` has them, whole or not at all."""
    write_given(path, encode_rows(rows), "a table of rows")


def encode_rows(rows: Iterable[Row]) -> bytes:
    """Rows as JSON lines; the same rows make the same bytes.

    Columns stand in one order and None is left out; numbers are written so that they read back to the same
    value. JSON has no NaN and no infinity: they are null and "inf" or "-inf".
    """
    lines = [json.dumps(_json_row(row), separators=(",", ":"), allow_nan=False) + "\n" for row in rows]
    return "".join(lines).encode()


def read_rows(path: Path | str, arm: str | None = None, limited: bool = False) -> list[Row]:
    """Return the rows of a file that `write_rows` wrote, in an arm of a study; of a limited one, marked so.

    Equal texts are one object, so that millions of rows fit into memory. Raises DamagedFileError with the
    line that is none.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise RequestError(f"there are no rows at '{path}'") from None
    except UnicodeDecodeError:
        raise DamagedFileError(f"'{path}' is not text: not written by write_rows, or damaged") from None
    if lines.pop():
        raise DamagedFileError(f"'{path}' ends inside line {len(lines) + 1}: it was not written whole")
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            cells: dict[str, Any] = json.loads(line)
            texts = {name: intern(cell) for name, cell in cells.items() if type(cell) is str}
            cells |= {**texts, "value": _NOT_FINITE.get(cells["value"], cells["value"])}
            if arm:
                cells["arm"] = arm
            if limited and cells.get("status", "done") == "done":
                cells["status"] = "limited"
            rows.append(Row(**renamed(cells)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedFileError(f"'{path}', line {number} is not a row of results: {error}") from None
    return rows


_NOT_FINITE = {None: math.nan, "inf": math.inf, "-inf": -math.inf}


def _json_row(row: Row) -> dict[str, Value]:
    cells = {name: cell for name, cell in zip(COLUMNS, _cells(row), strict=True) if cell is not None}
    if not math.isfinite(row.value):
        cells["value"] = None if math.isnan(row.value) else str(row.value)
    return cells


def _csv_cell(cell: Value) -> Value:
    if isinstance(cell, str):
        text = cell.replace("\r", "\n")  # which the csv module would leave unquoted
        return f"'{text}" if text.startswith((*"=+-@＝＋－＠'", "\t", "\n")) else text
    return "" if cell is None or cell != cell else cell


def _cells_of(*names: str) -> operator.attrgetter[Any]:
    """Return what reads a column of a row, or a tuple of several."""
    for name in names:
        if name not in COLUMNS:
            raise RequestError(
                f"there is no column '{name}'.{nearest(name, COLUMNS)} Columns: {', '.join(COLUMNS)}"
            )
    return operator.attrgetter(*names)


def _integer(name: str, number: Any) -> int:
    try:
        if isinstance(number, bool):
            raise TypeError
        return operator.index(number)
    except TypeError:
        raise RequestError(f"a row's {name} is a whole number or None; got {number!r}") from None


def _number(value: Any) -> float:
    """Return a float; every NaN is the one `math.nan`, so that rows that hold it compare equal."""
    if value is None:
        return math.nan
    try:
        if isinstance(value, str | bool):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise RequestError(f"a row's value is a number or None; got {value!r}") from None
    return math.nan if number != number else number
