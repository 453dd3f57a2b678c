"""Class moments in one pass: the number of points of each class, their sum and their squared lengths.

Everything is summed in float64 relative to a fixed origin (the mean of the first points). The origin does not
change a variance but keeps the sums small: for points with a strong common direction, E|u|^2 - |mu|^2
relative to 0 would subtract two large, almost equal numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import float64_blocks, resolution

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
    """Counts [k], sums [k m] and squared lengths [k] of the points of k classes, a row for each class.

    >>> moments = ClassMoments()
    >>> points = torch.tensor([[0.0], [2.0], [10.0], [12.0]], dtype=torch.float64)
    >>> moments.add(points, moments.numbered(torch.tensor([7, 7, 3, 3])))
    >>> moments.variances()
    Variances(between=25.0, within=1.0, squared_length=62.0, pairs=2.0)
    """

    def __init__(self) -> None:
        self.origin: Float[Tensor, " m"] | None = None
        self._rows: dict[int, int] = {}
        self._counts = self._squares = self._extras = torch.zeros(0, dtype=torch.float64)
        self._sums: Float[Tensor, "k m"] = torch.zeros(0, 0, dtype=torch.float64)

    @classmethod
    def of(cls, matrix: Shaped[Tensor, "n m"], labels: Int[Tensor, " n"]) -> ClassMoments:
        """Return the moments of all rows of a matrix."""
        moments = cls()
        rows = moments.numbered(labels)
        for start, block in float64_blocks(matrix):
            moments.add(block, rows[start : start + len(block)])
        return moments

    @property
    def examples(self) -> int:
        """The number of points added."""
        return int(self._counts.sum())

    @property
    def labels(self) -> list[int]:
        """The classes that have points, in ascending order."""
        return sorted(self._rows)

    def numbered(self, labels: Int[Tensor, " b"]) -> Int[Tensor, " b"]:
        """Return the row of each label; a new label takes the next row."""
        present, places = torch.unique(labels, return_inverse=True)
        rows = [self._rows.setdefault(label, len(self._rows)) for label in present.tolist()]
        return torch.tensor(rows, dtype=torch.int64, device=labels.device)[places]

    def add(
        self,
        vectors: Float[Tensor, "b m"],
        rows: Int[Tensor, " b"],
        scale: Float[Tensor, " b"] | None = None,
        extra_squares: Float[Tensor, " b"] | None = None,
    ) -> None:
        """Add the points `scale * vectors`, of the classes that are `numbered`; `vectors` are overwritten.

        `extra_squares` is added to the squared lengths of the points, as their distance from themselves.
        """
        self.origin, points, squares, extras = _relative(self.origin, vectors, scale, extra_squares)
        self._reserve(len(self._rows))
        self._sums.index_add_(0, rows, points)
        self._squares.index_add_(0, rows, squares)
        self._extras.index_add_(0, rows, extras)
        self._counts.index_add_(0, rows, torch.ones_like(squares))

    def sizes(self) -> Float[Tensor, " c"]:
        """Return the number of points of each class, in the order of `labels`."""
        return self._counts[self._order]

    def alone(self) -> list[int]:
        """Return the classes that have a single point."""
        return [label for label, size in zip(self.labels, self.sizes().tolist(), strict=True) if size == 1]

    def means(self) -> Float[Tensor, "c m"]:
        """Return the means of the classes relative to the origin, in the order of `labels`."""
        return self._sums[self._order] / self.sizes()[:, None]

    def within(self) -> Float[Tensor, " c"]:
        """Return the variance of each class; rounding (in a class of one, say) could make it negative."""
        means = self.means()
        return (self._squares[self._order] / self.sizes() - means.square().sum(1)).clamp_min_(0)

    def variances(self) -> Variances:
        """Return the variances between and within the classes."""
        assert self.origin is not None
        means, of_classes, counts = self.means(), self.within(), self.sizes()
        within = float(of_classes.mean())
        pairs = float(((counts * of_classes - self._extras[self._order] / counts) / (counts - 1)).mean())
        middle = means.mean(0)
        between = float((means - middle).square_().sum(1).mean())
        middle += self.origin
        return Variances(between, within, float(middle.square_().sum()) + between + within, pairs)

    @property
    def _order(self) -> Int[Tensor, " c"]:
        return torch.tensor([self._rows[label] for label in self.labels], device=self._counts.device)

    def _reserve(self, classes: int) -> None:
        """Make room for this many classes, at least doubling it."""
        assert self.origin is not None
        old = len(self._counts)
        if classes <= old:
            return
        more = max(classes, 2 * old) - old
        self._counts, self._squares, self._extras = (
            torch.cat([known.to(self.origin), self.origin.new_zeros(more)])
            for known in (self._counts, self._squares, self._extras)
        )
        added = self.origin.new_zeros(more, len(self.origin))
        self._sums = torch.cat([self._sums, added]) if old else added


class SequentialMoments:
    """The variances of `ClassMoments` in O(m) memory, for points that come class by class.

    For completed classes only the mean and spread of their means and the sums of their variances are kept.

    >>> moments = SequentialMoments()
    >>> points = torch.tensor([[0.0], [2.0], [10.0], [12.0]], dtype=torch.float64)
    >>> moments.add(points, moments.numbered(torch.tensor([7, 7, 3, 3])))
    >>> moments.variances()
    Variances(between=25.0, within=1.0, squared_length=62.0, pairs=2.0)
    """

    def __init__(self) -> None:
        self.origin: Float[Tensor, " m"] | None = None
        self.labels: list[int] = []
        self._sizes: list[int] = []
        self._sum = torch.zeros(0, dtype=torch.float64)
        self._squares = self._extras = 0.0
        self._completed = self._sum, 0.0, 0.0, 0.0

    @property
    def examples(self) -> int:
        """The number of points added."""
        return sum(self._sizes)

    def numbered(self, labels: Int[Tensor, " b"]) -> Int[Tensor, " b"]:
        """Return the labels as they are; raise RequestError if a class comes back."""
        runs = torch.unique_consecutive(labels).tolist()
        known = self.labels[:-1] if runs[:1] == self.labels[-1:] else self.labels
        again = [label for place, label in enumerate(runs) if label in known or label in runs[:place]]
        if again:
            raise RequestError(
                f"examples must come class by class, and class {again[0]} comes back: sort them by label"
            )
        return labels

    def add(
        self,
        vectors: Float[Tensor, "b m"],
        rows: Int[Tensor, " b"],
        scale: Float[Tensor, " b"] | None = None,
        extra_squares: Float[Tensor, " b"] | None = None,
    ) -> None:
        """Add points as `ClassMoments.add` does."""
        runs, sizes = (each.tolist() for each in torch.unique_consecutive(rows, return_counts=True))
        if self.origin is None:
            self._completed = vectors.new_zeros(vectors.shape[1]), 0.0, 0.0, 0.0
        self.origin, *points = _relative(self.origin, vectors, scale, extra_squares)
        for label, size, *parts in zip(
            runs, sizes, *(torch.split(each, sizes) for each in points), strict=True
        ):
            if self.labels[-1:] != [label]:
                if self.labels:
                    self._completed = self._with_current()
                self.labels.append(label)
                self._sizes.append(0)
                self._sum, self._squares, self._extras = torch.zeros_like(self.origin), 0.0, 0.0
            self._sizes[-1] += size
            self._sum += parts[0].sum(0)
            self._squares += float(parts[1].sum())
            self._extras += float(parts[2].sum())

    def alone(self) -> list[int]:
        """Return the classes that have a single point."""
        return [label for label, size in zip(self.labels, self._sizes, strict=True) if size == 1]

    def variances(self) -> Variances:
        """Return the variances between and within the classes."""
        assert self.origin is not None
        mean, spread, within, pairs = self._with_current()
        count = len(self.labels)
        between, within = spread / count, within / count
        squared_length = float((mean + self.origin).square().sum()) + between + within
        return Variances(between, within, squared_length, pairs / count)

    def _with_current(self) -> tuple[Float[Tensor, " m"], float, float, float]:
        # Welford's update of the mean of the class means, and of their squared distances from it.
        completed, spread, within, pairs = self._completed
        count = self._sizes[-1]
        current = self._sum / count
        apart = current - completed
        mean = completed + apart / len(self.labels)
        spread = spread + float(apart.dot(current - mean))
        own = max(self._squares / count - float(current.dot(current)), 0.0)
        of_pairs = (count * own - self._extras / count) / (count - 1) if count > 1 else math.nan
        return mean, spread, within + own, pairs + of_pairs


def expect_classes(present: list[int], what: str) -> None:
    """Raise UndefinedError for fewer than two classes."""
    if len(present) < 2:
        seen = f"class {present[0]} alone" if present else "no examples"
        raise UndefinedError(f"{what} needs two classes or more; saw {seen}")


def rounding(dtype: torch.dtype) -> float:
    """Return the relative variance to which numbers of a dtype, and the float64 sums here, are rounded."""
    return resolution(dtype) ** 2 / 4 + (8 * EPS) ** 2


def _relative(
    origin: Float[Tensor, " m"] | None,
    vectors: Float[Tensor, "b m"],
    scale: Float[Tensor, " b"] | None,
    extra_squares: Float[Tensor, " b"] | None,
) -> tuple[Float[Tensor, " m"], Float[Tensor, "b m"], Float[Tensor, " b"], Float[Tensor, " b"]]:
    """Return the origin, the points relative to it, their squared lengths with the extra ones, and these."""
    factor = vectors.new_ones(()) if scale is None else scale[:, None]
    if origin is None:
        origin = (vectors * factor).mean(0)
    points = torch.addcmul(-origin, vectors, factor, out=vectors)
    squares = torch.linalg.vector_norm(points, dim=1).square_()
    extras = torch.zeros_like(squares) if extra_squares is None else extra_squares
    return origin, points, squares + extras, extras
