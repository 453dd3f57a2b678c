"""A metric: a number, or {name: number}, of a network's features of the source's training or test images.

    penultimate check mine.py
    penultimate run smoke --plugin mine.py --set "measure=accuracy, linear, dimensions"
    penultimate show plugins --allow-limited

`bank` has features [n m], labels [n] and ids [n] as NumPy arrays.
"""

import numpy as np

from penultimate import register
from penultimate.metrics import UndefinedError


@register.metric
def dimensions(bank, *, power=2):
    """The effective dimension of the features: 1 if they vary in one direction, m if equally in all."""
    variances = np.linalg.svd(bank.features - bank.features.mean(0), compute_uv=False) ** 2
    if not variances.any():
        raise UndefinedError("the features are constant")
    shares = variances / variances.sum()
    return float((shares**power).sum() ** (1 / (1 - power)))
