"""A comparison of representations: the HSIC_1 of all pairs in each batch, and the CKA that follows from it.

Batches are kept separate ([batches l l], small compared with their Gram matrices), so leaving out one batch
at a time gives the standard error.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from penultimate.errors import unknown

if TYPE_CHECKING:
    import pandas as pd

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The CKA of every pair of layers of all networks, from the HSIC_1 of each batch.

    `names` lists the l layers as (network, layer). `products` float64 [b l l] holds HSIC_1 of every pair in
    each of b batches; `sizes` int64 [b] are the batches' numbers of examples, and `passes` int64 [b] tells
    which pass over the data each batch belongs to.

    >>> products = np.array([[[2.0, 1.0], [1.0, 2.0]], [[2.0, 0.0], [0.0, 2.0]]])
    >>> comparison = Comparison([("a", "top"), ("b", "top")], products, np.array([8, 8]), np.array([0, 0]))
    >>> comparison.matrix
    array([[1.  , 0.25], [0.25, 1.  ]])
    >>> comparison.between("a", "b"), comparison.standard_error[0, 1]
    (array([[0.25]]), np.float64(0.25))
    """

    names: list[tuple[str, str]]
    products: Doubles
    sizes: npt.NDArray[np.int64]
    passes: npt.NDArray[np.int64]

    @property
    def examples(self) -> int:
        """The number of examples, each counted once per pass."""
        return int(self.sizes.sum())

    @cached_property
    def matrix(self) -> Doubles:
        """CKA [l l]: a pair's mean HSIC_1 over the root of the product of both layers' own mean HSIC_1.

        Means are over batches, weighted by their numbers of examples. CKA is not clamped, so it may be
        negative. It is NaN for a constant layer, which `notes` names.

        Kornblith et al., 2021, eq. 10 (for batches of equal size; weighting unequal ones is our choice).
        """
        return alignment(np.tensordot(self.sizes / self.sizes.sum(), self.products, axes=1))

    @cached_property
    def standard_error(self) -> Doubles:
        """The standard error of `matrix` [l l] by the jackknife over batches; NaN if a pass has one batch.

        s^2 = (B-1)/B sum_i (c_(i) - mean c_(i))^2, c_(i) the CKA of a pass without its batch i. The mean of
        s^2 is then taken over passes. Further passes show the same examples again and do not count as more
        data: they share the first-order part of the error, and averaging them reduces only the rest.

        Efron & Tibshirani, 1993, eq. 11.5.
        """
        numbers = np.unique(self.passes)
        variances = [self._variance(np.flatnonzero(self.passes == number)) for number in numbers]
        return np.asarray(np.sqrt(np.mean(variances, axis=0)))

    @property
    def networks(self) -> list[str]:
        """The networks' names, in order."""
        return list(dict.fromkeys(network for network, _ in self.names))

    def layers(self, network: str) -> list[str]:
        """Return the layers of a network in the order of rows; raise RequestError for an unknown network."""
        return [self.names[row][1] for row in self._rows(network)]

    def between(self, network_a: str, network_b: str) -> Doubles:
        """Return the CKA of one network's layers (rows) with another's (columns)."""
        return np.asarray(self.matrix[np.ix_(self._rows(network_a), self._rows(network_b))])

    @property
    def notes(self) -> list[str]:
        """Remarks for the reader: batches of different sizes, constant layers, repeated passes."""
        notes = []
        sizes = Counter(self.sizes.tolist())
        if len(sizes) > 1:
            listed = ", ".join(f"{count} of {size}" for size, count in sorted(sizes.items(), reverse=True))
            notes.append(f"batches differ in examples ({listed}): each weighs by its examples")
        still = np.flatnonzero(self.products.diagonal(axis1=1, axis2=2).sum(0) == 0)
        if len(still):
            listed = ", ".join(f"{self.names[row][1]} of {self.names[row][0]}" for row in still)
            notes.append(f"CKA is undefined for layers that are the same for all examples: {listed}")
        if min(Counter(self.passes.tolist()).values()) < 2:
            notes.append("a pass of a single batch has no standard error")
        first, *rest = (self.products[self.passes == number] for number in np.unique(self.passes))
        if rest and all(np.array_equal(first, other) for other in rest):
            notes.append("all passes saw the same batches, so that one would do: shuffle between passes")
        return notes

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame with a row for each pair of layers."""
        import pandas as pd

        rows = [
            (*one, *other, self.matrix[i, j], self.standard_error[i, j])
            for i, one in enumerate(self.names)
            for j, other in enumerate(self.names)
        ]
        return pd.DataFrame(
            rows, columns=["network", "layer", "other_network", "other_layer", "cka", "standard_error"]
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{network}: {len(self._rows(network))}" for network in self.networks)
        notes = "".join(f"; {note}" for note in self.notes)
        batches = f"{len(self.sizes)} batches, {self.examples} examples"
        return f"Comparison({len(self.names)} layers ({counts}), {batches}{notes})"

    def _rows(self, network: str) -> list[int]:
        rows = [row for row, (name, _) in enumerate(self.names) if name == network]
        if not rows:
            raise unknown("network", network, self.networks)
        return rows

    def _variance(self, batches: npt.NDArray[np.int64]) -> Doubles:
        if len(batches) < 2:
            return np.full((len(self.names),) * 2, np.nan)
        sums = [self.sizes[batch] * self.products[batch] for batch in batches]
        total = np.sum(sums, axis=0)
        whole = alignment(total)
        differences, squares = np.zeros_like(whole), np.zeros_like(whole)
        for left_out in sums:
            difference = alignment(total - left_out) - whole
            differences += difference
            squares += difference**2
        count = len(batches)
        return np.asarray((count - 1) / count * np.maximum(squares - differences**2 / count, 0))


def alignment(hsic: Doubles) -> Doubles:
    """Return CKA [l l] from the HSIC of every pair of layers; it is NaN if a layer's own HSIC is not above 0.

    >>> alignment(np.array([[4.0, 3.0], [3.0, 9.0]]))
    array([[1. , 0.5], [0.5, 1. ]])
    """
    # Scaling by powers of two changes no digit and keeps the products of the layers' own HSIC in float64.
    halves = np.frexp(hsic.diagonal())[1] // 2
    hsic = np.ldexp(hsic, -np.add.outer(halves, halves))
    own = np.outer(hsic.diagonal(), hsic.diagonal())
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(own > 0, hsic / np.sqrt(own), np.nan))
