"""The tree of models by the similarity of their predictions.

This module does not import torch, and it imports SciPy only when it is used.
"""

from __future__ import annotations

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
    that neighbours are as similar as the tree allows. Raise RequestError if the value of a pair is missing
    (because there is no example that both get wrong).

    >>> dendrogram([[1.0, 0.75, 0.5], [0.75, 1.0, 0.25], [0.5, 0.25, 1.0]]).merges
    (Merge(left=0, right=1, distance=0.25, models=2), Merge(left=2, right=3, distance=0.625, models=3))

    Kornblith et al., 2021, figure C.4b.
    """
    import numpy as np
    from scipy.cluster.hierarchy import leaves_list, linkage

    shares = np.asarray([list(row) for row in similarity], np.float64)
    distances = np.maximum(1 - shares[np.triu_indices(len(shares), 1)], 0)
    if not len(distances):
        return Dendrogram((), tuple(range(len(shares))))
    if not np.isfinite(distances).all():
        raise RequestError("two models have no similarity, so that they have no place in the tree")
    tree = linkage(distances, method="average", optimal_ordering=True)
    merges = []
    for first, second, distance, models in tree.tolist():
        left, right = sorted((int(first), int(second)))
        merges.append(Merge(left, right, distance, int(models)))
    return Dendrogram(tuple(merges), tuple(int(leaf) for leaf in leaves_list(tree)))
