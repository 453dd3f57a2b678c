"""Two classifiers with a closed form, for few examples: ridge regression on the classes, nearest centroids.

Both predict argmax_c w_c . x + b_c, so any number of them on the same test examples costs matrix products
alone. They need no validation split, which one example a class cannot spare, and no iteration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from penultimate.errors import RequestError
from penultimate.probes.arrays import NumpyFloats, NumpyInts

PENALTIES = tuple(10.0**power for power in range(-4, 5))
"""The penalties of ridge regression, as multiples of the examples' mean squared distance from their mean."""


class LinearRule(NamedTuple):
    """Scores W x + b: `weight` [k m], `intercept` [k]; `penalty` is the chosen one, 0 if there is none."""

    weight: Float[np.ndarray, "k m"]
    intercept: Float[np.ndarray, " k"]
    penalty: float = 0.0

    def predict(self, features: Float[np.ndarray, "n m"]) -> NumpyInts:
        """Return the class of the largest score [n], the smallest such class if scores are equal."""
        codes: NumpyInts = (features @ self.weight.T + self.intercept).argmax(1)
        return codes


def nearest_centroid(
    features: Float[np.ndarray, "n m"], codes: Int[np.ndarray, " n"], classes: int
) -> LinearRule:
    """Return the rule that predicts the class with the nearest mean, by Euclidean distance.

    argmin_c |x - mu_c|^2 = argmax_c mu_c . x - |mu_c|^2 / 2

    `features` are [n m], and `codes` [n] are 0 .. classes - 1. A class without examples is never predicted.
    With one example a class this is the nearest neighbour. Raise RequestError for NaN and infinity.

    >>> rule = nearest_centroid(np.array([[0.0], [2.0], [9.0]]), np.array([0, 0, 1]), 2)
    >>> rule.predict(np.array([[4.9], [5.1]])).tolist()
    [0, 1]
    """
    points, mean, counts = _centred(features, codes, classes)
    sums = np.zeros((classes, points.shape[1]))
    np.add.at(sums, codes, points)
    means = sums / np.maximum(counts, 1)[:, None]
    intercept = -(means * means).sum(1) / 2 - means @ mean
    return LinearRule(means, np.where(counts > 0, intercept, -np.inf))


def ridge(
    features: Float[np.ndarray, "n m"],
    codes: Int[np.ndarray, " n"],
    classes: int,
    penalties: tuple[float, ...] = PENALTIES,
) -> LinearRule:
    """Return ridge regression on the indicators of the classes, its penalty chosen by leaving one out.

    min_{W, b} sum_i |W x_i + b - t_i|^2 + lambda |W|^2,    t_ic = 1 if y_i = c, else 0

    The intercept is free. `penalties` are multiples of the mean of |x_i - mean|^2, so that the rule does not
    depend on the scale of the features. The one with the least squared error when each example is left out
    once is chosen (the largest of equals); that error has a closed form (PRESS), with the leverage h_i,

    sum_i |t_i - W x_i - b|^2 / (1 - h_i)^2,    h_i = 1/n + (x_i - mean)' (X'X + lambda)^-1 (x_i - mean).

    `features` are [n m], and `codes` [n] are 0 .. classes - 1; a class without examples is never predicted.
    Examples that are all the same predict the most frequent class. Raise RequestError for NaN and infinity.

    >>> rule = ridge(np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([0, 0, 1, 1]), 2)
    >>> rule.predict(np.array([[4.0], [5.0]])).tolist()
    [0, 1]

    Allen, 1974 (PRESS); Galanti, Gyorgy and Hutter, 2022 (ridge regression on few examples).
    """
    points, mean, counts = _centred(features, codes, classes)
    n, m = points.shape
    shares = counts / n
    targets = np.zeros((n, classes))
    targets[np.arange(n), codes] = 1
    targets -= shares
    usual = float(np.einsum("ij,ij->", points, points)) / n
    absent = np.where(counts > 0, shares, -np.inf)
    if usual == 0:
        return LinearRule(np.zeros((classes, m)), absent)
    products = points @ points.T if n <= m else points.T @ points
    squares, vectors = np.linalg.eigh(products)
    kept = squares > squares[-1] * max(n, m) * np.finfo(float).eps
    squares, vectors = squares[kept], vectors[:, kept]
    turned = vectors * np.sqrt(squares) if n <= m else points @ vectors
    explained = turned.T @ targets
    lambdas = usual * np.array(sorted(penalties, reverse=True))
    leverages = 1 / n + np.square(turned) @ (1 / (squares[:, None] + lambdas))
    errors = []
    for place, penalty in enumerate(lambdas):
        left = targets - turned @ (explained / (squares + penalty)[:, None])
        errors.append(float((np.einsum("ij,ij->i", left, left) / (1 - leverages[:, place]) ** 2).sum()))
    penalty = float(lambdas[int(np.argmin(errors))])
    if n <= m:
        dual = vectors @ (explained / (np.sqrt(squares) * (squares + penalty))[:, None])
        weight = dual.T @ points
    else:
        weight = (explained / (squares + penalty)[:, None]).T @ vectors.T
    return LinearRule(weight, absent - weight @ mean, penalty)


def _centred(
    features: Float[np.ndarray, "n m"], codes: Int[np.ndarray, " n"], classes: int
) -> tuple[NumpyFloats, NumpyFloats, NumpyInts]:
    """Return the examples less their mean in float64, the mean, and the number of examples of each class."""
    points = np.array(features, np.float64)
    if points.ndim != 2 or len(points) != len(codes) or not len(points):
        raise RequestError(
            f"features are [n m] with n >= 1 and codes [n]; got {list(points.shape)} and {len(codes)}"
        )
    if not np.isfinite(points).all():
        raise RequestError("features hold NaN or infinity")
    mean = points.mean(0)
    points -= mean
    return points, mean, np.bincount(codes, minlength=classes)
