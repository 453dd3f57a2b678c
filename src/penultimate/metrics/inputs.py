"""The one reader of arrays for metrics and probes: features, logits, probabilities and labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from penultimate.errors import RequestError, counted

ArrayLike: TypeAlias = Tensor | npt.NDArray[np.generic] | Sequence[Any]
Names: TypeAlias = ArrayLike
"""Labels [n]: class indices, or the names of classes, which are then numbered in sorted order."""
LISTED = 8
"""The number of wrong rows that an error lists."""


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
    """Return the values as a tensor that shares their memory if possible, detached from gradients.

    Raise RequestError for anything but a dense array of real numbers without masked values.
    """
    if isinstance(values, Tensor):
        if values.layout != torch.strided or values.is_complex():
            raise RequestError(f"{what} must be a dense array of real numbers; got {values.dtype}")
        return values.detach()
    array = _as_array(values, what)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise RequestError(f"{what} must be real numbers; got {array.dtype}")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    # torch takes neither negative strides nor another order of bytes.
    if not array.dtype.isnative or any(step < 0 for step in array.strides):
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    with warnings.catch_warnings():
        # torch warns that a read-only array (a memory map) may be written to; nothing here writes to it.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def as_matrix(values: ArrayLike, what: str, columns: str) -> Shaped[Tensor, "n m"]:
    """Return a two-dimensional tensor with at least one column; an error says how to reshape other values."""
    matrix = as_tensor(values, what)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        hint = f"; flatten each example first: {what}.reshape(len({what}), -1)" if matrix.ndim > 2 else ""
        if matrix.ndim == 1 and not matrix.is_floating_point():
            hint = f". Whole numbers in one dimension look like labels: {what} come before them"
        raise RequestError(f"{what} must be [examples, {columns}]; got shape {list(matrix.shape)}{hint}")
    return matrix


def of_bank(
    values: ArrayLike | Bank, labels: Names | None, part: str = "features"
) -> tuple[ArrayLike, Names]:
    """Return features (or logits) and labels as given, or those of a feature bank."""
    if isinstance(values, Bank):
        array = getattr(values, part)
        if array is None:
            raise RequestError(f"the bank has no {part}")
        return array, values.labels if labels is None else labels
    if labels is None:
        raise RequestError(f"{part} go with labels, one for each example; a bank brings its own")
    return values, labels


def read_labels(values: Any, what: str = "labels") -> Tensor | npt.NDArray[Any]:
    """Return labels of any shape as a tensor or an array of whole numbers, booleans, floats or text.

    Raise RequestError for a value that is no array, for missing labels (None, NaN, NA; it lists the rows),
    and for anything but numbers alone or text alone.

    >>> read_labels([b"dog", b"cat"]), read_labels(np.array([1, 0], object))
    (array(['dog', 'cat'], dtype='<U3'), array([1, 0]))
    """
    if isinstance(values, Tensor):
        tensor = as_tensor(values, what)
        _expect_present((tensor != tensor).cpu().numpy(), what)
        return tensor
    array = _as_array(values, what)
    if array.dtype.kind == "U" and isinstance(values, list | tuple):
        array = np.array(values, object)  # NumPy turns numbers among text into text
    if array.dtype.kind == "S":
        array = np.array(array.tolist(), object)
    if array.dtype.kind == "O":
        import pandas as pd

        array = _decoded(array, what)
        missing = np.asarray(pd.isna(array))
        _expect_present(missing, what)
        texts = [isinstance(one, str) for one in array.flat]
        if any(texts) and not all(texts):
            raise RequestError(f"{what} mix names and numbers: give one kind")
        array = np.array(array.tolist(), str if any(texts) else None)
    if array.dtype.kind not in "biufU":
        raise RequestError(f"{what} must be whole numbers or text; got {array.dtype}")
    _expect_present(array != array, what)
    return array


def is_text(labels: Tensor | npt.NDArray[Any]) -> bool:
    """Return whether labels, as returned by `read_labels`, are names."""
    return isinstance(labels, np.ndarray) and labels.dtype.kind == "U"


def as_numbers(values: Any, what: str) -> Tensor:
    """Return numeric labels as a tensor of any shape; raise RequestError for names."""
    read = read_labels(values, what)
    if is_text(read):
        raise RequestError(f"{what} must be integer class indices; got text: number names once, for all")
    return as_tensor(read, what)


def expect_column(labels: Tensor | npt.NDArray[Any], what: str) -> None:
    """Raise RequestError, which suggests a fix, unless labels are one-dimensional: one for each example."""
    if labels.ndim == 1:
        return
    fix = "numpy.ravel of a single column" if 1 in labels.shape[1:] else "argmax(1) of one-hot rows"
    raise RequestError(
        f"{what} must be a 1d array [examples]; got shape {list(labels.shape)} (pass {fix}; several labels of"
        " an example go to MultiLabelProbe)"
    )


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
    classes = as_numbers(values, what)
    expect_column(classes, what)
    if examples is not None and len(classes) != examples:
        raise RequestError(
            f"{counted(examples, 'example')}, but {len(classes)} {what}; each example needs one"
        )
    if len(classes) and (classes.is_floating_point() or classes.dtype == torch.bool):
        raise RequestError(f"{what} must be integer class indices; got {classes.dtype}: convert them to int")
    classes = classes.to(device=device, dtype=torch.int64)
    outside = classes < 0 if num_classes is None else (classes < 0) | (classes >= num_classes)
    if bool(outside.any()):
        allowed = "0 or more" if num_classes is None else f"0..{num_classes - 1}"
        first = int(classes[outside][0])
        raise RequestError(
            f"{what} must be {allowed}; not so in {listed_rows(outside)} (the first is {first})"
        )
    return classes


def numbered(*labels: Names, columns: int | None = None, called: Sequence[str] = ()) -> list[ArrayLike]:
    """Return labels as class indices: indices unchanged, and names by their rank among all sorted names.

    With `columns`, names stand for the columns of logits (or the rows of weights) in sorted order, as in
    scikit-learn, so all names must occur. `called` are the arguments' names in errors, by default "labels".

    >>> [codes.tolist() for codes in numbered(["dog", "cat"], ["ant", "dog"])]
    [[2, 1], [0, 2]]
    """
    read = [
        read_labels(each, what) for each, what in zip(labels, called or ["labels"] * len(labels), strict=True)
    ]
    if not any(map(is_text, read)):
        return list(read)
    if not all(is_text(each) or len(each) == 0 for each in read):
        raise RequestError("labels are of one kind: some are names and others are not")
    for each in read:
        expect_column(each, "labels")
    known, codes = np.unique(np.concatenate([np.asarray(each, str) for each in read]), return_inverse=True)
    if columns is not None and len(known) != columns:
        raise RequestError(
            f"labels hold {len(known)} names for {columns} classes; which is whose column is known only where"
            " every name occurs (they are then sorted): pass class indices"
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
        raise RequestError(
            f"{what} must be a list or another iterable; got a {type(values).__name__}"
        ) from None


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
        came = "None" if values is None else f"a {type(values).__name__}"
        raise RequestError(f"{what} should be a 1d array or a list; got {came}")
    return array


def _decoded(array: npt.NDArray[np.object_], what: str) -> npt.NDArray[np.object_]:
    """Return objects with bytes as text; raise RequestError, which names the row, for those not in UTF-8."""
    decoded = array.copy()
    for place, one in np.ndenumerate(array):
        if isinstance(one, bytes):
            try:
                decoded[place] = one.decode("utf-8")
            except UnicodeDecodeError:
                raise RequestError(f"{what}: row {place[0]} holds bytes that are no UTF-8") from None
    return decoded


def _expect_present(missing: npt.NDArray[np.bool_], what: str) -> None:
    if missing.any():
        rows = torch.from_numpy(missing.reshape(len(missing), -1).any(1))
        raise RequestError(
            f"{what}: no label for {int(rows.sum())} of {len(rows)} examples (None or NaN in"
            f" {listed_rows(rows)}); leave those examples out, or say first what they count as"
        )
