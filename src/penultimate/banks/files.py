"""Features and columns of labels from .npz, .safetensors and .parquet files, under any names."""

from __future__ import annotations

import contextlib
import fnmatch
import lzma
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError

from penultimate.errors import DamagedFileError, RequestError, unknown
from penultimate.features.bank import FeatureBank
from penultimate.files import nearest_beside
from penultimate.metrics.inputs import as_tensor, listed_rows, read_labels

UNREADABLE = (
    *(OSError, ValueError, EOFError, KeyError, MemoryError, OverflowError, RuntimeError, SyntaxError),
    *(SystemError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
"""What NumPy raises for a file that is no array, or not all of one."""
Read: TypeAlias = Callable[[str], np.ndarray]
"""A function that returns a file's array by name: strings [n], or numbers [n] or [n m]."""


Opened: TypeAlias = tuple[dict[str, int], Read]
"""An open file: the number of dimensions of each array in it, and the function that reads an array."""


@dataclass(frozen=True)
class LabelColumn:
    """A label for each example: its class number, int64 [n], and the sorted names of the classes."""

    codes: npt.NDArray[np.int64]
    classes: tuple[str, ...]


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


def read_bank(
    path: Path | str,
    features: str | Sequence[str] | None = None,
    labels: str | Sequence[str] | None = None,
    *,
    ids: str | None = None,
) -> ForeignBank:
    """Return a bank from a file that another program wrote: .npz, .safetensors or .parquet.

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
    if os.path.isdir(path):  # noqa: PTH112  (`Path.is_dir` raises for a name that no file can have)
        raise RequestError(f"'{path}' is a folder; features are read from a file ({', '.join(OPENERS)})")
    if path.suffix not in OPENERS:
        raise unknown("kind of bank", path.suffix or path.name, OPENERS)
    if not path.is_file():
        raise RequestError(f"there is no file '{path}'.{nearest_beside(path)}")
    try:
        with OPENERS[path.suffix](path) as (kinds, read):
            matrix = _features(path, kinds, read, features)
            taken = [name for asked in _listed(features) for name in _matching(path, kinds, asked)]
            names = _label_names(path, kinds, labels, {*taken, *_listed(ids)})
            columns = {name: _column(name, read(name), len(matrix)) for name in names}
            numbers = None if ids is None else read(_array_name(path, kinds, ids))
        if not len(matrix):
            raise RequestError(f"'{path}' holds no examples: its features are {list(matrix.shape)}")
        said = {"file": str(path)}
        return ForeignBank(matrix, columns[names[0]].codes, None, numbers, said, columns=columns)
    except RequestError as error:
        if path.name in str(error):
            raise
        raise RequestError(f"'{path}': {error}") from None
    except (*UNREADABLE, SafetensorError) as error:
        raise DamagedFileError(
            f"'{path}' cannot be read as {path.suffix}: {error}; save it again, or copy the whole of it"
        ) from None


def _listed(names: str | Sequence[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def _array_name(path: Path, kinds: Mapping[str, int], name: str) -> str:
    if name not in kinds:
        raise unknown(f"array of '{path.name}'", name, kinds)
    return name


def _matching(path: Path, kinds: Mapping[str, int], asked: str) -> list[str]:
    """Return the array of a name or, of a pattern such as "f*", all that match, as the file has them."""
    if asked in kinds or not {*asked} & {*"*?["}:
        return [_array_name(path, kinds, asked)]
    found = [name for name in kinds if fnmatch.fnmatchcase(name, asked)]
    if not found:
        raise RequestError(
            f"no array of '{path.name}' matches '{asked}'; it holds {', '.join(kinds) or 'nothing'}"
        )
    return found


def _features(
    path: Path, kinds: Mapping[str, int], read: Read, features: str | Sequence[str] | None
) -> np.ndarray:
    names = [name for asked in _listed(features) for name in _matching(path, kinds, asked)]
    if not names:
        names = [name for name, dimensions in kinds.items() if dimensions == 2]
        if len(names) != 1:
            found = ", ".join(names or kinds) or "nothing"
            raise RequestError(
                f"which of '{path.name}' are the features? It holds {found}; name an array [n m] with"
                " features=... (--features)"
            )
    if len(names) > 1:
        columns = [read(name) for name in names]
        for name, column in zip(names, columns, strict=True):
            if column.shape != columns[0].shape[:1] or column.dtype.kind not in "fiub":
                raise RequestError(
                    f"features are columns of numbers, as long as each other; '{name}' is {column.dtype}"
                    f" {list(column.shape)}"
                )
        return np.stack([column.astype(np.float32) for column in columns], axis=1)
    matrix = read(names[0])
    if matrix.ndim == 1 and isinstance(features, Sequence) and not isinstance(features, str):
        matrix = matrix[:, None]
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise RequestError(f"features are numbers [n m]; '{names[0]}' is {matrix.dtype} {list(matrix.shape)}")
    return matrix


def _label_names(
    path: Path,
    kinds: Mapping[str, int],
    labels: str | Sequence[str] | None,
    taken: set[str],
) -> list[str]:
    names = [_array_name(path, kinds, name) for name in _listed(labels)]
    if len(set(names)) < len(names):
        raise RequestError(f"a column of labels is named once; got {', '.join(names)}")
    names = names or [name for name, dimensions in kinds.items() if dimensions == 1 and name not in taken]
    if not names:
        raise RequestError(f"'{path.name}' has no column of labels beside its features")
    return names


def _column(name: str, values: np.ndarray, examples: int) -> LabelColumn:
    """Return strings or whole numbers as a column of classes."""
    if values.shape != (examples,):
        raise RequestError(
            f"there is one label for each of {examples} examples; '{name}' is {list(values.shape)}"
        )
    exact = values.dtype.kind == "f" and np.isfinite(values).all()  # used as stored
    labels = values if exact else np.asarray(read_labels(values, f"'{name}'"))
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise RequestError(f"'{name}': infinity in {listed_rows(as_tensor(np.isinf(labels), name))}")
    if labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        raise RequestError(f"'{name}' holds fractions; labels are strings or whole numbers")
    found, codes = np.unique(labels, return_inverse=True)
    classes = [str(int(one)) if labels.dtype.kind == "f" else str(one) for one in found]
    return LabelColumn(codes.astype(np.int64), tuple(classes))


HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""The functions that read the header of an .npy file, by the version of the format."""


@contextlib.contextmanager
def _open_npz(path: Path) -> Iterator[Opened]:
    kinds = {}
    with zipfile.ZipFile(path) as members, np.load(path, allow_pickle=False) as archive:
        for name in archive.files:
            with members.open(f"{name}.npy") as file:
                header = HEADERS[np.lib.format.read_magic(file)](file)
            kinds[name] = len(header[0])

        def read(name: str) -> np.ndarray:
            try:
                array: np.ndarray = archive[name]
            except ValueError:
                raise RequestError(
                    f"'{name}' in '{path.name}' holds Python objects, which are not unpickled, as they could"
                    " run anything: save it as an array of numbers or strings"
                ) from None
            return array

        yield kinds, read


@contextlib.contextmanager
def _open_safetensors(path: Path) -> Iterator[Opened]:
    from safetensors import safe_open

    file: Any = safe_open(path, framework="pt")
    kinds = {name: len(file.get_slice(name).get_shape()) for name in file.keys()}

    def read(name: str) -> np.ndarray:
        tensor = as_tensor(file.get_tensor(name), name)
        return (
            tensor.float() if tensor.element_size() == 2 and tensor.is_floating_point() else tensor
        ).numpy()

    yield kinds, read


@contextlib.contextmanager
def _open_parquet(path: Path) -> Iterator[Opened]:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise RequestError("Parquet files need pyarrow: pip install 'penultimate[parquet]'") from None
    try:
        file = parquet.ParquetFile(path)
    except arrow.ArrowInvalid as error:
        raise DamagedFileError(f"'{path}' cannot be read: {error}") from None
    kinds = {column.name: 2 if _is_list(column.type) else 1 for column in file.schema_arrow}

    def read(name: str) -> np.ndarray:
        rows = file.metadata.num_rows
        if kinds[name] == 1:
            column = file.read([name]).column(0)
            if arrow.types.is_dictionary(column.type):  # to_numpy would fill gaps with the last category
                column = column.cast(column.type.value_type)
            array: np.ndarray = (
                column.to_numpy() if column.type != arrow.bool_() else np.array(column.to_pylist())
            )
            return array
        matrix: np.ndarray | None = None
        start = 0
        for batch in file.iter_batches(columns=[name], batch_size=4096):  # never in memory twice
            part = batch.column(0)
            lengths = np.diff(part.offsets.to_numpy()) if hasattr(part, "offsets") else [part.type.list_size]
            values = part.flatten().to_numpy(zero_copy_only=False)
            if values.dtype.kind not in "fiub":
                raise RequestError(f"features are lists of numbers; '{name}' holds others")
            width = values.size // max(1, len(part))
            if matrix is None:
                matrix = np.empty((rows, width), np.float32)
            if part.null_count or (np.asarray(lengths) != matrix.shape[1]).any():
                raise RequestError(
                    f"features are lists of one length; '{name}' has others, or none, in rows {start} to"
                    f" {start + len(part) - 1}"
                )
            matrix[start : start + len(part)] = values.reshape(len(part), width)
            start += len(part)
        return np.empty((0, 0), np.float32) if matrix is None else matrix

    yield kinds, read


def _is_list(kind: Any) -> bool:
    return str(kind).startswith(("list", "large_list", "fixed_size_list"))


OPENERS: dict[str, Callable[[Path], contextlib.AbstractContextManager[Opened]]] = {
    ".npz": _open_npz,
    ".safetensors": _open_safetensors,
    ".parquet": _open_parquet,
}
"""The functions that open a file, by its suffix."""
