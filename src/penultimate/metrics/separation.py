"""Class separation R^2: how far apart classes lie, relative to how far apart any two examples lie.

Let u be the points whose squared distances are averaged: x itself, or x/|x|, or (x - mean)/|x - mean|, for
which |u - v|^2 / 2 = 1 - sim. The double sums of the definition then reduce to moments of the classes:

    between = mean_k |mu_k - mean_j mu_j|^2,    within = mean_k (E_k |u|^2 - |mu_k|^2),
    R^2 = between / (between + within).

The definition includes the pairs of an example with itself, at a distance of 0, so R^2 is about (1 - R^2)/n
too high if each class has n examples. Let class k have N_k examples, the variance w_k, and the share z_k of
zero vectors (at distance 1 from themselves). Without those pairs,

    pairs = mean_k (N_k w_k - z_k) / (N_k - 1),    total = between + within + (pairs - within) / K,
    unbiased R^2 = 1 - pairs / total.

Nothing changes if a fixed vector is subtracted from every u. Post-ReLU features share a strong direction,
whose contribution to E|u|^2 - |mu|^2 costs digits by cancellation. So the mean of the first batch is
subtracted first, and everything is summed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from penultimate.checks import one_of, whole_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.blocks import as_features, expect_lengths, float64_blocks, lengths
from penultimate.metrics.inputs import ArrayLike, Bank, Names, as_tensor, labelled, of_bank
from penultimate.metrics.labels import as_classes, numbered
from penultimate.metrics.moments import EPS, ClassMoments, SequentialMoments

__all__ = [
    "DISTANCES",
    "SeparationAccumulator",
    "UndefinedError",
    "VarianceRatios",
    "class_separation",
    "streamed_class_separation",
    "variance_ratios",
]

DISTANCES = ("cosine", "cosine_centered", "euclidean")
BLOCK_ELEMENTS = {"cpu": 1 << 19, "cuda": 1 << 24}
"""The number of values that a core processes at once: 4 MiB of float64 fit its cache; a GPU needs more."""


def class_separation(
    features: ArrayLike | Bank,
    labels: Names | None = None,
    distance: str = "cosine",
    *,
    unbiased: bool = False,
) -> float:
    """Return R^2 = 1 - (mean distance within classes) / (mean distance overall), with equal class weights.

    d_within = sum_k sum_m sum_n d(x_km, x_kn) / (K N_k^2)
    d_total  = sum_j sum_k sum_m sum_n d(x_jm, x_kn) / (K^2 N_j N_k)

    `features` [n m] have any real dtype, in NumPy or torch, on CPU or CUDA; `labels` [n] are class indices or
    names; or a feature bank holds both. K is the number of classes that have examples. The computation takes
    one pass and O(K m) memory, all in float64. `distance` is

    - "cosine": d = 1 - x.y/(|x||y|). A zero vector has no direction: similarity 0 to all, itself included.
    - "cosine_centered": the same after subtracting the mean of all examples (two passes).
    - "euclidean": d = |x - y|^2 (squared: the paper does not say, and only this has a closed form).

    The paper's R^2 is of the penultimate features: those before the projector, if the network has one.

    Both sums include the pairs of an example with itself, so R^2 depends on the number of examples per class:
    for features unrelated to classes of n examples it is about 1/n. With `unbiased`, those pairs are left out
    of both sums, and R^2 of unrelated features is 0 on average (a single value may be negative). Compare the
    unbiased values if the numbers of examples differ.

    Raise RequestError for NaN or infinity (it lists the rows), labels that are not class indices, and unequal
    lengths; raise UndefinedError (a RequestError) for a single class, for features that vary by less than
    their rounding, and, if `unbiased`, for a class of one example.

    >>> import numpy as np
    >>> corners = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> round(class_separation(corners, [0, 0, 1, 1]), 4)
    0.9945
    >>> [round(class_separation(corners, [0, 1, 0, 1], unbiased=u), 2) for u in (False, True)]
    [0.0, -0.33]

    Kornblith et al., 2021, eq. 11; the distances: table E.1.
    """
    one_of(distance, "distance", DISTANCES)
    features, labels = of_bank(features, labels)
    matrix, (classes,) = as_features(features), numbered(labels)
    center = _mean_activation([matrix]) if distance == "cosine_centered" else None
    seen = SeparationAccumulator(distance=distance, center=center).update(matrix, classes)
    return seen.compute(unbiased=unbiased)


def streamed_class_separation(
    batches: Iterable[tuple[ArrayLike, ArrayLike]], distance: str = "cosine", *, unbiased: bool = False
) -> float:
    """Return `class_separation` for (features, labels) batches that need not fit in memory together.

    "cosine_centered" takes two passes, so it needs an iterable that can start again (a list, a DataLoader);
    raise RequestError for a generator. Both passes must give the same batches.

    >>> batches = [([[1.0, 0.0], [0.0, 1.0]], [0, 1]), ([[0.9, 0.1], [0.1, 0.9]], [0, 1])]
    >>> round(streamed_class_separation(batches), 4)
    0.9932
    """
    one_of(distance, "distance", DISTANCES)
    center = None
    if distance == "cosine_centered":
        if isinstance(batches, Iterator):
            raise RequestError(
                "distance 'cosine_centered' takes two passes, and an iterator allows one:"
                " pass a list, a DataLoader or another iterable that can start again"
            )
        center = _mean_activation(as_features(features) for features, _ in labelled(batches))
    accumulator = SeparationAccumulator(distance=distance, center=center)
    for features, labels in labelled(batches):
        accumulator.update(features, labels)
    return accumulator.compute(unbiased=unbiased)


class SeparationAccumulator:
    """The class separation of examples that come in batches, in one process or in many.

    `update` adds a batch, all of it or, on an error, nothing. `merge` adds the examples of another
    accumulator. `compute` returns R^2, biased or unbiased; the order of the examples and their division into
    batches affect only its last bits. "cosine_centered" needs the mean activation as `center` [m]. Without
    `num_classes` the number of classes follows from the labels.

    The state is O(K m) float64 on the device of the first batch, and it can be pickled. If that is too much
    (for maps of many dimensions and a thousand classes), `by_class` promises that examples come class by
    class: then the state is O(m), a class that comes back raises RequestError, and `merge` is not possible.

    >>> left, right = SeparationAccumulator(), SeparationAccumulator()
    >>> _ = left.update([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> _ = right.update([[0.9, 0.1], [0.1, 0.9]], [0, 1])
    >>> round(left.merge(right).compute(), 4)
    0.9932
    """

    def __init__(
        self,
        num_classes: int | None = None,
        distance: str = "cosine",
        center: ArrayLike | None = None,
        by_class: bool = False,
    ) -> None:
        one_of(distance, "distance", DISTANCES)
        if num_classes is not None:
            whole_number(num_classes, "num_classes", 1)
        if (center is None) == (distance == "cosine_centered"):
            takes = "the mean activation as center" if center is None else "no center"
            raise RequestError(f"distance '{distance}' takes {takes}")
        self.num_classes = num_classes
        self.distance = distance
        self.center: Float[Tensor, " m"] | None = None
        if center is not None:
            self.center = as_tensor(center, "center").to(torch.float64)
            if self.center.ndim != 1 or not bool(self.center.isfinite().all()):
                raise RequestError("center must be one finite vector [dimensions]")
        self.zero_vectors = 0
        self._moments: ClassMoments | SequentialMoments = SequentialMoments() if by_class else ClassMoments()
        self._resolution = 0.0

    @property
    def examples(self) -> int:
        """The number of examples so far; `zero_vectors` of them have no direction (cosine distances only)."""
        return self._moments.examples

    def update(self, features: ArrayLike, labels: ArrayLike) -> SeparationAccumulator:
        """Add a batch of features [n m] and labels [n]; raise RequestError as `class_separation` does."""
        matrix = as_features(features)
        self._expect_dimensions(matrix.shape[1])
        classes = as_classes(labels, "labels", len(matrix), self.num_classes, matrix.device)
        # Several blocks are summed apart and merged when complete, so an error leaves no partial batch.
        several = len(matrix) > _block_rows(matrix)
        if isinstance(self._moments, SequentialMoments) and several:
            expect_lengths(matrix, "features")
            self._moments.expect(classes)
            several = False
        target = SeparationAccumulator(self.num_classes, self.distance, self.center) if several else self
        for start, vectors in float64_blocks(matrix, rows=_block_rows(matrix)):
            target._add(vectors, classes[start : start + len(vectors)], start)
        target._resolution = max(target._resolution, _resolution(matrix.dtype))
        return self.merge(target) if several else self

    def merge(self, other: SeparationAccumulator) -> SeparationAccumulator:
        """Add the examples of `other`, which is unchanged; raise RequestError if their settings differ."""
        if self.distance != other.distance:
            raise RequestError(f"accumulators of different distances: {self.distance} and {other.distance}")
        if self.num_classes != other.num_classes:
            raise RequestError(f"accumulators of {self.num_classes} and {other.num_classes} classes")
        centers = [center.cpu() for center in (self.center, other.center) if center is not None]
        if centers and not centers[0].equal(centers[1]):
            raise RequestError(
                "accumulators with different centers: take the mean activation of all examples"
            )
        if isinstance(self._moments, SequentialMoments) or isinstance(other._moments, SequentialMoments):
            raise RequestError("accumulators that go class by class do not merge: give one all examples")
        if other._moments.origin is not None:
            self._expect_dimensions(len(other._moments.origin))
        self._moments.merge(other._moments)
        self.zero_vectors += other.zero_vectors
        self._resolution = max(self._resolution, other._resolution)
        return self

    def compute(self, *, unbiased: bool = False) -> float:
        """Return R^2 of all examples, as `class_separation` does; raise UndefinedError if it has no value."""
        moments = self._moments
        present = moments.classes().tolist()
        if len(present) < 2:
            seen = f"class {present[0]} alone ({self.examples} examples)" if present else "no examples"
            raise UndefinedError(f"class separation needs two classes or more; saw {seen}")
        between, within, squared_length, pairs = moments.variances()
        # A dtype rounds a number by at most eps/2 of its size; the sums here add a few eps of float64 error.
        noise = (self._resolution**2 / 4 + (8 * EPS) ** 2) * squared_length
        if between + within <= noise or self.zero_vectors == self.examples:
            how = "" if self.distance == "euclidean" else "in direction "
            raise UndefinedError(
                f"class separation is undefined: the features of all {self.examples} examples are equal {how}"
                "to within their rounding, so there is no distance to compare"
            )
        if not unbiased:
            return between / (between + within)
        if alone := moments.alone():
            classes = (
                f"class {alone[0]} has" if len(alone) == 1 else f"{len(alone)} classes ({alone[0]}, ...) have"
            )
            raise UndefinedError(
                f"an unbiased class separation needs two examples of every class; {classes} one"
            )
        return 1 - pairs / (between + within + (pairs - within) / len(present))

    def _add(self, vectors: Float[Tensor, "b m"], classes: Int[Tensor, " b"], start: int) -> None:
        """Add one block whose first row is row `start` of its batch; an error is raised before any change."""
        if self.center is not None:
            self.center = self.center.to(vectors.device)
            vectors -= self.center
        sizes = lengths(vectors, start)
        if self.distance == "euclidean":
            self._moments.add(vectors, classes)
            return
        zero = sizes == 0
        # At distance 1 from itself, a zero vector counts as if its squared length were 1.
        self._moments.add(vectors, classes, sizes.masked_fill_(zero, 1).reciprocal_(), zero.double())
        self.zero_vectors += int(zero.sum())

    def _expect_dimensions(self, dimensions: int) -> None:
        known = self._moments.origin if self.center is None else self.center
        if known is not None and len(known) != dimensions:
            raise RequestError(f"features have {dimensions} dimensions, where {len(known)} are expected")


class VarianceRatios(NamedTuple):
    """Other indices of class separation that are functions of R^2."""

    within_over_between: float
    between_over_within: float
    normalised_difference: float


def variance_ratios(r2: float) -> VarianceRatios:
    """Return the ratios of the variances within (w) and between (b) classes that follow from R^2 = b/(b + w).

    w/b = 1/R^2 - 1,    b/w = R^2/(1 - R^2),    (b - w)/(b + w) = 2 R^2 - 1

    A ratio whose denominator is 0 is infinite. Raise RequestError if R^2 lies outside [0, 1].

    >>> variance_ratios(0.5)
    VarianceRatios(within_over_between=1.0, between_over_within=1.0, normalised_difference=0.0)

    Kornblith et al., 2021, eq. 21.
    """
    if not isinstance(r2, int | float) or not 0 <= r2 <= 1:
        raise RequestError(f"R^2 lies between 0 and 1; got {r2!r}")
    return VarianceRatios(
        within_over_between=(1 - r2) / r2 if r2 > 0 else math.inf,
        between_over_within=r2 / (1 - r2) if r2 < 1 else math.inf,
        normalised_difference=2 * r2 - 1,
    )


def _mean_activation(batches: Iterable[Shaped[Tensor, "n m"]]) -> Float[Tensor, " m"]:
    """Return the mean of all examples, equally weighted; raise RequestError as `update` does."""
    total: Float[Tensor, " m"] | None = None
    examples = 0
    for matrix in batches:
        for start, vectors in float64_blocks(matrix, rows=_block_rows(matrix)):
            part = vectors.sum(0)
            if not bool(part.isfinite().all()):
                lengths(vectors, start)
            total = part if total is None else total.to(part.device).add_(part)
            examples += len(vectors)
    if total is None:
        raise UndefinedError("class separation needs two classes or more; saw no examples")
    return total / examples


def _block_rows(matrix: Shaped[Tensor, "n m"]) -> int:
    cores = torch.get_num_threads() if matrix.device.type == "cpu" else 1
    return max(1, BLOCK_ELEMENTS[matrix.device.type] * cores // matrix.shape[1])


def _resolution(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
