"""LogME, H-score and TransRate against their literal equations and scikit-learn; invariances; bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.covariance import LedoitWolf
from sklearn.linear_model import BayesianRidge
from tests.oracles import transferability as oracle

import penultimate as pu
from penultimate import RequestError
from penultimate.metrics import UndefinedError

SIZES = [((9, 1, 40, 3), 6), ((5, 5, 5), 4), ((2, 30), 3), ((4, 3, 5), 12), ((4, 3, 5), 30), ((20, 9), 1)]
IDS = ["unbalanced", "balanced", "two classes", "as many dimensions", "more dimensions", "one dimension"]
seeds = st.integers(0, 10_000)


def example(seed: int, sizes: tuple[int, ...] = (9, 1, 40, 3), m: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Clustered post-ReLU features in random order, of classes of the given sizes."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centers = random.normal(size=(len(sizes), m))
    return np.maximum(centers[labels] + random.normal(size=(len(labels), m)) + 0.7, 0), labels


@pytest.mark.parametrize(("sizes", "m"), SIZES, ids=IDS)
def test_scores_equal_the_literal_equations(sizes: tuple[int, ...], m: int) -> None:
    features, labels = example(1, sizes, m)
    assert pu.h_score(features, labels) == pytest.approx(oracle.h_score(features, labels), rel=1e-9)
    for epsilon in (1e-4, 1.0):
        expected = oracle.transrate(features, labels, epsilon)
        assert pu.transrate(features, labels, epsilon) == pytest.approx(expected, rel=1e-7, abs=1e-9)
    if m < len(labels):
        assert pu.logme(features, labels) == pytest.approx(oracle.logme(features, labels), abs=1e-9)


def test_logme_of_more_dimensions_than_examples_is_that_of_a_model_without_noise() -> None:
    """The limit t -> 0 of log N(y; 0, (FF' + tI)/a), where the literal matrices lose digits."""
    features, labels = example(2, (4, 3, 5), 30)
    products, n = features @ features.T, len(labels)
    limits = []
    for c in range(3):
        y = (labels == c).astype(float)
        misfit = y @ np.linalg.solve(products, y) / n
        limits.append(-(math.log(2 * math.pi * misfit) + 1 + np.linalg.slogdet(products)[1] / n) / 2)
    assert pu.logme(features, labels) == pytest.approx(np.mean(limits), rel=1e-10)
    assert pu.logme(features, labels) == pytest.approx(oracle.logme(features, labels), abs=1e-4)


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        ([[5, 2, 7], [2, 0, 3], [6, 7, 3], [5, 5, 0], [6, 7, 3], [7, 3, 6]], [0, 1, 0, 1, 0, 1]),
        ([[1, -1], [2, -2], [0, -1], [0, 5], [1, 1]], [1, 0, 1, 1, 0]),
        ([[0, -1], [3, 0], [6, 2], [2, -1], [3, -1]], [1, 1, 1, 0, 0]),
        ([[3, 0, 0], [0, 1, 0], [0, 0, 0], [3, 0, 0], [0, 1, 1]], [0, 1, 0, 1, 1]),
        ([[1], [0], [0], [0], [0], [0]], [0, 0, 0, 1, 1, 1]),
    ],
    ids=["three columns", "two columns", "two more", "rank of less than its columns", "nothing explained"],
)
def test_logme_is_the_highest_of_several_maxima(rows: list[list[int]], labels: list[int]) -> None:
    features = np.array(rows, float)
    assert pu.logme(features, labels) == pytest.approx(oracle.logme(features, labels), abs=1e-9)


