"""Measurements of features, logits and predictions: pure functions.

This file imports no tensor library: it only declares the metrics, and the error that a measurement raises if
its value does not exist.
"""

from __future__ import annotations

from penultimate.errors import RequestError
from penultimate.registry import declare


class UndefinedError(RequestError):
    """Error for a measurement that has no value on its input (0/0): a single class, constant features."""


_METRICS = """
accuracy | accuracy:accuracy | Share of predictions that equal the label.
top_k | accuracy:top_k | Share of examples whose label is among the k largest logits.
mean_per_class | accuracy:mean_per_class | Mean of the classes' accuracies (official for Pets, Flowers).
auc | auc:auc | The area under the ROC curve, exact.
expected_calibration_error | calibration:expected_calibration_error | Confidence against accuracy, 15 bins.
negative_log_likelihood | calibration:negative_log_likelihood | Mean of -log p of the right class, in nats.
agreement | agreement:agreement | How often two models predict the same, or err alike.
class_separation | separation:class_separation | R^2 of the features on their classes (eq. 11).
cka | similarity:minibatch_cka | Linear centred kernel alignment of two layers.
permuted_cka | likeness:permuted_cka | CKA with the p of a permutation of the images.
procrustes | likeness:procrustes | How well a rotation maps one representation onto another.
mutual_neighbours | likeness:mutual_neighbours | Nearest neighbours that two representations share.
neural_collapse | collapse:neural_collapse | How near class means and weights are to a simplex ETF.
angular_visual_hardness | hardness:angular_visual_hardness | The angle to the own class's weight.
nonzero_share | activations:nonzero_share | Share of activations that are not zero.
singular_values | activations:singular_values | The singular values of activations, weights or centroids.
logme | transferability:logme | Log evidence of regression on a task's classes, per example.
h_score | transferability:h_score | Variance between a task's classes, shrunk covariance (regularised).
transrate | transferability:transrate | Nats that knowing a task's classes saves in coding its features.
cdnv | collapse:cdnv | Variance within two classes over the distance of their means, all pairs.
rankme | activations:rankme | The effective rank of the features (RankMe).
stable_rank | activations:stable_rank | Variance of the features beside that along the longest direction.
leep | source_classes:leep | Log likelihood of a task's labels, guessed from the source classes.
nce | source_classes:nce | Negative conditional entropy of a task's labels, given predictions.
assignment_accuracy | source_classes:assignment_accuracy | Accuracy of source classes that stand for a task's.
false_positive_rate | outside:false_positive_rate | Outside images that score as high as 95 % of inside ones.
cosine_distances | activations:cosine_distances | Densities of cosine distances within and between classes.
"""

for _line in _METRICS.strip().splitlines():
    _name, _location, _summary = _line.split(" | ")
    declare("metric", _name, f"penultimate.metrics.{_location}", _summary)
