"""The tree of models by the similarity of their predictions.

This module does not import torch, and it imports SciPy only when it is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from penultimate.errors import RequestError


class Merge(NamedTuple):
    """The merge of two clusters at a distance; models are 0..m-1, and merge i makes the cluster m + i."""

    left: int
    right: int
    distance: float
    models: int


@dataclass(frozen=True)
class Dendrogram:
    """A tree of models: `merges` from near to far, and their `order` in a drawing without crossings."""

    merges: tuple[Merge, ...]
    order: tuple[int, ...]


def dendrogram(similarity: Iterable[Iterable[float]]) -> Dendrogram:
    """Return the hierarchical clustering of m models by average linkage on the distance 1 - similarity.

    d(A, B) = mean over a in A, b in B of 1 - s_ab

    The paper does not state its linkage; average linkage is our choice. `similarity` is a symmetric matrix
    [m m] of shares, such as `pairwise_agreement(...).same`; its diagonal is not read. Leaves are ordered so
    that neighbours are as similar as the tree allows. Raise RequestError for a matrix that is not square or
    not symmetric, or if the value of a pair is missing (because there is no example that both get wrong).

    >>> dendrogram([[1.0, 0.75, 0.5], [0.75, 1.0, 0.25], [0.5, 0.25, 1.0]]).merges
    (Merge(left=0, right=1, distance=0.25, models=2), Merge(left=2, right=3, distance=0.625, models=3))

    Kornblith et al., 2021, figure C.4b.
    """
    try:
        shares = [[float(share) for share in row] for row in similarity]
    except (TypeError, ValueError, RuntimeError) as error:
        raise RequestError(f"similarity must be a square matrix of numbers: {error}") from None
    distances = _distances(shares)
    if not distances:
        return Dendrogram((), tuple(range(len(shares))))
    from scipy.cluster.hierarchy import leaves_list, linkage

    tree = linkage(distances, method="average", optimal_ordering=True)
    merges = []
    for first, second, distance, models in tree.tolist():
        left, right = sorted((int(first), int(second)))
        merges.append(Merge(left, right, distance, int(models)))
    return Dendrogram(tuple(merges), tuple(int(leaf) for leaf in leaves_list(tree)))


def _distances(shares: list[list[float]]) -> list[float]:
    """Return the distances of the pairs (0, 1), (0, 2), ..., (1, 2), ..., as SciPy expects them."""
    models = len(shares)
    if models == 0 or any(len(row) != models for row in shares):
        raise RequestError(
            f"similarity must be a square matrix of models; got rows of {[len(row) for row in shares]}"
        )
    distances = []
    for i in range(models):
        for j in range(i + 1, models):
            near, back = shares[i][j], shares[j][i]
            if not (math.isfinite(near) and math.isfinite(back)):
                raise RequestError(f"models {i} and {j} have no similarity ({near}), so they have no place")
            if abs(near - back) > 1e-9:
                raise RequestError(f"similarity is not symmetric: models {i} and {j} have {near} and {back}")
            distances.append(max(0.0, 1 - near))
    return distances
