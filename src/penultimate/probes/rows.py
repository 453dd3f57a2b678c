"""The rows that a probe learns from: read in blocks from where they are stored, never copied as a whole."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float
from threadpoolctl import ThreadpoolController

from penultimate.errors import RequestError
from penultimate.probes.arrays import (
    Array,
    NumpyInts,
    beside,
    cast,
    dtype_name,
    empty,
    library,
    on_host,
)

LARGEST_IN_MEMORY = 1 << 28
"""The size in bytes up to which a working copy of the features is kept in memory; a larger one goes into a
temporary file.
"""
BLOCKS_A_THREAD = 2
"""With fewer blocks per thread, blocks are computed one after another, each with all threads of the BLAS."""

_BLAS = ThreadpoolController().select(user_api="blas")

_Result = TypeVar("_Result")


class Rows:
    """Features [n p], or a selection of their rows, in memory, on a device or memory-mapped.

    >>> rows = Rows(np.array([[0.0], [1.0], [2.0]], np.float32)).chosen(np.array([True, False, True]))
    >>> joined = rows.joined(Rows(np.array([[7.0]])))
    >>> joined.shape, joined.dtype, joined.float64(slice(1, 3)).tolist()
    ((3, 1), 'float64', [[2.0], [7.0]])
    """

    def __init__(self, features: Float[Array, "n p"]) -> None:
        self.home = features
        """The array whose library and device hold everything that is computed from the rows."""
        self._parts: list[tuple[Array, NumpyInts | None]] = [(features, None)]

    def chosen(self, mask: Bool[np.ndarray, " n"]) -> Rows:
        """Return the rows that the mask [n] selects; this object must hold a single array."""
        ((features, _),) = self._parts
        rows = Rows(features)
        rows._parts = [(features, np.flatnonzero(mask))]
        return rows

    def joined(self, others: Rows) -> Rows:
        """Return these rows followed by the others."""
        rows = Rows(self.home)
        rows._parts = self._parts + others._parts
        return rows

    def __len__(self) -> int:
        return sum(_length(part) for part in self._parts)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.home.shape[1]

    @property
    def dtype(self) -> str:
        """The dtype of computations: "float64" if any of the rows are float64, else "float32"."""
        return max("float32", *(dtype_name(features) for features, _ in self._parts))

    def float64(self, block: slice) -> Float[Array, "b p"]:
        """Return the rows of a block in float64.

        The array may be the caller's own memory, so it must not be written to.
        """
        pieces = []
        start = 0
        for features, indices in self._parts:
            stop = start + _length((features, indices))
            low, high = max(block.start, start), min(block.stop, stop)
            if low < high:
                of = slice(low - start, high - start)
                rows = features[of if indices is None else beside(indices[of], features)]
                pieces.append(cast(rows, "float64"))
            start = stop
        return pieces[0] if len(pieces) == 1 else library(self.home).concatenate(pieces)


def _length(part: tuple[Array, NumpyInts | None]) -> int:
    features, indices = part
    return len(features) if indices is None else len(indices)


def in_order(work: Callable[[slice], _Result], blocks: list[slice], home: Array) -> Iterator[_Result]:
    """Yield the result of `work` for each block, in the order of the blocks, computed by several threads.

    There are as many threads as NumPy's BLAS has, and each computes a block by itself with a single BLAS
    thread. The matrix product of one block is too small to be divided among threads, and this way the work
    around it runs in parallel too. The results do not depend on which thread computes which block.
    """
    threads = max((blas.num_threads for blas in _BLAS.lib_controllers), default=1)
    if not on_host(home) or threads == 1 or len(blocks) < BLOCKS_A_THREAD * threads:
        yield from map(work, blocks)
        return
    with _BLAS.limit(limits=1), ThreadPoolExecutor(threads) as pool:
        running: deque[Future[_Result]] = deque()
        for block in blocks:
            if len(running) > threads:
                yield running.popleft().result()
            running.append(pool.submit(work, block))
        while running:
            yield running.popleft().result()


def stored(parts: Iterable[Array], shape: tuple[int, int], dtype: str, home: Array) -> Array | OnDisk:
    """Return the parts stacked into one array [n p], beside `home` or in a file if they are too large.

    Raise RequestError if there is no room for the file.
    """
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if on_host(home) and size > LARGEST_IN_MEMORY:
        try:
            return OnDisk(parts, shape[1], dtype)
        except OSError as error:
            raise RequestError(
                f"the probe needs {size / 1e9:.1f} GB in '{tempfile.gettempdir()}' for the rotated features"
                f" ({error.strerror}): set TMPDIR to a folder with room"
            ) from None
    array = empty(shape, dtype, home)
    start = 0
    for part in parts:
        array[start : start + len(part)] = part
        start += len(part)
    return array


class OnDisk:
    """Rows in a nameless temporary file that is deleted with this object; slices are read on demand.

    >>> OnDisk([np.eye(2, dtype=np.float32), np.ones((1, 2), np.float32)], 2, "float32")[1:3].tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, parts: Iterable[Float[np.ndarray, "_ p"]], columns: int, dtype: str) -> None:
        self._columns, self._dtype = columns, np.dtype(dtype)
        with tempfile.TemporaryFile() as file:
            for part in parts:
                file.write(np.ascontiguousarray(part, dtype).data)
            file.flush()
            self._number = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._number)

    def __getitem__(self, block: slice) -> Float[np.ndarray, "b p"]:
        row = self._columns * self._dtype.itemsize
        read = os.pread(self._number, (block.stop - block.start) * row, block.start * row)
        return np.frombuffer(read, self._dtype).reshape(-1, self._columns)
