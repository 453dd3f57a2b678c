"""Selective classification: how many errors remain if a network answers only where it is sure.

Examples are ranked by a confidence, the surest first. Among examples of equal confidence no order is better
than another, so every number here is the expected value over their orders: the errors among the first i grow
in a straight line through each group of equals. All take O(n log n) time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from penultimate.errors import RequestError
from penultimate.metrics.inputs import ArrayLike, as_numbers, as_tensor, listed_rows


class RiskCoverage(NamedTuple):
    """The coverages i / n [n], and the expected share of errors among the i surest examples [n]."""

    coverage: Float[np.ndarray, " n"]
    risk: Float[np.ndarray, " n"]


def risk_coverage(confidence: ArrayLike, right: ArrayLike) -> RiskCoverage:
    """Return the risk-coverage curve: the share of errors among the i surest examples, for every i.

    risk_i = E[errors among the first i] / i,    coverage_i = i / n

    `confidence` [n] is higher for surer examples, and `right` [n] is 1 (or True) where the prediction is
    right. Raise RequestError for NaN (it lists the rows), unequal lengths, other values of `right`, and no
    examples.

    >>> risk_coverage([0.9, 0.5, 0.5], [1, 0, 1]).risk.round(4).tolist()  # the two of .5 in either order
    [0.0, 0.25, 0.3333]

    El-Yaniv and Wiener, JMLR 2010; Geifman and El-Yaniv, NeurIPS 2017.
    """
    errors = _expected_errors(confidence, right)
    ranks = np.arange(1, len(errors) + 1)
    return RiskCoverage(ranks / len(errors), errors / ranks)


def aurc(confidence: ArrayLike, right: ArrayLike) -> float:
    """Return the area under the risk-coverage curve, 0 at best: the mean of its n risks.

    AURC = (1/n) sum_i risk_i

    Arguments and errors are those of `risk_coverage`. Examples of equal confidence alone give the share of
    errors.

    >>> round(aurc([0.9, 0.5, 0.5], [1, 0, 1]), 4)
    0.1944

    Geifman, Uziel and El-Yaniv, ICLR 2019.
    """
    return float(risk_coverage(confidence, right).risk.mean())


def excess_aurc(confidence: ArrayLike, right: ArrayLike) -> float:
    """Return by how much the AURC exceeds that of the best ranking with as many errors.

    E-AURC = AURC - AURC*,    AURC* with every error ranked last

    It tells the ranking apart from the accuracy, on which AURC depends too. Arguments and errors are those of
    `risk_coverage`.

    >>> round(excess_aurc([0.9, 0.5, 0.5], [1, 0, 1]), 4), excess_aurc([0.9, 0.7, 0.5], [1, 1, 0])
    (0.0833, 0.0)

    Geifman, Uziel and El-Yaniv, ICLR 2019.
    """
    _, is_right = _checked(confidence, right)
    return aurc(confidence, right) - aurc(is_right, is_right)


def augrc(confidence: ArrayLike, right: ArrayLike) -> float:
    """Return the area under the generalised risk-coverage curve, 0 at best: the risk of undetected errors.

    AUGRC = sum_i (e_{i-1} + e_i) / (2 n^2) = (1 - AUROC_f) a (1 - a) + (1 - a)^2 / 2

    e_i is the expected number of errors among the first i, a the accuracy, and AUROC_f the probability that
    a right example is surer than a wrong one; the area is taken by trapezoids, for which the two are equal.
    Arguments and errors are those of `risk_coverage`.

    >>> round(augrc([0.9, 0.5, 0.5], [1, 0, 1]), 4)
    0.1111

    Traub et al., NeurIPS 2024.
    """
    errors = _expected_errors(confidence, right)
    return float((errors.sum() - errors[-1] / 2) / len(errors) ** 2)


def _expected_errors(confidence: ArrayLike, right: ArrayLike) -> Float[np.ndarray, " n"]:
    """Return the expected number of errors among the i surest examples, for i from 1 to n."""
    values, is_right = _checked(confidence, right)
    _, group, sizes = np.unique(-values, return_inverse=True, return_counts=True)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    wrong = np.concatenate([[0.0], np.cumsum(np.bincount(group, ~is_right, len(sizes)))])
    expected: Float[np.ndarray, " n"] = np.interp(np.arange(1, len(values) + 1), ends, wrong)
    return expected


def _checked(
    confidence: ArrayLike, right: ArrayLike
) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    given = as_tensor(confidence, "confidence").cpu()
    values = given.double().numpy()
    truth = as_numbers(right, "right").cpu().numpy()
    if values.ndim != 1 or truth.shape != values.shape or not len(values):
        raise RequestError(
            "confidence and right are [n] each, of one length and not empty; got"
            f" {list(values.shape)} and {list(truth.shape)}"
        )
    if np.isnan(values).any():
        raise RequestError(f"confidence is not a number: {listed_rows(given.isnan())}")
    if not np.isin(truth, (0, 1)).all():
        other = truth[~np.isin(truth, (0, 1))][0]
        raise RequestError(f"right is 1 where a prediction is right and else 0, not {other}")
    return values, truth.astype(bool)
