"""A finished study in three files, small enough for a repository: its rows, and where they come from.

kept.json   the description, the provenance, the networks, the digests of the other files and its own
rows.csv    a line for each quantity, a column for each network; without the losses of training curves
arrays.npz  what rows point to (densities, spectra, layer maps), to four digits; only of a study that has any
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from penultimate import registry
from penultimate.errors import DamagedFileError, RequestError, unknown
from penultimate.files import (
    atomic_write,
    digest_bytes,
    given_path,
    make_folder,
    read_sealed,
    write_sealed,
)
from penultimate.networks.key import NetworkKey
from penultimate.records.provenance import provenance
from penultimate.records.reading import StudyFolder
from penultimate.records.references import KEPT, SCHEMA, references
from penultimate.records.table import Row, Table, renamed, typed
from penultimate.store import Meta

if TYPE_CHECKING:
    import numpy.typing as npt

ROWS_FILE, ARRAYS_FILE = "rows.csv", "arrays.npz"
OTHER = ("objective_b", "seed_b", "layer_b")
KEYS = ("step", "metric", "target", "setting", "split", "layer", "epoch", *OTHER, "unit", "status")
"""The columns that, with the network, tell a row from all others; of its step only the kind is kept."""
POINTING_UNIT, LEFT_OUT_UNIT = "points", "loss"
OF_A_RUN = ("steps", "arms", "left_out", "failed", "plugins", "reads", "search", "order")
"""The entries of a study's description that are about its run alone; older ones have `reads` and `order`."""
DIGITS = 9
ARRAY_BITS = 14
"""Bits of a kept array's mantissa: four digits, and few enough bytes."""


