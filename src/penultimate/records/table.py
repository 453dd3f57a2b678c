"""The rows of results, one for each measured number: JSON lines of a step, one pandas frame of a study.

A row says what was measured (`metric`, `value`, `unit`), of which network (`objective`, `backbone`, `arm`,
`seed`, `draw`: its `NetworkKey`), on what (`source`, `target`, `split`, `layer`), under which `setting`, and
which step measured it; where two networks are compared, `objective_b`, `seed_b` and `layer_b` name the other.
Rows hold no times, so that the same work leaves the same bytes. pandas is imported only for a frame.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import write_given

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

STATUSES = ("done", "diverged", "limited")
ROWS = "rows.jsonl"
"""The file of a step's rows in its folder."""
Value: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured number. A column that does not apply is None; a value that does not exist is NaN.

    These fields are the schema of all rows: of JSON lines, of frames, and of a kept study. `epoch` is None
    for a final value, else the epoch of a curve's point. `setting` says under which condition a number was
    taken, as "name=value, name=value" (`settings` reads it; `setting_text` writes it). `status` is "done",
    "diverged" (the run ended on a loss that is not a number) or "limited" (too small a run to be evidence).
    Accuracies are fractions in [0, 1].

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
        if type(self.value) is not float or self.value != self.value:
            # Every NaN is `math.nan` itself, so that rows that hold it are equal.
            missing = self.value is None or self.value != self.value
            object.__setattr__(self, "value", math.nan if missing else float(self.value))

    @property
    def settings(self) -> dict[str, str]:
        """The condition under which the number was taken, by name; empty if the text is no condition."""
        parts = (part.partition("=") for part in (self.setting or "").split(", "))
        return {name: value for name, sign, value in parts if sign}


COLUMNS: tuple[str, ...] = tuple(field.name for field in dataclasses.fields(Row))
INTEGERS = ("seed", "draw", "epoch", "seed_b")
TEXTS = tuple(name for name in COLUMNS if name not in (*INTEGERS, "value"))
cells_of = operator.attrgetter(*COLUMNS)
"""Returns the cells of a row in the order of the columns."""


def renamed(kind: str, metric: str) -> str:
    """Return the present name of a metric that a kind of step measured under another name once.

    >>> renamed("layers", "sparsity")
    'nonzero_share'
    """
    return "nonzero_share" if (kind, metric) == ("layers", "sparsity") else metric


def setting_text(values: Mapping[str, Value]) -> str | None:
    """Return a condition as a row holds it; None for no condition.

    >>> setting_text({"severity": 3, "corruption": "fog"}), setting_text({})
    ('corruption=fog, severity=3', None)
    """
    for name, value in values.items():
        if any(sign in f"{name}{value}" for sign in "=,"):
            raise RequestError(f"a setting's name and value hold neither '=' nor ','; got {name}={value!r}")
    return ", ".join(f"{name}={values[name]}" for name in sorted(values)) or None


def write_rows(path: Path | str, rows: Iterable[Row]) -> None:
    """Write rows as `encode_rows` has them, whole or not at all."""
    write_given(path, encode_rows(rows), "a table of rows")


def encode_rows(rows: Iterable[Row]) -> bytes:
    """Return rows as JSON lines; the same rows make the same bytes.

    Columns stand in one order and None is left out; numbers are written so that they read back to the same
    value. JSON has no NaN and no infinity: they are null and "inf" or "-inf".
    """
    encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=operator.index).encode
    return "".join(f"{encode(_json_row(row))}\n" for row in rows).encode()


def _json_row(row: Row) -> dict[str, Value]:
    cells = {name: cell for name, cell in zip(COLUMNS, cells_of(row), strict=True) if cell is not None}
    if not math.isfinite(row.value):
        cells["value"] = None if math.isnan(row.value) else str(row.value)
    return cells


