"""Class moments in one pass: the number of points of each class, their sum and their squared lengths.

Everything is summed in float64 relative to a fixed origin (the mean of the first points). The origin does not
change a variance but keeps the sums small: for points with a strong common direction, E|u|^2 - |mu|^2
relative to 0 would subtract two large, almost equal numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from penultimate.errors import RequestError

EPS = torch.finfo(torch.float64).eps


class Variances(NamedTuple):
    """The variances between and within classes, and their scale.

    `between` is mean_k |mu_k - mean_j mu_j|^2, `within` is mean_k V_k with V_k = E_k |u|^2 - |mu_k|^2, and
    `squared_length` is mean_k E_k |u|^2. V_k is half the mean squared distance between two points of a class,
    including the pairs of a point with itself. `pairs` is the mean over classes of the same for two different
    points, (N_k V_k - E_k extra) / (N_k - 1), which is infinite or NaN if a class has only one point.
    """

    between: float
    within: float
    squared_length: float
    pairs: float


class ClassMoments:
    """Counts [k], sums [k m] and squared lengths [k] of the points of k classes.

    Each class takes one row, in the order in which classes first occur, however large its label is.

    >>> moments = ClassMoments()
    >>> points = torch.tensor([[0.0], [2.0], [10.0], [12.0]], dtype=torch.float64)
    >>> moments.add(points, torch.tensor([0, 0, 1, 1]))
    >>> moments.variances()
    Variances(between=25.0, within=1.0, squared_length=62.0, pairs=2.0)
    """

    def __init__(self) -> None:
        self.origin: Float[Tensor, " m"] | None = None
        self._sorted: Int[Tensor, " k"] = torch.zeros(0, dtype=torch.int64)
        self._rows: Int[Tensor, " k"] = torch.zeros(0, dtype=torch.int64)
        self.counts: Float[Tensor, " k"] = torch.zeros(0, dtype=torch.float64)
        self.squares: Float[Tensor, " k"] = torch.zeros(0, dtype=torch.float64)
        self.extras: Float[Tensor, " k"] = torch.zeros(0, dtype=torch.float64)
        self.sums: Float[Tensor, "k m"] = torch.zeros(0, 0, dtype=torch.float64)

    @property
    def examples(self) -> int:
        """The number of points added."""
        return int(self.counts.sum())

    def add(
        self,
        vectors: Float[Tensor, "b m"],
        labels: Int[Tensor, " b"],
        scale: Float[Tensor, " b"] | None = None,
        extra_squares: Float[Tensor, " b"] | None = None,
    ) -> None:
        """Add the points `scale * vectors` with their `labels`; float64 `vectors` are overwritten.

        `extra_squares` is added to the squared lengths of the points, as their distance from themselves.
        """
        factor = vectors.new_ones(()) if scale is None else scale[:, None]
        if self.origin is None:
            self.origin = (vectors * factor).mean(0)
        rows = self._places(labels)
        points = torch.addcmul(-self.origin, vectors, factor, out=vectors)
        squares = torch.linalg.vector_norm(points, dim=1).square_()
        if extra_squares is not None:
            squares += extra_squares
            self.extras.index_add_(0, rows, extra_squares)
        self.sums.index_add_(0, rows, points)
        self.squares.index_add_(0, rows, squares)
        self.counts.index_add_(0, rows, torch.ones_like(squares))

    def _places(self, labels: Int[Tensor, " b"]) -> Int[Tensor, " b"]:
        """Return the row of each label; a new label takes the next row."""
        assert self.origin is not None
        known = self._sorted.to(labels.device)
        places = torch.searchsorted(known, labels)
        if not len(known) or not bool((known[places.clamp_max(len(known) - 1)] == labels).all()):
            known, came = torch.unique(torch.cat([known, labels]), return_inverse=True)
            rows = torch.full_like(known, -1)
            rows[came[: len(self._rows)]] = self._rows
            new = (rows < 0).nonzero()[:, 0]
            rows[new] = len(self._rows) + torch.arange(len(new), device=rows.device)
            places = came[len(self._rows) :]
            self._sorted, self._rows = known, rows
            self._reserve(len(known))
        return self._rows[places]

    def _reserve(self, classes: int) -> None:
        """Make room for this many classes, growing by at least half, so that each class costs O(1)."""
        assert self.origin is not None
        old = len(self.counts)
        if classes <= old:
            return
        new = max(classes, old + old // 2)
        counts, squares, extras = (self.origin.new_zeros(new) for _ in range(3))
        sums = self.origin.new_zeros(new, len(self.origin))
        counts[:old], squares[:old], extras[:old] = self.counts, self.squares, self.extras
        if old:
            sums[:old] = self.sums
        self.counts, self.squares, self.extras, self.sums = counts, squares, extras, sums

    def classes(self) -> Int[Tensor, " c"]:
        """Return the labels of the classes that have points, in ascending order."""
        return self._sorted

    def sizes(self) -> Float[Tensor, " c"]:
        """Return the number of points of each class in `classes()`."""
        return self.counts[self._rows]

    def alone(self) -> list[int]:
        """Return the classes that have a single point."""
        return [int(label) for label in self._sorted[self.sizes() == 1]]

    def means(self) -> Float[Tensor, "c m"]:
        """Return the means of the classes that have points, relative to the origin."""
        return self.sums[self._rows] / self.sizes()[:, None]

    def variances(self) -> Variances:
        """Return the variances between and within the classes that have points.

        The variance of a class is clamped at 0, since rounding (in a class of one, say) could make it
        negative.
        """
        assert self.origin is not None
        means = self.means()
        counts, extras = self.sizes(), self.extras[self._rows]
        of_classes = (self.squares[self._rows] / counts - means.square().sum(1)).clamp_min_(0)
        within = float(of_classes.mean())
        pairs = float(((counts * of_classes - extras / counts) / (counts - 1)).mean())
        middle = means.mean(0)
        between = float((means - middle).square_().sum(1).mean())
        middle += self.origin
        return Variances(between, within, float(middle.square_().sum()) + between + within, pairs)


class SequentialMoments:
    """The variances of `ClassMoments` in O(m) memory, for points that come class by class.

    For completed classes only three values are kept: the mean of their means, the spread of their means, and
    the sum of their variances. A class that comes back raises RequestError.

    >>> moments = SequentialMoments()
    >>> for label, point in ((3, 0.0), (3, 2.0), (1, 10.0), (1, 12.0)):
    ...     moments.add(torch.tensor([[point]], dtype=torch.float64), torch.tensor([label]))
    >>> moments.variances()
    Variances(between=25.0, within=1.0, squared_length=62.0, pairs=2.0)
    """

    def __init__(self) -> None:
        self.origin: Float[Tensor, " m"] | None = None
        self.examples = 0
        self.over: list[int] = []
        self._current: int | None = None
        self._count = 0
        self._sum = self._mean = torch.zeros(0, dtype=torch.float64)
        self._alone: list[int] = []
        self._squares = self._extras = self._spread = self._within = self._pairs = 0.0

    def add(
        self,
        vectors: Float[Tensor, "b m"],
        labels: Int[Tensor, " b"],
        scale: Float[Tensor, " b"] | None = None,
        extra_squares: Float[Tensor, " b"] | None = None,
    ) -> None:
        """Add points whose labels are sorted in runs; otherwise the same as `ClassMoments.add`."""
        self.expect(labels)
        factor = vectors.new_ones(()) if scale is None else scale[:, None]
        if self.origin is None:
            self.origin = (vectors * factor).mean(0)
            self._sum, self._mean = torch.zeros_like(self.origin), torch.zeros_like(self.origin)
        points = torch.addcmul(-self.origin, vectors, factor, out=vectors)
        squares = torch.linalg.vector_norm(points, dim=1).square_()
        if extra_squares is not None:
            squares += extra_squares
        classes, counts = torch.unique_consecutive(labels, return_counts=True)
        start = 0
        for label, count in zip(classes.tolist(), counts.tolist(), strict=True):
            if label != self._current:
                self._close()
                self._current = label
            self._sum += points[start : start + count].sum(0)
            self._squares += float(squares[start : start + count].sum())
            if extra_squares is not None:
                self._extras += float(extra_squares[start : start + count].sum())
            self._count += count
            start += count
        self.examples += len(labels)

    def expect(self, labels: Int[Tensor, " b"]) -> None:
        """Raise RequestError if a class comes back; callers check this before they add anything."""
        runs = torch.unique_consecutive(labels).tolist()
        known = set(self.over) if not runs or runs[0] == self._current else {*self.over, self._current}
        for label in runs:
            if label in known:
                raise RequestError(
                    f"examples must come class by class, and class {label} comes back: sort them by label"
                )
            known.add(label)

    def classes(self) -> Int[Tensor, " c"]:
        """Return the classes that have points, in their order of occurrence."""
        return torch.tensor(self.over if self._current is None else [*self.over, self._current])

    def alone(self) -> list[int]:
        """Return the classes that have a single point."""
        return [*self._alone, *([] if self._current is None or self._count > 1 else [self._current])]

    def variances(self) -> Variances:
        """Return the variances between and within the classes that have points."""
        assert self.origin is not None
        mean, spread, within, pairs = self._with_current()
        count = len(self.classes())
        between, within = spread / count, within / count
        squared_length = float((mean + self.origin).square().sum()) + between + within
        return Variances(between, within, squared_length, pairs / count)

    def _close(self) -> None:
        if self._current is None:
            return
        self._mean, self._spread, self._within, self._pairs = self._with_current()
        self._alone = self.alone()
        self.over.append(self._current)
        self._current, self._count, self._squares, self._extras = None, 0, 0.0, 0.0
        self._sum = torch.zeros_like(self._sum)

    def _with_current(self) -> tuple[Float[Tensor, " m"], float, float, float]:
        # Welford's update of the mean of the class means, and of their squared distances from it.
        if self._current is None:
            return self._mean, self._spread, self._within, self._pairs
        current, count = self._sum / self._count, self._count
        apart = current - self._mean
        mean = self._mean + apart / (len(self.over) + 1)
        spread = self._spread + float(apart.dot(current - mean))
        own = max(self._squares / count - float(current.dot(current)), 0.0)
        pairs = (count * own - self._extras / count) / (count - 1) if count > 1 else math.nan
        return mean, spread, self._within + own, self._pairs + pairs
