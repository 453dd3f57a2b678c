"""A finished study in three files, small enough for a repository: its rows, and where they come from.

kept.json   the description, the provenance, the networks, the digests of the other files and its own
rows.csv    a line for each quantity, a column for each network; without the losses of training curves
arrays.npz  what rows point to (densities, spectra, layer maps), to four digits; only of a study that has any
"""

from __future__ import annotations

import csv
import dataclasses
import io
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate import registry
from penultimate.errors import DamagedFileError, RequestError, shortened, unknown
from penultimate.files import OtherVersionError, digest_bytes, read_sealed, size_text
from penultimate.memory import memory
from penultimate.networks.key import NetworkKey
from penultimate.records.arrays import expect_arrays
from penultimate.records.form import expect_kept
from penultimate.records.table import INTEGERS, Row, Table, renamed
from penultimate.records.tuning import expect_searches

if TYPE_CHECKING:
    import numpy.typing as npt

KEPT, ROWS_FILE, ARRAYS_FILE, SCHEMA = "kept.json", "rows.csv", "arrays.npz", 3
OTHER = ("objective_b", "seed_b", "layer_b")
KEYS = ("step", "metric", "target", "setting", "split", "layer", "epoch", *OTHER, "unit", "status")
"""The columns that, with the network, tell a row from all others; of its step only the kind is kept."""
OF_A_RUN = ("steps", "arms", "left_out", "failed", "reads")
"""What a study's description says of its run alone."""
LEFT_OUT_UNIT, POINTING_UNIT = "loss", "points"
UNREADABLE = (
    *(ValueError, KeyError, TypeError, AttributeError, IndexError, StopIteration, ArithmeticError),
    *(EOFError, MemoryError, RuntimeError, OSError, SyntaxError, SystemError, struct.error),
    *(csv.Error, tokenize.TokenError, zipfile.BadZipFile, lzma.LZMAError, zlib.error),
)
"""What the readers of JSON, CSV, zip and NumPy's files raise for what none of them has written.

OSError is the word of bz2, SyntaxError and TokenError those of NumPy for the header of an array, SystemError
for text that has no such characters, RuntimeError that of zipfile for a password.
"""
LARGE = 2**26
"""The bytes of an unpacked array above which it is asked whether memory has them free."""
DIGITS = 9
ARRAY_BITS = 14
"""Bits of a kept array's mantissa: four digits, and few enough bytes."""


@dataclass(frozen=True)
class KeptStudy:
    """A kept study: what `StudyFolder` gives of one in a store, without its steps."""

    description: Mapping[str, Any]
    provenance: Mapping[str, Any]
    table: Table
    digest: str
    packed: bytes = b""
    place: str = ""

    def arrays(self, step: str, metric: str) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a row of this step and metric points to;
        raises RequestError where it has none.
        """
        prefix = f"{step}|{metric}|"
        try:
            names = [name for name in self._names if name.startswith(prefix)]
            arrays = {name.removeprefix(prefix): self._named(name) for name in names}
            if names:
                expect_arrays(metric, arrays)
        except UNREADABLE as error:
            raise DamagedFileError(
                f"'{self.place}': the arrays of '{metric}' of '{step}' cannot be read: {error or repr(error)}"
            ) from None
        if not names:
            raise RequestError(f"nothing was kept of the arrays of '{metric}' of '{step}'")
        return _Arrays(self.place, arrays)

    def _named(self, name: str) -> npt.NDArray[Any]:
        """Return an array; where its entry is the name of an equal one, that one."""
        values = self._read(name)
        is_name = values.ndim == 0 and values.dtype.kind == "U"
        return self._read(str(values)) if is_name else values

    def _read(self, name: str) -> npt.NDArray[Any]:
        import numpy as np

        entry = self._archive.getinfo(f"{name}.npy")
        if entry.file_size > LARGE and entry.file_size > memory().free:
            raise ValueError(f"'{name}' unpacks to {size_text(entry.file_size)}, more than memory has free")
        return np.lib.format.read_array(io.BytesIO(self._archive.read(entry)), allow_pickle=False)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The names of all arrays, each of which is read when it is asked for."""
        listed = self._archive.namelist() if self.packed else ()
        return tuple(name.removesuffix(".npy") for name in listed)

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(io.BytesIO(self.packed))


