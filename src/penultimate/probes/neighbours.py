"""Exact nearest neighbours, found block by block and ranked in the same order on every machine.

Distances are first computed by a float64 matrix product of centred points. This is fast, and its rounding
error is proportional to the points' squared lengths. If that error might change which neighbours of a row
come first (because a few points are far from the others, say), their distances are computed again from the
differences u - v, whose rounding error is proportional to the distance itself. Two distances whose relative
difference is at most TIE then count as equal, and equal distances are ranked by index.

Selecting the few nearest of many costs more than the matrix product. So a sample of each row sets a threshold
below which slightly more than enough of the row is expected to lie, and only that part is sorted. If it turns
out to be too little, the row is sorted completely: the sample affects the time, never the result.
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
    counting,
    library,
    on_host,
    to_numpy,
)

METRICS = ("cosine", "euclidean")
TIE = 1e-12
LARGEST = 1e100
"""The largest feature whose distances leave room in float64."""
BLOCK_DISTANCES = {"host": 1 << 20, "device": 1 << 27}
LEAST_QUERIES = 64
"""The smallest number of queries in a block; the matrix product of fewer is slow."""
SAMPLED = 6
"""One in this many columns is sampled."""
CENTRED = 1001
"""The most examples whose median is taken as the centre; a few distant points do not move a median."""
EPS = 2.0**-52


class Candidates(NamedTuple):
    """The distances [q m], indices [q m] and number [q] of each query's candidates.

    Rows are padded to the same length; the distances of the padding are infinite.
    """

    distances: Float[np.ndarray, "q m"]
    indices: Int[np.ndarray, "q m"]
    counts: Int[np.ndarray, " q"]


class Neighbours:
    """The examples [n p] among which neighbours are searched, prepared once.

    d = |u - v|^2 / 2, with u = x for "euclidean" and u = x/|x| for "cosine", where d is 1 - cos(x, y). A zero
    vector has no direction and is at distance 1 from everything. A centre is subtracted from all points,
    which changes no distance and saves digits: d = h_u + h_v - u.v with h = |u|^2/2. Raise RequestError for
    features above LARGEST.
    """

    def __init__(self, features: Float[Array, "n p"], metric: str) -> None:
        self.features, self.metric = features, metric
        _expect_room(features)
        chosen = np.random.default_rng(1).permutation(len(features))[:CENTRED]
        some = self._uncentred(features[beside(np.sort(chosen), features)])[0]
        self.center = beside(np.median(to_numpy(some), axis=0), features)
        self.points, self.halves, self.zero = self._prepare(features)
        sample = np.random.default_rng(0).permutation(len(features))[: len(features) // SAMPLED]
        self.sample = beside(np.sort(sample), self.points)

    def _uncentred(self, features: Float[Array, "n p"]) -> tuple[Float[Array, "n p"], Bool[Array, " n"]]:
        """Return the points u, and a mask of those without direction."""
        points = cast(features, "float64")
        if self.metric == "euclidean":
            return points, points[:, 0] != points[:, 0]
        lengths = (points * points).sum(1) ** 0.5
        return points / _nonzero(lengths)[:, None], lengths == 0

    def _prepare(
        self, features: Float[Array, "n p"]
    ) -> tuple[Float[Array, "n p"], Float[Array, " n"], Bool[Array, " n"]]:
        points, zero = self._uncentred(features)
        points = points - self.center
        return points, 0.5 * (points * points).sum(1), zero

    def nearest(
        self, count: int, queries: Float[Array, "q p"] | None = None
    ) -> Iterator[tuple[slice, NumpyInts]]:
        """Yield each block of queries with the indices [rows, count] of their neighbours, nearest first.

        Without `queries` every example is compared with the others. It is then left out by its index, not by
        its distance of zero, since it may have duplicates.

        >>> import numpy as np
        >>> line = Neighbours(np.array([[0.0], [1.0], [3.0], [1.0]]), "euclidean")
        >>> [indices.tolist() for _, indices in line.nearest(2)]
        [[[1, 3], [3, 0], [1, 3], [1, 0]]]
        """
        given = self.features if queries is None else queries
        points, own_halves, zero = self.points, self.halves, self.zero
        if queries is not None:
            _expect_room(queries)
            points, own_halves, zero = self._prepare(queries)
        some_zero = bool(self.zero.any()) or bool(zero.any())
        limit = BLOCK_DISTANCES["host" if on_host(points) else "device"]
        for block in blocks(len(points), max(LEAST_QUERIES, limit // len(self.points))):
            # h_u is constant along a row and does not affect the ranking.
            distances = points[block] @ self.points.T
            distances = library(distances).subtract(self.halves, distances, out=distances)
            if some_zero:
                distances[:, self.zero] = (1 - own_halves[block])[:, None]
                # A query without direction is equally far from all examples, so they are ranked by index.
                distances[zero[block]] = cast(counting(len(self.points), distances), "float64")
            if queries is None:
                itself = np.arange(block.start, block.stop)
                distances[itself - block.start, itself] = np.inf
            yield block, self._ranked(distances, count, given[block], to_numpy(own_halves[block]))

    def _ranked(
        self,
        distances: Float[Array, "q n"],
        count: int,
        queries: Float[Array, "q p"],
        own_halves: Float[np.ndarray, " q"],
    ) -> Int[np.ndarray, "q m"]:
        """Return the indices of the `count` nearest examples of each row, ordered by (distance, index)."""
        wanted = min(count + 1, distances.shape[1])
        threshold = self._threshold(distances, wanted)
        sure = to_numpy(threshold)
        # An example beyond the threshold by no more than the rounding error is a candidate too.
        beyond = beside(sure + 2 * self._reach(sure + own_halves, own_halves), threshold)
        candidates = _below(distances, beyond, wanted)
        order = np.argsort(candidates.distances, axis=1)
        ordered = np.take_along_axis(candidates.distances, order, 1)
        indices = np.take_along_axis(candidates.indices, order, 1)
        apart = self._apart(ordered, own_halves)
        nearest: NumpyInts = indices[:, :count].copy()
        short = ordered[:, count - 1] > sure
        for row in np.flatnonzero(short | ~apart[:, :count].all(1)):
            gaps, found = apart[row], indices[row]
            if short[row]:
                whole = to_numpy(distances[row])
                found = np.argsort(whole, kind="stable")
                gaps = self._apart(whole[found][None], own_halves[row : row + 1])[0]
            ends = np.flatnonzero(gaps[count - 1 :])
            found = found[: count + ends[0] if len(ends) else len(found)]
            nearest[row] = (found if gaps[: len(found) - 1].all() else self._exactly(queries[row], found))[
                :count
            ]
        return nearest

    def _apart(
        self, ordered: Float[np.ndarray, "q m"], own_halves: Float[np.ndarray, " q"]
    ) -> Bool[np.ndarray, "q _"]:
        """Return whether each distance exceeds the previous one by more than their rounding error.

        `ordered` holds distances in ascending order, with h_u subtracted.
        """
        finite = np.where(np.isfinite(ordered), ordered, 0.0)
        reach = self._reach(finite + own_halves[:, None], own_halves[:, None])
        with np.errstate(invalid="ignore"):
            above: Bool[np.ndarray, "q _"] = np.diff(ordered, axis=1) > 2 * reach[:, 1:]
        above |= np.isinf(ordered[:, 1:])
        return above

    def _reach(self, distances: NumpyFloats, own_halves: NumpyFloats) -> NumpyFloats:
        """Return a bound on the rounding error of distances that come from the matrix product.

        The error of h_u + h_v - u.v is proportional to h_u + h_v <= 3 h_u + 2 d. For "cosine" the unit
        vectors themselves are rounded as well.
        """
        sizes = abs(distances)
        reach = TIE * (sizes + own_halves)
        return (
            reach if self.metric == "euclidean" else reach + 16 * EPS * np.sqrt(2 * sizes) + (16 * EPS) ** 2
        )

    def _exactly(self, query: Float[Array, " p"], indices: Int[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
        """Return the examples ordered by their distance from the query, computed from differences."""
        indices = np.sort(indices)
        given = to_numpy(cast(self.features[beside(indices, self.features)], "float64"))
        u = to_numpy(cast(query, "float64"))
        distances, rounding = (_chords if self.metric == "cosine" else _distances)(u, given)
        order = np.argsort(distances, kind="stable")
        allowed = (TIE / 2 * distances + rounding)[order][1:]  # half as much as the squares may differ
        groups = np.concatenate([[0], np.cumsum(np.diff(distances[order]) > allowed)])
        return indices[order[np.lexsort((order, groups))]]

    def _threshold(self, distances: Float[Array, "q n"], wanted: int) -> Float[Array, " q"]:
        """Return a distance for each row; its sample suggests that slightly more than `wanted` lie below."""
        expected = wanted * len(self.sample) / distances.shape[1]
        rank = int(expected + 2.5 * expected**0.5) + 1
        if rank >= len(self.sample):
            return library(distances).full_like(distances[:, 0], np.inf)
        sampled = distances[:, self.sample]
        if isinstance(sampled, torch.Tensor):
            return sampled.kthvalue(rank, dim=1).values
        return np.partition(sampled, rank - 1, axis=1)[:, rank - 1]


def _below(distances: Float[Array, "q n"], threshold: Float[Array, " q"], wanted: int) -> Candidates:
    """Return each row's entries within its threshold, ordered by index and padded to at least `wanted`."""
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


