"""A feature bank that is written as features arrive: a folder of .npy files, complete once bank.json exists.

FOLDER/features.npy, logits.npy    float32 or float16 [n m], [n k], read back memory-mapped
FOLDER/labels.npy, ids.npy         int64
FOLDER/bank.json                   provenance and the sha256 of each file, sealed
FOLDER/journal.json                the progress of an incomplete bank, sealed
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from penultimate.errors import DamagedFileError, RequestError
from penultimate.features.bank import FACTS, SCHEMA, FeatureBank
from penultimate.files import digest_file, read_sealed, write_sealed

Precision = Literal["float32", "float16"]
JOURNAL = "journal.json"
STATE = ("position", "rows", "widths", "left_out", "remarks")
"""The attributes of a writer that its journal keeps."""
EVERY = 2.0
"""The seconds between two entries in the journal, which are the most that a kill loses."""


class BankWriter:
    """A writer of one bank, which resumes a bank of the same identity whose writer was killed.

    `identity` holds everything that determines the features. A folder with a bank of another identity, or
    with a damaged bank, is written again, and `changed` says why. A complete bank, if found, is `bank`.
    `position` is the number of images of the listing that have been processed.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], precision: Precision) -> None:
        self.folder, self.identity, self.precision = folder, dict(identity), precision
        self.position = self.rows = 0
        self.widths: dict[str, int] = {}
        self.left_out: list[list[Any]] = []
        self.remarks: dict[str, list[Any]] = {}
        self.changed = ""
        self.bank: FeatureBank | None = None
        self._files: dict[str, BinaryIO] = {}
        self._written = time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        self._resume()

    def add(
        self,
        stop: int,
        arrays: Mapping[str, np.ndarray],
        left_out: Sequence[tuple[int, str, str]] = (),
        remarks: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Append the rows of the images before `stop`; `arrays` holds "features" and possibly "logits".

        `left_out` lists the images without a row (position, name, reason), and `remarks` the parts of other
        images that were not read (remark, name). Raise RequestError for numbers that the precision cannot
        hold, and for a different width than before.
        """
        widths = {name: array.shape[1] for name, array in arrays.items()}
        if self.widths and widths and widths != self.widths:
            raise RequestError(f"features are of one width; got {widths} after {self.widths}")
        self.widths = widths or self.widths
        for name, array in arrays.items():
            with np.errstate(over="ignore"):
                rounded = np.ascontiguousarray(array, self.precision)
            if not np.isfinite(rounded).all():
                raise RequestError(
                    f"{name} up to {abs(array).max():.3g} do not fit into {self.precision}: keep them as"
                    " float32"
                )
            self._file(name).write(rounded.data)
        self.rows += len(arrays["features"]) if arrays else 0
        self.position = stop
        self.left_out += [list(each) for each in left_out]
        for remark, name in remarks:
            self.remarks.setdefault(remark, [0, name])[0] += 1
        if time.monotonic() - self._written > EVERY:
            self.save()

    def save(self) -> None:
        """Flush the added rows to disk, and record them in the journal."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        state = {name: getattr(self, name) for name in ("identity", *STATE)}
        write_sealed(self.folder / JOURNAL, state, SCHEMA)
        self._written = time.monotonic()

    def finish(self, labels: np.ndarray, ids: np.ndarray, provenance: Mapping[str, Any]) -> FeatureBank:
        """Complete the bank with the labels and ids of its rows, and read it back."""
        for name in self.widths:
            file = self._file(name)
            file.seek(0)
            self._write_header(file, name)
            os.fsync(file.fileno())
        self.close()
        for name, array in (("labels", labels), ("ids", ids)):
            np.save(self.folder / f"{name}.npy", np.ascontiguousarray(array, np.int64))
        names = [f"{name}.npy" for name in (*self.widths, "labels", "ids")]
        facts = {
            "files": {name: digest_file(self.folder / name) for name in names},
            "identity": self.identity,
            "provenance": {**provenance, "left_out": self.left_out, "remarks": self.remarks},
        }
        write_sealed(self.folder / FACTS, facts, SCHEMA)
        (self.folder / JOURNAL).unlink(missing_ok=True)
        self.bank = FeatureBank.load(self.folder)
        return self.bank

    def close(self) -> None:
        """Close the files; a later writer can resume from the journal."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def _resume(self) -> None:
        """Read the bank if one of this identity is complete, or resume from the journal."""
        for name in (FACTS, JOURNAL):
            try:
                found = read_sealed(self.folder / name, SCHEMA)
                differ = [key for key in self.identity if found["identity"].get(key) != self.identity[key]]
                if differ:
                    self.changed = f"changed: {', '.join(differ)}"
                elif name == FACTS:
                    self.bank = FeatureBank.load(self.folder)
                    (self.folder / JOURNAL).unlink(missing_ok=True)  # of a process killed at its very end
                    return
                else:
                    vars(self).update({part: found[part] for part in STATE})
                    return
            except FileNotFoundError:
                continue
            except DamagedFileError as error:
                self.changed = str(error)
        for stale in (FACTS, JOURNAL):
            (self.folder / stale).unlink(missing_ok=True)

    def _file(self, name: str) -> BinaryIO:
        """Return the open file of an array, positioned after the rows that the journal records."""
        if name not in self._files:
            path = self.folder / f"{name}.npy"
            file = path.open("r+b" if path.is_file() else "w+b")
            start = self._write_header(file, name)
            end = start + self.rows * self.widths[name] * np.dtype(self.precision).itemsize
            if file.seek(0, os.SEEK_END) < end:
                file.close()
                raise DamagedFileError(f"'{path}' is shorter than its journal says: delete '{self.folder}'")
            file.truncate(end)
            file.seek(end)
            self._files[name] = file
        return self._files[name]

    def _write_header(self, file: BinaryIO, name: str) -> int:
        """Write the header of an .npy file, whose length depends on no number of rows; return its end."""
        shape = (self.rows, self.widths[name])
        header = {"descr": np.dtype(self.precision).str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        return file.tell()
