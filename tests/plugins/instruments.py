"""A metric, and a probe in scikit-learn's form."""

import numpy as np

from penultimate import register


@register.metric
def feature_scale(bank, *, power=2.0):
    """The mean and the largest norm of the features."""
    norms = (np.abs(np.asarray(bank.features)) ** power).sum(1) ** (1 / power)
    return {"mean_norm": float(norms.mean()), "largest_norm": float(norms.max())}


@register.probe(name="nearest_mean")
class NearestMean:
    """The class whose mean is nearest."""

    def __init__(self, *, order=2):
        self.order = order

    def fit(self, features, labels):
        self.classes_ = np.unique(labels)
        self.means_ = np.stack([features[labels == label].mean(0) for label in self.classes_])
        return self

    def predict(self, features):
        distances = np.linalg.norm(features[:, None] - self.means_, ord=self.order, axis=-1)
        return self.classes_[distances.argmin(1)]

    def score(self, features, labels):
        return float((self.predict(features) == labels).mean())
