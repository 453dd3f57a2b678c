"""The input of every measurement: arrays and settings, checked once, with errors that list the rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from penultimate.errors import RequestError

ArrayLike: TypeAlias = Tensor | npt.NDArray[np.generic] | Sequence[Any]

Names: TypeAlias = ArrayLike
"""Labels [n]: class indices, or the names of classes, which are then numbered in sorted order."""


@runtime_checkable
class Bank(Protocol):
    """The parts of a feature bank that metrics use: features [n m], labels [n], logits [n k] or None."""

    @property
    def features(self) -> Any: ...
    @property
    def labels(self) -> Any: ...
    @property
    def logits(self) -> Any: ...


BARELY = {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64}
"""Integer types that torch stores but barely supports, and the types that they are converted to."""
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LISTED = 8
"""The number of wrong rows that an error lists."""


def as_tensor(values: ArrayLike, what: str) -> Tensor:
    """Return the values as a tensor that shares their memory if possible, detached from gradients.

    Raise RequestError for anything but a dense array of real numbers without masked values.
    """
    if isinstance(values, Tensor):
        return dense(values, what).detach()
    if isinstance(values, Bank):
        raise RequestError(f"{what} must be an array, not a bank: pass its .features, .labels or .logits")
    expect_dense(values, what)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:  # ragged lists; lists of tensors
        raise RequestError(f"{what} must be one rectangular array: {error}") from None
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise RequestError(f"{what} must be real numbers of at most 64 bits; got {array.dtype}")
    # torch takes neither strides that are no multiples of the item size (packed records) nor negative ones.
    if not array.dtype.isnative or any(step < 0 or step % array.itemsize for step in array.strides):
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    with warnings.catch_warnings():
        # torch warns that a read-only array (a memory map) may be written to; nothing here writes to it.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return dense(torch.from_numpy(array), what)


def of_bank(
    values: ArrayLike | Bank, labels: Names | None, part: str = "features"
) -> tuple[ArrayLike, Names]:
    """Return features (or logits) and labels as given, or those of a feature bank.

    Raise RequestError if there are no labels, or if the bank lacks the requested part.
    """
    if isinstance(values, Bank):
        array = getattr(values, part)
        if array is None:
            raise RequestError(f"the bank has no {part}")
        return array, values.labels if labels is None else labels
    if labels is None:
        raise RequestError(f"{part} go with labels, one for each example; a bank brings its own")
    return values, labels


def expect_dense(values: object, what: str) -> None:
    """Raise RequestError for a masked array and for a sparse array of SciPy."""
    expect_unmasked(values, what)
    if hasattr(values, "toarray"):
        raise RequestError(
            f"{what} must be one dense array; got a sparse one of SciPy: pass {what}.toarray()"
        )


def expect_unmasked(values: object, what: str) -> None:
    """Raise RequestError for an array with masked values, which NumPy's functions would read anyway."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise RequestError(f"{what} have masked places, which hold no number: leave those examples out")


def dense(tensor: Tensor, what: str) -> Tensor:
    """Return the tensor in a form that torch can compute with.

    Raise RequestError if it is not a dense tensor of real numbers.
    """
    if tensor.is_nested or tensor.layout != torch.strided:
        kind = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        raise RequestError(f"{what} must be one dense array; got a tensor that is {kind}")
    if tensor.is_meta:
        raise RequestError(f"{what} are on the device 'meta', which holds no numbers")
    if tensor.is_complex() or tensor.is_quantized:
        raise RequestError(f"{what} must be real numbers; got {tensor.dtype}")
    if tensor.dtype == torch.uint64 and bool((tensor.view(torch.int64) < 0).any()):
        raise RequestError(f"{what} must be real numbers below 2^63; got larger ones in uint64")
    if tensor.dtype in BARELY:
        return tensor.to(BARELY[tensor.dtype])
    if tensor.is_floating_point() and tensor.dtype not in FLOATS:
        return tensor.to(torch.float32)  # float8: exact
    return tensor.resolve_neg()


def as_matrix(values: ArrayLike, what: str, columns: str) -> Shaped[Tensor, "n m"]:
    """Return a two-dimensional tensor with at least one column; an error says how to reshape other values."""
    matrix = as_tensor(values, what)
    if matrix.ndim != 2:
        hint = f"; flatten each example first: {what}.reshape(len({what}), -1)" if matrix.ndim > 2 else ""
        if matrix.ndim == 1 and not matrix.is_floating_point():
            hint = f". Whole numbers in one dimension look like labels: {what} come before them"
        raise RequestError(f"{what} must be [examples, {columns}]; got shape {list(matrix.shape)}{hint}")
    if matrix.shape[1] == 0:
        raise RequestError(f"{what} have no columns: shape {list(matrix.shape)}")
    return matrix


def listed_rows(chosen: Bool[Tensor, " n"], offset: int = 0) -> str:
    """Return the chosen rows in words, numbered from 0 or from `offset`.

    >>> listed_rows(torch.tensor([False, True, False, True]))
    'rows 1 and 3'
    """
    rows = [row + offset for row in chosen.nonzero()[:, 0].tolist()]
    if len(rows) == 1:
        return f"row {rows[0]}"
    if len(rows) <= LISTED:
        return f"rows {', '.join(map(str, rows[:-1]))} and {rows[-1]}"
    return f"rows {', '.join(map(str, rows[:LISTED]))} and {len(rows) - LISTED} more"


def items(values: Iterable[Any], what: str) -> Iterator[Any]:
    """Return an iterator over the values; raise RequestError if they are not iterable."""
    try:
        return iter(values)
    except TypeError:
        raise RequestError(
            f"{what} must be a list or another iterable; got a {type(values).__name__}"
        ) from None


def labelled(batches: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield batches as pairs (features or images, labels); raise RequestError for anything else."""
    for number, batch in enumerate(items(batches, "batches")):
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise RequestError(f"batch {number} must be (inputs, labels); got a {type(batch).__name__}")
        yield batch[0], batch[1]
