"""Keep a finished study: write its rows, arrays and provenance into the three files of an archive."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.errors import RequestError
from penultimate.files import (
    atomic_write,
    digest_bytes,
    given_path,
    make_folder,
    write_sealed,
)
from penultimate.networks.key import NetworkKey
from penultimate.records.archive import (
    ARRAYS_FILE,
    KEPT,
    KEYS,
    LEFT_OUT_UNIT,
    OF_A_RUN,
    POINTING_UNIT,
    ROWS_FILE,
    SCHEMA,
    KeptStudy,
    network_of,
    pack,
    place_of,
    to_csv,
)
from penultimate.records.provenance import provenance
from penultimate.records.reading import StudyFolder
from penultimate.records.table import Row

if TYPE_CHECKING:
    import numpy.typing as npt


def keep(folder: StudyFolder, to: Path | str) -> Path:
    """Write a finished study's rows, arrays and provenance into a folder; the same study, the same bytes.

    Numbers have nine significant digits, arrays four. Raises RequestError for a study that is not finished,
    where there can be no such folder, and where that holds another study.
    """
    missing = {name: total - done for name, (done, total) in folder.counts().items() if done < total}
    if missing:
        listed = ", ".join(f"{count} {name}" for name, count in missing.items())
        raise RequestError(
            f"study '{folder.name}' is not finished ({listed} missing); the same command continues it:"
            f" {folder.command_for('', verify=False)}"
        )
    rows = [row for row in folder.evidence() if row.unit != LEFT_OUT_UNIT]
    description = {name: value for name, value in folder.described().items() if name not in OF_A_RUN}
    told = {**provenance(folder), "measured": folder.measured()}
    return write_kept(to, [(row, folder) for row in rows], description, told)


def write_kept(
    to: Path | str,
    rows: Sequence[tuple[Row, StudyFolder | KeptStudy]],
    description: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> Path:
    """Write rows, each with the study that has the arrays it points to, into the three files of a folder."""
    networks = list(dict.fromkeys(network_of(row) for row, _ in rows))
    content = to_csv((row for row, _ in rows), networks).encode("utf-8", "surrogatepass")
    packed = pack(_arrays(rows, networks))
    card = {
        "description": description,
        "provenance": provenance,
        "networks": [dataclasses.asdict(key) for key in networks],
        "rows_sha256": digest_bytes(content),
        **({"arrays_sha256": digest_bytes(packed)} if packed else {}),
    }
    to = given_path(to, "--to")
    _expect_place(to, str(description["name"]))
    make_folder(to)
    atomic_write(to / ROWS_FILE, content)
    if packed:
        atomic_write(to / ARRAYS_FILE, packed)
    else:
        (to / ARRAYS_FILE).unlink(missing_ok=True)
    write_sealed(to / KEPT, card, SCHEMA)
    return to / KEPT


def _expect_place(to: Path, study: str) -> None:
    """Raise RequestError for a folder that holds another study, or rows or arrays that are no study's."""
    there, beginning, present = "", b"", list[Path]()
    damage = (OSError, ValueError, KeyError, TypeError, RecursionError)
    with contextlib.suppress(*damage):  # what is damaged is kept again
        there = json.loads((to / KEPT).read_bytes())["description"]["name"]
    if there not in ("", study):
        raise RequestError(f"'{to}' holds the kept study '{there}'; give --to another folder")
    with contextlib.suppress(OSError, ValueError):  # a place that can be no folder is named where it is made
        present = [path for path in (to / ROWS_FILE, to / ARRAYS_FILE) if path.exists()]
        with (to / ROWS_FILE).open("rb") as file:
            beginning = file.read(200).replace(b'"', b"")
    if present and not there and not beginning.startswith(",".join(KEYS).encode()):
        raise RequestError(f"'{present[0]}' is no kept study's; give --to another folder")


def _arrays(
    rows: Iterable[tuple[Row, StudyFolder | KeptStudy]], networks: list[NetworkKey]
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that rows point to, by place, metric and name."""
    arrays, steps = {}, dict[str, str]()
    for row, study in rows:
        if row.unit == POINTING_UNIT and row.step:
            place = f"{place_of(row, networks)}|{row.metric}"
            if steps.setdefault(place, row.step) != row.step:
                raise RequestError(
                    f"two arrays of one quantity: {row.metric} of '{network_of(row)}', {row.target},"
                    f" {row.split}; Arrays(..., setting=...) tells apart what was taken under two conditions"
                )
            for name, values in study.arrays(row.step, row.metric).items():
                arrays[f"{place}|{name}"] = values
    return arrays
