"""Temperature scaling: the temperature at which a network's probabilities make the labels most likely."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.calibration import blocks, expect_softmax, own_values
from penultimate.metrics.inputs import ArrayLike, Bank, Names, labelled_logits, listed_rows

ITERATIONS = 200
"""The limit on iterations: more than bisection alone would need; Newton's method takes about six."""


def fit_temperature(logits: ArrayLike | Bank, labels: Names | None = None) -> float:
    """Return the temperature T > 0 at which softmax(logits / T) gives the labels the highest likelihood.

    T = argmin_T -(1/n) sum_i log softmax(z_i / T)_y,    y = y_i

    In b = 1/T the NLL is convex, with derivative mean(E_p[z] - z_y) and curvature mean(Var_p[z]) under
    p = softmax(b z). Newton's method, kept inside a bracket of the root, therefore converges in a few steps
    from any scale of the logits. All is computed in float64. `logits` are [n k] and `labels` [n], or a
    feature bank holds both. For a sigmoid objective pass its `log_probabilities(z)`; for every other
    objective these give the same T as the logits.

    Raise UndefinedError (a RequestError), with the reason, in three cases: every T is equally good (each
    row's logits are equal, so T changes no probability); every label has the largest logit (the NLL falls all
    the way to T = 0); or the labels' logits are on average no higher than the others (it falls all the way to
    T = infinity). Raise RequestError for NaN or +inf, probabilities, labels out of range, and
    unequal lengths.

    >>> import math
    >>> gap = 2 * math.log(3)  # at T = 2 the first class has probability 3/4, and it is right 3 times in 4
    >>> round(fit_temperature([[gap, 0.0]] * 4, [0, 0, 0, 1]), 9)
    2.0

    Guo et al., ICML 2017, section 4.2; Kornblith et al., 2021, appendix C.2.
    """
    scores, truth = labelled_logits(logits, labels)
    if all(bool((part >= 0).all() & ((part.sum(1) - 1).abs() <= 1e-3).all()) for _, part in blocks(scores)):
        raise RequestError("these are probabilities, and a temperature divides logits: pass their logarithm")
    gaps = torch.cat([_gaps(block, start, truth) for start, block in blocks(scores)])
    if not bool(gaps.isfinite().all()):
        raise UndefinedError(
            f"no temperature helps: the label's logit is -inf in {listed_rows(~gaps.isfinite())}"
        )
    if all(bool((block == block[:, :1]).all()) for _, block in blocks(scores)):
        raise UndefinedError("every temperature is as good: the logits of each row are equal")
    if not bool(gaps.any()):
        raise UndefinedError(
            f"no temperature is best: all {len(truth)} labels have the largest logit of their row, so the"
            " likelihood rises as T goes to 0"
        )
    slope, curvature = _derivatives(scores, truth, 0.0)
    if not 0 < curvature < math.inf:
        raise RequestError("logits are too large or too close to have a variance in float64: scale them")
    if slope >= -1e-12 * math.sqrt(curvature):
        raise UndefinedError(
            f"no finite temperature is best: the logits of the {len(truth)} labels are on average no higher"
            " than those of the other classes; are labels and logits in the same order?"
        )
    low, high, inverse = 0.0, math.inf, -slope / curvature
    for _ in range(ITERATIONS):
        slope, curvature = _derivatives(scores, truth, inverse)
        if slope < 0:
            low = inverse
        else:
            high = inverse
        step = slope / curvature if curvature > 0 else -math.inf
        if abs(step) <= 1e-7 * inverse:
            # Every step squares the relative error, which is below 1e-13 after this one.
            return 1 / (inverse - step)
        inverse -= step
        if not low < inverse < high:
            # The step left the bracket of the root: expand it, or bisect on a logarithmic scale.
            inverse = 4 * low if math.isinf(high) else math.sqrt(max(low, high / 256) * high)
    return 1 / inverse


def _derivatives(
    logits: Shaped[Tensor, "n k"], labels: Int[Tensor, " n"], inverse: float
) -> tuple[float, float]:
    """Return the first and second derivatives of the mean NLL in b = 1/T at b = `inverse`."""
    slope = curvature = 0.0
    for start, block in blocks(logits):
        below = block.double() - block.amax(1, keepdim=True)
        label_values = own_values(below, labels[start : start + len(block)])
        hidden = below.isneginf()
        some_hidden = bool(hidden.any())
        if some_hidden:
            below.masked_fill_(hidden, 0)
        weights = (below * inverse).exp_()
        if some_hidden:
            weights.masked_fill_(hidden, 0)
        total = weights.sum(1)
        weights *= below
        mean = weights.sum(1) / total
        square = torch.linalg.vecdot(weights, below) / total
        slope += float((mean - label_values).sum())
        curvature += float((square - mean.square()).clamp_min_(0).sum())
    return slope / len(labels), curvature / len(labels)


def _gaps(block: Float[Tensor, "b k"], start: int, labels: Int[Tensor, " n"]) -> Float[Tensor, " b"]:
    """Return how far each label's logit is below the largest logit of its row."""
    expect_softmax(block, start)
    return (block.amax(1) - own_values(block, labels[start : start + len(block)])).cpu()
