"""How alike two representations of the same images are, beside CKA: a null for CKA, and four other measures.

permuted_cka         CKA with the p of a permutation test                      one pass over the batches
Procrustes           the best rotation of one representation onto the other    one pass, and batches merge
mutual_neighbours    shared nearest neighbours                                 needs all images at once
distance_correlation the rank or the linear correlation of pairwise distances  needs all images at once
shifted_cka          how far CKA moves if a few images are shifted             needs all images at once

Neighbours and distances are of pairs of images from any two batches, and ranks are of all pairs together, so
that no single pass with a bounded memory has them: pass a fixed sample of the images.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from penultimate.checks import real_number, whole_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.blocks import as_features, directions, expect_lengths
from penultimate.metrics.inputs import ArrayLike, items
from penultimate.metrics.similarity import centred_gram, expect_enough, linear_cka, u_centred

LEVEL = 0.05
"""The level at which the null distribution of CKA is read off."""


class PermutedCKA(NamedTuple):
    """CKA, the p of "no more alike than chance", and the mean and the 95th percentile of chance."""

    cka: float
    p: float
    null_mean: float
    null_high: float


def permuted_cka(
    batches_x: Iterable[ArrayLike],
    batches_y: Iterable[ArrayLike],
    permutations: int = 499,
    seed: int = 0,
) -> PermutedCKA:
    """Return the linear CKA of two representations, and its p under permutations of the images.

    p = (1 + #{permutations with a CKA of at least that observed}) / (1 + permutations)

    CKA is `minibatch_cka`. A permutation reorders the images of one side within each batch, which changes no
    batch's own HSIC_1, so that one pass over the batches serves all permutations. Images must be
    exchangeable within batches: shuffle them first. The same seed gives the same permutations for all pairs
    of networks. Raise RequestError for batches that do not pair up, hold fewer than 4 images, NaN or
    infinity; raise UndefinedError if one side is constant.

    >>> random = np.random.default_rng(0)
    >>> x = [random.normal(size=(16, 5)) for _ in range(3)]
    >>> found = permuted_cka(x, [2 * batch + 1 for batch in x], permutations=19)
    >>> round(found.cka, 12), found.p
    (1.0, 0.05)
    """
    count = whole_number(permutations, "permutations", 1)
    random = np.random.default_rng(whole_number(seed, "seed", 0))
    across, own, examples = np.zeros(count + 1), np.zeros(2), 0
    pairs = zip_longest(items(batches_x, "batches_x"), items(batches_y, "batches_y"))
    for number, (x, y) in enumerate(pairs):
        if x is None or y is None:
            side = "x" if x is None else "y"
            raise RequestError(f"batches_{side} ends after {number} batches, the other goes on")
        one, other = (_u_gram(each) for each in (x, y))
        if len(one) != len(other):
            raise RequestError(f"batch {number} holds {len(one)} images of x and {len(other)} of y")
        n = len(one)
        weight = 1 / (n - 3)
        across[0] += weight * float(np.vdot(one, other))
        own += weight * np.array([np.vdot(one, one), np.vdot(other, other)])
        for place in range(1, count + 1):
            order = random.permutation(n)
            across[place] += weight * float(np.vdot(one, other[np.ix_(order, order)]))
        examples += n
    if examples == 0:
        raise RequestError("no batch to compare")
    if not own.all():
        raise UndefinedError("CKA is undefined: one side is the same for all images, to within its rounding")
    values = across / math.sqrt(float(own[0]) * float(own[1]))
    null = values[1:]
    p = (1 + int((null >= values[0] * (1 - 1e-12)).sum())) / (1 + count)
    return PermutedCKA(float(values[0]), p, float(null.mean()), float(np.quantile(null, 1 - LEVEL)))


def _u_gram(batch: ArrayLike) -> Float[np.ndarray, "n n"]:
    gram = centred_gram(batch)
    expect_enough(len(gram))
    return u_centred(gram).cpu().numpy()


class Procrustes:
    """How well a rotation and a scale map one representation onto another, from batches of both.

    |X'Y|_* / (|X|_F |Y|_F), X and Y less their means; 1 if a rotation and a scale make them equal

    The squared Procrustes distance of both, scaled to length 1, is 2 less twice that. `update` adds a batch,
    and `merge` the batches of another object. The state is O(p q) in float64. `compute` raises
    UndefinedError if one side is constant or there are fewer than two images.

    >>> x = torch.tensor([[0.0, 1.0], [2.0, 0.0], [3.0, 5.0]])
    >>> turned = 3 * x @ torch.tensor([[0.0, 1.0], [-1.0, 0.0]]) + 7
    >>> round(Procrustes().update(x[:2], turned[:2]).update(x[2:], turned[2:]).compute(), 12)
    1.0

    Schonemann, 1966; Ding, Denain and Steinhardt, 2021 (of representations).
    """

    def __init__(self) -> None:
        self.images = 0
        self._origins: tuple[Tensor, Tensor] | None = None
        self._sums: list[Tensor] = []
        self._squares = [0.0, 0.0]
        self._products = torch.zeros(0, 0, dtype=torch.float64)

    def update(self, x: ArrayLike, y: ArrayLike) -> Procrustes:
        """Add activations [n p] and [n q] of the same images; raise RequestError for NaN and infinity."""
        one, other = (as_features(each) for each in (x, y))
        if len(one) != len(other):
            raise RequestError(f"x holds {len(one)} images and y {len(other)}: they must be the same")
        for each in (one, other):
            expect_lengths(each)
        if not len(one):
            return self
        pair = one.double(), other.double().to(one.device)
        if self._origins is None:
            self._origins = pair[0].mean(0), pair[1].mean(0)
            self._sums = [torch.zeros_like(origin) for origin in self._origins]
            self._products = pair[0].new_zeros(one.shape[1], other.shape[1])
        if (one.shape[1], other.shape[1]) != self._products.shape:
            raise RequestError(
                f"activations of {one.shape[1]} and {other.shape[1]} dimensions, where"
                f" {list(self._products.shape)} are expected"
            )
        moved = [each - origin for each, origin in zip(pair, self._origins, strict=True)]
        for side, each in enumerate(moved):
            self._sums[side] += each.sum(0)
            self._squares[side] += float(each.square().sum())
        self._products += moved[0].T @ moved[1]
        self.images += len(one)
        return self

    def merge(self, other: Procrustes) -> Procrustes:
        """Add the batches of `other`, which is unchanged."""
        if other._origins is None:
            return self
        if self._origins is None:
            self.images, self._origins = other.images, other._origins
            self._sums = [each.clone() for each in other._sums]
            self._squares, self._products = [*other._squares], other._products.clone()
            return self
        if self._products.shape != other._products.shape:
            raise RequestError("accumulators of representations of other dimensions")
        a, b = (theirs - ours for theirs, ours in zip(other._origins, self._origins, strict=True))
        first, second = other._sums
        self._products += other._products + torch.outer(a, second) + torch.outer(first, b)
        self._products += other.images * torch.outer(a, b)
        for side, (apart, total) in enumerate(((a, first), (b, second))):
            self._squares[side] += other._squares[side] + 2 * float(apart @ total)
            self._squares[side] += other.images * float(apart @ apart)
            self._sums[side] += total + other.images * apart
        self.images += other.images
        return self

    def compute(self) -> float:
        """Return the similarity, from 0 to 1."""
        if self.images < 2:
            raise UndefinedError(f"the Procrustes similarity needs two images or more; saw {self.images}")
        assert self._origins is not None
        means = [total / self.images for total in self._sums]
        products = self._products - self.images * torch.outer(*means)
        lengths = []
        for square, mean, origin in zip(self._squares, means, self._origins, strict=True):
            left = square - self.images * float(mean @ mean)
            whole = square + self.images * float(origin @ origin)
            if left <= (self.images * torch.finfo(torch.float64).eps) ** 2 * whole or left <= 0:
                raise UndefinedError("the Procrustes similarity is undefined: one side is constant")
            lengths.append(math.sqrt(left))
        return float(torch.linalg.svdvals(products).sum()) / (lengths[0] * lengths[1])


def mutual_neighbours(x: ArrayLike, y: ArrayLike, neighbours: int = 10) -> float:
    """Return the share of nearest neighbours that two representations of the same images have in common.

    mean_i |N_k(x_i) and N_k(y_i)| / k,    N_k the k nearest other images by cosine distance

    Of equal distances the lower index counts as nearer; a zero vector is at distance 1 from everything. By
    chance the share is k / (n - 1). O(n^2) memory. Raise RequestError for NaN and infinity, and unless
    1 <= k < n.

    >>> x = np.random.default_rng(0).normal(size=(30, 4))
    >>> mutual_neighbours(x, 5 * x, 3)
    1.0

    Huh et al., 2024 (the platonic representation hypothesis).
    """
    one, other = _both(x, y)
    k = whole_number(neighbours, "neighbours", 1, len(one) - 1)
    places = [_nearest(each, k) for each in (one, other)]
    shared = [len(np.intersect1d(a, b)) for a, b in zip(*places, strict=True)]
    return float(np.mean(shared)) / k


def _nearest(matrix: Shaped[Tensor, "n p"], k: int) -> Int[np.ndarray, "n k"]:
    units = directions(matrix.double())
    similar = units @ units.T
    similar.fill_diagonal_(-torch.inf)
    return (-similar).argsort(dim=1, stable=True)[:, :k].cpu().numpy()


class DistanceCorrelation(NamedTuple):
    """The correlations of the pairwise distances of two representations: of ranks, and linear."""

    spearman: float
    pearson: float


def distance_correlation(x: ArrayLike, y: ArrayLike) -> DistanceCorrelation:
    """Return how two representations' distances between images correlate (RSA).

    The correlations are over all n (n - 1) / 2 pairs of images, of Euclidean distances; equal distances share
    their mean rank. O(n^2) memory. Raise RequestError for NaN, infinity and fewer than three images; raise
    UndefinedError if all distances of one side are equal.

    >>> x = np.random.default_rng(0).normal(size=(30, 4))
    >>> [round(each, 12) for each in distance_correlation(x, 3 * x + 1)]
    [1.0, 1.0]

    Kriegeskorte, Mur and Bandettini, 2008.
    """
    from scipy.stats import rankdata

    one, other = _both(x, y)
    if len(one) < 3:
        raise UndefinedError(f"a correlation of distances needs three images or more; saw {len(one)}")
    distances = [torch.pdist(each.double()).cpu().numpy() for each in (one, other)]
    if any(each.max() - each.min() <= 1e-12 * each.max() for each in distances):
        raise UndefinedError("the correlation of distances is undefined: all of one side are equal")
    ranks = [rankdata(each) for each in distances]
    return DistanceCorrelation(_pearson(*ranks), _pearson(*distances))


def _pearson(one: Float[np.ndarray, " n"], other: Float[np.ndarray, " n"]) -> float:
    a, b = one - one.mean(), other - other.mean()
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))


class ShiftedCKA(NamedTuple):
    """The CKA of a representation with itself, some images shifted, and the change of that with another."""

    itself: float
    change: float


def shifted_cka(
    x: ArrayLike, y: ArrayLike, share: float = 0.01, reach: float = 10.0, seed: int = 0
) -> ShiftedCKA:
    """Return how far the linear CKA of two representations moves if a few images are shifted in one.

    x_i' = x_i + reach s u for the chosen images,    s^2 = mean_i |x_i - mean|^2, u a random direction

    The `share` of the images (at least one) and u depend on the seed alone. CKA is the unbiased one, of all
    images at once. A shift of so few leaves every linear decision on the others as it was. `itself` is CKA
    of x and x', `change` that of x' and y less that of x and y. Raise as `linear_cka` does, and for a share
    outside (0, 1).

    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=(200, 8))
    >>> found = shifted_cka(x, x)
    >>> found.itself < 0.5, round(found.itself - found.change, 12)
    (True, 1.0)

    Davari et al., 2022 ("Reliability of CKA as a similarity measure in deep learning").
    """
    part = real_number(share, "share", above=0, below=1)
    far = real_number(reach, "reach", above=0)
    random = np.random.default_rng(whole_number(seed, "seed", 0))
    one, other = _both(x, y)
    expect_enough(len(one))
    points = one.double()
    chosen = random.permutation(len(points))[: max(1, round(part * len(points)))]
    towards = torch.from_numpy(random.normal(size=points.shape[1])).to(points.device)
    spread = (points - points.mean(0)).square().sum(1).mean().sqrt()
    moved = points.clone()
    moved[torch.from_numpy(chosen)] += far * spread * towards / torch.linalg.vector_norm(towards)
    before = linear_cka(points, other.double(), debiased=True)
    after = linear_cka(moved, other.double(), debiased=True)
    return ShiftedCKA(linear_cka(points, moved, debiased=True), after - before)


def _both(x: ArrayLike, y: ArrayLike) -> tuple[Tensor, Tensor]:
    one, other = (as_features(each) for each in (x, y))
    if len(one) != len(other):
        raise RequestError(f"x holds {len(one)} images and y {len(other)}: they must be the same")
    for each in (one, other):
        expect_lengths(each)
    return one, other
