"""Neural collapse: how close class means and weights are to a simplex equiangular tight frame (ETF).

mu_c is the mean of class c, mu~_c = mu_c minus the mean of all mu_c, and M has the rows mu~_c. With the thin
SVD M = U S V' of rank r, and Sigma_B = M'M / C,

    Tr(Sigma_W Sigma_B^+) / C = mean_c mean_{i in c} |S^-1 V' (x_i - mu_c)|^2,

so no matrix of dimensions x dimensions is ever built or inverted. The first pass over the examples computes
the class means in O(C m) memory, and the second sums the squared residuals. Finding each example's nearest
class mean needs the means first as well; it takes only the r coordinates V'(x - mu) that span the means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.blocks import (
    LONGEST,
    as_features,
    as_weight,
    expect_lengths,
    float64_blocks,
    weight_rows,
)
from penultimate.metrics.frames import length_variation, pairwise_cosines
from penultimate.metrics.inputs import ArrayLike, Bank, Names, as_matrix, as_tensor, labelled, of_bank
from penultimate.metrics.labels import as_classes, numbered
from penultimate.metrics.moments import EPS, ClassMoments


class NeuralCollapse(NamedTuple):
    """The columns of table E.2, the rank of Sigma_B, and the share for NC4; all but `rank` are 0 at collapse.

    `rank` is C - 1 or the number of dimensions, whichever is less; if it is lower, the class means are
    linearly dependent. `nc4` is None if the network's predictions were not given. `classes` are the classes
    with examples, which are also the rows of the weight that were used.
    """

    class_mean_norm_cv: float
    weight_norm_cv: float
    class_mean_cosine_std: float
    weight_cosine_std: float
    class_mean_etf_deviation: float
    weight_etf_deviation: float
    weight_class_mean_distance_sq: float
    trace_sw_pinv_sb_over_c: float
    rank: int
    nc4: float | None = None
    classes: tuple[int, ...] = ()


def neural_collapse(
    features: ArrayLike | Bank,
    labels: Names | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    predictions: Names | None = None,
) -> NeuralCollapse:
    """Return how far class means mu_c and weights w_c are from a simplex ETF, and examples from their means.

    class_mean_norm_cv             Std_c |mu~_c| / Avg_c |mu~_c|
    weight_norm_cv                 Std_c |w_c| / Avg_c |w_c|
    class_mean_cosine_std          Std_{c != d} sim(mu~_c, mu~_d)
    weight_cosine_std              Std_{c != d} sim(w_c, w_d)
    class_mean_etf_deviation       Avg_{c != d} |sim(mu~_c, mu~_d) + 1/(C-1)|
    weight_etf_deviation           Avg_{c != d} |sim(w_c, w_d) + 1/(C-1)|
    weight_class_mean_distance_sq  | W/|W|_F - M/|M|_F |_F^2
    trace_sw_pinv_sb_over_c        Tr(Sigma_W Sigma_B^+) / C
    nc4                            share of examples with argmax_c (w_c.x + b_c) != argmin_c |x - mu_c|

    Std is the population standard deviation. Sigma_B = sum_c mu~_c mu~_c' / C has rank C - 1 at most, and
    Sigma_W is the unweighted mean of the classes' covariances. `features` are [n m] and `labels` [n], or a
    feature bank holds both. `weight` [k m] is always needed. NC4 also needs `bias` [k], or `predictions` [n]
    instead if the head is not linear (the cosine head, for example). Classes without examples are left out of
    means and weights; `classes` lists the rows that were used. Names of classes stand for the rows in sorted
    order if all of them occur. A zero vector has similarity 0 to everything. All is computed in float64.

    Raise RequestError for labels beyond the weights, shapes that do not fit, and NaN or infinity (it lists
    the rows); raise UndefinedError (a RequestError) for a single class, equal class means (constant
    features), or zero weights.

    >>> corners = torch.tensor([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]], dtype=torch.float64)
    >>> collapsed = neural_collapse(corners + 7, [0, 1, 2], weight=3 * corners, bias=-3 * corners.sum(1) * 7)
    >>> max(collapsed[:8]) < 1e-14, collapsed.rank, collapsed.nc4
    (True, 2, 0.0)

    Kornblith et al., 2021, table E.2, after Papyan, Han and Donoho, 2020 (NC1 to NC4).
    """
    features, labels = of_bank(features, labels)
    matrix, rows = as_features(features), weight_rows(weight)
    given = [labels] if predictions is None else [labels, predictions]
    classes, *decided = numbered(*given, columns=len(rows), called=("labels", "predictions")[: len(given)])
    means = ClassMeans(len(rows)).update(matrix, classes)
    return CollapseAccumulator(means, rows, bias).update(matrix, classes, *decided).compute()


def variability_collapse(features: ArrayLike, labels: ArrayLike) -> float:
    """Return only Tr(Sigma_W Sigma_B^+) / C, for features [n m] without a head; it is 0 at collapse.

    All classes have equal weight. `neural_collapse` describes the computation and the errors raised.

    >>> round(variability_collapse([[2.0, 0.0], [4.0, 0.0], [0.0, 2.0], [0.0, 4.0]], [3, 3, 9, 9]), 4)
    0.0556

    Papyan, Han and Donoho, 2020 (NC1).
    """
    matrix = as_features(features)
    given = as_classes(labels, "labels", len(matrix), device=matrix.device)
    present, classes = torch.unique(given, return_inverse=True)
    means = ClassMeans(max(len(present), 1)).update(matrix, classes)
    # The means stand in for the weights of a head, since this measure does not depend on the weights.
    weight = means.moments.means() if len(present) > 1 else matrix.new_ones(1, matrix.shape[1])
    return CollapseAccumulator(means, weight).update(matrix, classes).compute().trace_sw_pinv_sb_over_c


def streamed_neural_collapse(
    batches: Iterable[tuple[ArrayLike, ArrayLike]], weight: ArrayLike, bias: ArrayLike | None = None
) -> NeuralCollapse:
    """Return `neural_collapse` for (features, labels) batches that need not fit in memory together.

    The computation takes two passes, so it needs an iterable that can start again (a list, a DataLoader);
    raise RequestError for a generator. Both passes must see the same examples.

    >>> batches = [([[2.0, 0.0], [0.0, 2.0]], [0, 1]), ([[4.0, 0.0], [0.0, 4.0]], [0, 1])]
    >>> round(streamed_neural_collapse(batches, weight=[[1.0, -1.0], [-1.0, 1.0]]).trace_sw_pinv_sb_over_c, 4)
    0.0556
    """
    if isinstance(batches, Iterator):
        raise RequestError(
            "neural collapse takes two passes, and an iterator allows one: pass a list, a DataLoader or"
            " another iterable that can start again"
        )
    means = ClassMeans(len(as_matrix(weight, "weight", "dimensions")))
    for features, labels in labelled(batches):
        means.update(features, labels)
    accumulator = CollapseAccumulator(means, weight, bias)
    for features, labels in labelled(batches):
        accumulator.update(features, labels)
    return accumulator.compute()


class ClassMeans:
    """The first pass: the means of up to `num_classes` classes, from examples that come in batches.

    `update` adds a batch, all of it or, on an error, nothing. `merge` adds the examples of another object.
    The state is O(K m) float64.
    """

    def __init__(self, num_classes: int) -> None:
        self.num_classes = num_classes
        self.moments = ClassMoments()
        self.resolution = 0.0

    def update(self, features: ArrayLike, labels: ArrayLike) -> ClassMeans:
        """Add features [n m] with their `labels` [n]; raise RequestError as `neural_collapse` does."""
        matrix = as_features(features)
        classes = _as_labels(labels, len(matrix), self.num_classes, matrix.device)
        origin = self.moments.origin
        if origin is not None and len(origin) != matrix.shape[1]:
            raise _other_dimensions(matrix, origin)
        expect_lengths(matrix)
        if matrix.dtype.is_floating_point:
            self.resolution = max(self.resolution, torch.finfo(matrix.dtype).eps)
        for start, block in float64_blocks(matrix):
            self.moments.add(block, classes[start : start + len(block)])
        return self

    def merge(self, other: ClassMeans) -> ClassMeans:
        """Add the examples of `other`, which is unchanged."""
        if self.num_classes != other.num_classes:
            raise RequestError(f"class means of {self.num_classes} and of {other.num_classes} classes")
        ours, theirs = self.moments.origin, other.moments.origin
        if ours is not None and theirs is not None and len(ours) != len(theirs):
            raise RequestError(f"class means in {len(ours)} and in {len(theirs)} dimensions")
        self.moments.merge(other.moments)
        self.resolution = max(self.resolution, other.resolution)
        return self


class CollapseAccumulator:
    """The second pass: the same examples again, relative to the class means of the first pass.

    >>> left, right = ([[1.0, 0.1], [0.0, 1.0]], [0, 1]), ([[0.9, 0.0], [0.2, 1.0]], [0, 1])
    >>> means = ClassMeans(2).update(*left).merge(ClassMeans(2).update(*right))
    >>> weight = [[1.0, 0.0], [0.0, 1.0]]
    >>> first, other = (CollapseAccumulator(means, weight).update(*half) for half in (left, right))
    >>> round(first.merge(other).compute().trace_sw_pinv_sb_over_c, 4)
    0.0027
    """

    def __init__(self, means: ClassMeans, weight: ArrayLike, bias: ArrayLike | None = None) -> None:
        moments = means.moments
        self.num_classes = means.num_classes
        self._present = moments.classes()
        if len(self._present) < 2:
            seen = f"class {int(self._present[0])} alone" if len(self._present) else "no examples"
            raise UndefinedError(f"neural collapse needs two classes or more; saw {seen}")
        assert moments.origin is not None
        self._origin = moments.origin
        self._means = moments.means()
        self._counts = moments.sizes()
        self._weight = as_weight(weight, len(self._origin), self._origin.device)
        if len(self._weight) != self.num_classes:
            raise RequestError(f"{len(self._weight)} weights for means of {self.num_classes} classes")
        self._offsets = None if bias is None else self._decision_offsets(bias)
        variances = moments.variances()
        if variances.between <= (means.resolution**2 / 4 + (8 * EPS) ** 2) * variances.squared_length:
            raise UndefinedError(
                f"neural collapse is undefined: the means of all {len(self._means)} classes are equal to"
                " within the features' rounding, so they have no directions"
            )
        if not bool(self._weight[self._present].any()):
            raise UndefinedError("neural collapse is undefined: all weights are 0, and have no directions")
        self._centred = self._means - self._means.mean(0)
        left, scales, right = torch.linalg.svd(self._centred, full_matrices=False)
        # The C centred means sum to 0, so the C-th singular value is only rounding.
        rank = min(len(left) - 1, len(self._origin))
        noise = max(self._centred.shape) * 8 * EPS * variances.squared_length**0.5
        rank = max(1, int((scales[:rank] > noise).sum()))
        self._left, self._scales = left[:, :rank], scales[:rank]
        self._whiten = right[:rank].T / self._scales
        self._seen = torch.zeros_like(self._counts)
        self._squares = torch.zeros_like(self._counts)
        self._judged = 0
        self._differing = 0

    def update(
        self, features: ArrayLike, labels: ArrayLike, predictions: ArrayLike | None = None
    ) -> CollapseAccumulator:
        """Add a batch, or nothing on an error; raise RequestError as `neural_collapse` does."""
        matrix = as_features(features)
        if matrix.shape[1] != len(self._origin):
            raise _other_dimensions(matrix, self._origin)
        classes = _as_labels(labels, len(matrix), self.num_classes, matrix.device)
        places = torch.full((self.num_classes,), -1, device=matrix.device)
        places[self._present] = torch.arange(len(self._present), device=matrix.device)
        own = places[classes]
        if bool((own < 0).any()):
            raise RequestError(
                f"class {int(classes[own < 0][0])} had no example when the class means were taken; both"
                " passes must see the same examples"
            )
        if predictions is not None:
            if self._offsets is not None:
                raise RequestError("neural collapse takes the bias or the predictions, not both")
            predictions = as_classes(predictions, "predictions", len(matrix), self.num_classes, matrix.device)
        expect_lengths(matrix)
        for start, block in float64_blocks(matrix, matrix.shape[1] + 2 * self.num_classes):
            rows = slice(start, start + len(block))
            self._add(block, own[rows], None if predictions is None else predictions[rows])
        return self

    def _add(
        self, block: Float[Tensor, "b m"], own: Shaped[Tensor, " b"], decided: Shaped[Tensor, " b"] | None
    ) -> None:
        block -= self._origin
        if self._offsets is not None:
            decided = torch.addmm(self._offsets, block, self._weight.T).argmax(1)
        block -= self._means[own]
        white = block @ self._whiten
        self._squares.index_add_(0, own, white.square().sum(1))
        self._seen.index_add_(0, own, white.new_ones(len(white)))
        if decided is not None:
            # argmin_c |z - a_c|^2 = argmax_c (z.a_c - |a_c|^2 / 2), in the coordinates z of the means' span
            corners = self._left * self._scales
            coordinates = (white + self._left[own]) * self._scales
            nearest = torch.addmm(-corners.square().sum(1) / 2, coordinates, corners.T).argmax(1)
            self._judged += len(decided)
            self._differing += int((self._present[nearest] != decided).sum())

    def merge(self, other: CollapseAccumulator) -> CollapseAccumulator:
        """Add the examples of `other`, which is unchanged; raise RequestError if the class means differ."""
        if self._means.shape != other._means.shape or not torch.equal(
            self._means + self._origin, (other._means + other._origin).to(self._means.device)
        ):
            raise RequestError(
                "accumulators about different class means: merge the means before the second pass"
            )
        self._squares += other._squares.to(self._squares.device)
        self._seen += other._seen.to(self._seen.device)
        self._judged += other._judged
        self._differing += other._differing
        return self

    def compute(self) -> NeuralCollapse:
        """Return the measures; raise RequestError unless both passes saw the same examples."""
        if not torch.equal(self._seen, self._counts):
            raise RequestError(
                f"the second pass saw {int(self._seen.sum())} examples, the first {int(self._counts.sum())},"
                " or their classes differ; both passes must see the same examples"
            )
        if self._judged not in (0, int(self._seen.sum())):
            raise RequestError(
                "predictions came with some batches and not with others; NC4 needs all or none"
            )
        weight = self._weight[self._present]
        mean_cosines, weight_cosines = pairwise_cosines(self._centred), pairwise_cosines(weight)
        apart = weight / torch.linalg.vector_norm(weight) - self._centred / torch.linalg.vector_norm(
            self._centred
        )
        return NeuralCollapse(
            class_mean_norm_cv=length_variation(self._centred),
            weight_norm_cv=length_variation(weight),
            class_mean_cosine_std=mean_cosines.std,
            weight_cosine_std=weight_cosines.std,
            class_mean_etf_deviation=mean_cosines.etf_deviation,
            weight_etf_deviation=weight_cosines.etf_deviation,
            weight_class_mean_distance_sq=float(apart.square().sum()),
            trace_sw_pinv_sb_over_c=float((self._squares / self._counts).mean()),
            rank=len(self._scales),
            nc4=self._differing / self._judged if self._judged else None,
            classes=tuple(self._present.tolist()),
        )

    def _decision_offsets(self, bias: ArrayLike) -> Float[Tensor, " k"]:
        """Return b + W o, so that the logits of x are W (x - o) + (b + W o)."""
        offsets = as_tensor(bias, "bias").to(self._weight)
        if offsets.shape != (len(self._weight),) or not bool((offsets.abs() <= LONGEST).all()):
            raise RequestError(
                f"bias must be {len(self._weight)} finite numbers up to {LONGEST:g}, one for each row"
                f" of the weights; got shape {list(offsets.shape)}"
            )
        return offsets + self._weight @ self._origin


def _as_labels(
    labels: ArrayLike, examples: int, num_classes: int, device: torch.device
) -> Shaped[Tensor, " n"]:
    return as_classes(labels, f"labels (for weights of {num_classes} rows)", examples, num_classes, device)


def _other_dimensions(matrix: Shaped[Tensor, "n m"], origin: Shaped[Tensor, " o"]) -> RequestError:
    return RequestError(f"features have {matrix.shape[1]} dimensions, where {len(origin)} are expected")
