"""The input of every measurement: tensors or NumPy arrays, checked once, with errors that name the rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from penultimate.errors import RequestError

ArrayLike: TypeAlias = Tensor | npt.NDArray[np.generic] | Sequence[Any]

LISTED = 8
"""How many offending rows an error lists."""


def as_tensor(values: ArrayLike, what: str) -> Tensor:
    """The values as a tensor that shares their memory where possible, detached from gradients.

    Raises RequestError for anything but an array of real numbers.
    """
    if isinstance(values, Tensor):
        if values.is_complex():
            raise RequestError(f"{what} must be real numbers; got {values.dtype}")
        return values.detach()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise RequestError(f"{what} must be one rectangular array: {error}") from None
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise RequestError(f"{what} must be real numbers of at most 64 bits; got {array.dtype}")
    if not array.dtype.isnative or any(stride < 0 for stride in array.strides):
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    with warnings.catch_warnings():
        # torch warns of writes to a read-only array (a memory map); nothing here writes to its input.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def as_matrix(values: ArrayLike, what: str, columns: str) -> Shaped[Tensor, "n m"]:
    """A two-dimensional tensor with at least one column; the error says how to make one."""
    matrix = as_tensor(values, what)
    if matrix.ndim != 2:
        hint = f"; flatten each example first: {what}.reshape(len({what}), -1)" if matrix.ndim > 2 else ""
        raise RequestError(f"{what} must be [examples, {columns}]; got shape {list(matrix.shape)}{hint}")
    if matrix.shape[1] == 0:
        raise RequestError(f"{what} have no columns: shape {list(matrix.shape)}")
    return matrix


def as_classes(
    values: ArrayLike,
    what: str,
    examples: int | None = None,
    num_classes: int | None = None,
    device: torch.device | None = None,
) -> Int[Tensor, " n"]:
    """Integer class indices [n] on `device`: as many as there are examples, each in 0..num_classes-1."""
    classes = as_tensor(values, what)
    if classes.ndim != 1:
        hint = " (for one-hot rows pass their argmax(1))" if classes.ndim == 2 else ""
        raise RequestError(f"{what} must be class indices [examples]; got shape {list(classes.shape)}{hint}")
    if examples is not None and len(classes) != examples:
        raise RequestError(f"{examples} examples but {len(classes)} {what}; each example needs one")
    if classes.is_floating_point() or classes.dtype == torch.bool:
        raise RequestError(f"{what} must be integer class indices; got {classes.dtype}")
    classes = classes.to(device=device, dtype=torch.int64)
    outside = classes < 0 if num_classes is None else (classes < 0) | (classes >= num_classes)
    if bool(outside.any()):
        first = int(outside.nonzero()[0, 0])
        allowed = "0 or more" if num_classes is None else f"0..{num_classes - 1}"
        raise RequestError(
            f"{what} must be {allowed}; not so in {listed_rows(outside)} (the first is {int(classes[first])})"
        )
    return classes


def listed_rows(chosen: Bool[Tensor, " n"], offset: int = 0) -> str:
    """The chosen rows in words, counted from 0.

    >>> listed_rows(torch.tensor([False, True, False, True]))
    'rows 1 and 3'
    """
    rows = [row + offset for row in chosen.nonzero()[:, 0].tolist()]
    if len(rows) == 1:
        return f"row {rows[0]}"
    if len(rows) <= LISTED:
        return f"rows {', '.join(map(str, rows[:-1]))} and {rows[-1]}"
    return f"rows {', '.join(map(str, rows[:LISTED]))} and {len(rows) - LISTED} more"
