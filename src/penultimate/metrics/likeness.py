"""How alike two representations of the same images are: CKA with a null, a rotation, shared neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from penultimate.checks import whole_number
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import ArrayLike, as_features, directions
from penultimate.metrics.moments import EPS
from penultimate.metrics.similarity import centred_gram, expect_enough, paired_batches, u_centred

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
    for x, y in paired_batches(batches_x, batches_y):
        one, other = (_u_gram(each) for each in (x, y))
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


def procrustes(x: ArrayLike, y: ArrayLike) -> float:
    """Return how well a rotation and a scale map one representation onto another, from 0 to 1.

    |X'Y|_* / (|X|_F |Y|_F), X and Y less their means; 1 if a rotation and a scale make them equal

    The squared Procrustes distance of both, scaled to length 1, is 2 less twice that. `x` [n p] and `y` [n q]
    are of the same images. Raise RequestError for NaN and infinity, and UndefinedError if a side is constant.

    >>> x = torch.tensor([[0.0, 1.0], [2.0, 0.0], [3.0, 5.0]])
    >>> round(procrustes(x, 3 * x @ torch.tensor([[0.0, 1.0], [-1.0, 0.0]]) + 7), 12)
    1.0

    Schonemann, 1966; Ding, Denain and Steinhardt, 2021 (of representations).
    """
    sides = []
    for each in _both(x, y):
        points = each.double()
        centred = points - points.mean(0)
        if not float(centred.norm()) > len(points) * EPS * float(points.norm()):
            raise UndefinedError("the Procrustes similarity is undefined: one side is constant")
        sides.append(centred / centred.norm())
    one, other = sides
    return float(torch.linalg.svdvals(one.T @ other.to(one.device)).sum())


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


def _both(x: ArrayLike, y: ArrayLike) -> tuple[Tensor, Tensor]:
    one, other = (as_features(each) for each in (x, y))
    if len(one) != len(other):
        raise RequestError(f"x holds {len(one)} images and y {len(other)}: they must be the same")
    return one, other
