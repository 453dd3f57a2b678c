"""The area under the ROC curve, literally: every positive beside every negative."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt


def _beats(a, b):
    return 1.0 if a > b else 0.5 if a == b else 0.0


def auc(scores, labels):
    ones = [score for score, label in zip(scores, labels, strict=True) if label]
    zeros = [score for score, label in zip(scores, labels, strict=True) if not label]
    return sum(_beats(a, b) for a in ones for b in zeros) / (len(ones) * len(zeros))


def delong(scores, labels):
    """DeLong's standard error, from the structural components."""
    ones = [score for score, label in zip(scores, labels, strict=True) if label]
    zeros = [score for score, label in zip(scores, labels, strict=True) if not label]
    area = auc(scores, labels)
    of_ones = [sum(_beats(a, b) for b in zeros) / len(zeros) for a in ones]
    of_zeros = [sum(_beats(a, b) for a in ones) / len(ones) for b in zeros]
    s10 = sum((v - area) ** 2 for v in of_ones) / (len(ones) - 1)
    s01 = sum((v - area) ** 2 for v in of_zeros) / (len(zeros) - 1)
    return sqrt(s10 / len(ones) + s01 / len(zeros))


def binned(scores, labels, thresholds):
    """Trapezoids between the points of the ROC curve at evenly spaced thresholds, then the corner (0, 0)."""
    points = []
    for step in range(thresholds):
        level = step / (thresholds - 1)
        hits = [label for score, label in zip(scores, labels, strict=True) if score >= level]
        positives = sum(labels)
        points.append((hits.count(0) / (len(labels) - positives), hits.count(1) / positives))
    points.append((0.0, 0.0))
    return sum((x - x_next) * (y + y_next) / 2 for (x, y), (x_next, y_next) in pairwise(points))
