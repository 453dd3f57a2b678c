"""The rows of results, one for each measured number: JSON lines of a step, one pandas frame of a study.

A row says what was measured (`metric`, `value`, `unit`), of which network (`objective`, `backbone`, `arm`,
`seed`, `draw`: its `NetworkKey`), on what (`source`, `target`, `split`, `layer`), under which `setting`, and
which step measured it; where two networks are compared, `objective_b`, `seed_b` and `layer_b` name the other.
"""

from __future__ import annotations

import dataclasses
import json
import math
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from penultimate.errors import RequestError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

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


def encode_rows(rows: Iterable[Row]) -> bytes:
    """Return rows as JSON lines; the same rows make the same bytes.

    Columns stand in one order and None is left out; numbers are written so that they read back to the same
    value. JSON has no NaN and no infinity: they are null and "inf" or "-inf".
    """
    encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=operator.index).encode
    lines = []
    for row in rows:
        cells = {name: cell for name, cell in zip(COLUMNS, cells_of(row), strict=True) if cell is not None}
        if not math.isfinite(row.value):
            cells["value"] = None if math.isnan(row.value) else str(row.value)
        lines.append(f"{encode(cells)}\n")
    return "".join(lines).encode()


def read_cells(path: Path | str) -> list[dict[str, Any]]:
    """Return the cells of each row in a file of JSON lines, without those that are None."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, Any]] = json.loads(f"[{','.join(lines)}]")
    for row in rows:
        row["value"] = math.nan if row["value"] is None else float(row["value"])
        row["metric"] = renamed(str(row.get("step")).partition(".")[0], row["metric"])
    return rows


def read_rows(path: Path | str) -> list[Row]:
    """Return the rows in a file of JSON lines."""
    return [Row(**cells) for cells in read_cells(path)]


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the frame of rows, each given as its cells: texts are categories, whole numbers nullable Int64.

    >>> frame_of([{"metric": "top1", "value": 0.5, "seed": 0}])[["metric", "seed", "value"]].values.tolist()
    [['top1', 0, 0.5]]
    """
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for row in rows:
        for name, column in columns.items():
            column.append(row.get(name))
    return typed(columns)


def typed(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return columns of cells as a frame; texts become categories in the order in which they appear."""
    import pandas as pd

    def of_type(name: str, cells: Any) -> Any:
        if name == "value":
            return pd.array(cells, dtype="float64") if len(cells) else pd.Series(cells, dtype="float64")
        if name in INTEGERS:
            return pd.array(cells, dtype="Int64")
        codes, found = pd.factorize(pd.Series(cells, dtype=object))
        return pd.Categorical.from_codes(codes, pd.Index(found, dtype=object))

    return pd.DataFrame({name: of_type(name, columns[name]) for name in COLUMNS})


class Table:
    """Rows that are selected by column; `frame` holds them as pandas reads them.

    >>> measured = [("softmax", 0, 0.75), ("softmax", 1, 0.5), ("sigmoid", 0, 0.25)]
    >>> table = Table(Row(objective=o, seed=s, metric="top1", value=value) for o, s, value in measured)
    >>> float(table.where(objective="softmax", metric="top1").values().mean())
    0.625
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._frame = frame_of(dict(zip(COLUMNS, cells_of(row), strict=True)) for row in rows)

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> Table:
        """Return the table of a frame that `frame_of` made."""
        table = object.__new__(cls)
        table._frame = frame
        return table

    def __len__(self) -> int:
        return len(self._frame)

    def __iter__(self) -> Iterator[Row]:
        for cells in zip(*map(self.column, COLUMNS), strict=True):
            yield Row(**dict(zip(COLUMNS, cells, strict=True)))

    def where(self, **columns: Value | Collection[Value]) -> Table:
        """Return the rows whose columns have these values; a tuple, list or set allows each of its values.

        None asks for rows to which the column does not apply: `epoch=None` is the final value.
        """
        frame = self._frame
        for name, wanted in columns.items():
            allowed = [*wanted] if isinstance(wanted, list | tuple | set) else [wanted]
            cells = frame[name].astype(object)
            frame = frame[cells.isin(allowed) | (cells.isna() & (None in allowed))]
        return Table.of_frame(frame)

    def column(self, name: str) -> tuple[Any, ...]:
        """Return one column, with a value for each row."""
        cells = self._frame[name].astype(object)
        return tuple(cells if name == "value" else cells.where(cells.notna(), None))

    def values(self) -> npt.NDArray[np.float64]:
        """Return the measured numbers [n], NaN where there is none."""
        numbers: npt.NDArray[np.float64] = self._frame["value"].to_numpy()
        return numbers

    def frame(self) -> pd.DataFrame:
        """Return the rows as a frame of `frame_of`."""
        return self._frame.reset_index(drop=True)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame: texts as objects, whole numbers as nullable Int64."""
        return self.frame().astype(dict.fromkeys(TEXTS, object))
