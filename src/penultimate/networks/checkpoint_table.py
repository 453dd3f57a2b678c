"""A table of networks that exist already. It gives the objective and the seed of each file of weights.

    file,objective,seed,arm
    softmax-0.pth,softmax,0,
    smoothing-0.pth,label_smoothing,0,

It is CSV, a file of JSON lines or a JSON array of objects. Paths are relative to the table's folder.
"""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.checks import is_number
from penultimate.errors import RequestError, unknown
from penultimate.files import digest_file, given_path

if TYPE_CHECKING:
    import pandas as pd

NEEDED = ("file", "objective", "seed")
"""The columns that a table must have."""
OPTIONAL = ("arm", "backbone", "part", "ema", "mean", "std", "interpolation")
"""The columns that a table may have besides."""
INTERPOLATIONS = ("bilinear", "legacy_bicubic")
JSON = (".json", ".jsonl", ".ndjson")
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
    interpolation   how its images are resized: "legacy_bicubic" for networks of the paper's authors
    digest      the sha256 of the file
    place       the table and the row, for messages
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
    interpolation: str = ""
    digest: str = ""
    place: str = field(default="", compare=False)

    def reading(self) -> dict[str, Any]:
        """Return what is said of how the file is read and images are normalised; only what is said."""
        settings = {
            "part": self.part,
            "ema": self.ema,
            "mean": list(self.mean),
            "std": list(self.std),
            "interpolation": self.interpolation,
        }
        return {name: value for name, value in settings.items() if value}


def read_checkpoint_table(table: Path | str) -> tuple[CheckpointRow, ...]:
    """Return the rows of a table of networks; raise RequestError, with the row, for one that is not valid.

    Every file is digested, because its content is part of the identity of what is measured of it.
    """
    path = given_path(table, "the table of networks", home=True)
    if not path.is_file():
        raise RequestError(f"there is no table of networks at '{path}'")
    frame = _frame(path)
    for name in frame.columns:
        if name not in (*NEEDED, *OPTIONAL):
            raise unknown(f"column of the table '{path}'", name, (*NEEDED, *OPTIONAL))
    lacking = [name for name in NEEDED if name not in frame.columns]
    if lacking or frame.empty:
        what = f"lacks the column {' and '.join(lacking)}" if lacking else "lists none"
        raise RequestError(
            f"the table of networks '{path}' {what}; a row for each network is expected, under the columns"
            f" {', '.join(NEEDED)}"
        )
    unit, first = ("entry", 1) if path.suffix.lower() in JSON else ("line", 2)
    rows = enumerate(frame.to_dict("records"), first)
    return tuple(_row(path, f"'{path}', {unit} {number}", row) for number, row in rows)


def _frame(path: Path) -> pd.DataFrame:
    """Return the cells of a table as text without spaces around it; an empty cell is ""."""
    import pandas as pd

    try:
        if path.suffix.lower() in JSON:
            frame = pd.read_json(path, lines=path.suffix.lower() != ".json", dtype=False, orient="records")
        else:
            with path.open(encoding="utf-8-sig") as file:
                separator = max(",;\t|", key=file.readline().count)
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)  # of more values than columns
                frame = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, index_col=False)
    except (
        OSError,
        ValueError,
        AttributeError,
        pd.errors.ParserWarning,
    ) as error:  # pandas' parser errors are ValueErrors
        raise RequestError(f"the table of networks '{path}' cannot be read: {error}") from None
    frame.columns = [str(name).strip().lower() for name in frame.columns]
    return frame.map(lambda cell: "" if cell is None or cell != cell else str(cell).strip())


def _row(table: Path, place: str, row: dict[Any, str]) -> CheckpointRow:
    for name in ("file", "objective"):
        if not row[name]:
            raise RequestError(f"{place}: no {name} is named")
    file = Path(os.path.normpath(table.absolute().parent / Path(row["file"]).expanduser()))
    if not file.is_file():
        what = "is a folder; name the file in it" if file.is_dir() else "is missing"
        raise RequestError(f"{place}: '{file}' {what}")
    ema = row.get("ema", "").lower()
    if ema not in TRUTH:
        raise RequestError(f"{place}: ema is true or false, not '{ema}'")
    if not re.fullmatch(r"[0-9]{1,10}", row["seed"]) or int(row["seed"]) > LARGEST_SEED:
        raise RequestError(f"{place}: a seed is an integer from 0 to 2^31 - 1, not '{row['seed']}'")
    mean, std = (_numbers(place, name, row.get(name, "")) for name in ("mean", "std"))
    if len(mean) != len(std) or any(value <= 0 for value in std):
        raise RequestError(
            f"{place}: mean and std go together, a number for each channel, and std is above 0; got"
            f" {list(mean)} and {list(std)}"
        )
    texts = {name: row.get(name, "") for name in ("objective", "arm", "backbone", "part", "interpolation")}
    if texts["interpolation"] not in ("", *INTERPOLATIONS):
        raise RequestError(f"{place}: {unknown('interpolation', texts['interpolation'], INTERPOLATIONS)}")
    return CheckpointRow(
        str(file),
        seed=int(row["seed"]),
        ema=TRUTH[ema],
        mean=mean,
        std=std,
        digest=digest_file(file),
        place=place,
        **texts,
    )


def _numbers(place: str, name: str, cell: str) -> tuple[float, ...]:
    """Return the numbers of a cell, in which blanks, commas, semicolons and brackets part them."""
    try:
        numbers = tuple(float(each) for each in re.split(r"[\s,;\[\]()]+", cell) if each)
    except ValueError:
        numbers = (float("nan"),)
    if not all(map(is_number, numbers)):
        raise RequestError(f"{place}: {name} is a number for each channel, not '{cell}'")
    return numbers
