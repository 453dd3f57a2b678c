"""Features and columns of labels from .npz, .safetensors, .parquet and .csv files, under any names."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from penultimate.backbones.passes import message_of
from penultimate.errors import DamagedFileError, RequestError, unknown
from penultimate.features.bank import FeatureBank
from penultimate.files import nearest_beside
from penultimate.metrics.inputs import read_labels


@dataclass(frozen=True)
class LabelColumn:
    """A label for each example: its class number, int64 [n], and the sorted names of the classes."""

    codes: npt.NDArray[np.int64]
    classes: tuple[str, ...]

    @property
    def names(self) -> npt.NDArray[np.str_]:
        """The name of each example's class [n]; files number their classes by themselves."""
        return np.array(self.classes)[self.codes]

    def at(self, rows: npt.NDArray[np.generic]) -> LabelColumn:
        """Return the labels of some rows."""
        return LabelColumn(self.codes[rows], self.classes)


@dataclass(frozen=True, repr=False)
class ForeignBank(FeatureBank):
    """A `FeatureBank` with several columns of labels; `labels` are those of the first column.

    >>> columns = {"class": LabelColumn(np.array([0, 1]), ("a", "b"))}
    >>> bank = ForeignBank(np.eye(2), np.array([0, 1]), columns=columns)
    >>> bank.by("class").labels.tolist()
    [0, 1]
    """

    columns: Mapping[str, LabelColumn] = field(default_factory=dict)

    def by(self, column: str) -> ForeignBank:
        """Return the same bank with the labels of another column; raise RequestError if it does not exist."""
        if column not in self.columns:
            raise unknown("column of labels", column, self.columns)
        return replace(self, labels=self.columns[column].codes)

    def at(self, rows: npt.NDArray[np.generic]) -> ForeignBank:
        """Return the bank of some rows, without their ids."""
        columns = {name: column.at(rows) for name, column in self.columns.items()}
        return replace(
            self, features=self.features[rows], labels=self.labels[rows], ids=None, columns=columns
        )


def read_bank(
    path: Path | str,
    features: str | Sequence[str] | None = None,
    labels: str | Sequence[str] | None = None,
    *,
    ids: str | None = None,
) -> ForeignBank:
    """Return a bank from a file that another program wrote: .npz, .safetensors, .parquet or .csv.

    `features` is the name of an array [n m] (in Parquet, of a column of lists), or the names of m columns of
    numbers, for which a pattern may stand ("f*"); by default the only array that fits. `labels` names one or
    several columns of strings or whole numbers, with the classes first; by default all such columns. `ids`
    names the column that identifies the example of each row, so that banks can be compared. Features become
    float32.

    Raise RequestError for a name that is not in the file (the error lists the names that are), arrays of
    other shapes, a missing label (it lists the rows), and features that are not finite; raise
    DamagedFileError for a damaged file.
    """
    path = Path(path)
    if path.suffix not in READERS:
        raise unknown("kind of bank", path.suffix or path.name, READERS)
    if not path.is_file():
        raise RequestError(f"there is no file '{path}'.{nearest_beside(path)}")
    try:
        arrays = READERS[path.suffix](path)
    except RequestError:
        raise
    except ImportError:
        raise RequestError("Parquet files need pyarrow: pip install 'penultimate[parquet]'") from None
    except Exception as error:  # a reader can raise anything on malformed bytes
        if "Object arrays" in str(error):
            raise RequestError(
                f"'{path}' holds Python objects, which are not unpickled, as they could run anything: save"
                " names as np.array(names, dtype=str)"
            ) from None
        raise DamagedFileError(
            f"'{path}' cannot be read as {path.suffix}: {message_of(error)}; save it again"
        ) from None
    try:
        taken, matrix = _features(arrays, features)
        names = [name for asked in _listed(labels) for name in _matching(arrays, asked)]
        names = names or [
            name for name, array in arrays.items() if array.ndim == 1 and name not in (*taken, ids)
        ]
        if not len(matrix) or not names:
            raise RequestError(f"it holds {len(matrix)} examples and no column of labels beside its features")
        columns = {name: _column(name, arrays[name], len(matrix)) for name in names}
        numbers = None if ids is None else arrays[_matching(arrays, ids)[0]]
        origin = {"file": str(path)}
        return ForeignBank(matrix, columns[names[0]].codes, None, numbers, origin, columns=columns)
    except RequestError as error:
        raise RequestError(f"'{path}': {error}") from None


