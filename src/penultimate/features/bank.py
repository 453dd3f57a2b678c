"""A feature bank: a network's features for every image of a data set, with their provenance."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from penultimate.errors import DamagedFileError, RequestError, counted, legible, shortened
from penultimate.files import (
    OtherVersionError,
    digest_arrays,
    digest_file,
    given_path,
    read_sealed,
    write_given,
)
from penultimate.metrics.inputs import ArrayLike, as_numbers, as_tensor, listed_rows
from penultimate.notebook import facts

ARRAYS = ("features", "labels", "logits", "ids")
OPTIONAL = ("logits", "ids")
BLOCK = 1024
"""The number of images whose logits are read at once."""
LONGEST = 160
"""The number of characters of its provenance that a bank shows."""
FACTS, SCHEMA = "bank.json", 1
"""The file in a bank's folder that holds its provenance and the digest of each file, and its schema."""


@dataclass(frozen=True)
class FeatureBank:
    """Features float32 [n m], labels int64 [n], logits float32 [n k], ids [n], provenance.

    Labels are class numbers or, if an image has several labels, [n l]: 1 present, 0 absent, -1 uncertain.
    `logits` and `ids` may be None. An id, a whole number or a name, identifies the example of a row,
    so that banks can be compared whatever the order of their rows; ids come with the data and are never made
    up. Raise RequestError if
    lengths differ, a feature is not finite (it lists the first such rows), a class number is negative, an
    entry of several labels is none of 1, 0 and -1, or an id occurs twice.

    >>> bank = FeatureBank(np.zeros((2, 3), np.float32), np.array([0, 1]))
    >>> bank.ids is None, bank.logits is None
    (True, True)
    """

    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    logits: npt.NDArray[np.float32] | None = None
    ids: npt.NDArray[Any] | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "features", float32("features", self.features))
        set_field(self, "labels", _integers("labels", self.labels, (1, 2)))
        if self.features.ndim != 2:
            raise RequestError(f"features are [n m], not {list(self.features.shape)}")
        if self.ids is not None:
            set_field(self, "ids", _ids(self.ids))
        if self.logits is not None:
            set_field(self, "logits", float32("logits", self.logits))
        for name in ("labels", "logits", "ids"):
            array = getattr(self, name)
            if array is not None and len(array) != len(self.features):
                raise RequestError(f"{len(self.features)} features, but {len(array)} {name}")
        if self.labels.ndim == 2:
            wrong = self.labels[abs(self.labels) > 1]
            if wrong.size:
                alone = "; class numbers are [n]: labels[:, 0]" if self.labels.shape[1] == 1 else ""
                raise RequestError(
                    f"labels [n l] are 1 (present), 0 (absent) and -1 (uncertain), not {wrong[0]}{alone}"
                )
        elif self.labels.size and self.labels.min() < 0:
            raise RequestError(f"label {self.labels.min()} is negative; labels are 0, 1, ...")
        if self.ids is not None and np.unique(self.ids).size != self.ids.size:
            raise RequestError("ids must be unique; one occurs more than once")
        for name in ("features", "logits"):
            array = getattr(self, name)
            if array is not None and not np.isfinite(array).all():
                rows = np.flatnonzero(~np.isfinite(array).all(1))
                listed = ", ".join(map(str, rows[:5])) + (", ..." if rows.size > 5 else "")
                raise RequestError(
                    f"{name} of {rows.size} examples are not finite (rows {listed} are NaN or infinite);"
                    " leave these examples out, or compute them again"
                )

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        origin = f" of {shortened(legible(self.provenance), LONGEST)}" if self.provenance else ""
        return f"{type(self).__name__}({', '.join(self._facts().values())}){origin}"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: sizes, and where the features come from."""
        origin = shortened(str(self.provenance), LONGEST) if self.provenance else None
        return facts(type(self).__name__, {**self._facts(), "provenance": origin})

    def _facts(self) -> dict[str, str]:
        """Return the sizes of the bank in words."""
        classes = np.unique(self.labels).size
        kinds = f"{classes:,} {'class' if classes == 1 else 'classes'}"
        arrays = {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}
        beside = [name for name in OPTIONAL if name in arrays]
        return {
            "examples": counted(len(self), "example"),
            "features": f"{counted(self.features.shape[1], 'feature')} ({self.features.dtype})",
            "labels": counted(self.labels.shape[1], "label") if self.labels.ndim == 2 else kinds,
            "beside": f"with {' and '.join(beside)}" if beside else "without logits and ids",
            "size": f"{sum(array.nbytes for array in arrays.values()) / 1e3:,.0f} kB",
        }

    @property
    def predictions(self) -> npt.NDArray[np.int64]:
        """The class [n] with the largest logit (the first of equals); RequestError if there are no logits.

        The logits are read in blocks, because NumPy's argmax copies a memory-mapped array.

        >>> scores = np.array([[0.0, 2.0], [1.0, 1.0]], np.float32)
        >>> FeatureBank(scores, np.array([1, 0]), scores).predictions
        array([1, 0])
        """
        if self.logits is None:
            raise RequestError("the bank has no logits, and so no predictions")
        starts = range(0, max(1, len(self)), BLOCK)
        return np.concatenate([self.logits[start : start + BLOCK].argmax(1) for start in starts])

    def digest(self) -> str:
        """Return the sha256 of the arrays."""
        arrays = [getattr(self, name) for name in ARRAYS]
        return digest_arrays(*(array for array in arrays if array is not None))

    def save(self, path: Path | str) -> None:
        """Write the bank atomically as one .npz file that contains its digest."""
        arrays = {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}
        facts = json.dumps({"digest": self.digest(), "provenance": self.provenance}, sort_keys=True)
        buffer = io.BytesIO()
        np.savez(buffer, facts=np.frombuffer(facts.encode(), np.uint8), **arrays)
        write_given(path, buffer.getvalue(), "a feature bank")

    @classmethod
    def load(cls, path: Path | str) -> FeatureBank:
        """Return the bank that was saved at a path.

        Raises RequestError if there is none, and DamagedFileError if its files have changed since.

        A bank that is a folder (from `extract_files`) stays on disk and is memory-mapped. Its features and
        logits keep the precision in which they were stored: float32 or float16.
        """
        path = given_path(path, "a feature bank")
        if not (path / FACTS if path.is_dir() else path).is_file():
            raise RequestError(f"no feature bank at '{path}', or not a finished one")
        try:
            return cls._mapped(path) if path.is_dir() else cls._read(path)
        except (DamagedFileError, OtherVersionError):
            raise
        except Exception as error:  # a damaged archive can fail in any layer: zip, zlib, struct, json
            raise DamagedFileError(f"the feature bank '{path}' cannot be read: {error}") from None

    @classmethod
    def _read(cls, path: Path) -> FeatureBank:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            facts = json.loads(archive["facts"].tobytes())
            arrays = {name: archive[name] for name in ARRAYS if name in archive.files}
        bank = cls(**arrays, provenance=dict(facts["provenance"]))
        if bank.digest() != facts["digest"]:
            raise DamagedFileError(f"the feature bank '{path}' is not what was saved (its digest differs)")
        return bank

    @classmethod
    def _mapped(cls, folder: Path) -> FeatureBank:
        """Return the bank in a folder; its arrays were checked when they were written, and have digests."""
        facts = read_sealed(folder / FACTS, SCHEMA, f"the feature bank '{folder}'")
        for name, digest in facts["files"].items():
            if digest_file(folder / name) != digest:
                raise DamagedFileError(f"'{folder / name}' is not what was saved (its digest differs)")
        bank = object.__new__(cls)
        for name in ARRAYS:
            file = f"{name}.npy"
            array = np.load(folder / file, mmap_mode="r") if file in facts["files"] else None
            object.__setattr__(bank, name, array)
        object.__setattr__(bank, "provenance", facts["provenance"])
        return bank


def float32(name: str, values: ArrayLike) -> npt.NDArray[np.float32]:
    """Return the values in single precision on the CPU; raise RequestError for rows that become all zero."""
    if type(values) is np.ndarray and values.dtype == np.float32:
        return np.ascontiguousarray(values)
    given = as_tensor(values, name).cpu()
    single = given.float()
    if given.dtype == torch.float64 and given.ndim == 2:
        lost = given.any(1) & ~single.any(1)
        if bool(lost.any()):
            raise RequestError(f"{name} are too small for float32 in {listed_rows(lost)}: scale them up")
    return np.ascontiguousarray(single.numpy())


def _ids(values: Any) -> npt.NDArray[Any]:
    """Return whole numbers or names as an array [n]."""
    names = np.asarray(values) if isinstance(values, np.ndarray | list | tuple) else np.empty(0)
    return names if names.dtype.kind == "U" and names.ndim == 1 else _integers("ids", values, (1,))


def _integers(name: str, values: ArrayLike, dimensions: tuple[int, ...]) -> npt.NDArray[np.int64]:
    given = as_numbers(values, name).cpu()
    if given.ndim not in dimensions or given.is_floating_point() or given.dtype == torch.bool:
        forms = "[n] (or [n l], several of each)" if 2 in dimensions else "[n]"
        raise RequestError(f"{name} are integers {forms}, not {given.dtype} {list(given.shape)}")
    return np.ascontiguousarray(given.numpy(), np.int64)
