"""One notation for two libraries: NumPy on the host (where its BLAS is faster), torch on a device.

The probes' arithmetic is written once, with the names that both libraries share. This module hides where
they differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

Array: TypeAlias = Any
"""A NumPy array or a torch tensor; everything computed from the features stays in the features' library."""

NumpyFloats: TypeAlias = npt.NDArray[np.float64]
NumpyInts: TypeAlias = npt.NDArray[np.int64]


def library(array: Array) -> Any:
    """Return the module whose functions take this array: `numpy` or `torch`."""
    return torch if isinstance(array, torch.Tensor) else np


def cast(array: Array, dtype: str) -> Array:
    """Return the array converted to the named dtype, or the array itself if it already has that dtype."""
    if isinstance(array, torch.Tensor):
        return array.to(getattr(torch, dtype))
    return array.astype(dtype, copy=False)


def dtype_name(array: Array) -> str:
    """Return the name of an array's dtype.

    >>> dtype_name(np.zeros(1, np.float32)), dtype_name(torch.zeros(1))
    ('float32', 'float32')
    """
    return str(array.dtype).removeprefix("torch.")


def empty(shape: tuple[int, ...], dtype: str, like: Array) -> Array:
    """Return an uninitialised array in the library and on the device of `like`."""
    if isinstance(like, torch.Tensor):
        return like.new_empty(shape, dtype=getattr(torch, dtype))
    return np.empty(shape, dtype)


def zeros(shape: tuple[int, ...], dtype: str, like: Array) -> Array:
    """Return an array of zeros in the library and on the device of `like`."""
    if isinstance(like, torch.Tensor):
        return like.new_zeros(shape, dtype=getattr(torch, dtype))
    return np.zeros(shape, dtype)


def counting(length: int, like: Array) -> Array:
    """Return 0, 1, ..., length - 1 in the library and on the device of `like`."""
    return torch.arange(length, device=like.device) if isinstance(like, torch.Tensor) else np.arange(length)


def beside(values: Array, like: Array) -> Array:
    """Return the values moved to the library and the device of `like`."""
    return torch.as_tensor(values).to(like.device) if isinstance(like, torch.Tensor) else to_numpy(values)


def to_numpy(array: Array) -> npt.NDArray[Any]:
    """Return the array as a NumPy array on the host."""
    return array.cpu().numpy() if isinstance(array, torch.Tensor) else array


def at_home(tensor: torch.Tensor) -> Array:
    """Return a tensor on the host as a NumPy array that shares its memory, and any other tensor unchanged."""
    return tensor.numpy() if on_host(tensor) else tensor


def on_host(array: Array) -> bool:
    return not isinstance(array, torch.Tensor) or array.device.type == "cpu"


def blocks(examples: int, rows: int) -> Iterator[slice]:
    """Yield slices that cover 0..examples in nearly equal blocks of at most `rows`.

    >>> list(blocks(10, 4))
    [slice(0, 4, None), slice(4, 7, None), slice(7, 10, None)]
    """
    count = -(-examples // rows)
    size, longer = divmod(examples, max(count, 1))
    start = 0
    for number in range(count):
        stop = start + size + (number < longer)
        yield slice(start, stop)
        start = stop
