"""CDNV and ranks against literal equations; bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.dimension import SMALL, rankme, stable_rank
from penultimate.metrics.target_collapse import cdnv


def example(seed: int = 0, n: int = 60, m: int = 7, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = np.r_[np.arange(classes), np.arange(classes), random.integers(0, classes, n - 2 * classes)]
    centres = 2 * random.normal(size=(classes, m))
    return centres[labels] + random.normal(size=(n, m)) + 5, labels


def test_cdnv_is_the_mean_of_its_literal_pairs() -> None:
    features, labels = example()
    pairs = []
    for one, other in itertools.combinations(range(4), 2):
        a, b = features[labels == one], features[labels == other]
        apart = ((a.mean(0) - b.mean(0)) ** 2).sum()
        pairs.append((a.var(0).sum() + b.var(0).sum()) / (2 * apart))
    assert cdnv(features, labels) == pytest.approx(np.mean(pairs), rel=1e-9)
    assert cdnv(features + 1e4, labels) == pytest.approx(np.mean(pairs), rel=1e-7)
    assert cdnv(np.eye(4)[labels], labels) == pytest.approx(0, abs=1e-15)


def test_the_ranks_are_numpys() -> None:
    random = np.random.default_rng(2)
    features = random.normal(size=(300, 40)) * np.arange(1, 41.0) ** -0.8 + 0.3
    shares = np.linalg.svd(features, compute_uv=False)
    shares = shares / shares.sum() + SMALL
    assert rankme(features) == pytest.approx(math.exp(-(shares * np.log(shares)).sum()), rel=1e-9)
    variances = np.linalg.eigvalsh(np.cov(features.T))[::-1]
    assert stable_rank(features) == pytest.approx(variances.sum() / variances[0], rel=1e-9)


def test_what_has_no_value_says_so() -> None:
    features, labels = example()
    with pytest.raises(UndefinedError, match="class 0 alone"):
        cdnv(features, np.zeros(len(labels), int))
    with pytest.raises(UndefinedError, match="means of two classes"):
        cdnv(np.ones((4, 2)), [0, 0, 1, 1])
    with pytest.raises(UndefinedError, match="fills no direction"):
        stable_rank(np.full((5, 3), 2.5))
    with pytest.raises(UndefinedError, match="all 0"):
        rankme(np.zeros((5, 3)))
    for measure in (rankme, stable_rank, lambda broken: cdnv(broken, [0] * 5 + [1] * 4)):
        with pytest.raises(RequestError, match="NaN"):
            measure(np.full((9, 3), np.nan))