class _Arrays(dict[str, Any]):
    """Arrays by name, of which one that is missing is named with the file."""

    def __init__(self, place: str, arrays: Mapping[str, Any]) -> None:
        super().__init__(arrays)
        self._place = place

    def __missing__(self, name: str) -> Any:
        raise DamagedFileError(f"'{self._place}' holds no array '{name}' where one belongs")


def read_kept(folder: Path | str) -> KeptStudy:
    """Return the study that `keep` wrote into a folder.

    Raises RequestError where there is none, DamagedFileError where it is not what was written.
    """
    folder = Path(folder)
    part = folder / KEPT
    try:
        card = read_sealed(part, SCHEMA, mend="keep the study again with this one")
        expect_kept(card)
        expect_searches(card["description"])
        part = folder / ROWS_FILE
        content = _verified(part, card["rows_sha256"])
        networks = [NetworkKey(**key) for key in card["networks"]]
        text = content.decode("utf-8", "surrogatepass")
        table = Table(from_csv(text, networks, card["description"]["source"]))
        part = folder / ARRAYS_FILE
        packed = _verified(part, card["arrays_sha256"]) if "arrays_sha256" in card else b""
        if packed:
            zipfile.ZipFile(io.BytesIO(packed)).close()
    except FileNotFoundError as error:
        raise RequestError(f"no kept study in '{folder}': {Path(error.filename).name} is missing") from None
    except IsADirectoryError:
        raise DamagedFileError(f"'{part}' is a folder, not a file of a kept study") from None
    except OtherVersionError:
        raise
    except OSError as error:
        raise DamagedFileError(f"'{part}' cannot be read ({error.strerror or error})") from None
    except UNREADABLE as error:
        raise DamagedFileError(f"'{part}' is no file of a kept study: {error or repr(error)}") from None
    provenance = {**card["provenance"], "diverged_networks": _of_arms(card["provenance"])}
    place = str(folder / ARRAYS_FILE)
    return KeptStudy(card["description"], provenance, table, card["rows_sha256"], packed, place)


