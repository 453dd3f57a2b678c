"""Exact nearest neighbours, block by block: one order of distances, the same on every machine.

Distances come from a float64 matrix product, so they carry rounding that depends on the BLAS; two examples
at the same distance must not be ranked by it. Distances that agree to TIE of the squared norms are equal,
and equals are ranked by index.

Selecting the candidates is the expensive part, and twice as fast in float32. Rounding is monotone (d < e
implies float32(d) <= float32(e)), so float32 selects the right ones unless the last of them shares its
rounded value with one left out; such a row, and one whose last place is tied, is ordered whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from penultimate.errors import unknown
from penultimate.probes.arrays import Array, NumpyFloats, NumpyInts, blocks, cast, library, on_host, to_numpy

METRICS = ("cosine", "euclidean")
TIE = 1e-12
BLOCK_DISTANCES = {"host": 1 << 20, "device": 1 << 27}


class Neighbours:
    """Examples [n p] in which neighbours are looked for, made ready once.

    With "cosine" a point is x/|x| and d = 1 - u.v; a zero vector has no direction and lies at distance 1 from
    everything. With "euclidean" the points are centred (which changes no distance, and spares digits) and
    d = |u - v|^2 / 2. Both read d = h_u + h_v - u.v, with h = 1/2 or |u|^2/2.
    """

    def __init__(self, features: Float[Array, "n p"], metric: str) -> None:
        if metric not in METRICS:
            raise unknown("distance", str(metric), METRICS)
        self.metric = metric
        self.center = cast(features, "float64").mean(0) if metric == "euclidean" else None
        self.points, self.halves = self._prepare(features)

    def _prepare(self, features: Float[Array, "n p"]) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        points = cast(features, "float64")
        ops = library(points)
        if self.center is not None:
            points = points - self.center
            return points, 0.5 * (points * points).sum(1)
        # Two divisions: the square of a large or a tiny feature leaves the range of float64.
        points = points / _nonzero(abs(points).max(1, **_keep(points)))
        points = points / _nonzero((points * points).sum(1, **_keep(points)) ** 0.5)
        return points, ops.full_like(points[:, 0], 0.5)

    def nearest(
        self, count: int, queries: Float[Array, "q p"] | None = None
    ) -> Iterator[tuple[slice, NumpyInts]]:
        """For each block of queries: its rows, and the indices [rows, count] of their neighbours in order.

        Without `queries` every example looks among the others: it is left out by its index, not by distance
        zero, since it may have duplicates.

        >>> import numpy as np
        >>> line = Neighbours(np.array([[0.0], [1.0], [3.0], [1.0]]), "euclidean")
        >>> [indices.tolist() for _, indices in line.nearest(2)]
        [[[1, 3], [3, 0], [1, 3], [1, 0]]]
        """
        points, halves = (self.points, self.halves) if queries is None else self._prepare(queries)
        host_halves = to_numpy(self.halves)
        limit = BLOCK_DISTANCES["host" if on_host(points) else "device"]
        for block in blocks(len(points), max(1, limit // len(self.points))):
            distances = self.halves - points[block] @ self.points.T
            distances += halves[block][:, None]
            if queries is None:
                own = np.arange(block.start, block.stop)
                distances[own - block.start, own] = np.inf
            yield block, _ranked(distances, count, host_halves, to_numpy(halves[block]))


def _ranked(
    distances: Float[Array, "q n"], count: int, halves: Float[np.ndarray, " n"], own: Float[np.ndarray, " q"]
) -> Int[np.ndarray, "q m"]:
    """The `count` nearest of each row by (distance, index)."""
    candidates, unsure = _select(distances, min(count + 1, distances.shape[1]))
    values = _gather(distances, candidates)
    order, tied = _order(values, candidates, halves, own)
    if candidates.shape[1] > count:
        unsure |= tied[:, count - 1]
    indices = np.take_along_axis(candidates, order, 1)[:, :count]
    rows = np.flatnonzero(unsure)
    if len(rows):
        whole = to_numpy(distances[rows])
        everything = np.broadcast_to(np.arange(whole.shape[1]), whole.shape)
        indices[rows] = _order(whole, everything, halves, own[rows])[0][:, :count]
    return indices


def _select(distances: Float[Array, "q n"], count: int) -> tuple[NumpyInts, Bool[np.ndarray, " q"]]:
    """Indices [q count] of the smallest distances, ascending by index; and where float32 cannot tell them."""
    rounded = cast(distances, "float32")
    if count == rounded.shape[1]:
        everything = np.tile(np.arange(count), (len(rounded), 1))
        return everything, np.zeros(len(rounded), dtype=bool)
    if isinstance(rounded, torch.Tensor):
        smallest = torch.topk(rounded, count, dim=1, largest=False, sorted=False)
        candidates, last = to_numpy(smallest.indices), smallest.values.amax(1)
    else:
        candidates = np.argpartition(rounded, count - 1, axis=1)[:, :count]
        last = np.take_along_axis(rounded, candidates, 1).max(1)
    reached = to_numpy((rounded <= last[:, None]).sum(1))
    return np.sort(candidates, axis=1), np.asarray(reached > count)


def _order(
    values: Float[np.ndarray, "q m"],
    indices: Int[np.ndarray, "q m"],
    halves: Float[np.ndarray, " n"],
    own: Float[np.ndarray, " q"],
) -> tuple[NumpyInts, Bool[np.ndarray, "q _"]]:
    """The order of each row by (distance, index), and which places of it are tied with the next.

    `indices` ascend along each row, so that a stable sort already ranks exact equals by index; a row in which
    rounding has put a larger index first is sorted again, by the number of its group of equals.
    """
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, 1)
    sizes = own[:, None] + halves[np.take_along_axis(indices, order, 1)]
    with np.errstate(invalid="ignore"):
        tied = np.diff(ordered, axis=1) <= TIE * np.maximum(sizes[:, 1:], sizes[:, :-1])
    swapped = (tied & (np.diff(order, axis=1) < 0)).any(1)
    for row in np.flatnonzero(swapped):
        groups = np.concatenate([[0], np.cumsum(~tied[row])])
        order[row] = order[row][np.lexsort((order[row], groups))]
    return order, tied


def _gather(distances: Float[Array, "q n"], indices: NumpyInts) -> NumpyFloats:
    if isinstance(distances, torch.Tensor):
        places = torch.from_numpy(indices).to(distances.device)
        return to_numpy(torch.take_along_dim(distances, places, 1))
    return np.take_along_axis(distances, indices, 1)


def _keep(like: Array) -> dict[str, bool]:
    return {"keepdim": True} if isinstance(like, torch.Tensor) else {"keepdims": True}


def _nonzero(lengths: Float[Array, "n 1"]) -> Float[Array, "n 1"]:
    return lengths + (lengths == 0)