def by_the_spectrum(features: np.ndarray, labels: np.ndarray) -> float:
    """The best evidence on a grid of 60,000 ratios and a second one about its best, from NumPy's SVD."""
    n = len(features)
    left_vectors, singular, _ = np.linalg.svd(features, full_matrices=False)
    kept = singular**2 > 8 * max(features.shape) * np.finfo(float).eps * singular.max() ** 2
    left_vectors, squares = left_vectors[:, kept], singular[kept] ** 2
    found = []
    for c in np.unique(labels):
        y = (labels == c).astype(float)
        fitted = (left_vectors.T @ y) ** 2
        rest = ((y - left_vectors @ (left_vectors.T @ y)) ** 2).sum() if n > len(squares) else 0.0

        def at(x: np.ndarray, fitted: np.ndarray = fitted, rest: float = rest) -> np.ndarray:
            t = np.exp(x)
            misfit = (fitted / (squares + t[:, None])).sum(1) + rest / t
            determinant = np.log(squares + t[:, None]).sum(1) + (n - len(squares)) * x
            return -(np.log(2 * np.pi * misfit / n) + 1 + determinant / n) / 2

        grid = np.linspace(np.log(squares.min() * 1e-18), np.log(squares.max() * 1e12), 30_001)
        best = grid[np.clip(at(grid).argmax() + np.array([-1, 1]), 0, len(grid) - 1)]
        found.append(at(np.linspace(*best, 3001)).max())
    return float(np.mean(found))


@settings(max_examples=25)
@given(seeds, st.integers(3, 20), st.integers(1, 25), st.sampled_from(["whole", "signs", "normal", "mixed"]))
def test_logme_reaches_the_maximum_of_the_evidence(seed: int, n: int, m: int, kind: str) -> None:
    """Small whole numbers, repeated rows, columns of very different scales; n below and above m."""
    random = np.random.default_rng(seed)
    features = {
        "whole": lambda: random.integers(0, 8, (n, m)).astype(float),
        "signs": lambda: random.integers(-1, 2, (n, m)).astype(float),
        "normal": lambda: random.normal(size=(n, m)),
        "mixed": lambda: random.normal(size=(n, m)) * 10.0 ** random.uniform(-4, 4, m),
    }[kind]()
    labels = np.arange(n) % 2
    assume(features.any())
    try:
        score = pu.logme(features, labels)
    except UndefinedError:
        assume(False)
    assert score == pytest.approx(by_the_spectrum(features, labels), abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_logme_is_scikit_learns_evidence(seed: int) -> None:
    features, labels = example(seed, (30, 50, 20), 7)
    model = BayesianRidge(
        max_iter=5000,
        tol=1e-12,
        alpha_1=0,
        alpha_2=0,
        lambda_1=0,
        lambda_2=0,
        compute_score=True,
        fit_intercept=False,
    )
    evidences = [model.fit(features, (labels == c).astype(float)).scores_[-1] for c in range(3)]
    assert pu.logme(features, labels) == pytest.approx(np.mean(evidences) / len(labels), rel=1e-9)


@pytest.mark.parametrize(("sizes", "m"), SIZES, ids=IDS)
def test_the_h_score_is_that_of_scikit_learns_shrinkage(sizes: tuple[int, ...], m: int) -> None:
    features, labels = example(3, sizes, m)
    fitted = LedoitWolf().fit(features)
    means = np.stack([features[labels == c].mean(0) for c in range(len(sizes))])[labels]
    between = np.cov(means, rowvar=False, bias=True).reshape(m, m)
    score = (1 - fitted.shrinkage_) * np.trace(np.linalg.solve(fitted.covariance_, between))
    assert pu.h_score(features, labels) == pytest.approx(score, rel=1e-9)


def test_features_that_fit_without_noise_have_no_logme() -> None:
    """Fewer directions than examples, and no example off its class's corner: the evidence has no bound."""
    labels = np.arange(3000) % 3
    corners = np.eye(3)[labels]
    with pytest.raises(UndefinedError, match="follow from the features"):
        pu.logme(corners, labels)
    assert pu.h_score(corners, labels) == pytest.approx(2, rel=1e-2)


def test_constant_features_say_nothing() -> None:
    labels = np.arange(6) % 2
    assert pu.transrate(np.full((6, 3), 0.1), labels) == pytest.approx(0, abs=1e-9)
    noise = -math.log(2 * math.pi * 0.5) / 2 - 0.5
    assert pu.logme(np.zeros((6, 3)), labels) == pytest.approx(noise)
    with pytest.raises(RequestError, match="epsilon must be a number in"):
        pu.transrate(np.eye(4), [0, 0, 1, 1], epsilon=0)
