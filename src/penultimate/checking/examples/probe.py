"""A probe: a classifier on frozen features, as in scikit-learn, scored on every target's test images.

    penultimate check mine.py
    penultimate run smoke --plugin mine.py --set "measure=accuracy, linear, ridge(strength=10)"
    penultimate show plugins --allow-limited

It is built afresh for each network and target, and fitted to NumPy arrays: float32 features, integer labels.
"""

import numpy as np

from penultimate import register


@register.probe(name="ridge")
class Ridge:
    """Least squares to one-hot labels, with a penalty on the weight relative to the features' variance."""

    def __init__(self, *, strength=1.0):
        self.strength = strength

    def fit(self, features, labels):
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self.mean_ = features.mean(0)
        centred = np.asarray(features - self.mean_, np.float64)
        covariance = centred.T @ centred / len(centred)
        penalty = 1e-3 * self.strength * np.trace(covariance) / len(covariance)
        onto = centred.T @ np.eye(len(self.classes_))[codes] / len(centred)
        self.weight_ = np.linalg.solve(covariance + penalty * np.eye(len(covariance)), onto)
        self.bias_ = np.bincount(codes) / len(codes)
        return self

    def predict(self, features):
        scores = (features - self.mean_) @ self.weight_ + self.bias_
        return self.classes_[scores.argmax(1)]

    def score(self, features, labels):
        return float((self.predict(features) == labels).mean())
