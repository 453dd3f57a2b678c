"""The k-nearest-neighbour probe: one search scores every k in 1..max_k by leave-one-out, for the best k."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Int

from penultimate.checks import one_of, whole_number
from penultimate.probes.arrays import NumpyFloats, beside
from penultimate.probes.estimator import Probe
from penultimate.probes.inputs import Data, Labels
from penultimate.probes.neighbours import METRICS, Neighbours
from penultimate.progress import Advance


class KNNProbe(Probe):
    """A majority vote of the k nearest training examples, with the k of the best leave-one-out accuracy.

        y(x) = argmax_c sum_{i in N_k(x)} 1[y_i = c]

    Equal distances are ranked by index. Ties between classes go to the smallest class, and ties in accuracy
    go to the smallest k. Distances are computed in float64, and they stay exact if the points lie far from
    the origin or if one point lies far from the others. Two distances whose relative difference is at most
    1e-12 count as equal. The paper does not state its distance; here it is "cosine" by default (a zero vector
    is at distance 1 from everything) or "euclidean".

    Parameters: `metric`; `max_k`, which is limited to n - 1. Learnt attributes: `classes_` [k]; `k_`;
    `leave_one_out_` (top-1 accuracy for k = 1, 2, ..., where each example is left out by its index).

    >>> probe = KNNProbe(max_k=3, metric="euclidean")
    >>> probe.fit([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]], [0, 0, 0, 1, 1, 1]).k_
    1
    >>> probe.predict([[3.0], [9.0]])
    array([0, 1])

    Kornblith et al., 2021, section 3.1.
    """

    def __init__(self, metric: str = "cosine", *, max_k: int = 200) -> None:
        self.metric = metric
        self.max_k = max_k

    def fit(self, X: Data, y: Data = None) -> KNNProbe:
        """Measure the leave-one-out accuracy of every k and keep the best k.

        X is [n p]; y [n] holds classes as numbers or strings. A bank given as X supplies its own labels. The
        search takes O(n^2 p) time and O(n p) memory. Raise RequestError for NaN (it lists the rows) and for
        wrong shapes or parameters; raise UndefinedError for a single class or constant features.
        """
        one_of(self.metric, "distance", METRICS)
        most = whole_number(self.max_k, "max_k", 1)
        features, self.classes_, self._codes = self._training_set(X, y)
        self._neighbours = Neighbours(features.home, self.metric)
        most = min(most, len(features) - 1)
        hits = np.zeros(most, dtype=np.int64)
        advance = Advance("kNN probe", "examples", len(features))
        for block, indices in self._neighbours.nearest(most):
            labels = self._codes[block]
            for place, elected in enumerate(elections(self._codes[indices], len(self.classes_))):
                hits[place] += np.count_nonzero(elected == labels)
            advance.to(block.stop)
        self.leave_one_out_: NumpyFloats = hits / len(features)
        self.k_ = int(np.argmax(hits)) + 1
        return self

    def _learnt(self) -> dict[str, object]:
        return {
            "leave-one-out top1": f"{100 * self.leave_one_out_[self.k_ - 1]:.2f} %",
            "k": f"{self.k_}, of 1 to {len(self.leave_one_out_)}",
            "distance": f"{self.metric}, exact",
            "classes": len(self.classes_),
            "features": self.n_features_in_,
        }

    def _fits(self) -> tuple[tuple[str, ...], Sequence[tuple[object, ...]]]:
        rows = [(k, accuracy, k == self.k_) for k, accuracy in enumerate(self.leave_one_out_.tolist(), 1)]
        return ("k", "leave_one_out_top1", "chosen"), rows

    def predict(self, X: Data) -> Labels:
        """Return the class of each example [n], by the vote of its `k_` nearest training examples."""
        queries = beside(self._queries(X), self._neighbours.points)
        winners = np.empty(len(queries), dtype=np.int64)
        advance = Advance("kNN probe's predictions", "examples", len(queries))
        for block, indices in self._neighbours.nearest(self.k_, queries):
            for elected in elections(self._codes[indices], len(self.classes_)):
                winners[block] = elected
            advance.to(block.stop)
        return self.classes_[winners]


def elections(votes: Int[np.ndarray, "q m"], classes: int) -> Iterator[Int[np.ndarray, " q"]]:
    """Yield the winners [q] after 1, 2, ..., m votes; ties go to the smallest class.

    A vote changes one count by one, so only its class can overtake the leader: O(1) per vote.

    >>> [winner.tolist() for winner in elections(np.array([[2, 1, 1]]), 3)]
    [[2], [1], [1]]
    """
    counts = np.zeros((len(votes), classes), dtype=np.int32)
    rows = np.arange(len(votes))
    leaders = votes[:, 0].copy()
    leading = np.zeros(len(votes), dtype=np.int32)
    for column in np.ascontiguousarray(votes.T):
        counts[rows, column] += 1
        count = counts[rows, column]
        overtakes = (count > leading) | ((count == leading) & (column < leaders))
        leaders = np.where(overtakes, column, leaders)
        leading = np.maximum(leading, count)
        yield leaders
