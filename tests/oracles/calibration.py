"""Calibration, literally: bins by comparing with their edges, sums, temperature by golden section."""

from __future__ import annotations

from fractions import Fraction
from math import exp, fsum, inf, log


def softmax(logits, temperature=1.0):
    scaled = [z / temperature for z in logits]
    top = max(scaled)
    weights = [exp(z - top) for z in scaled]
    return [w / fsum(weights) for w in weights]


def negative_log_likelihood(probabilities, labels):
    losses = [-log(row[y]) if row[y] > 0 else inf for row, y in zip(probabilities, labels, strict=True)]
    return fsum(losses) / len(losses)


def reliability(probabilities, labels, bins):
    """(examples, mean confidence, accuracy) of the bins (lo, hi] with examples; edges are exact fractions."""
    found = []
    for place in range(bins):
        low, high = Fraction(place, bins), Fraction(place + 1, bins)
        members = [
            (max(row), row.index(max(row)) == y)
            for row, y in zip(probabilities, labels, strict=True)
            if low < Fraction(max(row)) <= high
        ]
        if members:
            confidence = fsum(c for c, _ in members) / len(members)
            found.append((len(members), confidence, sum(right for _, right in members) / len(members)))
    return found


def expected_calibration_error(probabilities, labels, bins):
    return fsum(
        n / len(labels) * abs(accuracy - confidence)
        for n, confidence, accuracy in reliability(probabilities, labels, bins)
    )


def best_temperature(logits, labels):
    """The minimum of the NLL over log T by golden section (the NLL has one minimum in 1/T, so in log T)."""

    def loss(log_temperature):
        temperature = exp(log_temperature)
        return negative_log_likelihood([softmax(z, temperature) for z in logits], labels)

    low, high, golden = -8.0, 8.0, (5**0.5 - 1) / 2
    while high - low > 1e-9:
        left, right = high - golden * (high - low), low + golden * (high - low)
        if loss(left) < loss(right):
            high = right
        else:
            low = left
    return exp((low + high) / 2)
