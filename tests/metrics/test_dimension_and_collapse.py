"""CDNV, NCTI, ranks and intrinsic dimensions against literal equations and scikit-learn; bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.dimension import SMALL, intrinsic_dimension, spectrum_shape
from penultimate.metrics.target_collapse import SHRINKAGE, cdnv, ncti_terms


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


@pytest.mark.parametrize(("n", "m", "classes"), [(60, 7, 4), (30, 3, 6), (20, 40, 3)])
def test_the_terms_of_ncti_are_those_of_scikit_learns_discriminant(n: int, m: int, classes: int) -> None:
    features, labels = example(1, n, m, classes)
    counts = np.bincount(labels)
    probabilities = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE).fit(features, labels)
    posteriors = probabilities.predict_proba(features)
    terms = ncti_terms(features, labels)
    assert terms.nearest == pytest.approx(posteriors[np.arange(n), labels].mean(), rel=1e-9)
    within = sum(np.linalg.norm(posteriors[labels == each], "nuc") for each in range(classes))
    assert terms.within == pytest.approx(np.log(within / np.sqrt(counts).sum()), rel=1e-9, abs=1e-12)
    # The directions of the means in the metric of the covariance: those of the generalised eigenproblem.
    centred = features - features.mean(0)
    means = np.stack([centred[labels == each].mean(0) for each in range(classes)])
    residuals = centred - means[labels]
    scatter = residuals.T @ residuals / n
    scatter = (1 - SHRINKAGE) * scatter + SHRINKAGE * np.trace(scatter) / m * np.eye(m)
    whitened = np.linalg.solve(np.linalg.cholesky(scatter), means.T).T
    basis = np.linalg.qr((whitened * np.sqrt(counts)[:, None]).T)[0][:, : min(classes - 1, m)]
    coordinates = np.linalg.solve(np.linalg.cholesky(scatter), centred.T).T @ basis
    assert terms.simplex == pytest.approx(np.linalg.norm(coordinates, "nuc") / n, rel=1e-9)
    assert ncti_terms(1e3 * features, labels) == pytest.approx(terms, rel=1e-7, abs=1e-9)


def test_the_spectrum_is_numpys() -> None:
    random = np.random.default_rng(2)
    features = random.normal(size=(300, 40)) * np.arange(1, 41.0) ** -0.8 + 0.3
    shape = spectrum_shape(features)
    shares = np.linalg.svd(features, compute_uv=False)
    shares = shares / shares.sum() + SMALL
    assert shape.rankme == pytest.approx(math.exp(-(shares * np.log(shares)).sum()), rel=1e-9)
    variances = np.linalg.eigvalsh(np.cov(features.T))[::-1]
    assert shape.stable_rank == pytest.approx(variances.sum() / variances[0], rel=1e-9)
    ranks = np.arange(5, 41)
    slope = np.polyfit(np.log(ranks), np.log(variances[4:]), 1, w=ranks**-0.5)[0]
    assert shape.alpha == pytest.approx(-slope, rel=1e-9)


def literal_dimensions(points: np.ndarray, k: int) -> tuple[float, float]:
    distances = np.sort(cdist(points, points), axis=1)[:, 1:]
    ratios = np.sort(distances[:, 1] / distances[:, 0])[: int(0.9 * len(points))]
    share = np.arange(1, len(ratios) + 1) / len(points)
    fitted = np.linalg.lstsq(np.log(ratios)[:, None], -np.log(1 - share), rcond=None)[0][0]
    inverses = [np.mean(np.log(row[k - 1] / row[: k - 1])) for row in distances]
    return float(fitted), float(1 / np.mean(inverses))


@pytest.mark.parametrize(("n", "m", "k"), [(200, 3, 20), (50, 30, 5), (12, 2, 11)])
def test_intrinsic_dimensions_are_the_literal_ones(n: int, m: int, k: int) -> None:
    points = np.random.default_rng(3).normal(size=(n, m)) + 100
    found = intrinsic_dimension(points, k)
    assert found[:2] == pytest.approx(literal_dimensions(points, k), rel=1e-9)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_a_sheet_in_many_dimensions_has_its_own(dimension: int) -> None:
    random = np.random.default_rng(4)
    sheet = np.tanh(random.random((1500, dimension)) @ random.normal(size=(dimension, 30)))
    found = intrinsic_dimension(sheet)
    assert found.two_nn == pytest.approx(dimension, rel=0.15)
    assert found.mle == pytest.approx(dimension, rel=0.15)


def test_copies_count_once() -> None:
    points = np.random.default_rng(5).normal(size=(60, 4))
    assert intrinsic_dimension(np.r_[points, points[:20]]) == intrinsic_dimension(points)
    with pytest.raises(UndefinedError, match="saw 1"):
        intrinsic_dimension(np.ones((30, 2)))


def test_what_has_no_value_says_so() -> None:
    features, labels = example()
    for measure in (cdnv, ncti_terms):
        with pytest.raises(UndefinedError, match="class 0 alone"):
            measure(features, np.zeros(len(labels), int))
        with pytest.raises(RequestError, match="NaN"):
            measure(np.where(np.arange(7) == 3, np.nan, features), labels)
    with pytest.raises(UndefinedError, match="means of two classes"):
        cdnv(np.ones((4, 2)), [0, 0, 1, 1])
    with pytest.raises(UndefinedError, match="nothing is left within"):
        ncti_terms(np.eye(4)[labels], labels)
    with pytest.raises(RequestError, match="shrinkage"):
        ncti_terms(features, labels, 0.0)
    with pytest.raises(UndefinedError, match="fills no direction"):
        spectrum_shape(np.full((5, 3), 2.5))
    for measure in (spectrum_shape, intrinsic_dimension):
        with pytest.raises(RequestError, match="NaN"):
            measure(np.full((9, 3), np.nan))
