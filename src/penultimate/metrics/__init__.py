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
    "subset_accuracy",
    "penultimate.metrics.accuracy:subset_accuracy",
    "Top-1 accuracy where only some of the classes can be answered.",
)
declare(
    "metric",
    "mean_corruption_error",
    "penultimate.metrics.robustness:mean_corruption_error",
    "Errors on corrupted images relative to a reference's (ImageNet-C's mCE).",
    "Kornblith et al., 2021, table C.2",
)
declare(
    "metric",
    "expected_calibration_error",
    "penultimate.metrics.calibration:expected_calibration_error",
    "How far confidence and accuracy lie apart, over 15 bins.",
    "Kornblith et al., 2021, table C.3",
)
declare(
    "metric",
    "negative_log_likelihood",
    "penultimate.metrics.calibration:negative_log_likelihood",
    "Mean of -log p of the right class, in nats.",
    "Kornblith et al., 2021, table C.3",
)
declare(
    "metric",
    "agreement",
    "penultimate.metrics.agreement:agreement",
    "How often two models predict the same, are right or wrong together, and err alike.",
    "Kornblith et al., 2021, figures C.4 and C.5",
)
declare(
    "metric",
    "class_separation",
    "penultimate.metrics.separation:class_separation",
    "R^2 of the features on their classes: 1 - distance within classes / distance overall.",
    "Kornblith et al., 2021, eq. 11",
)
declare(
    "metric",
    "cka",
    "penultimate.metrics.similarity:minibatch_cka",
    "Linear centred kernel alignment: how alike two layers arrange the same images.",
    "Kornblith et al., 2021, eq. 10 and figure 2",
)
declare(
    "metric",
    "neural_collapse",
    "penultimate.metrics.collapse:neural_collapse",
    "How near class means and weights are to a simplex equiangular tight frame; NC4.",
    "Kornblith et al., 2021, appendix E.2",
)
declare(
    "metric",
    "angular_visual_hardness",
    "penultimate.metrics.hardness:angular_visual_hardness",
    "The angle to the own class's weight, as a share of the angles to all.",
    "Kornblith et al., 2021, appendix E.1",
)
declare(
    "metric",
    "sparsity",
    "penultimate.metrics.activations:sparsity",
    "Share of activations that are not zero.",
    "Kornblith et al., 2021, figure 3",
)
declare(
    "metric",
    "singular_values",
    "penultimate.metrics.activations:singular_values",
    "The singular values of activations, weights or centroids.",
    "Kornblith et al., 2021, appendix E.2",
)
declare(
    "metric",
    "cosine_distances",
    "penultimate.metrics.activations:cosine_distances",
    "The densities of cosine distances within and between classes.",
    "Kornblith et al., 2021, appendix E.3",
)
