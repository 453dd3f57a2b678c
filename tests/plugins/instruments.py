"""A measurement of a network's features, and a probe on a target's."""

import numpy as np

from penultimate import register
from penultimate.measures import Features, Number, Yield

BOTH = (Features("train"), Features("test"))


@register.measurement(
    version=1,
    per="network",
    needs=BOTH,
    yields=(Yield("mean_norm", "length"), Yield("largest_norm", "length")),
)
def feature_scale(inputs, *, power=2.0):
    """The mean and the largest norm of the features."""
    for split in ("train", "test"):
        norms = (np.abs(np.asarray(inputs.features(split).features)) ** power).sum(1) ** (1 / power)
        yield Number("mean_norm", float(norms.mean()), "length", split)
        yield Number("largest_norm", float(norms.max()), "length", split)


@register.measurement(version=1, per="target", needs=BOTH, yields=(Yield("nearest_mean_top1", "fraction"),))
def nearest_mean(inputs, *, order=2):
    """The accuracy of the class whose mean is nearest."""
    train, test = inputs.features("train"), inputs.features("test")
    classes = np.unique(train.labels)
    means = np.stack([train.features[train.labels == label].mean(0) for label in classes])
    distances = np.linalg.norm(test.features[:, None] - means, ord=order, axis=-1)
    right = classes[distances.argmin(1)] == test.labels
    yield Number("nearest_mean_top1", float(right.mean()), "fraction", "test")
