"""Confidence, selective classification and images outside the classes, literally: loops and enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import groupby, permutations
from math import exp, fsum, log

import numpy as np


def max_probability(row):
    weights = [exp(z - max(row)) for z in row]
    return max(weights) / fsum(weights)


def energy(row, temperature):
    return temperature * (log(fsum(exp((z - max(row)) / temperature) for z in row))) + max(row)


def normalised_logit(row, p):
    mean = fsum(row) / len(row)
    centred = [z - mean for z in row]
    return max(centred) / fsum(abs(z) ** p for z in centred) ** (1 / p)


def orders(confidence):
    """Every order of the examples from the surest on: all orders of examples of equal confidence."""
    ranked = sorted(range(len(confidence)), key=lambda i: -confidence[i])
    found = [[]]
    for _, group in groupby(ranked, key=lambda i: confidence[i]):
        each = list(permutations(group))
        found = [[*before, *after] for before in found for after in each]
    return found


def mean_over_orders(confidence, right, value):
    """The mean of a value of the errors, in order, over every order of equals, as an exact fraction."""
    values = [value([1 - right[i] for i in order]) for order in orders(confidence)]
    return sum(values, Fraction(0)) / len(values)


def aurc(errors):
    n = len(errors)
    return sum((Fraction(sum(errors[: i + 1]), i + 1) for i in range(n)), Fraction(0)) / n


def augrc(errors):
    """Trapezoids below the errors among the first i, as a share of all, over i / n from 0 on."""
    n = len(errors)
    heights = [Fraction(sum(errors[:i]), n) for i in range(n + 1)]
    return sum(((heights[i] + heights[i + 1]) / 2 / n for i in range(n)), Fraction(0))


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
