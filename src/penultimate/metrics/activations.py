"""Properties of activations: non-zeros, singular values and the ranks from them, distances between them."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from penultimate.checks import whole_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import (
    ArrayLike,
    Bank,
    Names,
    as_features,
    as_tensor,
    directions,
    float64_blocks,
    labelled_features,
)
from penultimate.metrics.moments import EPS, ClassMoments

BLOCK_ELEMENTS = 1 << 22
BINS = 1 << 14
BANDWIDTH = 0.01
SMALL = 1e-7
"""What RankMe adds to every share of a singular value, as its authors do."""


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
    for part in torch.split(values, BLOCK_ELEMENTS):
        if part.is_floating_point() and bool(part.isnan().any()):
            raise RequestError("activations hold NaN, which is neither zero nor not")
        nonzero += int(part.count_nonzero())
    return nonzero / len(values)


def singular_values(matrix: ArrayLike | Bank, *, centred: bool = False) -> Float[Tensor, " r"]:
    """Return the min(n, m) singular values of a matrix [n m] in float64, in descending order.

    The matrix is not scaled, and centred (less the mean of its rows) only on request. It may hold activations
    [n m] (also those of a feature bank), a head's weights [k m] or class centroids [c m]. Block by block only
    the triangle R of [R; block] = Q R is kept, in O(m^2) memory: R has the singular values of all rows so
    far, each accurate to a few ulp of the largest. Raise RequestError for NaN or infinity (it lists the
    rows), and UndefinedError for no rows.

    >>> singular_values([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])
    tensor([2., 1.], dtype=torch.float64)
    >>> singular_values([[1.0, 7.0], [3.0, 7.0]], centred=True)
    tensor([1.4142, 0.0000], dtype=torch.float64)

    Kornblith et al., 2021, figure E.2 (which does not say whether it centres).
    """
    given = as_features(matrix)
    if not len(given):
        raise UndefinedError("a matrix without rows has no singular values")
    mean = torch.zeros(given.shape[1], dtype=torch.float64, device=given.device)
    for _, block in float64_blocks(given) if centred else ():
        mean += block.sum(0)
    mean /= len(given)
    triangle: Tensor | None = None
    for _, block in float64_blocks(given):
        rows = block - mean if centred else block
        stacked = rows if triangle is None else torch.cat([triangle, rows])
        triangle = torch.linalg.qr(stacked, mode="r").R
    assert triangle is not None
    values: Tensor = torch.linalg.svdvals(triangle)
    return values


def stable_rank(features: ArrayLike | Bank) -> float:
    """Return the variance of features [n m] beside that along their longest direction, from 1 to m.

    sum_k t_k^2 / max_k t_k^2, t the singular values of the features less their mean

    Two passes in float64, O(m^2) memory. Raise RequestError for NaN or infinity; raise UndefinedError for
    features that are the same for all examples.

    >>> round(stable_rank([[3.0, 0.0], [-3.0, 0.0], [0.0, 3.0], [0.0, -3.0]]), 4)
    2.0

    Rudelson and Vershynin, 2007.
    """
    matrix = as_features(features)
    squares = singular_values(matrix, centred=True).square()
    if float(squares[0]) <= (max(matrix.shape) * EPS * float(singular_values(matrix)[0])) ** 2:
        raise UndefinedError("the spread of features that are the same for all examples fills no direction")
    return float(squares.sum() / squares[0])


def rankme(features: ArrayLike | Bank) -> float:
    """Return the effective rank of features [n m], RankMe.

    exp(-sum_k p_k log p_k),  p_k = s_k / sum_j s_j + 1e-7, s the features' singular values

    One pass in float64, O(m^2) memory. Raise RequestError for NaN or infinity; raise UndefinedError for
    features that are all 0.

    >>> round(rankme([[3.0, 0.0], [-3.0, 0.0], [0.0, 3.0], [0.0, -3.0]]), 4)
    2.0

    Garrido et al., 2023.
    """
    values = singular_values(features)
    if not float(values[0]) > 0:
        raise UndefinedError("the rank of features that are all 0 is undefined")
    shares = values / values.sum() + SMALL
    return math.exp(-float(torch.special.xlogy(shares, shares).sum()))


def class_centroids(features: ArrayLike | Bank, labels: Names | None = None) -> Float[Tensor, "c m"]:
    """Return the means of the classes that have examples, in the order of their labels, in float64.

    Labels are class indices or names; a feature bank supplies its own.

    >>> class_centroids([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]], [0, 0, 2])
    tensor([[2., 0.],
            [0., 5.]], dtype=torch.float64)
    """
    matrix, classes = labelled_features(features, labels)
    if not len(matrix):
        raise UndefinedError("no examples, so no class has a centroid")
    moments = ClassMoments.of(matrix, classes)
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
    matrix, classes = labelled_features(features, labels)
    if len(matrix) > whole_number(count, "count", 2):
        drawn = torch.randperm(len(matrix), generator=torch.Generator().manual_seed(seed))[:count]
        matrix, classes = matrix[drawn.to(matrix.device)], classes[drawn.to(matrix.device)]
    classes, order = classes.sort(stable=True)
    precision = torch.float64 if matrix.dtype == torch.float64 else torch.float32
    units = directions(matrix[order].double()).to(precision)
    histograms, sums = _pair_histograms(units, classes)
    pairs = [int(histogram.sum()) for histogram in histograms]
    if not all(pairs):
        which = "one class alone" if pairs[0] else "no two of one class"
        raise UndefinedError(
            f"distances within and between classes need pairs of both kinds; the {len(units)} examples hold"
            f" {which}"
        )
    middles = (torch.arange(BINS, dtype=torch.float64, device=units.device) + 0.5) * (2 / BINS)
    where = torch.linspace(0, 2, points, dtype=torch.float64, device=units.device)
    within, between = (
        gaussian_density(middles[histogram > 0], where, bandwidth, histogram[histogram > 0])
        for histogram in histograms
    )
    return DistanceDistributions(where, within, between, sums[0] / pairs[0], sums[1] / pairs[1], *pairs)


def gaussian_density(
    values: ArrayLike, points: ArrayLike, bandwidth: float, weights: ArrayLike | None = None
) -> Float[Tensor, " p"]:
    """Return the Gaussian kernel density estimate of `values` [n] at `points` [p], in float64.

    f(p) = sum_i w_i exp(-(p - v_i)^2 / (2 h^2)) / (h sqrt(2 pi) sum_i w_i),    w_i = 1 without `weights`

    The kernel's standard deviation h is `bandwidth`; the unit of the density is the inverse of the values'.
    Raise RequestError for values that are not finite and for a bandwidth that is not positive.

    >>> gaussian_density([0.0, 1.0], [0.0, 1.0], bandwidth=0.1)
    tensor([1.9947, 1.9947], dtype=torch.float64)
    """
    heights = as_tensor(values, "values").to(torch.float64)
    where = as_tensor(points, "points").to(heights)
    if not bandwidth > 0 or not bool(heights.isfinite().all()):
        raise RequestError(f"a density takes finite values and a positive bandwidth, not {bandwidth!r}")
    shares = torch.ones_like(heights) if weights is None else as_tensor(weights, "weights").to(heights)
    density = torch.zeros_like(where)
    rows = max(1, (1 << 20) // max(1, len(where)))
    for start in range(0, len(heights), rows):
        apart = (heights[start : start + rows, None] - where) / bandwidth
        density += shares[start : start + rows] @ apart.square_().mul_(-0.5).exp_()
    return density / (float(shares.sum()) * bandwidth * math.sqrt(2 * math.pi))


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
