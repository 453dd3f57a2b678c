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


def brier_score(probabilities, labels):
    return fsum(
        (p - (k == y)) ** 2 for row, y in zip(probabilities, labels, strict=True) for k, p in enumerate(row)
    ) / len(labels)


def _class_bins(probabilities, labels, bins):
    """(examples, mean probability, share of the class) of the filled bins of every class, by class."""
    classes = []
    for k in range(len(probabilities[0])):
        found = []
        for place in range(bins):
            low, high = Fraction(place, bins), Fraction(place + 1, bins)
            members = [
                (row[k], y == k)
                for row, y in zip(probabilities, labels, strict=True)
                if low < Fraction(row[k]) <= high or (place == 0 and row[k] == 0)
            ]
            if members:
                mean = fsum(p for p, _ in members) / len(members)
                found.append((len(members), mean, sum(hit for _, hit in members) / len(members)))
        classes.append(found)
    return classes


def brier_parts(probabilities, labels, bins):
    """Reliability, resolution and uncertainty, summed over classes."""
    n = len(labels)
    of_classes = _class_bins(probabilities, labels, bins)
    rates = [labels.count(k) / n for k in range(len(probabilities[0]))]
    reliability = fsum(m / n * (p - o) ** 2 for found in of_classes for m, p, o in found)
    resolution = fsum(
        m / n * (o - rate) ** 2 for rate, found in zip(rates, of_classes, strict=True) for m, _, o in found
    )
    return reliability, resolution, fsum(rate * (1 - rate) for rate in rates)


def classwise_calibration_error(probabilities, labels, bins):
    of_classes = _class_bins(probabilities, labels, bins)
    n, k = len(labels), len(of_classes)
    return fsum(m / n * abs(p - o) for found in of_classes for m, p, o in found) / k


def adaptive_calibration_error(probabilities, labels, bins):
    """Examples by confidence, cut after every n / bins of them, where equals stay together."""
    examples = sorted(
        (max(row), row.index(max(row)) == y) for row, y in zip(probabilities, labels, strict=True)
    )
    n = len(examples)
    total, start = 0.0, 0
    for place in range(1, bins + 1):
        end = -(-place * n // bins)
        while 0 < end < n and examples[end][0] == examples[end - 1][0]:
            end += 1
        if end > start:
            total += abs(fsum(right - confidence for confidence, right in examples[start:end])) / n
            start = end
    return total