def _distances(u: NumpyFloats, others: Float[np.ndarray, "m p"]) -> tuple[NumpyFloats, NumpyFloats]:
    """Return |u - v| for every v, and its absolute rounding error (zero here).

    The relative rounding error is not included.
    """
    return _lengths(others - u), np.zeros(len(others))


def _chords(u: NumpyFloats, others: Float[np.ndarray, "m p"]) -> tuple[NumpyFloats, NumpyFloats]:
    """Return |x/|x| - y/|y|| for every y (sqrt(2) for a zero vector), and its absolute rounding error.

    The relative rounding error is not included. With a = |x|, b = |y| and e = x - y the distance is
    |e - y (a - b)/b| / a, a - b = e.(x + y) / (a + b): for vectors that share a long component, e is exact,
    while x/a - y/b would have lost its digits.
    """
    a, lengths = math.sqrt(u @ u), _lengths(others)
    # A power of two brings each vector close to the length of x, and changes no digit.
    factor = np.exp2(np.round(np.log2(a / _nonzero(lengths))))
    y, b = others * factor[:, None], _nonzero(lengths) * factor
    e = u - y
    shift = (e * (u + y)).sum(1) / ((a + b) * b)
    chords = _lengths(e - y * shift[:, None]) / a
    return np.where(lengths == 0, math.sqrt(2), chords), 16 * EPS * _lengths(e) / a


def _lengths(vectors: Float[np.ndarray, "m p"]) -> NumpyFloats:
    """Return |v| for every row v."""
    lengths: NumpyFloats = (vectors * vectors).sum(1) ** 0.5
    return lengths


def _nonzero(lengths: Float[Array, " n"]) -> Float[Array, " n"]:
    return lengths + (lengths == 0)


def _expect_room(features: Float[Array, "n p"]) -> None:
    """Raise RequestError for features whose squares may overflow."""
    largest = max(float(features.max()), -float(features.min()))
    if largest > LARGEST:
        raise RequestError(f"X holds {largest:g}; neighbours are found among features of at most {LARGEST:g}")
