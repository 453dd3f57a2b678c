"""A finished study in three files, small enough for a repository: its rows, and where they come from.

kept.json   the description, the provenance, the networks, the digests of the other files and its own
rows.csv    a line for each quantity, a column for each network; without the losses of training curves
arrays.npz  what rows point to (densities, spectra, layer maps), to four digits; only of a study that has any

`read_kept` reads them, `keeping.write_kept` writes them.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penultimate import registry
from penultimate.errors import DamagedFileError, RequestError, unknown
from penultimate.files import digest_bytes, read_sealed
from penultimate.networks.key import NetworkKey
from penultimate.records.table import COLUMNS, INTEGERS, Row, Table, renamed
from penultimate.store import Meta

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

KEPT, ROWS_FILE, ARRAYS_FILE, SCHEMA = "kept.json", "rows.csv", "arrays.npz", 3
OTHER = ("objective_b", "seed_b", "layer_b")
KEYS = ("step", "metric", "target", "setting", "split", "layer", "epoch", *OTHER, "unit", "status")
"""The columns that, with the network, tell a row from all others; of its step only the kind is kept."""
POINTING_UNIT = "points"


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
    table = Table.of_frame(_frame(lines, networks, card["description"]["source"]))
    return KeptStudy(card["description"], card["provenance"], table, card["rows_sha256"], packed)


def _verified(file: Path, digest: str) -> bytes:
    content = file.read_bytes()
    if digest_bytes(content) != digest:
        raise DamagedFileError(f"'{file}' is not what was written (its sha256 differs)")
    return content


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


def network_of(row: Row) -> NetworkKey:
    """Return the network of a row; for a row about several, what they share."""
    return NetworkKey(row.objective or "", row.backbone or "", row.arm or "", row.seed, row.draw)


def kind_of(row: Row) -> str:
    """Return the kind of step that measured a row."""
    return (row.step or "").partition(".")[0]


def place_of(row: Row, networks: Sequence[NetworkKey]) -> str:
    """Return the step under which the arrays of a row are kept: its kind, its network, and the condition."""
    further = [row.target] if row.target and row.target != row.source else []
    further += [row.setting] if row.setting else []
    further += [str(cell) for cell in (row.objective_b, row.seed_b) if cell is not None]
    return ".".join((kind_of(row), str(networks.index(network_of(row))), *further))


def _frame(content: bytes, networks: Sequence[NetworkKey], source: str) -> pd.DataFrame:
    """Return a row for each cell of `rows.csv` that holds a number, line by line."""
    import numpy as np
    import pandas as pd

    lines = pd.read_csv(io.BytesIO(content), dtype=object, keep_default_na=False)
    lines["metric"] = list(map(renamed, lines["step"], lines["metric"]))
    lines["step"] = [f"{kind}.kept" if kind else "" for kind in lines["step"]]
    numbers = lines.iloc[:, len(KEYS) :].to_numpy()
    line, network = np.nonzero(numbers != "")
    cells = {name: (_column(name, lines[name]), line) for name in KEYS}
    of_networks = pd.DataFrame([key.columns() for key in networks], columns=list(NetworkKey("").columns()))
    cells |= {name: (_column(name, of_networks[name]), network) for name in of_networks}
    cells["source"] = _column("source", [source]), np.zeros_like(line)
    columns = {name: column.take(places) for name, (column, places) in cells.items()}
    columns["value"] = numbers[line, network].astype(float)
    frame = pd.DataFrame(columns, columns=list(COLUMNS))
    pointing = np.flatnonzero(frame["unit"] == POINTING_UNIT)
    steps = frame["step"].to_numpy(object)
    steps[pointing] = [place_of(row, networks) for row in Table.of_frame(frame.iloc[pointing])]
    return frame.assign(step=_column("step", steps))


def _column(name: str, cells: Any) -> Any:
    """Return cells with the type of their column in frames; None, NaN and "" are no cells."""
    import pandas as pd

    there = [None if cell == "" or cell != cell else cell for cell in cells]
    if name in INTEGERS:
        return pd.array([None if cell is None else int(cell) for cell in there], dtype="Int64")
    return pd.Categorical(pd.Series(there, dtype=object))
