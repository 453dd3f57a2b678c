"""A study on two pages: its rows and where they come from, small enough to be kept in a repository.

kept.json  the description, the provenance, the runs, the digest of the rows
rows.csv   a line for each quantity, a column for each run; no curve's loss, and nothing that points to arrays
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from penultimate.errors import DamagedFileError, RequestError, unknown
from penultimate.store import atomic_write, digest_bytes, make_folder
from penultimate.study.reading import StudyFolder
from penultimate.table import INTEGERS, Row, Table

KEPT, ROWS_FILE, SCHEMA = "kept.json", "rows.csv", 1
KEYS = (
    "step",
    "metric",
    "target",
    "split",
    "layer",
    "epoch",
    "objective_b",
    "seed_b",
    "layer_b",
    "backbone",
    "unit",
    "status",
)
"""The columns that, with the run, tell a row from all others; of its step only the kind is kept."""
LEFT_OUT_UNITS = ("points", "loss")
DIGITS = 9

Run: TypeAlias = tuple[str | None, int | None]


@dataclass(frozen=True)
class Kept:
    """A kept study: what `StudyFolder` gives of a live one, without steps and arrays."""

    description: Mapping[str, Any]
    provenance: Mapping[str, Any]
    table: Table
    digest: str


def keep(folder: StudyFolder, to: Path | str) -> Path:
    """Write a finished study's rows and provenance into a folder; the same study gives the same bytes.

    Numbers have nine significant digits. Raises RequestError for a study that is not finished, and where
    there can be no such folder.
    """
    missing = {name: total - done for name, (done, total) in folder.counts().items() if done < total}
    if missing:
        listed = ", ".join(f"{count} {name}" for name, count in missing.items())
        raise RequestError(
            f"study '{folder.name}' is not finished ({listed} missing); the same command continues it:"
            f" {folder.description['command']}"
        )
    rows = [row for row in folder.evidence() if row.unit not in LEFT_OUT_UNITS]
    runs = list(dict.fromkeys((row.objective, row.seed) for row in rows))
    content = _to_csv(rows, runs).encode()
    described = {name: value for name, value in folder.described().items() if name != "steps"}
    card = {
        "schema": SCHEMA,
        "description": described,
        "provenance": folder.provenance(),
        "runs": runs,
        "rows_sha256": digest_bytes(content),
    }
    to = Path(to)
    make_folder(to)
    atomic_write(to / ROWS_FILE, content)
    atomic_write(to / KEPT, (json.dumps(card, indent=1, sort_keys=True) + "\n").encode())
    return to / KEPT


def read_kept(folder: Path | str) -> Kept:
    """The study that `keep` wrote into a folder.

    Raises RequestError where there is none, DamagedFileError where it is not what was written.
    """
    folder = Path(folder)
    try:
        card = json.loads((folder / KEPT).read_text(encoding="utf-8"))
        content = (folder / ROWS_FILE).read_bytes()
        if digest_bytes(content) != card["rows_sha256"]:
            raise DamagedFileError(f"'{folder / ROWS_FILE}' is not what was written (its sha256 differs)")
        runs: list[Run] = [(objective, seed) for objective, seed in card["runs"]]
        table = Table(_from_csv(content.decode(), runs, card["description"]["source"]))
        return Kept(card["description"], card["provenance"], table, card["rows_sha256"])
    except FileNotFoundError as error:
        raise RequestError(f"no kept study in '{folder}': {Path(error.filename).name} is missing") from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise DamagedFileError(f"'{folder}' does not hold a kept study: {error!r}") from None


def references() -> dict[str, Path]:
    """The reference runs that come with the package, by study."""
    root = Path(str(resources.files("penultimate"))) / "reference"
    return {path.parent.name: path.parent for path in sorted(root.glob(f"*/{KEPT}"))}


def reference(study: str = "") -> Kept:
    """The reference run of a study, or the first; raises RequestError, with the nearest name, for no such."""
    known = references()
    study = study or next(iter(known), "")
    if study not in known:
        raise unknown("reference run", study, known)
    return read_kept(known[study])


def _to_csv(rows: Iterable[Row], runs: list[Run]) -> str:
    lines: dict[tuple[Any, ...], dict[Run, float]] = {}
    for row in rows:
        key = (_kind(row), *(getattr(row, name) for name in KEYS[1:]))
        own = lines.setdefault(key, {})
        if own.setdefault((row.objective, row.seed), row.value) != row.value and not math.isnan(row.value):
            raise RequestError(f"two values of one quantity: {row}")
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*KEYS, *(str(place) for place in range(len(runs)))])
    for key, values in lines.items():
        cells = [f"{values[run]:.{DIGITS}g}" if run in values else "" for run in runs]
        writer.writerow(["" if cell is None else cell for cell in key] + cells)
    return file.getvalue()


def _kind(row: Row) -> str | None:
    return row.step.partition(".")[0] if row.step else None


def _from_csv(text: str, runs: list[Run], source: str) -> list[Row]:
    rows = []
    reader = csv.reader(io.StringIO(text))
    if next(reader)[: len(KEYS)] != list(KEYS):
        raise ValueError("its header is another")
    for line in reader:
        key: dict[str, Any] = {name: cell or None for name, cell in zip(KEYS, line, strict=False)}
        key["step"] = f"{key['step']}.kept" if key["step"] else None
        key.update({name: int(key[name]) for name in INTEGERS if key.get(name) is not None})
        for (objective, seed), cell in zip(runs, line[len(KEYS) :], strict=True):
            if cell:
                rows.append(Row(objective=objective, seed=seed, source=source, value=float(cell), **key))
    return rows
