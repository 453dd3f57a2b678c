"""Neural collapse: how close class means and weights are to a simplex equiangular tight frame (ETF).

mu_c is the mean of class c, mu~_c = mu_c minus the mean of all mu_c, and M has the rows mu~_c. With the thin
SVD M = U S V' of rank r, and Sigma_B = M'M / C,

    Tr(Sigma_W Sigma_B^+) / C = mean_c mean_{i in c} |S^-1 V' (x_i - mu_c)|^2,

so no matrix of dimensions x dimensions is ever built or inverted. The first pass over the examples computes
the class means in O(C m) memory, and the second sums the squared residuals. Finding each example's nearest
class mean needs the means first as well; it takes only the r coordinates V'(x - mu) that span the means.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import (
    ArrayLike,
    Bank,
    Names,
    as_classes,
    as_features,
    as_tensor,
    directions,
    float64_blocks,
    labelled_features,
    numbered,
    own_labels,
)
from penultimate.metrics.moments import EPS, ClassMoments, expect_classes, rounding

PAIR_ELEMENTS = 1 << 22


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
    matrix, rows = as_features(features), as_weight(weight)
    labels = own_labels(features, labels)
    given = [labels] if predictions is None else [labels, predictions]
    classes, *decided = numbered(*given, columns=len(rows))
    if bias is not None and predictions is not None:
        raise RequestError("neural collapse takes the bias or the predictions, not both")
    limits = len(matrix), len(rows), matrix.device
    labelled = as_classes(classes, "labels", *limits)
    predicted = as_classes(decided[0], "predictions", *limits) if decided else None
    return _measured(matrix, labelled, rows.to(matrix.device, torch.float64), bias, predicted)


def variability_collapse(features: ArrayLike | Bank, labels: Names | None = None) -> float:
    """Return only Tr(Sigma_W Sigma_B^+) / C, for features [n m] without a head; it is 0 at collapse.

    All classes have equal weight. `neural_collapse` describes the computation and the errors raised.

    >>> round(variability_collapse([[2.0, 0.0], [4.0, 0.0], [0.0, 2.0], [0.0, 4.0]], [3, 3, 9, 9]), 4)
    0.0556

    Papyan, Han and Donoho, 2020 (NC1).
    """
    matrix, classes = labelled_features(features, labels)
    return _measured(matrix, classes).trace_sw_pinv_sb_over_c


def cdnv(features: ArrayLike | Bank, labels: Names | None = None) -> float:
    """Return the class-distance normalised variance, the mean over all pairs of classes; 0 at collapse.

    V(c, d) = (Var_c + Var_d) / (2 |mu_c - mu_d|^2),    Var_c = E |x - mu_c|^2 over the examples of class c

    `features` are [n m] and `labels` [n] class indices or names, or a feature bank holds both. All pairs of
    classes have equal weight. It takes one pass and O(k m + k^2) memory, in float64. Raise RequestError for
    NaN or infinity; raise UndefinedError for a single class, and for two classes whose means are equal to
    within rounding.

    >>> round(cdnv([[0.0], [2.0], [10.0], [12.0]], [0, 0, 1, 1]), 12)
    0.01

    Galanti, Gyorgy and Hutter, 2022, definition 1.
    """
    matrix, classes = labelled_features(features, labels)
    moments = ClassMoments.of(matrix, classes)
    expect_classes(moments.labels, "CDNV")
    assert moments.origin is not None
    means, variances = moments.means(), moments.within()
    distances = torch.cdist(means, means, compute_mode="donot_use_mm_for_euclid_dist").square_()
    first, second = torch.triu_indices(len(means), len(means), 1)
    apart = distances[first, second]
    longest = float((means + moments.origin).square().sum(1).max())
    if bool((apart <= rounding(matrix.dtype) * longest).any()):
        raise UndefinedError("CDNV is undefined: the means of two classes are equal to within rounding")
    return float(((variances[first] + variances[second]) / (2 * apart)).mean())


def as_weight(weight: ArrayLike | None) -> Shaped[Tensor, "k m"]:
    """Return the weights of a head, one row per class; raise RequestError if there are none."""
    if weight is None:
        raise RequestError("the weight of the final layer is missing: weight=..., [classes, dimensions]")
    return as_features(weight, "weight")


def expect_dimensions(weight: Shaped[Tensor, "k d"], dimensions: int) -> None:
    """Raise RequestError if weights do not fit features of `dimensions`."""
    if weight.shape[1] != dimensions:
        raise RequestError(
            f"weight is [classes, dimensions]; got {list(weight.shape)} for {dimensions} feature dimensions"
        )


def _measured(
    matrix: Shaped[Tensor, "n m"],
    labels: Int[Tensor, " n"],
    weight: Shaped[Tensor, "k d"] | None = None,
    bias: ArrayLike | None = None,
    predictions: Int[Tensor, " n"] | None = None,
) -> NeuralCollapse:
    """Return the measures of checked examples; without a weight the class means stand in for it."""
    moments = ClassMoments.of(matrix, labels)
    expect_classes(moments.labels, "neural collapse")
    assert moments.origin is not None
    present = torch.tensor(moments.labels, device=matrix.device)
    origin, means, counts = moments.origin, moments.means(), moments.sizes()
    heads = means if weight is None else weight
    expect_dimensions(heads, len(origin))
    offsets = None if bias is None else _decision_offsets(bias, heads, origin)
    variances = moments.variances()
    if variances.between <= rounding(matrix.dtype) * variances.squared_length:
        raise UndefinedError(
            f"neural collapse is undefined: the means of all {len(means)} classes are equal to within the"
            " features' rounding, so they have no directions"
        )
    own_heads = heads if weight is None else heads[present]
    if not bool(own_heads.any()):
        raise UndefinedError("neural collapse is undefined: all weights are 0, and have no directions")
    centred = means - means.mean(0)
    left, scales, right = torch.linalg.svd(centred, full_matrices=False)
    # The C centred means sum to 0, so the C-th singular value is only rounding.
    rank = min(len(left) - 1, len(origin))
    noise = max(centred.shape) * 8 * EPS * variances.squared_length**0.5
    rank = max(1, int((scales[:rank] > noise).sum()))
    left, scales = left[:, :rank], scales[:rank]
    whiten, corners = right[:rank].T / scales, left * scales
    places = torch.searchsorted(present, labels)
    squares = torch.zeros_like(counts)
    differing = 0
    for start, block in float64_blocks(matrix, matrix.shape[1] + 2 * len(heads)):
        own = places[start : start + len(block)]
        block -= origin
        decided = None if predictions is None else predictions[start : start + len(block)]
        if offsets is not None:
            decided = torch.addmm(offsets, block, heads.T).argmax(1)
        block -= means[own]
        white = block @ whiten
        squares.index_add_(0, own, white.square().sum(1))
        if decided is not None:
            # argmin_c |z - a_c|^2 = argmax_c (z.a_c - |a_c|^2 / 2), in the coordinates z of the means' span
            coordinates = (white + left[own]) * scales
            nearest = torch.addmm(-corners.square().sum(1) / 2, coordinates, corners.T).argmax(1)
            differing += int((present[nearest] != decided).sum())
    (mean_std, mean_deviation), (weight_std, weight_deviation) = map(_spread_of_cosines, (centred, own_heads))
    apart = own_heads / torch.linalg.vector_norm(own_heads) - centred / torch.linalg.vector_norm(centred)
    return NeuralCollapse(
        class_mean_norm_cv=_length_variation(centred),
        weight_norm_cv=_length_variation(own_heads),
        class_mean_cosine_std=mean_std,
        weight_cosine_std=weight_std,
        class_mean_etf_deviation=mean_deviation,
        weight_etf_deviation=weight_deviation,
        weight_class_mean_distance_sq=float(apart.square().sum()),
        trace_sw_pinv_sb_over_c=float((squares / counts).mean()),
        rank=rank,
        nc4=None if predictions is None and offsets is None else differing / len(matrix),
        classes=tuple(moments.labels),
    )


def _decision_offsets(
    bias: ArrayLike, weight: Float[Tensor, "k m"], origin: Float[Tensor, " m"]
) -> Float[Tensor, " k"]:
    """Return b + W o, so that the logits of x are W (x - o) + (b + W o)."""
    offsets = as_tensor(bias, "bias").to(weight)
    if offsets.shape != (len(weight),) or not bool(offsets.isfinite().all()):
        raise RequestError(
            f"bias must be {len(weight)} finite numbers, one for each row of the weights; got shape"
            f" {list(offsets.shape)}"
        )
    return offsets + weight @ origin


def _length_variation(vectors: Float[Tensor, "c m"]) -> float:
    """Return the population's coefficient of variation of the lengths, Std_c |v_c| / Avg_c |v_c|."""
    lengths = torch.linalg.vector_norm(vectors, dim=1)
    return float(lengths.std(correction=0) / lengths.mean())


def _spread_of_cosines(vectors: Float[Tensor, "c m"]) -> tuple[float, float]:
    """Return the Std of sim and Avg |sim + 1/(C-1)| over ordered pairs of C vectors, in O(C m) memory."""
    units = directions(vectors)
    count = len(units)
    pairs = count * (count - 1)
    mean = float(units.sum(0).square().sum() - units.square().sum()) / pairs
    ideal = -1 / (count - 1)
    squares = deviations = 0.0
    rows = max(1, PAIR_ELEMENTS // count)
    for start in range(0, count, rows):
        cosines = units[start : start + rows] @ units.T
        # A vector does not pair with itself, so that cosine is replaced by the value that adds nothing.
        itself = torch.arange(len(cosines), device=cosines.device)
        cosines[itself, start + itself] = mean
        squares += float((cosines - mean).square_().sum())
        cosines[itself, start + itself] = ideal
        deviations += float((cosines - ideal).abs_().sum())
    return (squares / pairs) ** 0.5, deviations / pairs
