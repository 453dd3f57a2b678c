"""Accuracies in [0, 1] from logits or predictions: top-1, top-k, and the mean over classes."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from penultimate.checks import whole_number
from penultimate.errors import RequestError
from penultimate.metrics.inputs import (
    ArrayLike,
    Bank,
    Names,
    as_classes,
    labelled_logits,
    listed_rows,
    numbered,
)

BLOCK_ELEMENTS = 1 << 20
"""The number of logits ranked at once, which affects the memory of the comparisons but not the result."""


def accuracy(predictions: Names, labels: Names) -> float:
    """Return the share of predictions [n] that equal their labels [n].

    sum_i 1[p_i = y_i] / n

    Predictions and labels are both class indices or both names. Raise RequestError if they are not, or if
    they differ in length.

    >>> accuracy([0, 1, 1, 2], [0, 1, 2, 2])
    0.75
    """
    predicted, truth = _pair(predictions, labels)
    return int((predicted == truth).sum()) / len(truth)


def mean_per_class(predictions: Names, labels: Names) -> float:
    """Return the mean over classes of each class's accuracy, skipping classes without examples.

    (1/|C|) sum_{c in C} sum_{i: y_i = c} 1[p_i = c] / N_c,    C = the classes present in `labels`

    `predictions` [n] and `labels` [n] are class indices or names. Skipping absent classes is also
    scikit-learn's convention (`balanced_accuracy_score`). Raise RequestError if the two differ in length.

    >>> mean_per_class([0, 0, 0, 1], [0, 0, 0, 2])  # class 1 is predicted, never present
    0.5

    Kornblith et al., 2021, table A.2: the score of Pets and Flowers.
    """
    predicted, truth = _pair(predictions, labels)
    present, truth = torch.unique(truth, return_inverse=True)
    examples = torch.bincount(truth, minlength=len(present)).double()
    hits = torch.bincount(truth[present[truth] == predicted], minlength=len(present)).double()
    return float((hits / examples).mean())


def top_k(logits: ArrayLike | Bank, labels: Names | None = None, k: int = 1) -> float:
    """Return the share of examples whose label is among the k largest logits.

    sum_i 1[ #{j: z_ij > z_iy or (z_ij = z_iy and j < y)} < k ] / n,    y = y_i

    Among equal logits the smaller class index ranks first, as in `argmax`, so a network whose logits are all
    equal earns no undue credit. `logits` are [n c] and `labels` [n], or a feature bank holds both. Names of
    classes stand for the columns in sorted order if all of them occur. For k >= c the share is 1. Raise
    RequestError for NaN (it lists the rows), a label outside 0..c-1, or k < 1.

    >>> top_k([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]], [2, 1], k=1)
    0.5
    >>> top_k([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]], [2, 1], k=2)
    1.0

    Kornblith et al., 2021, table 1: top-1 and top-5.
    """
    whole_number(k, "k", 1)
    scores, truth = labelled_logits(logits, labels)
    rows = max(1, BLOCK_ELEMENTS // scores.shape[1])
    hits = 0
    for start in range(0, len(scores), rows):
        block = scores[start : start + rows]
        if bool((wrong := block.isnan().any(1)).any()):
            raise RequestError(f"logits hold NaN in {listed_rows(wrong, start)}")
        hits += int((_rank(block, truth[start : start + rows]) < k).sum())
    return hits / len(truth)


def _rank(logits: Shaped[Tensor, "n c"], labels: Shaped[Tensor, " n"]) -> Shaped[Tensor, " n"]:
    true_logits = logits.gather(1, labels[:, None])
    before = torch.arange(logits.shape[1], device=logits.device) < labels[:, None]
    ahead: Bool[Tensor, "n c"] = (logits > true_logits) | ((logits == true_logits) & before)
    return ahead.sum(1)


def _pair(predictions: Names, labels: Names) -> tuple[Tensor, Tensor]:
    decided, codes = numbered(predictions, labels)
    predicted = as_classes(decided, "predictions")
    truth = as_classes(codes, "labels", len(predicted))
    if len(truth) == 0:
        raise RequestError("accuracy of no examples: predictions and labels are empty")
    return predicted, truth
