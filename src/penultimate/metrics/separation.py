"""Class separation R^2: how far apart classes lie, relative to how far apart any two examples lie.

With u the points whose squared distances count (x itself; or x/|x|; or (x - mean)/|x - mean|, for which
|u - v|^2 / 2 = 1 - sim), the double sums of the definition collapse into moments of the classes:

    between = mean_k |mu_k - mean_j mu_j|^2,    within = mean_k (E_k |u|^2 - |mu_k|^2),
    R^2 = between / (between + within).

The definition counts an example with itself, at a distance of 0, so that R^2 is about (1 - R^2)/n too high
where a class has n examples. Without those pairs, with classes of N_k examples and variance w_k, a share z_k
of them zero vectors (at distance 1 from themselves),

    pairs = mean_k (N_k w_k - z_k) / (N_k - 1),    total = between + within + (pairs - within) / K,
    unbiased R^2 = 1 - pairs / total.

All are unchanged when a fixed vector is subtracted from every u. Post-ReLU features share a strong
direction, whose contribution to E|u|^2 - |mu|^2 costs digits by cancellation; so the first batch's mean is
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
"""Features processed at once per core: 4 MiB of float64, which its cache holds; a GPU needs larger pieces."""


def class_separation(
    features: ArrayLike | Bank,
    labels: Names | None = None,
    distance: str = "cosine",
    *,
    unbiased: bool = False,
) -> float:
    """R^2 = 1 - (mean distance within classes) / (mean distance overall), every class of equal weight.

    d_within = sum_k sum_m sum_n d(x_km, x_kn) / (K N_k^2)
    d_total  = sum_j sum_k sum_m sum_n d(x_jm, x_kn) / (K^2 N_j N_k)

    `features` [n m] of any real dtype, NumPy or torch, CPU or CUDA; `labels` [n] class indices or names; or a
    bank, which holds both. K counts the classes that have examples. One pass, O(K m) memory, float64
    throughout. `distance` is

    - "cosine": d = 1 - x.y/(|x||y|). A zero vector has no direction: similarity 0 to all, itself included.
    - "cosine_centered": the same after subtracting the mean of all examples (two passes).
    - "euclidean": d = |x - y|^2 (squared: the paper does not say, and only this has a closed form).

    Both sums count an example with itself, so that R^2 depends on how many examples a class has: of features
    that know nothing of n-example classes it is about 1/n. `unbiased` leaves those pairs out of both, and
    their mean is 0 (a single value may be negative): compare that where the numbers of examples differ.

    Raises RequestError for NaN or infinity (with the rows), labels that are not class indices, unequal
    lengths; UndefinedError (a RequestError) for one class only, or features that vary by less than their
    rounding, or, `unbiased`, a class of one example.

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
    """`class_separation` of (features, labels) batches that need not fit in memory together.

    "cosine_centered" goes over the batches twice, so it needs an iterable that can start again (a list, a
    DataLoader), and raises RequestError for a generator. Both passes must give the same batches.

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
    """Class separation of examples that come in batches, in one process or in many.

    `update` adds a batch (all of it, or on an error none), `merge` adds what another accumulator saw,
    `compute` gives R^2, of either kind; order and split affect only the last bits. "cosine_centered" needs
    the mean activation as `center` [m]. Without `num_classes` the number of classes follows from the labels.
    State: O(K m) float64 on the device of the first batch; it can be pickled. If that is too much (maps of
    many dimensions, a thousand classes), `by_class` promises that examples come class by class: then it is
    O(m), a class that comes back raises, and there is no `merge`.

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
        """The number of examples seen; `zero_vectors` of them had no direction (cosine distances only)."""
        return self._moments.examples

    def update(self, features: ArrayLike, labels: ArrayLike) -> SeparationAccumulator:
        """Add a batch: features [n m], labels [n]; raises RequestError as `class_separation` does."""
        matrix = as_features(features)
        self._expect_dimensions(matrix.shape[1])
        classes = as_classes(labels, "labels", len(matrix), self.num_classes, matrix.device)
        # Several blocks are summed separately and merged when complete, so an error leaves no partial batch.
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
        """Add what `other` saw; `other` is unchanged. Raises RequestError if their settings differ."""
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
        """R^2 of everything seen, as `class_separation` has it; raises UndefinedError if it has no value."""
        moments = self._moments
        present = moments.classes().tolist()
        if len(present) < 2:
            seen = f"class {present[0]} alone ({self.examples} examples)" if present else "no examples"
            raise UndefinedError(f"class separation needs two classes or more; saw {seen}")
        between, within, squared_length, pairs = moments.variances()
        # A dtype rounds a number by at most eps/2 of its size; the sums here add a few eps of float64.
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
        """Add one block, whose first row is row `start` of its batch; raises before it changes anything."""
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
    """Other indexes of class separation that are functions of R^2."""

    within_over_between: float
    between_over_within: float
    normalised_difference: float


def variance_ratios(r2: float) -> VarianceRatios:
    """Return the ratios of the variances within (w) and between (b) classes that R^2 = b/(b + w) implies.

    w/b = 1/R^2 - 1,    b/w = R^2/(1 - R^2),    (b - w)/(b + w) = 2 R^2 - 1

    A ratio whose denominator is 0 is infinite. Raises RequestError outside [0, 1].

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
    """Return the mean of all examples, equally weighted; raises RequestError as `update` does."""
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
