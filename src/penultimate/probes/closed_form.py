"""Two classifiers with a closed form, for few examples: ridge regression on the classes, nearest centroids.

Both predict argmax_c w_c . x + b_c, so any number of them on the same test examples costs matrix products
alone. They need no validation split, which one example a class cannot spare, and no iteration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from penultimate.errors import RequestError
from penultimate.probes.arrays import NumpyFloats, NumpyInts

PENALTIES = tuple(10.0**power for power in range(-4, 5))
"""The penalties of ridge regression, as multiples of the examples' mean squared distance from their mean."""

NUMBERS = 1 << 21
"""The number of feature values that are read at once, in float64."""


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
    mean, sums, counts = _sums(features, codes, classes)
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
    mean, sums, counts = _sums(features, codes, classes)
    n, m = len(codes), len(mean)
    shares = counts / n
    absent = np.where(counts > 0, shares, -np.inf)
    points = np.concatenate([block for _, block in _blocks(features, mean)]) if n <= m else None
    products = np.zeros((m, m)) if points is None else points @ points.T
    if points is None:
        for _, block in _blocks(features, mean):
            products += block.T @ block
    usual = float(products.trace()) / n
    if usual == 0:
        return LinearRule(np.zeros((classes, m)), absent)
    squares, vectors = np.linalg.eigh(products)
    kept = squares > squares[-1] * max(n, m) * np.finfo(float).eps
    squares, vectors = squares[kept], vectors[:, kept]
    # The directions V of the features' spread, in which the classes' sums X'T are V'X'T.
    directions = vectors if points is None else points.T @ (vectors / np.sqrt(squares))
    explained = (sums @ directions).T
    lambdas = usual * np.array(sorted(penalties, reverse=True))
    errors = np.zeros(len(lambdas))
    for start, block in _blocks(features, mean):
        turned = block @ directions
        left_out = 1 - 1 / n - np.square(turned) @ (1 / (squares[:, None] + lambdas))
        targets = np.tile(-shares, (len(block), 1))
        targets[np.arange(len(block)), codes[start : start + len(block)]] += 1
        for place, penalty in enumerate(lambdas):
            residuals = targets - turned @ (explained / (squares + penalty)[:, None])
            errors[place] += (np.einsum("ij,ij->i", residuals, residuals) / left_out[:, place] ** 2).sum()
    penalty = float(lambdas[int(np.argmin(errors))])
    weight = (explained / (squares + penalty)[:, None]).T @ directions.T
    return LinearRule(weight, absent - weight @ mean, penalty)


def _blocks(
    features: Float[np.ndarray, "n m"], mean: Float[np.ndarray, " m"] | float
) -> Iterator[tuple[int, NumpyFloats]]:
    """Yield float64 copies of blocks of examples less their mean, each with the number of its first row."""
    rows = max(1, NUMBERS // max(features.shape[1], 1))
    for start in range(0, len(features), rows):
        yield start, np.asarray(features[start : start + rows], np.float64) - mean


def _sums(
    features: Float[np.ndarray, "n m"], codes: Int[np.ndarray, " n"], classes: int
) -> tuple[NumpyFloats, NumpyFloats, NumpyInts]:
    """Return the mean of the examples, the sums over classes of examples less it, and the classes' sizes."""
    if features.ndim != 2 or len(features) != len(codes) or not len(codes):
        raise RequestError(
            f"features are [n m] with n >= 1 and codes [n]; got {list(features.shape)} and {len(codes)}"
        )
    total = np.zeros(features.shape[1])
    for _, block in _blocks(features, 0.0):
        total += block.sum(0)
    if not np.isfinite(total).all():
        raise RequestError("features hold NaN or infinity")
    mean = total / len(codes)
    sums = np.zeros((classes, features.shape[1]))
    for start, block in _blocks(features, mean):
        own = codes[start : start + len(block)]
        order = np.argsort(own, kind="stable")
        present, firsts = np.unique(own[order], return_index=True)
        sums[present] += np.add.reduceat(block[order], firsts, axis=0)
    return mean, sums, np.bincount(codes, minlength=classes)