def read_cells(path: Path | str) -> list[dict[str, Any]]:
    """Return the cells of each row in a file of JSON lines; raises DamagedFileError if it holds no rows."""
    try:
        lines = Path(path).read_text(encoding="utf-8").rstrip("\n").split("\n")
        rows: list[dict[str, Any]] = json.loads(f"[{','.join(filter(None, lines))}]")
        for row in rows:
            if not isinstance(row["value"], float):
                row["value"] = math.nan if row["value"] is None else float(row["value"])
            if row["metric"] == "sparsity":
                row["metric"] = renamed(str(row.get("step")).partition(".")[0], row["metric"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFileError(f"'{path}' holds no rows of results: {error}") from None
    return rows


def read_rows(path: Path | str) -> list[Row]:
    """Return the rows of a file that `write_rows` wrote."""
    return [Row(**cells) for cells in read_cells(path)]


class _Codes(dict[Any, int]):
    """The code of each text in the order in which texts are first asked for; that of None is -1."""

    def __missing__(self, text: str) -> int:
        return self.setdefault(text, len(self) - 1)


def frame_of(parts: Iterable[Collection[Mapping[str, Any]]]) -> pd.DataFrame:
    """Return the frame of rows that come in parts, each row as a mapping of its cells.

    Texts are categories, whole numbers pandas' nullable Int64.
    """
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    codes = {name: _Codes({None: -1}) for name in TEXTS}
    for part in parts:
        for name, column in columns.items():
            cells = [row.get(name) for row in part]
            column += map(codes[name].__getitem__, cells) if name in codes else cells
    made: dict[str, Any] = {
        name: pd.Categorical.from_codes(columns[name], pd.Index([*known][1:], dtype=object))
        for name, known in codes.items()
    }
    made |= {name: pd.array(columns[name], dtype="Int64") for name in INTEGERS}
    return pd.DataFrame({**made, "value": columns["value"]}, columns=list(COLUMNS)).astype({"value": float})


def _harmless(cell: Any) -> Any:
    """Return a cell for CSV; the csv module does not quote a carriage return, which becomes a newline."""
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r", "\n")
    return f"'{text}" if text.startswith((*"=+-@＝＋－＠'", "\t", "\n")) else text


class _Source:
    """The rows that a table shares with its parts: a frame, and objects that are made on demand."""

    def __init__(self, frame: pd.DataFrame | None, rows: Sequence[Row | None]) -> None:
        self._frame, self._rows = frame, [*rows]
        self._coded: dict[str, tuple[npt.NDArray[np.intp], list[Any]]] = {}

    def frame(self) -> pd.DataFrame:
        if self._frame is None:
            rows: list[Any] = self._rows
            self._frame = frame_of([[dict(zip(COLUMNS, cells_of(row), strict=True)) for row in rows]])
        return self._frame

    def coded(self, name: str) -> tuple[npt.NDArray[np.intp], list[Any]]:
        """Return a column as codes, and the cell of each code; that of the last one is None."""
        if name not in self._coded:
            import numpy as np

            if self._frame is None:
                known = _Codes({None: -1})
                codes = np.array([known[getattr(row, name)] for row in self._rows], dtype=np.intp)
                cells = [*known][1:]
            else:
                import pandas as pd

                codes, found = pd.factorize(self._frame[name])
                cells = found.tolist()
            self._coded[name] = codes % (len(cells) + 1), [*cells, None]
        return self._coded[name]

    def cells(self, name: str, places: npt.NDArray[np.intp]) -> list[Any]:
        if name == "value":
            numbers: list[float] = self.values()[places].tolist()
            return numbers
        codes, cells = self.coded(name)
        return [cells[code] for code in codes[places].tolist()]

    def values(self) -> npt.NDArray[np.float64]:
        import numpy as np

        if self._frame is None:
            return np.array([row.value for row in self._rows if row], dtype=np.float64)
        numbers: npt.NDArray[np.float64] = self._frame["value"].to_numpy()
        return numbers

    def rows(self, places: npt.NDArray[np.intp]) -> list[Row]:
        import numpy as np

        rows: list[Any] = self._rows
        if missing := [place for place in places.tolist() if rows[place] is None]:
            columns = [self.cells(name, np.array(missing)) for name in COLUMNS]
            for place, *cells in zip(missing, *columns, strict=True):
                rows[place] = Row(**dict(zip(COLUMNS, cells, strict=True)))
        return [rows[place] for place in places.tolist()]


class Table:
    """Rows that are read by column; the parts of a table share its frame.

    >>> measured = [("softmax", 0, 0.75), ("softmax", 1, 0.5), ("sigmoid", 0, 0.25)]
    >>> table = Table(Row(objective=o, seed=s, metric="top1", value=value) for o, s, value in measured)
    >>> table.where(objective="softmax", metric="top1").values().mean()
    np.float64(0.625)
    >>> {objective: len(rows) for objective, rows in table.by("objective").items()}
    {'softmax': 2, 'sigmoid': 1}
    """

    __slots__ = ("_places", "_source")

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        import numpy as np

        listed = list(rows)
        self._source, self._places = _Source(None, listed), np.arange(len(listed))

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> Table:
        """Return the table of a frame that `frame_of` made."""
        import numpy as np

        table = cls()
        table._source, table._places = _Source(frame, [None] * len(frame)), np.arange(len(frame))
        return table

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._source.rows(self._places))

    def __add__(self, other: Table) -> Table:
        import pandas as pd

        frames = [each._source.frame().iloc[each._places] for each in (self, other)]
        return Table.of_frame(pd.concat(frames, ignore_index=True))

    def where(self, **columns: Value | Collection[Value]) -> Table:
        """Return the rows whose columns have these values; a tuple, list or set allows each of its values.

        None asks for rows to which the column does not apply: `epoch=None` is the final value.
        """
        import numpy as np

        places = self._places
        for name, wanted in columns.items():
            allowed = wanted if isinstance(wanted, Collection) and not isinstance(wanted, str) else (wanted,)
            codes, cells = self._source.coded(name)
            fitting = np.array([cell in allowed for cell in cells])
            places = places[fitting[codes[places]]]
        return self._part(places)

    def by(self, *names: str) -> dict[Any, Table]:
        """Return the rows by the value of a column, or by the tuples of several, as they first appear."""
        import numpy as np

        columns = [self.column(name) for name in names]
        places: dict[Any, list[int]] = {}
        values = zip(*columns, strict=True) if len(names) > 1 else columns[0]
        for place, value in zip(self._places.tolist(), values, strict=True):
            places.setdefault(value, []).append(place)
        return {value: self._part(np.array(found)) for value, found in places.items()}

    def column(self, name: str) -> tuple[Any, ...]:
        """Return one column, with a value for each row."""
        return tuple(self._source.cells(name, self._places))

    def values(self) -> npt.NDArray[np.float64]:
        """Return the measured numbers [n], NaN where there is none."""
        return self._source.values()[self._places]

    def frame(self) -> pd.DataFrame:
        """Return the rows as a frame of `frame_of`: texts as categories, whole numbers as nullable Int64."""
        return self._source.frame().iloc[self._places].reset_index(drop=True)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame: texts as objects, whole numbers as nullable Int64."""
        return self.frame().astype(dict.fromkeys(TEXTS, object))

    def to_csv(self) -> str:
        """Return the rows as CSV; None and NaN are empty cells, numbers read back to the same value.

        Text that a spreadsheet would take for a formula gets a leading apostrophe.
        """
        columns: dict[str, list[Any]] = {}
        for name in COLUMNS:
            if name == "value":
                columns[name] = ["" if value != value else value for value in self.values().tolist()]
            else:
                codes, cells = self._source.coded(name)
                shown = list(map(_harmless, cells))
                columns[name] = [shown[code] for code in codes[self._places].tolist()]
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *zip(*columns.values(), strict=True)])
        return file.getvalue()

    def _part(self, places: npt.NDArray[np.intp]) -> Table:
        part = object.__new__(Table)
        part._source, part._places = self._source, places
        return part
