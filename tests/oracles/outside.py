"""Scores of images outside the classes, literally."""

from __future__ import annotations

from math import exp, fsum

import numpy as np


def max_probability(row):
    weights = [exp(z - max(row)) for z in row]
    return max(weights) / fsum(weights)


def false_positive_rate(inside, outside, kept):
    """The smallest share of outside scores at a threshold that at least `kept` % of inside scores reach."""
    rates = []
    for threshold in {*inside, *outside}:
        if 100 * sum(score >= threshold for score in inside) >= kept * len(inside):
            rates.append(sum(score >= threshold for score in outside) / len(outside))
    return min(rates)


def mahalanobis(features, labels, queries):
    """The squared distance from the nearest class mean, by NumPy's pseudo-inverse."""
    classes = sorted({*labels})
    means = {c: np.mean([x for x, y in zip(features, labels, strict=True) if y == c], 0) for c in classes}
    apart = np.array([x - means[y] for x, y in zip(features, labels, strict=True)])
    inverse = np.linalg.pinv(apart.T @ apart / len(apart), rcond=1e-12, hermitian=True)
    return [min((x - means[c]) @ inverse @ (x - means[c]) for c in classes) for x in queries]


def kth_distance(features, queries, k):
    """The k-th smallest distance from rows of length 1."""
    rows = [x / np.linalg.norm(x) for x in features]
    return [sorted(np.linalg.norm(q / np.linalg.norm(q) - row) for row in rows)[k - 1] for q in queries]
