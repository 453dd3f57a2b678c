"""The distance from the k-th nearest of some examples, found by the search of the probes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from penultimate.checks import whole_number
from penultimate.errors import RequestError
from penultimate.probes.arrays import beside, to_numpy
from penultimate.probes.inputs import Data, as_features
from penultimate.probes.neighbours import Neighbours


class KthNeighbour:
    """The distance of features from their k-th nearest example, all scaled to length 1.

        d_k(x) = |x/|x| - v_(k)/|v_(k)||,    v_(1), v_(2), ... the examples in the order of their distance

    `features` are [n p], of the examples; `k` is at most their number. The search is exact and goes in
    blocks of queries. A row of zeros has no direction and is at distance sqrt(2) from everything.

    Raise RequestError for NaN or infinity (it lists the rows), and for a `k` below 1 or above n.

    >>> KthNeighbour([[1.0, 0.0], [0.0, 2.0]], k=2).distances([[3.0, 0.0]]).round(4).tolist()
    [1.4142]

    Sun et al., ICML 2022.
    """

    def __init__(self, features: Data, k: int) -> None:
        examples = as_features(features)
        self.k = whole_number(k, "k", 1)
        if self.k > len(examples):
            raise RequestError(f"there is no neighbour number {self.k} among {len(examples)} examples")
        self._examples, self._search = examples, Neighbours(examples, "cosine")

    def distances(self, features: Data) -> Float[np.ndarray, " q"]:
        """Return the distance [q] of features [q p] from their k-th nearest example.

        Raise RequestError for NaN or infinity (it lists the rows), and for another number of dimensions.
        """
        queries = as_features(features)
        if queries.shape[1] != self._examples.shape[1]:
            raise RequestError(
                f"these features have {queries.shape[1]} dimensions, the examples {self._examples.shape[1]}"
            )
        queries = beside(queries, self._examples)
        found = np.empty(len(queries))
        for block, nearest in self._search.nearest(self.k, queries):
            own = _directions(to_numpy(queries[block]))
            kth = _directions(to_numpy(self._examples[beside(nearest[:, -1], self._examples)]))
            apart = np.linalg.norm(own - kth, axis=1)
            found[block] = np.where(own.any(1) & kth.any(1), apart, np.sqrt(2.0))
        return found


def _directions(features: Float[np.ndarray, "n p"]) -> Float[np.ndarray, "n p"]:
    """Return each row divided by its length; a row of zeros stays one."""
    points: Float[np.ndarray, "n p"] = features.astype(np.float64)
    points /= np.maximum(abs(points).max(1, keepdims=True), np.finfo(np.float64).tiny)
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return points
