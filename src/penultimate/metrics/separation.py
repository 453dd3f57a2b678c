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

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from penultimate.checks import one_of
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.blocks import as_features, float64_blocks, lengths
from penultimate.metrics.inputs import (
    ArrayLike,
    Bank,
    Names,
    as_classes,
    as_tensor,
    numbered,
    of_bank,
)
from penultimate.metrics.moments import EPS, ClassMoments, SequentialMoments

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
    center = _mean_activation(matrix) if distance == "cosine_centered" else None
    seen = SeparationAccumulator(distance=distance, center=center).update(matrix, classes)
    return seen.compute(unbiased=unbiased)


class SeparationAccumulator:
    """The class separation of examples that come in batches.

    `update` adds a batch, and `compute` returns R^2, biased or unbiased; the order of the examples and their
    division into batches affect only its last bits. "cosine_centered" needs the mean activation as `center`
    [m].

    The state is O(K m) float64 on the device of the first batch. If that is too much (for maps of many
    dimensions and a thousand classes), `by_class` promises that examples come class by class: then the state
    is O(m), and a class that comes back raises RequestError.

    >>> seen = SeparationAccumulator().update([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> round(seen.update([[0.9, 0.1], [0.1, 0.9]], [0, 1]).compute(), 4)
    0.9932
    """

    def __init__(
        self, distance: str = "cosine", center: ArrayLike | None = None, by_class: bool = False
    ) -> None:
        one_of(distance, "distance", DISTANCES)
        if (center is None) == (distance == "cosine_centered"):
            takes = "the mean activation as center" if center is None else "no center"
            raise RequestError(f"distance '{distance}' takes {takes}")
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
        classes = as_classes(labels, "labels", len(matrix), device=matrix.device)
        for start, vectors in float64_blocks(matrix, rows=_block_rows(matrix)):
            self._add(vectors, classes[start : start + len(vectors)], start)
        self._resolution = max(self._resolution, _resolution(matrix.dtype))
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


def _mean_activation(matrix: Shaped[Tensor, "n m"]) -> Float[Tensor, " m"]:
    """Return the mean of all examples; raise RequestError as `update` does."""
    if not len(matrix):
        raise UndefinedError("class separation needs two classes or more; saw no examples")
    total = torch.zeros(matrix.shape[1], dtype=torch.float64, device=matrix.device)
    for start, vectors in float64_blocks(matrix, rows=_block_rows(matrix)):
        part = vectors.sum(0)
        if not bool(part.isfinite().all()):
            lengths(vectors, start)
        total += part
    return total / len(matrix)


def _block_rows(matrix: Shaped[Tensor, "n m"]) -> int:
    cores = torch.get_num_threads() if matrix.device.type == "cpu" else 1
    return max(1, BLOCK_ELEMENTS[matrix.device.type] * cores // matrix.shape[1])


def _resolution(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
