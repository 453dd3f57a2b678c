"""Measurements of features, logits and predictions: pure functions and mergeable accumulators.

This file imports no tensor library: it declares what the room holds, and the error that a measurement
raises when its value does not exist.
"""

from __future__ import annotations

from penultimate.errors import RequestError
from penultimate.registry import declare


class UndefinedError(RequestError):
    """The measurement has no value on this input (0/0): one class only, constant features."""


declare(
    "metric",
    "accuracy",
    "penultimate.metrics.accuracy:accuracy",
    "Share of predictions that equal the label.",
)
declare(
    "metric",
    "top_k",
    "penultimate.metrics.accuracy:top_k",
    "Share of examples whose label is among the k largest logits.",
)
declare(
    "metric",
    "mean_per_class",
    "penultimate.metrics.accuracy:mean_per_class",
    "Mean of the classes' own accuracies (the official score of Pets and Flowers).",
    "Kornblith et al., 2021, table A.2",
)
declare(
    "metric",
    "class_separation",
    "penultimate.metrics.separation:class_separation",
    "R^2 of the features on their classes: 1 - distance within classes / distance overall.",
    "Kornblith et al., 2021, eq. 11",
)
