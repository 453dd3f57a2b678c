"""A table of networks that exist already. It gives the objective and the seed of each file of weights.

    file,objective,seed,arm
    softmax-0.pth,softmax,0,
    smoothing-0.pth,label_smoothing,0,

It is CSV, a file of JSON lines or a JSON array of objects. Paths are relative to the table's folder.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penultimate.checks import is_number, is_whole
from penultimate.errors import DamagedFileError, RequestError, unknown
from penultimate.files import digest_file, given_path

NEEDED = ("file", "objective", "seed")
"""The columns that a table must have."""
OPTIONAL = ("arm", "backbone", "part", "ema", "mean", "std")
"""The columns that a table may have besides."""
LARGEST_SEED = 2**31 - 1
TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


@dataclass(frozen=True)
class CheckpointRow:
    """One row of the table: a file of weights, and the run whose network the file holds.

    file        its absolute path
    objective   the objective's short name in the study, or its spec
    seed        the number of the run, which need not be a seed that anything was drawn from
    arm         the arm of the study; "" is the main one
    backbone    the spec of the architecture, if the study has several
    part, ema   which of several networks in the file is meant, as in `networks.weights.read_weights`
    mean, std   what its images are normalised by, in each channel; empty if it is not said
    digest      the sha256 of the file
    place       the table and the line, for messages
    """

    file: str
    objective: str
    seed: int
    arm: str = ""
    backbone: str = ""
    part: str = ""
    ema: bool = False
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    digest: str = ""
    place: str = field(default="", compare=False)

    def reading(self) -> dict[str, Any]:
        """Return what is said of how the file is read and images are normalised; only what is said."""
        said = {"part": self.part, "ema": self.ema, "mean": list(self.mean), "std": list(self.std)}
        return {name: value for name, value in said.items() if value}


def read_checkpoint_table(table: Path | str) -> tuple[CheckpointRow, ...]:
    """Return the rows of a table of networks; raise RequestError, with the line, for one that is not valid.

    Every file is digested, because its content is part of the identity of what is measured of it.
    """
    path = given_path(table, "the table of networks", home=True)
    if not path.is_file():
        raise RequestError(f"there is no table of networks at '{path}'")
    try:
        cells = _objects(path) if path.suffix.lower() == ".json" else _lines(path)
    except DamagedFileError as error:
        raise RequestError(f"the table of networks '{path}' cannot be read: {error}") from None
    columns = dict.fromkeys(name for _, row in cells for name in row)
    for name in columns:
        if name not in (*NEEDED, *OPTIONAL):
            raise unknown(f"column of the table '{path}'", name, (*NEEDED, *OPTIONAL))
    lacking = [name for name in NEEDED if name not in columns]
    if cells and lacking:
        raise RequestError(
            f"the table of networks '{path}' has the columns {', '.join(columns)}; it also needs"
            f" {' and '.join(lacking)}"
        )
    if not cells:
        raise RequestError(
            f"the table of networks '{path}' lists none; a row for each network is expected, under the"
            f" columns {', '.join(NEEDED)}"
        )
    base = path.absolute().parent
    files = [_file_of(base, place, row) for place, row in cells]
    missing = [(place, file) for (place, _), file in zip(cells, files, strict=True) if not file.is_file()]
    if missing:
        place, file = missing[0]
        what = "is a folder; name the file in it" if file.is_dir() else "is missing"
        more = f" ({len(missing)} of {len(files)} files are not there)" if len(missing) > 1 else ""
        raise RequestError(f"{place}: '{file}' {what}{more}")
    return tuple(_row(place, row, file) for (place, row), file in zip(cells, files, strict=True))


def _lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the cells of each line of a table, by column, with its place."""
    try:
        text = path.read_text("utf-8-sig")
        if path.suffix.lower() in (".jsonl", ".ndjson"):
            numbered = [(at, json.loads(line)) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
            rows = [(at, {name.strip().lower(): cell for name, cell in row.items()}) for at, row in numbered]
        else:
            head = text.partition("\n")[0]
            reader = csv.reader(io.StringIO(text), delimiter=max(",;\t|", key=head.count))
            names = [name.strip().lower() for name in next(reader, [])]
            rows = []
            for cells in filter(None, reader):
                if any(cells[len(names) :]):
                    raise DamagedFileError(f"'{path}', line {reader.line_num}: more values than columns")
                rows.append((reader.line_num, dict(zip(names, cells, strict=False))))
    except (OSError, ValueError, AttributeError, csv.Error) as error:
        raise DamagedFileError(f"'{path}': {error}") from None
    return [(f"'{path}', line {line}", row) for line, row in rows]


def _objects(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the entries of a JSON array of objects, with their places."""
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise RequestError(f"the table of networks '{path}' cannot be read as JSON: {error}") from None
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise RequestError(
            f'the table of networks \'{path}\' is expected to hold [{{"file": ..., "objective": ...,'
            ' "seed": ...}, ...]'
        )
    return [
        (f"'{path}', entry {number}", {str(name).strip().lower(): cell for name, cell in row.items()})
        for number, row in enumerate(content, 1)
    ]


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _file_of(base: Path, place: str, row: Mapping[str, Any]) -> Path:
    text = _text(row.get("file"))
    if not text:
        raise RequestError(f"{place}: no file is named")
    return Path(os.path.normpath(base / given_path(text, f"{place}: the file", home=True)))


def _row(place: str, row: Mapping[str, Any], file: Path) -> CheckpointRow:
    texts = {name: _text(row.get(name)) for name in ("objective", "arm", "backbone", "part")}
    if not texts["objective"]:
        raise RequestError(f"{place}: no objective is named")
    ema = _text(row.get("ema")).lower()
    if ema not in TRUTH:
        raise RequestError(f"{place}: ema is true or false, not {row['ema']!r}")
    mean, std = (_numbers(place, name, row.get(name)) for name in ("mean", "std"))
    if len(mean) != len(std):
        raise RequestError(
            f"{place}: mean and std go together, a number for each channel; mean has {len(mean)}, std"
            f" {len(std)}"
        )
    if any(value <= 0 for value in std):
        raise RequestError(f"{place}: std is above 0 in each channel, not {row['std']!r}")
    seed = _seed(place, row.get("seed"))
    try:
        digest = digest_file(file)
    except OSError as error:
        raise RequestError(f"{place}: '{file}' cannot be read ({error.strerror})") from None
    return CheckpointRow(
        str(file), seed=seed, ema=TRUTH[ema], mean=mean, std=std, digest=digest, place=place, **texts
    )


def _seed(place: str, cell: Any) -> int:
    text = _text(cell)
    number = int(text) if re.fullmatch(r"[0-9]{1,10}", text) else cell
    if not is_whole(number) or not 0 <= number <= LARGEST_SEED:
        raise RequestError(f"{place}: a seed is an integer from 0 to 2^31 - 1, not {cell!r}")
    return int(number)


def _numbers(place: str, name: str, cell: Any) -> tuple[float, ...]:
    """Return the numbers of a cell: a list, or text in which blanks, commas or semicolons part them."""
    listed = cell if isinstance(cell, list) else re.split(r"[\s,;]+", _text(cell).strip("[]() "))
    try:
        numbers = tuple(float(each) for each in listed if each != "")
    except (TypeError, ValueError):
        numbers = (float("nan"),)
    if not all(map(is_number, numbers)):
        raise RequestError(f"{place}: {name} is a number for each channel, not {cell!r}")
    return numbers
