"""A check whether a classifier's outputs are in a different order of classes than assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

LEAST_GAIN = 0.2
"""Another order must gain more than this share of the images on whose classes the two orders differ."""
LEAST_EVIDENCE = 1e-3
"""The largest p of a paired sign test in which both orders are equally good."""
LEAST_ACCURACY = 0.5
"""The share of all images that an order found by search, which nobody is known to use, must get right."""
MOST_CLASSES = 2048
"""With more classes no order is searched for; only the usual orders are tried."""


class Fit(NamedTuple):
    """A better order: its name ("" if it is not a usual one), its accuracy, and that of the assumed order."""

    order: str
    accuracy: float
    taken: float


def better_order(
    predictions: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str],
    usual: Mapping[str, Sequence[str]],
    search: bool = True,
) -> Fit | None:
    """Return an order of classes that fits a network's predictions far better than the assumed one, or None.

    Output k is assumed to be the class `names[k]`; the `usual` orders hold the same names. Two orders are
    compared on the images of the classes that they number differently. If no usual order fits better, the
    order with the most right predictions is searched for on one half of the images and judged on the other
    half, and vice versa.

    >>> predicted, labels = np.array([0, 2, 1] * 9), np.array([0, 1, 2] * 9)
    >>> better_order(predicted, labels, ["1", "10", "2"], {"natural": ["1", "2", "10"]})
    Fit(order='natural', accuracy=1.0, taken=0.333...)
    """
    taken = predictions == labels
    place = {name: label for label, name in enumerate(names)}
    best: Fit | None = None
    for order, others in usual.items():
        meant = np.array([place[name] for name in others])
        right = meant[predictions] == labels
        moved = meant[labels] != labels
        if _is_far_better(right[moved], taken[moved]):
            fit = Fit(order, float(right.mean()), float(taken.mean()))
            best = fit if best is None or fit.accuracy > best.accuracy else best
    if best is None and search and len(names) <= MOST_CLASSES:
        right = _answers_as_found(predictions, labels, len(names))
        if right.mean() >= LEAST_ACCURACY and _is_far_better(right, taken):
            return Fit("", float(right.mean()), float(taken.mean()))
    return best


def _is_far_better(right: np.ndarray, taken: np.ndarray) -> bool:
    from scipy.stats import binom

    gained, lost = int((right & ~taken).sum()), int((taken & ~right).sum())
    if gained - lost <= LEAST_GAIN * max(len(right), 1):
        return False
    return bool(binom.sf(gained - 1, gained + lost, 0.5) <= LEAST_EVIDENCE)


def _answers_as_found(predictions: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Return which predictions are right under the order of outputs that is best on the other half."""
    from scipy.optimize import linear_sum_assignment

    in_class = np.zeros(len(labels), np.int64)  # each class is divided evenly between the halves
    for label in np.unique(labels):
        its = np.flatnonzero(labels == label)
        in_class[its] = np.arange(len(its))
    right = np.zeros(len(labels), bool)
    for half in (in_class % 2 == 0, in_class % 2 == 1):
        pairs = predictions[~half] * classes + labels[~half]
        counts = np.bincount(pairs, minlength=classes**2).reshape(classes, classes)
        favoured = counts + 0.5 * np.eye(classes)  # a tie goes to the assumed order
        meant = linear_sum_assignment(favoured, maximize=True)[1]
        right[half] = meant[predictions[half]] == labels[half]
    return right
