"""Keep a finished study: write its rows, arrays and provenance into the three files of an archive."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import (
    atomic_write,
    digest_bytes,
    given_path,
    make_folder,
    read_sealed,
    write_sealed,
)
from penultimate.networks.key import NetworkKey
from penultimate.records.archive import (
    ARRAYS_FILE,
    KEPT,
    KEYS,
    POINTING_UNIT,
    ROWS_FILE,
    SCHEMA,
    KeptStudy,
    kind_of,
    network_of,
    place_of,
)
from penultimate.records.provenance import provenance
from penultimate.records.reading import StudyFolder
from penultimate.records.table import Row

if TYPE_CHECKING:
    import numpy.typing as npt

OF_A_RUN = ("steps", "arms", "left_out", "failed", "plugins", "reads", "search")
"""The entries of a study's description that are about its run alone; `reads` stands in older ones."""
LEFT_OUT_UNIT = "loss"
DIGITS = 9
ARRAY_BITS = 14
"""Bits of a kept array's mantissa: four digits, and few enough bytes."""


def keep(folder: StudyFolder, to: Path | str) -> Path:
    """Write a finished study's rows, arrays and provenance into a folder; the same study, the same bytes.

    Numbers have nine significant digits, arrays four. Raises RequestError for a study that is not finished,
    and for a folder that holds another study.
    """
    missing = {name: total - done for name, (done, total) in folder.counts().items() if done < total}
    if missing:
        listed = ", ".join(f"{count} {name}" for name, count in missing.items())
        raise RequestError(
            f"study '{folder.name}' is not finished ({listed} missing); the same command continues it:"
            f" {folder.command_for(verify=False)}"
        )
    rows = [(row, folder) for row in folder.table() if row.unit != LEFT_OUT_UNIT]
    description = {name: value for name, value in folder.described().items() if name not in OF_A_RUN}
    return write_kept(to, rows, description, {**provenance(folder), "measured": folder.measured()})


def write_kept(
    to: Path | str,
    rows: Sequence[tuple[Row, StudyFolder | KeptStudy]],
    description: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> Path:
    """Write rows, each with the study that has the arrays it points to, into the three files of a folder."""
    networks = list(dict.fromkeys(network_of(row) for row, _ in rows))
    content = _csv((row for row, _ in rows), networks).encode()
    packed = _packed(_arrays(rows, networks))
    card = {
        "description": description,
        "provenance": provenance,
        "networks": [dataclasses.asdict(key) for key in networks],
        "rows_sha256": digest_bytes(content),
        **({"arrays_sha256": digest_bytes(packed)} if packed else {}),
    }
    to = given_path(to, "--to")
    _expect_no_other(to, str(description["name"]))
    make_folder(to)
    atomic_write(to / ROWS_FILE, content)
    if packed:
        atomic_write(to / ARRAYS_FILE, packed)
    else:
        (to / ARRAYS_FILE).unlink(missing_ok=True)
    write_sealed(to / KEPT, card, SCHEMA)
    return to / KEPT


def _expect_no_other(to: Path, study: str) -> None:
    """Raise RequestError for a folder that holds another kept study."""
    try:
        there = read_sealed(to / KEPT, SCHEMA)["description"]["name"]
    except (OSError, DamagedFileError):  # there is none, or it is damaged and is to be kept again
        return
    if there != study:
        raise RequestError(f"'{to}' holds the kept study '{there}'; give --to another folder")


def _csv(rows: Iterable[Row], networks: list[NetworkKey]) -> str:
    lines: dict[tuple[Any, ...], dict[NetworkKey, float]] = {}
    for row in rows:
        quantity = (kind_of(row), *(getattr(row, name) for name in KEYS[1:]))
        values = lines.setdefault(quantity, {})
        if values.setdefault(network_of(row), row.value) != row.value and not math.isnan(row.value):
            raise RequestError(f"two values of one quantity: {row}")
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*KEYS, *map(str, networks)])
    for quantity, values in lines.items():
        writer.writerow(
            [*quantity, *(f"{values[key]:.{DIGITS}g}" if key in values else "" for key in networks)]
        )
    return file.getvalue()


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


def _packed(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return one compressed archive that NumPy reads, the same bytes for the same arrays; nothing for none.

    Arrays that are equal stand there once: each further one is the name of the first.
    """
    import numpy as np

    file, first = io.BytesIO(), dict[bytes, str]()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        for name, values in arrays.items():
            content = _as_npy(np.asarray(values))
            same = first.setdefault(content, name)
            entry = zipfile.ZipInfo(f"{name}.npy")  # without a date, so that equal arrays make equal bytes
            entry.compress_type = zipfile.ZIP_LZMA
            archive.writestr(entry, content if same == name else _as_npy(np.array(same)))
    return file.getvalue() if arrays else b""


def _as_npy(values: npt.NDArray[Any]) -> bytes:
    """Return NumPy's file of an array; floats become float32 with a short mantissa, which compresses."""
    import numpy as np

    if np.issubdtype(values.dtype, np.floating):
        mantissa, exponent = np.frexp(values.astype(np.float64))
        rounded = np.ldexp(np.round(np.ldexp(mantissa, ARRAY_BITS)), exponent - ARRAY_BITS)
        values = np.asarray(rounded, dtype=np.float32)
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()
