"""Forged kept runs: their cards, rows and arrays changed in typed ways, under digests that agree."""

from __future__ import annotations

import copy
import csv
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penultimate.files import digest_bytes, write_sealed
from penultimate.records.archive import ARRAYS_FILE, KEPT, KEYS, ROWS_FILE, SCHEMA

VALUES: tuple[Any, ...] = (None, True, -1, 1.5, 10**400, "x", [], {}, [[]], [None], {"x": None})
CELLS = (
    *("", "x", "-1", "0", "3", "9" * 30, "9" * 5000, "1e400", "nan", "inf", "=cmd", "../..", "a\x1b[31m"),
    *("a=b", "a=b, a=c", "a=b, c", "=,=", "=", "a==b", "fog", "models=x", "corruption=fog, severity=x"),
    *("points", "fraction", "train", "limited", "diverged", "softmax", "glyphs", "top1", "layer_cka"),
)
NUMBERS = ("nan", "inf", "-inf", "1e308", "-1e308", "1e150", "-1", "0", "1e-320", "0.5", "")

Change = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
ARRAYS: Mapping[str, Change] = {
    "empty": lambda it: it[:0],
    "a scalar": lambda it: np.array(3.0),
    "of one dimension more": lambda it: it[None],
    "short": lambda it: it[:-1],
    "long": lambda it: np.concatenate([it, it]),
    "halves": lambda it: np.full(it.shape, 0.5),
    "negative": lambda it: np.full(it.shape, -1),
    "large": lambda it: np.full(it.shape, 2**62),
    "zero": lambda it: np.zeros(it.shape, it.dtype),
    "NaN": lambda it: np.full(it.shape, np.nan, np.float32),
    "infinite": lambda it: np.full(it.shape, -np.inf, np.float32),
    "huge": lambda it: np.full(it.shape, 1e308),
    "complex": lambda it: np.full(it.shape, 1j),
    "text": lambda it: np.full(it.shape, "x"),
    "bytes": lambda it: np.full(it.shape, b"x"),
    "true": lambda it: np.full(it.shape, True),
    "dates": lambda it: np.full(it.shape, np.datetime64("2020-01-01")),
    "records": lambda it: np.zeros(it.shape, [("a", "f4")]),
    "no character": lambda it: np.full((it.size, 1), 2**31 - 1, np.uint32).view("<U1").reshape(it.shape),
}
"""What an array may be changed to, of which none is what any measurement leaves (but for a few shares)."""


def card_of(folder: Path) -> dict[str, Any]:
    card: dict[str, Any] = json.loads((folder / KEPT).read_text())
    return {name: value for name, value in card.items() if name not in ("sha256", "schema")}


def forge(folder: Path, card: dict[str, Any], rows: bytes = b"", arrays: bytes = b"") -> None:
    """Write a kept run whose digests agree with what it holds."""
    for name, file, content in (("rows_sha256", ROWS_FILE, rows), ("arrays_sha256", ARRAYS_FILE, arrays)):
        if content:
            (folder / file).write_bytes(content)
            card[name] = digest_bytes(content)
    write_sealed(folder / KEPT, card, SCHEMA)


def copied(kept: Path, to: Path) -> Path:
    to.mkdir()
    for file in kept.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place within a card."""
    yield path
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(inner, (*path, name))


def changed(card: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    made = copy.deepcopy(card)
    inner: Any = made
    for name in path[:-1]:
        inner = inner[name]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return made


def changed_rows(content: str, chance: random.Random) -> str:
    """Change one column of the rows of a metric, or of one of them."""
    header, *lines = csv.reader(io.StringIO(content))
    metric = chance.choice(sorted({line[1] for line in lines}))
    is_value = chance.random() < 0.3
    column = chance.randrange(len(KEYS), len(header)) if is_value else chance.randrange(len(KEYS))
    mine = [line for line in lines if line[1] == metric]
    cell = chance.choice(NUMBERS if is_value else (*CELLS, *(line[column] for line in lines)))
    columns = range(len(KEYS), len(header)) if is_value and chance.random() < 0.5 else (column,)
    for line in mine if chance.random() < 0.6 else [chance.choice(mine)]:
        for place in columns:
            line[place] = cell if not is_value or line[place] else ""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([header, *lines])
    return file.getvalue()


def unpacked(folder: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a kept run by their names, those that are the names of others resolved."""
    with np.load(folder / ARRAYS_FILE) as archive:
        arrays = dict(archive)
    return {
        name: arrays[str(it)] if it.dtype.kind == "U" and not it.ndim else it for name, it in arrays.items()
    }


def packed(arrays: Mapping[str, npt.NDArray[Any] | bytes]) -> bytes:
    """An archive of arrays, or of whatever bytes stand in place of one."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, values in arrays.items():
            archive.writestr(f"{name}.npy", values if isinstance(values, bytes) else as_npy(values))
    return file.getvalue()


def as_npy(values: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, values, allow_pickle=values.dtype.hasobject)
    return file.getvalue()


def declaring(shape: str, kind: str = "<f8") -> bytes:
    """The file of an array whose header declares a shape, and that ends soon after."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 64
