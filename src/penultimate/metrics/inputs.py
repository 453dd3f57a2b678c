"""The one reader of arrays for metrics and probes: features, logits, probabilities and labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from penultimate.errors import RequestError, counted

ArrayLike: TypeAlias = Tensor | npt.NDArray[np.generic] | Sequence[Any]
Names: TypeAlias = ArrayLike
"""Labels [n]: class indices, or the names of classes, which are then numbered in sorted order."""
LISTED = 8
"""The number of wrong rows that an error lists."""
BLOCK_ELEMENTS = {"cpu": 1 << 21, "cuda": 1 << 26}
"""The number of values in a block: enough rows for a matrix product to run at full speed."""
LARGEST = 1e100
"""The largest feature, whose square and sums of squares stay in float64."""


@runtime_checkable
class Bank(Protocol):
    """The parts of a feature bank that metrics use: features [n m], labels [n], logits [n k] or None."""

    @property
    def features(self) -> Any: ...
    @property
    def labels(self) -> Any: ...
    @property
    def logits(self) -> Any: ...


def as_tensor(values: ArrayLike, what: str) -> Tensor:
    """Return real numbers as a tensor that shares their memory if possible, detached from gradients."""
    if isinstance(values, Tensor):
        if values.layout != torch.strided or values.is_complex():
            raise RequestError(f"{what} must be a dense array of real numbers; got {values.dtype}")
        return values.detach()
    array = _as_array(values, what)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise RequestError(f"{what} must be real numbers; got {array.dtype}")
    wanted = (
        np.int64 if array.dtype.kind == "u" and array.dtype.itemsize > 1 else array.dtype.newbyteorder("=")
    )
    if array.dtype != wanted or any(step < 0 for step in array.strides):  # which torch does not take
        array = array.astype(wanted, order="C")
    with warnings.catch_warnings():
        # torch warns that a read-only array (a memory map) may be written to; nothing here writes to it.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def as_matrix(values: ArrayLike, what: str, columns: str) -> Shaped[Tensor, "n m"]:
    """Return a two-dimensional tensor with at least one column."""
    matrix = as_tensor(values, what)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise RequestError(f"{what} must be [examples, {columns}]; got shape {list(matrix.shape)}")
    return matrix


def as_features(
    features: ArrayLike | Bank, what: str = "features", check: bool = True
) -> Shaped[Tensor, "n m"]:
    """Return features [n m], also a bank's, on the CPU or a CUDA device, which compute in float64."""
    given = features.features if isinstance(features, Bank) else features
    matrix = as_matrix(given, what, "dimensions")
    matrix = matrix if matrix.device.type in BLOCK_ELEMENTS else matrix.cpu()
    if check:
        expect_finite(matrix, what)
    return matrix