def _listed(names: str | Sequence[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def _matching(arrays: Mapping[str, np.ndarray], asked: str) -> list[str]:
    """Return the array of a name or, of a pattern such as "f*", all that match, as the file has them."""
    found = [asked] if asked in arrays else [name for name in arrays if fnmatch.fnmatchcase(name, asked)]
    if not found:
        raise unknown("array of the file", asked, arrays)
    return found


def _features(
    arrays: Mapping[str, np.ndarray], features: str | Sequence[str] | None
) -> tuple[list[str], np.ndarray]:
    """Return the names and the matrix [n m] of the features."""
    names = [name for asked in _listed(features) for name in _matching(arrays, asked)]
    if not names:
        names = [name for name, array in arrays.items() if array.ndim == 2]
        if len(names) != 1:
            raise RequestError(
                f"which arrays are the features? It holds {', '.join(names or arrays) or 'nothing'}; name an"
                " array [n m], or columns of numbers, with features=..."
            )
    shapes = {arrays[name].shape for name in names}
    numeric = all(arrays[name].dtype.kind in "fiub" for name in names)
    if len(shapes) > 1 or not numeric or arrays[names[0]].ndim > (2 if len(names) == 1 else 1):
        found = ", ".join(
            f"'{name}' is {arrays[name].dtype} {list(arrays[name].shape)}" for name in names[:5]
        )
        raise RequestError(
            f"features are numbers [n m], or columns of numbers, as long as each other; {found}"
        )
    if arrays[names[0]].ndim == 2:
        return names, arrays[names[0]]
    return names, np.stack([arrays[name].astype(np.float32) for name in names], axis=1)


def _column(name: str, values: np.ndarray, examples: int) -> LabelColumn:
    """Return strings or whole numbers as a column of classes."""
    if values.shape != (examples,):
        raise RequestError(
            f"there is one label for each of {examples} examples; '{name}' is {list(values.shape)}"
        )
    labels = np.asarray(read_labels(values, f"'{name}'"))
    if labels.dtype.kind == "f" and (not np.isfinite(labels).all() or (labels != np.round(labels)).any()):
        raise RequestError(f"'{name}' holds fractions or infinity; labels are strings or whole numbers")
    found, codes = np.unique(labels, return_inverse=True)
    classes = [str(int(one)) if labels.dtype.kind == "f" else str(one) for one in found]
    return LabelColumn(codes.astype(np.int64), tuple(classes))


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return dict(archive)


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    from safetensors.torch import load_file

    return {
        name: (tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor).numpy()
        for name, tensor in load_file(path).items()
    }


def _read_table(path: Path) -> dict[str, np.ndarray]:
    """Return the columns of a table; one of lists of equal lengths is an array [n m]."""
    import pandas as pd

    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    columns = {str(name): frame[name].to_numpy() for name in frame.columns}
    for name, column in columns.items():
        if len(column) and column.dtype == object and isinstance(column[0], np.ndarray | list):
            widths = {len(row) if isinstance(row, np.ndarray | list) else 0 for row in column}
            if len(widths) > 1:
                raise RequestError(f"'{path}': '{name}' holds lists of several lengths, or none in some rows")
            columns[name] = np.stack(column)
    return columns


READERS: dict[str, Callable[[Path], dict[str, np.ndarray]]] = {
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".parquet": _read_table,
    ".csv": _read_table,
}
"""The functions that return the arrays of a file by name, by the file's suffix."""