def _of_arms(provenance: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the networks that diverged, of each step in all its arms; once there was but one arm."""
    told: Mapping[str, Any] = provenance.get("diverged_networks", {})
    return {step: of if isinstance(of, list) else [of] for step, of in told.items()}


def references() -> dict[str, Path]:
    """Return the folders of the reference runs that come with registered papers, by study."""
    roots: list[Path] = [registry.entry("reference", name).resolve() for name in registry.names("reference")]
    return {path.parent.name: path.parent for root in roots for path in sorted(root.glob(f"*/{KEPT}"))}


def reference_cards() -> list[dict[str, Any]]:
    """Return the description and provenance of each reference run, without its rows."""
    return [read_sealed(folder / KEPT, SCHEMA) for folder in references().values()]


def reference(study: str = "") -> KeptStudy:
    """Return the reference run of a study, by default the main one of the first paper that has any.

    Raises RequestError, with the nearest name, if there is none.
    """
    known = references()
    study = study or str(registry.entry("reference", registry.names("reference")[0]).facts["main"])
    if study not in known:
        raise unknown("reference run", study, known)
    return read_kept(known[study])


def _verified(file: Path, digest: str) -> bytes:
    content = Path(file).read_bytes()
    if digest_bytes(content) != digest:
        raise DamagedFileError(f"'{file}' is not what was written (its sha256 differs)")
    return content


def network_of(row: Row) -> NetworkKey:
    """Return the network that a row is of; of a row about several, what they share."""
    return NetworkKey(row.objective or "", row.backbone or "", row.arm or "", row.seed, row.draw)


def place_of(row: Row, networks: list[NetworkKey]) -> str:
    """Return the step that a row with arrays is read back with: its kind, its network, and the condition."""
    further = [row.target] if row.target and row.target != row.source else []
    further += [row.setting] if row.setting else []
    further += [str(cell) for cell in (row.objective_b, row.seed_b) if cell is not None]
    return ".".join((f"{_kind(row)}.{networks.index(network_of(row))}", *further))


def pack(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return one compressed archive that NumPy reads, the same bytes for the same arrays; nothing for none.

    Arrays that are equal stand there once: each further one is the name of the first.
    """
    import numpy as np

    file, first = io.BytesIO(), dict[bytes, str]()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        for name, values in arrays.items():
            content = _as_npy(np.asarray(values))
            same = first.setdefault(content, name)
            entry = zipfile.ZipInfo(f"{name}.npy")  # without a date
            entry.compress_type = zipfile.ZIP_LZMA
            archive.writestr(entry, content if same == name else _as_npy(np.array(same)))
    return file.getvalue() if arrays else b""


def _as_npy(values: npt.NDArray[Any]) -> bytes:
    """NumPy's file of an array; floating-point numbers as float32 with a short mantissa, which compresses."""
    import numpy as np

    if np.issubdtype(values.dtype, np.floating):
        mantissa, exponent = np.frexp(values.astype(np.float64))
        rounded = np.ldexp(np.round(np.ldexp(mantissa, ARRAY_BITS)), exponent - ARRAY_BITS)
        values = np.asarray(rounded, dtype=np.float32)
    file = io.BytesIO()
    np.save(file, values, allow_pickle=False)
    return file.getvalue()


def to_csv(rows: Iterable[Row], networks: list[NetworkKey]) -> str:
    lines: dict[tuple[Any, ...], dict[NetworkKey, float]] = {}
    for row in rows:
        quantity = (_kind(row), *(getattr(row, name) for name in KEYS[1:]))
        values = lines.setdefault(quantity, {})
        if values.setdefault(network_of(row), row.value) != row.value and not math.isnan(row.value):
            raise RequestError(f"two values of one quantity: {row}")
    table = [[*KEYS, *map(str, networks)]]
    for quantity, values in lines.items():
        cells = [f"{values[key]:.{DIGITS}g}" if key in values else "" for key in networks]
        table.append([*quantity, *cells])
    file = io.StringIO()
    returns = any("\r" in str(cell) for line in table for cell in line)  # which csv would leave unquoted
    writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL)
    writer.writerows(table)
    return file.getvalue()


def _kind(row: Row) -> str | None:
    return row.step.partition(".")[0] if row.step else None


def from_csv(text: str, networks: list[NetworkKey], source: str) -> list[Row]:
    rows: list[Row] = []
    reader = csv.reader(io.StringIO(text))
    if next(reader) != [*KEYS, *map(str, networks)] or len({*networks}) < len(networks):
        raise ValueError("the header does not match its networks")
    known = set[tuple[str, ...]]()
    for line in reader:
        try:
            rows += _rows_of(line, networks, source)
        except ValueError as error:
            raise ValueError(f"line {reader.line_num}: {error}") from None
        if (quantity := (*line[: len(KEYS)],)) in known:
            raise ValueError(f"line {reader.line_num} has the quantity of an earlier one")
        known.add(quantity)
    return rows


def _rows_of(line: Sequence[str], networks: list[NetworkKey], source: str) -> Iterator[Row]:
    """Yield a row for each network that has a value of a quantity."""
    if len(line) != len(KEYS) + len(networks):
        raise ValueError(f"{len(KEYS) + len(networks)} cells were expected, and {len(line)} came")
    quantity: dict[str, Any] = {name: cell or None for name, cell in zip(KEYS, line, strict=False)}
    quantity["step"] = f"{quantity['step']}.kept" if quantity["step"] else None
    quantity = renamed(quantity)
    quantity.update({name: int(quantity[name]) for name in INTEGERS if quantity.get(name) is not None})
    if any((quantity.get(name) or 0) < 0 for name in INTEGERS):
        raise ValueError("a number is negative that counts from 0")
    setting = quantity["setting"]
    if setting and not all(part.count("=") == 1 for part in setting.split(", ")):
        raise ValueError(f"a setting is 'name=value, name=value', not '{shortened(setting, 60)}'")
    for key, cell in zip(networks, line[len(KEYS) :], strict=True):
        if cell:
            row = Row(source=source, value=float(cell), **key.columns(), **quantity)
            if row.unit == POINTING_UNIT:
                row = dataclasses.replace(row, step=place_of(row, networks))
            yield row
