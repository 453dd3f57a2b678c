"""Small problems that the probes' tests share."""

from __future__ import annotations

import numpy as np
import pytest


def blobs(seed=0, examples=40, features=3, classes=3, spread=1.0):
    """Gaussian clusters; every class occurs."""
    generator = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(classes), generator.integers(0, classes, examples - classes)])
    centers = generator.normal(size=(classes, features)) * 1.5
    return centers[codes] + spread * generator.normal(size=(examples, features)), codes


@pytest.fixture
def problem():
    return blobs()
