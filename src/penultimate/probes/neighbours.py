"""Exact nearest neighbours, block by block: one order of distances, the same on every machine.

Distances come from a float64 matrix product, so their rounding depends on the BLAS; two examples at the same
distance must not be ranked by it. Distances that agree to TIE of the squared norms count as equal, and equals
are ranked by index.

Selecting the few nearest of many costs more than the product. So a sample of each row sets a threshold below
which slightly more than enough of the row is expected to lie; only that part is sorted. A row in which it was
not enough, or whose last place is tied, is sorted completely: the sample affects the time, never the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from penultimate.errors import RequestError
from penultimate.probes.arrays import (
    Array,
    NumpyFloats,
    NumpyInts,
    beside,
    blocks,
    cast,
    library,
    on_host,
    to_numpy,
)

METRICS = ("cosine", "euclidean")
TIE = 1e-12
SAFE = (1e-200, 1e300)
"""Between these the largest |u|^2/2 leaves room for the squares of small differences, and for sums."""
BLOCK_DISTANCES = {"host": 1 << 20, "device": 1 << 27}
LEAST_QUERIES = 64
"""The fewest queries at a time; with fewer the matrix product starves."""
SAMPLED = 6
"""One column in this many is sampled."""


class Candidates(NamedTuple):
    """Distances [q m] and indices [q m] of the candidates of each query, infinite beyond their number [q]."""

    distances: Float[np.ndarray, "q m"]
    indices: Int[np.ndarray, "q m"]
    counts: Int[np.ndarray, " q"]


class Neighbours:
    """Examples [n p] among which neighbours are searched, prepared once.

    With "cosine" a point is x/|x| and d = 1 - u.v; a zero vector has no direction and is at distance 1 from
    everything. With "euclidean" the points are centred (which changes no distance and saves digits) and
    d = |u - v|^2 / 2. Both are d = h_u + h_v - u.v, with h = 1/2 or |u|^2/2.
    """

    def __init__(self, features: Float[Array, "n p"], metric: str) -> None:
        self.metric, self.unit = metric, 1.0
        self.points, self.halves = self._learnt(features)
        if not SAFE[0] < float(self.halves.max()) < SAFE[1]:
            # Squares left float64: begin again in a unit, a power of two, that changes no digit.
            self.unit = math.ldexp(1.0, math.frexp(float(abs(features).max()))[1] - 1)
            self.points, self.halves = self._learnt(features)
        sample = np.random.default_rng(0).permutation(len(features))[: len(features) // SAMPLED]
        self.sample = beside(np.sort(sample), self.points)

    def _learnt(self, features: Float[Array, "n p"]) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        """The examples as `_prepare` makes them, about their mean if distances are Euclidean."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.metric == "euclidean":
                self.center = self._in_unit(features).mean(0)
            return self._prepare(features)

    def _in_unit(self, features: Float[Array, "n p"]) -> Float[Array, "n p"]:
        points = cast(features, "float64")
        return points if self.unit == 1 else points / self.unit

    def _prepare(self, features: Float[Array, "n p"]) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        points = self._in_unit(features)
        if self.metric == "euclidean":
            points = points - self.center
            return points, 0.5 * (points * points).sum(1)
        # In two steps, since the square of a very large or very small feature leaves the range of float64.
        points = points / _nonzero(library(points).amax(abs(points), 1))[:, None]
        points = points / _nonzero((points * points).sum(1) ** 0.5)[:, None]
        return points, library(points).full_like(points[:, 0], 0.5)

    def nearest(
        self, count: int, queries: Float[Array, "q p"] | None = None
    ) -> Iterator[tuple[slice, NumpyInts]]:
        """For each block of queries: its rows, and the indices [rows, count] of their neighbours in order.

        Without `queries` every example is compared with the others: it is left out by its index, not by
        distance zero, since it may have duplicates.

        >>> import numpy as np
        >>> line = Neighbours(np.array([[0.0], [1.0], [3.0], [1.0]]), "euclidean")
        >>> [indices.tolist() for _, indices in line.nearest(2)]
        [[[1, 3], [3, 0], [1, 3], [1, 0]]]
        """
        points, own_halves = self.points, self.halves
        if queries is not None:
            with np.errstate(over="ignore"):
                points, own_halves = self._prepare(queries)
            if not float(own_halves.max()) < SAFE[1]:
                raise RequestError(
                    "X holds numbers so large that all distances to the training examples are equal in"
                    " float64"
                )
        halves = to_numpy(self.halves)
        limit = BLOCK_DISTANCES["host" if on_host(points) else "device"]
        for block in blocks(len(points), max(LEAST_QUERIES, limit // len(self.points))):
            products = points[block] @ self.points.T
            # h_u is constant along a row and does not affect the ranking.
            distances = library(products).subtract(self.halves, products, out=products)
            if queries is None:
                itself = np.arange(block.start, block.stop)
                distances[itself - block.start, itself] = np.inf
            yield block, self._ranked(distances, count, halves, to_numpy(own_halves[block]))

    def _ranked(
        self,
        distances: Float[Array, "q n"],
        count: int,
        halves: Float[np.ndarray, " n"],
        own_halves: Float[np.ndarray, " q"],
    ) -> Int[np.ndarray, "q m"]:
        """The `count` nearest of each row by (distance, index)."""
        wanted = min(count + 1, distances.shape[1])
        candidates = _below(distances, self._threshold(distances, wanted), wanted)
        order, tied = _order(candidates, halves, own_halves)
        unsure = candidates.counts < wanted
        if tied.shape[1] >= count:
            unsure |= tied[:, count - 1]
        indices = np.take_along_axis(candidates.indices, order, 1)[:, :count]
        rows = np.flatnonzero(unsure)
        if len(rows):
            order, _ = _order(_everything(to_numpy(distances[rows])), halves, own_halves[rows])
            indices[rows] = order[:, :count]
        return indices

    def _threshold(self, distances: Float[Array, "q n"], wanted: int) -> Float[Array, " q"]:
        """A distance below which, judging by the sample, slightly more than `wanted` of each row lie."""
        expected = wanted * len(self.sample) / distances.shape[1]
        rank = int(expected + 2.5 * expected**0.5) + 1
        if rank >= len(self.sample):
            return library(distances).full_like(distances[:, 0], np.inf)
        sampled = distances[:, self.sample]
        if isinstance(sampled, torch.Tensor):
            return sampled.kthvalue(rank, dim=1).values
        return np.partition(sampled, rank - 1, axis=1)[:, rank - 1]


def _below(distances: Float[Array, "q n"], threshold: Float[Array, " q"], wanted: int) -> Candidates:
    """The entries within the threshold of each row, padded to at least `wanted`; indices ascend."""
    within = distances <= threshold[:, None]
    places = within.ravel().nonzero()
    flat = places[0] if isinstance(places, tuple) else places[:, 0]
    values, flat = to_numpy(distances.ravel()[flat]), to_numpy(flat)
    rows, indices = np.divmod(flat, distances.shape[1])
    counts = np.bincount(rows, minlength=len(distances))
    width = max(wanted, int(counts.max()))
    starts = np.cumsum(counts) - counts
    target = np.arange(len(flat)) + (np.arange(len(counts)) * width - starts)[rows]
    padded = np.full(len(counts) * width, np.inf)
    padded[target] = values
    padded_indices = np.zeros(len(counts) * width, dtype=np.int64)
    padded_indices[target] = indices
    return Candidates(padded.reshape(-1, width), padded_indices.reshape(-1, width), counts)


def _everything(distances: NumpyFloats) -> Candidates:
    rows, columns = distances.shape
    return Candidates(distances, np.tile(np.arange(columns), (rows, 1)), np.full(rows, columns))


def _order(
    candidates: Candidates, halves: Float[np.ndarray, " n"], own_halves: Float[np.ndarray, " q"]
) -> tuple[NumpyInts, Bool[np.ndarray, "q _"]]:
    """The order of each row by (distance, index), and which places of it are tied with the next.

    The candidates' indices ascend along a row; a row in which equals have come out of order is sorted again,
    by (group of equals, place).
    """
    order = np.argsort(candidates.distances, axis=1)
    ordered = np.take_along_axis(candidates.distances, order, 1)
    sizes = own_halves[:, None] + halves[np.take_along_axis(candidates.indices, order, 1)]
    with np.errstate(invalid="ignore"):
        tied = np.diff(ordered, axis=1) <= TIE * np.maximum(sizes[:, 1:], sizes[:, :-1])
    for row in np.flatnonzero((tied & (np.diff(order, axis=1) < 0)).any(1)):
        groups = np.concatenate([[0], np.cumsum(~tied[row])])
        order[row] = order[row][np.lexsort((order[row], groups))]
    return order, tied


def _nonzero(lengths: Float[Array, " n"]) -> Float[Array, " n"]:
    return lengths + (lengths == 0)