def expect_finite(matrix: Shaped[Tensor, "n m"], what: str = "features") -> None:
    """Raise RequestError, which lists the rows, for NaN, infinity, and numbers beyond LARGEST."""
    rows = max(1, BLOCK_ELEMENTS[matrix.device.type] // matrix.shape[1])
    for number, block in enumerate(torch.split(matrix, rows)) if len(matrix) else ():
        low, high = (float(end) for end in block.aminmax())
        if not -LARGEST <= low <= high <= LARGEST:
            wrong = listed_rows(~(block.abs() <= LARGEST).all(1), number * rows)
            raise RequestError(f"{what} hold NaN, infinity or huge numbers in {wrong}")


def as_logits(values: ArrayLike, what: str = "logits") -> Shaped[Tensor, "n k"]:
    """Return logits or probabilities [n k] on the CPU or a CUDA device."""
    matrix = as_matrix(values, what, "classes")
    return matrix if matrix.device.type in BLOCK_ELEMENTS else matrix.cpu()


def labelled_features(
    features: ArrayLike | Bank, labels: Names | None, num_classes: int | None = None, check: bool = True
) -> tuple[Shaped[Tensor, "n m"], Int[Tensor, " n"]]:
    """Return features and class indices as given, or those of a feature bank."""
    matrix = as_features(features, check=check)
    classes = read_classes(own_labels(features, labels), len(matrix), num_classes, matrix.device)
    return matrix, classes


def labelled_logits(
    logits: ArrayLike | Bank, labels: Names | None, what: str = "logits"
) -> tuple[Shaped[Tensor, "n k"], Int[Tensor, " n"]]:
    """Return logits (or probabilities) and labels as given, or those of a feature bank."""
    labels = own_labels(logits, labels)
    given = logits.logits if isinstance(logits, Bank) else logits
    if given is None:
        raise RequestError(f"the bank has no {what}")
    matrix = as_logits(given, what)
    classes = read_classes(labels, len(matrix), matrix.shape[1], matrix.device)
    if len(classes) == 0:
        raise RequestError(f"{what} and labels are empty")
    return matrix, classes


def own_labels(values: ArrayLike | Bank, labels: Names | None) -> Names:
    """Return labels as given, or those of a feature bank."""
    if labels is None:
        if not isinstance(values, Bank):
            raise RequestError(
                "labels are missing: one for each example, or a feature bank, which has its own"
            )
        return values.labels  # type: ignore[no-any-return]
    return labels


def float64_blocks(
    matrix: Shaped[Tensor, "n m"], columns_beside: int = 0, rows: int | None = None
) -> Iterator[tuple[int, Float[Tensor, "b m"]]]:
    """Yield float64 copies of blocks of rows, each with the number of its first row, overwriting each other.

    `columns_beside` is the number of values that the caller computes for each row, so that they fit as well.

    >>> [(start, block.tolist()) for start, block in float64_blocks(torch.tensor([[1], [2]]))]
    [(0, [[1.0], [2.0]])]
    """
    rows = rows or max(1, BLOCK_ELEMENTS[matrix.device.type] // (matrix.shape[1] + columns_beside))
    buffer = torch.empty(min(rows, len(matrix)), matrix.shape[1], dtype=torch.float64, device=matrix.device)
    for start in range(0, len(matrix), rows):
        block = matrix[start : start + rows]
        yield start, buffer[: len(block)].copy_(block)


def directions(vectors: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    """Return each vector divided by its length; a zero vector stays zero and so has similarity 0 to all."""
    lengths = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    return torch.div(vectors, lengths.masked_fill(lengths == 0, 1))


def resolution(dtype: torch.dtype) -> float:
    """Return the relative rounding error of a dtype: 0 for whole numbers."""
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0


def read_labels(values: Any, what: str = "labels") -> npt.NDArray[Any]:
    """Return labels of any shape as an array of numbers or of text; raise RequestError for missing labels.

    >>> read_labels([b"dog", b"cat"]), read_labels(np.array([1, 0], object))
    (array(['dog', 'cat'], dtype='<U3'), array([1, 0]))
    """
    array = _as_array(values.detach().cpu().numpy() if isinstance(values, Tensor) else values, what)
    if array.dtype.kind in "OS" or (array.dtype.kind == "U" and isinstance(values, list | tuple)):
        import pandas as pd

        whole = np.array(values, object) if array.dtype.kind == "U" else array  # else None is the text "None"
        listed = [one.decode() if isinstance(one, bytes) else one for one in whole.ravel().tolist()]
        _expect_present(np.asarray(pd.isna(np.array(listed, object))).reshape(array.shape), what)
        if len({isinstance(one, str) for one in listed}) > 1:
            raise RequestError(f"{what} mix names and numbers: give one kind")
        array = np.array(listed).reshape(array.shape)
    if array.dtype.kind not in "biufU":
        raise RequestError(f"{what} must be whole numbers or text; got {array.dtype}")
    _expect_present(array != array, what)
    return array


def expect_column(labels: npt.NDArray[Any], what: str) -> None:
    """Raise RequestError unless labels are one-dimensional: one for each example."""
    if labels.ndim != 1:
        raise RequestError(
            f"{what} must be a 1d array [examples]; got shape {list(labels.shape)} (pass argmax(1) of one-hot"
            " rows; several labels of an example go to MultiLabelProbe)"
        )


def as_numbers(values: Any, what: str) -> Tensor:
    """Return numeric labels as a tensor of any shape; raise RequestError for names."""
    read = read_labels(values, what)
    if read.dtype.kind == "U":
        raise RequestError(f"{what} must be integer class indices; got text")
    return as_tensor(read, what)


def as_classes(
    values: ArrayLike,
    what: str,
    examples: int | None = None,
    num_classes: int | None = None,
    device: torch.device | None = None,
) -> Int[Tensor, " n"]:
    """Return class indices [n] as int64 on `device`.

    Raise RequestError unless there is one for each of `examples`, each in 0..num_classes-1.
    """
    read = as_numbers(values, what).numpy()
    expect_column(read, what)
    if examples is not None and len(read) != examples:
        raise RequestError(f"{counted(examples, 'example')}, but {len(read)} {what}; each example needs one")
    if len(read) and read.dtype.kind not in "iu":
        raise RequestError(f"{what} must be integer class indices; got {read.dtype}: convert them to int")
    classes = torch.from_numpy(read.astype(np.int64))
    outside = classes < 0 if num_classes is None else (classes < 0) | (classes >= num_classes)
    if bool(outside.any()):
        allowed = "0 or more" if num_classes is None else f"0..{num_classes - 1}"
        raise RequestError(f"{what} must be {allowed}; not so in {listed_rows(outside)}")
    return classes.to(device)


def read_classes(
    labels: Names,
    examples: int | None = None,
    num_classes: int | None = None,
    device: torch.device | None = None,
) -> Int[Tensor, " n"]:
    """Return class indices [n] as `as_classes` does; names become their ranks, as `numbered` gives them."""
    (codes,) = numbered(labels, columns=num_classes)
    return as_classes(codes, "labels", examples, num_classes, device)


def numbered(*labels: Names, columns: int | None = None) -> list[npt.NDArray[Any]]:
    """Return labels as class indices: indices unchanged, and names by their rank among all sorted names.

    With `columns`, names stand for the columns of logits (or the rows of weights) in sorted order, as in
    scikit-learn, so all names must occur.

    >>> [codes.tolist() for codes in numbered(["dog", "cat"], ["ant", "dog"])]
    [[2, 1], [0, 2]]
    """
    read = [read_labels(each) for each in labels]
    if not any(each.dtype.kind == "U" for each in read):
        return read
    if not all(each.dtype.kind == "U" or len(each) == 0 for each in read):
        raise RequestError("labels are of one kind: some are names and others are not")
    for each in read:
        expect_column(each, "labels")
    known, codes = np.unique(np.concatenate([each.astype(str) for each in read]), return_inverse=True)
    if columns is not None and len(known) != columns:
        raise RequestError(
            f"labels hold {len(known)} names for {columns} classes, so that no name has a known column: pass"
            " class indices"
        )
    return list(np.split(codes, np.cumsum([len(each) for each in read])[:-1]))


def listed_rows(chosen: Bool[Tensor, " n"], offset: int = 0) -> str:
    """Return the chosen rows in words, numbered from 0 or from `offset`.

    >>> listed_rows(torch.tensor([False, True, False, True]))
    'rows 1 and 3'
    """
    rows = [row + offset for row in chosen.nonzero()[:, 0].tolist()]
    if len(rows) == 1:
        return f"row {rows[0]}"
    shown, rest = rows[: LISTED if len(rows) > LISTED else -1], len(rows) - LISTED
    return f"rows {', '.join(map(str, shown))} and {f'{rest} more' if rest > 0 else rows[-1]}"


def items(values: Iterable[Any], what: str) -> Iterator[Any]:
    """Return an iterator over the values; raise RequestError if they are not iterable."""
    try:
        return iter(values)
    except TypeError:
        raise RequestError(f"{what} must be an iterable; got a {type(values).__name__}") from None


def _as_array(values: Any, what: str) -> npt.NDArray[Any]:
    if isinstance(values, Bank):
        raise RequestError(f"{what} must be an array, not a bank: pass its .features, .labels or .logits")
    if np.ma.is_masked(values):
        raise RequestError(f"{what} have masked places, which hold no number: leave those examples out")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:  # ragged lists; lists of tensors
        raise RequestError(f"{what} must be one rectangular array: {error}") from None
    if array.ndim == 0:
        raise RequestError(f"{what} should be an array or a list; got a {type(values).__name__}")
    return array


def _expect_present(missing: npt.NDArray[np.bool_], what: str) -> None:
    if missing.any():
        rows = torch.from_numpy(missing.reshape(len(missing), -1).any(1))
        raise RequestError(
            f"{what}: no label for {int(rows.sum())} of {len(rows)} examples (None or NaN in"
            f" {listed_rows(rows)}); leave those examples out"
        )