@dataclass(frozen=True)
class KeptStudy:
    """A kept study, with the methods by which `StudyFolder` is read, but without steps."""

    description: Mapping[str, Any]
    provenance: Mapping[str, Any]
    table: Table
    digest: str
    packed: bytes = b""

    @property
    def name(self) -> str:
        """The study's name."""
        return str(self.description["name"])

    def metas(self) -> dict[str, Meta]:
        """Return the metas of its steps: none is kept."""
        return {}

    def arrays(self, step: str, metric: str) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a row of this step and metric points to; RequestError if it has none."""
        prefix = f"{step}|{metric}|"
        names = [name for name in self._archive if name.startswith(prefix)]
        if not names:
            raise RequestError(f"nothing was kept of the arrays of '{metric}' of '{step}'")
        return {name.removeprefix(prefix): self._named(name) for name in names}

    def _named(self, name: str) -> npt.NDArray[Any]:
        """Return an array; if its entry is the name of an equal one, that one."""
        values: npt.NDArray[Any] = self._archive[name]
        is_name = values.ndim == 0 and values.dtype.kind == "U"
        return self._named(str(values)) if is_name else values

    @cached_property
    def _archive(self) -> Mapping[str, npt.NDArray[Any]]:
        """All arrays by name, each of which is read when it is asked for."""
        import numpy as np

        archive: Mapping[str, npt.NDArray[Any]] = np.load(io.BytesIO(self.packed), allow_pickle=False)
        return archive if self.packed else {}


Rows: TypeAlias = Sequence[tuple[Row, StudyFolder | KeptStudy]]
"""Rows, each with the study that has the arrays it points to."""


def network_of(row: Row) -> NetworkKey:
    """Return the network of a row; for a row about several, what they share."""
    return NetworkKey(row.objective or "", row.backbone or "", row.arm or "", row.seed, row.draw)


def kind_of(row: Row) -> str:
    """Return the kind of step that measured a row."""
    return (row.step or "").partition(".")[0]


def quantity_of(row: Row) -> tuple[Any, ...]:
    """Return what tells a row of a network from its other rows."""
    return (kind_of(row), *(getattr(row, name) for name in KEYS[1:]))


def place_of(row: Row, networks: Mapping[NetworkKey, int]) -> str:
    """Return the step under which the arrays of a row are kept: its kind, its network, and the condition."""
    further = [row.target] if row.target and row.target != row.source else []
    further += [row.setting] if row.setting else []
    further += [str(cell) for cell in (row.objective_b, row.seed_b) if cell is not None]
    return ".".join((kind_of(row), str(networks[network_of(row)]), *further))


# -- reading ------------------------------------------------------------------------------------------------


def read_kept(folder: Path | str) -> KeptStudy:
    """Return the study that `keep` wrote into a folder.

    Raises RequestError if there is none or another version wrote it, and DamagedFileError, with the file's
    name, if it is not what was written.
    """
    folder = Path(folder)
    try:
        card = read_sealed(folder / KEPT, SCHEMA, mend="keep the study again with this one")
        lines = _verified(folder / ROWS_FILE, card["rows_sha256"])
        packed = _verified(folder / ARRAYS_FILE, card["arrays_sha256"]) if "arrays_sha256" in card else b""
    except FileNotFoundError as error:
        raise RequestError(f"no kept study in '{folder}': {Path(error.filename).name} is missing") from None
    networks = [NetworkKey(**key) for key in card["networks"]]
    table = _table(lines, networks, card["description"]["source"])
    return KeptStudy(card["description"], card["provenance"], table, card["rows_sha256"], packed)


def _verified(file: Path, digest: str) -> bytes:
    content = file.read_bytes()
    if digest_bytes(content) != digest:
        raise DamagedFileError(f"'{file}' is not what was written (its sha256 differs)")
    return content


def _table(content: bytes, networks: Sequence[NetworkKey], source: str) -> Table:
    """Return a row for each cell of `rows.csv` that holds a number, line by line."""
    import numpy as np
    import pandas as pd

    lines = pd.read_csv(io.BytesIO(content), dtype=object, keep_default_na=False)
    numbers = lines.iloc[:, len(KEYS) :].to_numpy()
    line, network = np.nonzero(numbers != "")
    keys = lines[[*KEYS]].replace("", None)
    keys[["epoch", "seed_b"]] = keys[["epoch", "seed_b"]].astype("Int64").astype(object)
    keys["metric"] = list(map(renamed, keys["step"], keys["metric"]))
    keys["step"] = keys["step"] + ".kept"
    of_networks = pd.DataFrame([key.columns() for key in networks], columns=list(NetworkKey("").columns()))
    cells: dict[str, Any] = {name: keys[name].to_numpy(object)[line] for name in KEYS}
    cells |= {name: of_networks[name].astype(object).to_numpy()[network] for name in of_networks}
    cells |= {"source": [source] * len(line), "value": numbers[line, network].astype(float)}
    frame = typed(cells)
    pointing = np.flatnonzero(frame["unit"] == POINTING_UNIT)
    places = {key: place for place, key in enumerate(networks)}
    cells["step"][pointing] = [place_of(row, places) for row in Table.of_frame(frame.iloc[pointing])]
    return Table.of_frame(typed(cells))


def reference(study: str = "") -> KeptStudy:
    """Return the reference run of a study, by default the main one of the first paper that has any.

    Raises RequestError, with the nearest name, if there is none.
    """
    known = references()
    study = study or str(registry.entry("reference", registry.names("reference")[0]).facts["main"])
    if study not in known:
        raise unknown("reference run", study, known)
    return read_kept(known[study])


# -- writing ------------------------------------------------------------------------------------------------


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
    to: Path | str, rows: Rows, description: Mapping[str, Any], provenance: Mapping[str, Any]
) -> Path:
    """Write rows, with the arrays that they point to, into the three files of a folder."""
    networks = {key: place for place, key in enumerate(dict.fromkeys(network_of(row) for row, _ in rows))}
    content = _csv((row for row, _ in rows), [*networks]).encode()
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


def _csv(rows: Iterable[Row], networks: Sequence[NetworkKey]) -> str:
    lines: dict[tuple[Any, ...], dict[NetworkKey, float]] = {}
    for row in rows:
        values = lines.setdefault(quantity_of(row), {})
        if values.setdefault(network_of(row), row.value) != row.value and not math.isnan(row.value):
            raise RequestError(f"two values of one quantity: {row}")
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*KEYS, *map(str, networks)])
    for quantity, values in lines.items():
        numbers = (f"{values[key]:.{DIGITS}g}" if key in values else "" for key in networks)
        writer.writerow([*quantity, *numbers])
    return file.getvalue()


def _arrays(rows: Rows, networks: Mapping[NetworkKey, int]) -> dict[str, npt.NDArray[Any]]:
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
