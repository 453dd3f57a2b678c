"""A feature bank: a network's features of every image of a data set, with their provenance."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penultimate.errors import DamagedFileError, RequestError
from penultimate.store import atomic_write, digest_arrays

ARRAYS = ("features", "labels", "logits", "ids")


@dataclass(frozen=True)
class FeatureBank:
    """Features float32 [n m], labels int64 [n], logits float32 [n k] (or None), ids int64 [n], provenance.

    Raises RequestError if lengths differ, a feature is not finite (with the first such rows), a label is
    negative or an id occurs twice.

    >>> bank = FeatureBank(np.zeros((2, 3), np.float32), np.array([0, 1]))
    >>> bank.ids.tolist(), bank.logits is None
    ([0, 1], True)
    """

    features: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    logits: npt.NDArray[np.float32] | None = None
    ids: npt.NDArray[np.int64] = None  # type: ignore[assignment]
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "features", np.ascontiguousarray(self.features, np.float32))
        set_field(self, "labels", _integers("labels", self.labels))
        set_field(self, "ids", np.arange(len(self)) if self.ids is None else _integers("ids", self.ids))
        if self.features.ndim != 2:
            raise RequestError(f"features are [n m], not {list(self.features.shape)}")
        if self.logits is not None:
            set_field(self, "logits", np.ascontiguousarray(self.logits, np.float32))
        for name in ("labels", "logits", "ids"):
            array = getattr(self, name)
            if array is not None and len(array) != len(self.features):
                raise RequestError(f"{len(self.features)} features, but {len(array)} {name}")
        if self.labels.size and self.labels.min() < 0:
            raise RequestError(f"label {self.labels.min()} is negative; labels are 0, 1, ...")
        if np.unique(self.ids).size != self.ids.size:
            raise RequestError("ids must be unique; one occurs more than once")
        for name in ("features", "logits"):
            array = getattr(self, name)
            if array is not None and not np.isfinite(array).all():
                rows = np.flatnonzero(~np.isfinite(array).all(1))
                listed = ", ".join(map(str, rows[:5])) + (", ..." if rows.size > 5 else "")
                raise RequestError(f"{name} of {rows.size} examples are not finite (rows {listed})")

    def __len__(self) -> int:
        return len(self.features)

    def digest(self) -> str:
        """sha256 of the arrays."""
        arrays = [getattr(self, name) for name in ARRAYS]
        return digest_arrays(*(array for array in arrays if array is not None))

    def save(self, path: Path | str) -> None:
        """Write the bank atomically as one .npz file that contains its digest."""
        arrays = {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}
        facts = json.dumps({"digest": self.digest(), "provenance": self.provenance}, sort_keys=True)
        buffer = io.BytesIO()
        np.savez(buffer, facts=np.frombuffer(facts.encode(), np.uint8), **arrays)
        atomic_write(Path(path), buffer.getvalue())

    @classmethod
    def load(cls, path: Path | str) -> FeatureBank:
        """Read a bank; raises RequestError if there is none, DamagedFileError if it was changed."""
        try:
            with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as archive:
                facts = json.loads(archive["facts"].tobytes())
                arrays = {name: archive[name] for name in ARRAYS if name != "logits" or name in archive.files}
        except FileNotFoundError:
            raise RequestError(f"no feature bank at '{path}'") from None
        except Exception as error:  # a damaged archive can fail in any layer: zip, zlib, struct, json
            raise DamagedFileError(f"the feature bank '{path}' cannot be read: {error}") from error
        bank = cls(**arrays, provenance=facts["provenance"])
        if bank.digest() != facts["digest"]:
            raise DamagedFileError(f"the feature bank '{path}' is not what was saved (its digest differs)")
        return bank


def _integers(name: str, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise RequestError(f"{name} are integers [n], not {array.dtype} {list(array.shape)}")
    return np.ascontiguousarray(array, np.int64)
