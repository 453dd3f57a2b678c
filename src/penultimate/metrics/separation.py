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
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from penultimate.checks import one_of
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import (
    LARGEST,
    ArrayLike,
    Bank,
    Names,
    as_classes,
    as_features,
    as_tensor,
    expect_finite,
    float64_blocks,
    labelled_features,
)
from penultimate.metrics.moments import ClassMoments, SequentialMoments, expect_classes, rounding

DISTANCES = ("cosine", "cosine_centered", "euclidean")
CACHED = {"cpu": 1 << 19, "cuda": 1 << 24}
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
    matrix, classes = labelled_features(features, labels, check=False)  # `add` does
    center = None
    if distance == "cosine_centered":
        center = sum(
            (block.sum(0) for _, block in float64_blocks(matrix, rows=_block_rows(matrix))),
            start=torch.zeros(matrix.shape[1], dtype=torch.float64, device=matrix.device),
        ) / max(len(matrix), 1)
    seen = SeparationAccumulator(distance, center)
    seen.add(matrix, classes)
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
        self.distance = distance
        self._center = None if center is None else as_tensor(center, "center").to(torch.float64)
        self._moments: ClassMoments | SequentialMoments = SequentialMoments() if by_class else ClassMoments()
        self._zero_vectors = 0
        self._rounding = 0.0

    def update(self, features: ArrayLike, labels: ArrayLike) -> SeparationAccumulator:
        """Add a batch of features [n m] and labels [n]; raise RequestError as `class_separation` does."""
        matrix = as_features(features, check=False)
        known = self._moments.origin
        if known is not None and len(known) != matrix.shape[1]:
            raise RequestError(f"features have {matrix.shape[1]} dimensions, where {len(known)} are expected")
        self.add(matrix, as_classes(labels, "labels", len(matrix), device=matrix.device))
        return self

    def add(self, matrix: Shaped[Tensor, "n m"], classes: Shaped[Tensor, " n"]) -> None:
        """Add a batch of features and class indices."""
        rows = self._moments.numbered(classes)
        for start, vectors in float64_blocks(matrix, rows=_block_rows(matrix)):
            of_block = rows[start : start + len(vectors)]
            if self._center is not None:
                vectors -= self._center.to(vectors.device)
            lengths: Float[Tensor, " b"] = torch.linalg.vector_norm(vectors, dim=1)
            if not bool(lengths.amax() <= LARGEST):
                expect_finite(matrix)
            if self.distance == "euclidean":
                self._moments.add(vectors, of_block)
                continue
            zero = lengths == 0
            # At distance 1 from itself, a zero vector counts as if its squared length were 1.
            self._moments.add(vectors, of_block, lengths.masked_fill_(zero, 1).reciprocal_(), zero.double())
            self._zero_vectors += int(zero.sum())
        self._rounding = max(self._rounding, rounding(matrix.dtype))

    def compute(self, *, unbiased: bool = False) -> float:
        """Return R^2 of all examples, as `class_separation` does; raise UndefinedError if it has no value."""
        moments = self._moments
        expect_classes(moments.labels, "class separation")
        between, within, squared_length, pairs = moments.variances()
        if between + within <= self._rounding * squared_length or self._zero_vectors == moments.examples:
            how = "" if self.distance == "euclidean" else "in direction "
            raise UndefinedError(
                f"class separation is undefined: the features of all {moments.examples} examples are equal"
                f" {how}to within their rounding"
            )
        if not unbiased:
            return between / (between + within)
        if alone := moments.alone():
            raise UndefinedError(
                f"an unbiased class separation needs two examples of every class; class {alone[0]} has one"
            )
        return 1 - pairs / (between + within + (pairs - within) / len(moments.labels))


def _block_rows(matrix: Shaped[Tensor, "n m"]) -> int:
    cores = torch.get_num_threads() if matrix.device.type == "cpu" else 1
    return max(1, CACHED[matrix.device.type] * cores // matrix.shape[1])
