"""Areas under the ROC curve of several classifiers on the same examples, compared by DeLong's test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from penultimate.errors import RequestError
from penultimate.metrics.auc import AUC, auc_interval, placements
from penultimate.statistics.paired import Pair, pairs_in_order


class ComparedAreas(NamedTuple):
    """The area of each classifier with its interval, and every pair, the better one first, p by Holm."""

    areas: tuple[AUC, ...]
    pairs: tuple[Pair, ...]


def compare_areas(
    scores: Sequence[npt.NDArray[np.floating]],
    labels: npt.NDArray[np.integer],
    groups: npt.NDArray[np.integer] | None = None,
) -> ComparedAreas:
    """Return the areas of classifiers and their paired comparisons, for one label or the mean over several.

    `scores` holds an array for each classifier, [n] or [n l], and `labels` [n] or [n l] are 1, 0, or -1 for
    an example that does not count. With V_i the share of negatives below positive i, and W_j that of
    positives above negative j,

    u_i = (V_i - A) / sqrt(P (P - 1)),  u_j = (W_j - A) / sqrt(N (N - 1)),
    var(A - B) = sum_i (u_i - u'_i)^2,

    which is DeLong's variance for one label; for the mean over labels, u is the mean of the labels' u, so
    that labels of the same example may go together. Tests are two-sided, by the normal distribution. Of
    examples in `groups` [n] the u of each group are added up before they are squared, and the variance is
    that times G / (G - 1) for G groups.

    Raise RequestError for other shapes, and UndefinedError for a label with fewer than two positive or two
    negative examples.

    >>> labels = np.array([0, 0, 0, 1, 1, 1])
    >>> found = compare_areas([np.array([1, 2, 3, 4, 5, 6]), np.array([1, 4, 2, 3, 6, 5])], labels)
    >>> [round(area.value, 3) for area in found.areas], len(found.pairs)
    ([1.0, 0.889], 1)

    DeLong, DeLong & Clarke-Pearson, 1988; of groups: Obuchowski, 1997.
    """
    truth = labels[:, None] if labels.ndim == 1 else labels
    tables = [np.asarray(one, np.float64).reshape(len(one), -1) for one in scores]
    if not tables or any(one.shape != truth.shape for one in tables):
        shapes = [list(np.shape(one)) for one in scores]
        raise RequestError(f"scores are as many as labels, {list(labels.shape)}; got {shapes}")
    found = [[_influence(one[:, at], truth[:, at]) for at in range(truth.shape[1])] for one in tables]
    influence = [np.mean([of for _, of in each], axis=0) for each in found]
    if groups is not None:
        if groups.shape != truth.shape[:1]:
            raise RequestError(f"groups are one of each of {len(truth)} examples; got {list(groups.shape)}")
        influence = [_by_group(of, groups) for of in influence]
    areas = tuple(
        _mean([area for area, _ in each], of, groups is not None)
        for each, of in zip(found, influence, strict=True)
    )
    pairs = pairs_in_order(
        [area.value for area in areas],
        lambda one, other: _p(areas[one].value - areas[other].value, influence[one] - influence[other]),
    )
    return ComparedAreas(areas, tuple(pairs))


def _influence(
    scores: npt.NDArray[np.float64], labels: npt.NDArray[np.integer]
) -> tuple[AUC, npt.NDArray[np.float64]]:
    """Return a label's area with its interval, and what each example adds to its error."""
    counted = labels >= 0
    positive = labels[counted] == 1
    area = auc_interval(scores[counted], positive.astype(np.int64))
    below, above = placements(scores[counted], positive)
    of_counted = np.empty(len(positive))
    for rows, ascending in ((positive, below), (~positive, above)):  # in the order of their scores
        values = ascending[np.argsort(np.argsort(scores[counted][rows]))]
        of_counted[rows] = (values - area.value) / math.sqrt(len(values) * (len(values) - 1))
    whole = np.zeros(len(labels))
    whole[counted] = of_counted
    return area, whole


def _by_group(influence: npt.NDArray[np.float64], groups: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Return what each group adds to an error, so that the sum of squares is its variance."""
    places = np.unique(groups, return_inverse=True)[1]
    of_groups = np.bincount(places, influence)
    return np.asarray(of_groups * math.sqrt(len(of_groups) / max(1, len(of_groups) - 1)))


def _mean(areas: Sequence[AUC], influence: npt.NDArray[np.float64], grouped: bool) -> AUC:
    """Return the mean of areas with its interval; that of one label is its own, unless there are groups.

    An area of 0 or 1 has the interval of examples that stand alone: groups tell nothing about its error.
    """
    if len(areas) == 1 and (not grouped or areas[0].standard_error == 0):
        return areas[0]
    value = float(np.mean([area.value for area in areas]))
    error = math.sqrt(float(influence @ influence))
    reach = 1.959963984540054 * error
    return AUC(value, error, max(0.0, value - reach), min(1.0, value + reach))


def _p(difference: float, influence: npt.NDArray[np.float64]) -> float:
    error = math.sqrt(float(influence @ influence))
    if error < 1e-12:
        return 1.0 if abs(difference) < 1e-12 else 0.0
    return float(2 * ndtr(-abs(difference) / error))
