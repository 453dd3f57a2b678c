"""Properties of activations: the share of non-zeros, their singular values, the distances between them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from penultimate.checks import whole_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.blocks import as_features, directions, expect_lengths, float64_blocks
from penultimate.metrics.density import MOST_POINTS, gaussian_density
from penultimate.metrics.inputs import ArrayLike, Bank, Names, as_classes, as_tensor, numbered, of_bank
from penultimate.metrics.moments import ClassMoments

BLOCK_ELEMENTS = 1 << 22
BINS = 1 << 14
BANDWIDTH = 0.01


def nonzero_share(activations: ArrayLike | Bank) -> float:
    """Return the share of activations that are not zero: 1 if none is zero, 0 if all are.

    mean_i #{j: x_ij != 0} / m

    `activations` [n ...] are features, maps of any shape, or a feature bank; -0 counts as zero. To combine
    batches, average their shares weighted by their sizes. Raise RequestError for NaN and UndefinedError if
    there are no activations.

    >>> nonzero_share([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 3.0]])
    0.375

    Kornblith et al., 2021, figure 3.
    """
    given = activations.features if isinstance(activations, Bank) else activations
    values = as_tensor(given, "activations").flatten()
    if not len(values):
        raise UndefinedError("the share of non-zeros of no activations is 0/0")
    nonzero = 0
    for start in range(0, len(values), BLOCK_ELEMENTS):
        part = values[start : start + BLOCK_ELEMENTS]
        if part.is_floating_point() and bool(part.isnan().any()):
            raise RequestError("activations hold NaN, which is neither zero nor not")
        nonzero += int(part.count_nonzero())
    return nonzero / len(values)


class SpectrumAccumulator:
    """The singular values of a matrix whose rows come in batches.

    After each batch only the triangle R of [R; batch] = Q R is kept, in float64: R has the singular values of
    all rows so far. Each is accurate to a few ulp of the largest (computed from the Gram matrix, values below
    1e-8 of the largest would be noise). The state takes O(m^2) memory.

    >>> SpectrumAccumulator().update([[3.0, 0.0]]).update([[0.0, 4.0], [0.0, 0.0]]).compute()
    tensor([4., 3.], dtype=torch.float64)
    """

    def __init__(self) -> None:
        self.rows = 0
        self._triangle: Float[Tensor, "r m"] | None = None

    def update(self, matrix: ArrayLike) -> SpectrumAccumulator:
        """Add rows [n m]; raise RequestError for NaN or infinity (it lists the rows) or a different width."""
        added = as_features(matrix)
        expect_lengths(added, "rows")
        for _, block in float64_blocks(added):
            self._append(block)
        self.rows += len(added)
        return self

    def compute(self) -> Float[Tensor, " r"]:
        """Return the min(n, m) singular values in descending order; raise UndefinedError without rows."""
        if self._triangle is None:
            raise UndefinedError("a matrix without rows has no singular values")
        values: Tensor = torch.linalg.svdvals(self._triangle)
        return values

    def _append(self, block: Float[Tensor, "n m"]) -> None:
        known = self._triangle
        if known is not None and known.shape[1] != block.shape[1]:
            raise RequestError(f"rows have {block.shape[1]} dimensions, where {known.shape[1]} are expected")
        stacked = block if known is None else torch.cat([known, block.to(known.device)])
        self._triangle = torch.linalg.qr(stacked, mode="r").R


def singular_values(matrix: ArrayLike | Bank) -> Float[Tensor, " r"]:
    """Return the min(n, m) singular values of a matrix [n m] in float64, in descending order.

    The matrix is neither centred nor scaled. It may hold activations [n m] (also those of a feature bank), a
    head's weights [k m] or class centroids [c m]. The computation takes O(m^2) memory besides the matrix, and
    each value is accurate to a few ulp of the largest. Raise RequestError for NaN or infinity (it lists the
    rows).

    >>> singular_values([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    tensor([2., 1.], dtype=torch.float64)

    Kornblith et al., 2021, figure E.2 (which does not say whether it centres; this does not).
    """
    return SpectrumAccumulator().update(matrix.features if isinstance(matrix, Bank) else matrix).compute()


def centred_singular_values(matrix: ArrayLike) -> Float[Tensor, " r"]:
    """Return the singular values of a matrix [n m] less the mean of its rows, as `singular_values` does.

    >>> centred_singular_values([[1.0, 7.0], [3.0, 7.0]])
    tensor([1.4142, 0.0000], dtype=torch.float64)
    """
    given = as_features(matrix)
    total = torch.zeros(given.shape[1], dtype=torch.float64, device=given.device)
    for _, block in float64_blocks(given):
        total += block.sum(0)
    spectrum = SpectrumAccumulator()
    for _, block in float64_blocks(given):
        spectrum.update(block - total / len(given))
    return spectrum.compute()


def class_centroids(features: ArrayLike | Bank, labels: Names | None = None) -> Float[Tensor, "c m"]:
    """Return the means of the classes that have examples, in the order of their labels, in float64.

    Labels are class indices or names; a feature bank supplies its own.

    >>> class_centroids([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]], [0, 0, 2])
    tensor([[2., 0.],
            [0., 5.]], dtype=torch.float64)
    """
    features, labels = of_bank(features, labels)
    matrix, (codes,) = as_features(features), numbered(labels)
    classes = as_classes(codes, "labels", len(matrix), device=matrix.device)
    if not len(matrix):
        raise UndefinedError("no examples, so no class has a centroid")
    expect_lengths(matrix)
    moments = ClassMoments()
    for start, block in float64_blocks(matrix):
        moments.add(block, classes[start : start + len(block)])
    assert moments.origin is not None
    return moments.means() + moments.origin


class DistanceDistributions(NamedTuple):
    """Distances of pairs within and between classes: densities [p] at distances `points` [p], and means."""

    points: Float[Tensor, " p"]
    within: Float[Tensor, " p"]
    between: Float[Tensor, " p"]
    mean_within: float
    mean_between: float
    pairs_within: int
    pairs_between: int


def cosine_distances(
    features: ArrayLike | Bank,
    labels: Names | None = None,
    count: int = 10_000,
    seed: int = 0,
    points: int = 501,
    bandwidth: float = BANDWIDTH,
) -> DistanceDistributions:
    """Return the distributions of the cosine distances 1 - sim(x_i, x_j), i < j, within and between classes.

    `features` are [n m] and `labels` [n] (class indices or names), or a feature bank holds both. If there are
    more than `count` examples, `count` of them are drawn with `seed`, without replacement. Densities are
    estimated at `points` distances from 0 to 2, by a Gaussian kernel of standard deviation `bandwidth` (the
    paper does not state its own). Distances have the precision of the features, at least float32. For the
    densities they are rounded to bins of 1/8192, which causes an error of at most 1.5e-5 / bandwidth^2. A
    zero vector has similarity 0, hence distance 1, to everything. Raise RequestError for NaN or infinity (it
    lists the rows); raise UndefinedError if there are no pairs within a class or no pairs between classes.

    >>> distances = cosine_distances([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 0, 1])
    >>> distances.mean_within, distances.mean_between, distances.pairs_within, distances.pairs_between
    (0.0, 1.0, 1, 2)

    Kornblith et al., 2021, figure E.3.
    """
    features, labels = of_bank(features, labels)
    matrix, (codes,) = as_features(features), numbered(labels)
    classes = as_classes(codes, "labels", len(matrix), device=matrix.device)
    whole_number(count, "count", 2)
    whole_number(points, "points", 2, MOST_POINTS)
    whole_number(seed, "seed", 0)
    if len(matrix) > count:
        drawn = torch.randperm(len(matrix), generator=torch.Generator().manual_seed(seed))[:count]
        matrix, classes = matrix[drawn.to(matrix.device)], classes[drawn.to(matrix.device)]
    expect_lengths(matrix)
    classes, order = classes.sort(stable=True)
    precision = torch.float64 if matrix.dtype == torch.float64 else torch.float32
    units = directions(matrix[order].double()).to(precision)
    histograms, sums = _pair_histograms(units, classes)
    pairs = [int(histogram.sum()) for histogram in histograms]
    if not all(pairs):
        which = "one class alone" if pairs[0] else "no two of one class"
        raise UndefinedError(
            f"distances within and between classes want pairs of both kinds; the {len(units)} examples hold"
            f" {which}"
        )
    middles = (torch.arange(BINS, dtype=torch.float64, device=units.device) + 0.5) * (2 / BINS)
    where = torch.linspace(0, 2, points, dtype=torch.float64, device=units.device)
    within, between = (
        gaussian_density(middles[histogram > 0], where, bandwidth, histogram[histogram > 0])
        for histogram in histograms
    )
    return DistanceDistributions(where, within, between, sums[0] / pairs[0], sums[1] / pairs[1], *pairs)


def _pair_histograms(
    units: Float[Tensor, "n m"], classes: Int[Tensor, " n"]
) -> tuple[list[Int[Tensor, " bins"]], list[float]]:
    """Return histograms on [0, 2] and sums of the distances of pairs i < j, within and between classes.

    `classes` is sorted, so beyond the end of a block's last class all pairs are between classes and i < j.
    """
    histograms = [torch.zeros(BINS, dtype=torch.int64, device=units.device) for _ in range(2)]
    sums = [0.0, 0.0]

    def add(which: int, distances: Float[Tensor, " p"]) -> None:
        bins = (distances * (BINS / 2)).to(torch.int32).clamp_(0, BINS - 1)
        histograms[which] += torch.bincount(bins, minlength=BINS)
        sums[which] += float(distances.sum(dtype=torch.float64))

    rows = max(1, BLOCK_ELEMENTS // max(1, len(units)))
    for start in range(0, len(units), rows):
        block_classes = classes[start : start + rows]
        distances = 1 - units[start : start + rows] @ units[start:].T
        end = int(torch.searchsorted(classes, block_classes[-1], right=True)) - start
        near = distances[:, :end]
        later = torch.ones_like(near, dtype=torch.bool).triu_(1)
        same = block_classes[:, None] == classes[start : start + end]
        add(0, near[same & later])
        add(1, near[~same & later])
        add(1, distances[:, end:].flatten())
    return histograms, sums
