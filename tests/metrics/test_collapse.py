"""Simplex-ETF measures against their literal equations; exact frames; the isotropic identities; bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestCentroid
from tests.oracles import collapse as oracle

from penultimate import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.collapse import NeuralCollapse, cdnv, neural_collapse, variability_collapse
from penultimate.metrics.separation import class_separation

seeds = st.integers(0, 10_000)
MEASURES = NeuralCollapse._fields[:8]


def example(seed: int, sizes: tuple[int, ...] = (9, 1, 40, 3), dimensions: int = 6, offset: float = 0.0):
    """Clustered features in random order, of classes of the given sizes, with weights and biases."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centers = random.normal(size=(len(sizes), dimensions))
    features = centers[labels] + random.normal(size=(len(labels), dimensions)) + offset
    weight = centers + random.normal(size=centers.shape)
    return features, labels, weight, random.normal(size=len(sizes))


def compare(found: NeuralCollapse, expected: dict[str, float], tolerance: float) -> None:
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, rel=tolerance, abs=tolerance), name


def simplex(classes: int, dimensions: int, seed: int = 0):
    """The corners of a simplex ETF, centred, in a random orientation: [classes dimensions]."""
    corners = np.eye(classes) - 1 / classes
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(dimensions, classes - 1)))[0]
    return corners @ np.linalg.svd(corners)[2][: classes - 1].T @ basis.T


@pytest.mark.parametrize(
    ("sizes", "dimensions"),
    [((9, 1, 40, 3), 6), ((5, 5, 5, 5, 5, 5, 5), 4), ((2, 30), 3), ((8,) * 12, 11), ((3, 4, 5), 200)],
    ids=["unbalanced", "full rank", "two classes", "just full rank", "far fewer classes"],
)
def test_equals_the_literal_equations(sizes: tuple[int, ...], dimensions: int) -> None:
    for seed in range(2):
        features, labels, weight, bias = example(seed, sizes, dimensions)
        found = neural_collapse(features, labels, weight, bias)
        expected = oracle.neural_collapse(features, labels.tolist(), weight, bias)
        assert set(expected) == {*MEASURES, "nc4"}
        compare(found, expected, 1e-9)
        assert found.rank == min(len(sizes) - 1, dimensions)


def test_a_strong_common_direction_does_not_cancel() -> None:
    features, labels, weight, bias = example(1, (20, 30, 40), 8, offset=30.0)
    single = features.astype(np.float32)
    expected = oracle.neural_collapse(single, labels.tolist(), weight, bias)
    compare(neural_collapse(single, labels, weight, bias), expected, 1e-9)
    far = features + 1e6
    compare(
        neural_collapse(far, labels, weight),
        oracle.neural_collapse(far - 1e6, labels.tolist(), weight),
        1e-7,
    )


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_an_exact_simplex_etf_is_at_zero(classes: int) -> None:
    corners = simplex(classes, 128)
    labels = np.tile(np.arange(classes), 3)
    shift = np.random.default_rng(1).normal(size=128)
    features = 4 * corners[labels] + shift
    found = neural_collapse(features, labels, 0.1 * corners, bias=-0.1 * corners @ shift)
    assert max(getattr(found, name) for name in MEASURES) < 2e-14
    assert found.nc4 == 0
    assert found.rank == classes - 1


@pytest.mark.parametrize(("classes", "dimensions"), [(5, 12), (10, 9), (16, 15)])
def test_isotropic_means_of_a_simplex(classes: int, dimensions: int) -> None:
    """Tr(S_W S_B^+)/C = (C-1)^2/(C P) (1/R^2 - 1) for isotropic covariances with C - 1 <= P."""
    corners = simplex(classes, dimensions)
    features, labels = isotropic(corners, 0.3)
    r2 = class_separation(features, labels, "euclidean")
    found = neural_collapse(features, labels, corners).trace_sw_pinv_sb_over_c
    predicted = (classes - 1) ** 2 / (classes * dimensions) * (1 / r2 - 1)
    assert found == pytest.approx(predicted, rel=1e-12)


def isotropic(corners, spread: float):
    """Around each corner two examples on every axis: covariance spread^2 / dimensions times the identity."""
    steps = spread * np.concatenate([np.eye(corners.shape[1]), -np.eye(corners.shape[1])])
    labels = np.repeat(np.arange(len(corners)), len(steps))
    return corners[labels] + np.tile(steps, (len(corners), 1)), labels


@given(seed=seeds, scale=st.floats(1e-4, 1e4))
@settings(max_examples=15)
def test_rotation_shift_scale_and_order_do_not_matter(seed: int, scale: float) -> None:
    features, labels, weight, bias = example(seed, (4, 9, 2, 5), 5)
    random = np.random.default_rng(seed + 1)
    rotation = np.linalg.qr(random.normal(size=(5, 5)))[0]
    shift, order, renamed = random.normal(size=5), random.permutation(len(labels)), random.permutation(4)
    moved = (scale * features @ rotation + shift)[order]
    turned = np.empty_like(weight)
    turned[renamed] = weight @ rotation
    biases = np.empty_like(bias)
    biases[renamed] = scale * bias - (weight @ rotation) @ shift
    expected = neural_collapse(features, labels, weight, bias)
    found = neural_collapse(moved, renamed[labels][order], turned, biases)
    compare(found, {name: getattr(expected, name) for name in MEASURES}, 1e-8)
    assert found.nc4 == expected.nc4


def test_nc4_compares_with_the_nearest_class_mean() -> None:
    features, labels, weight, bias = example(5, (30, 20, 25), 4)
    nearest = NearestCentroid().fit(features, labels).predict(features)
    decided = (features @ weight.T + bias).argmax(1)
    share = float((nearest != decided).mean())
    assert 0 < share < 1
    assert neural_collapse(features, labels, weight, bias).nc4 == pytest.approx(share)
    assert neural_collapse(features, labels, weight, predictions=decided).nc4 == pytest.approx(share)
    assert neural_collapse(features, labels, weight).nc4 is None
    biased = (features @ weight.T).argmax(1)
    assert (biased != decided).any()


def test_classes_without_examples_have_no_part() -> None:
    features, labels, weight, bias = example(6, (5, 6, 7), 4)
    wider = np.insert(weight, 1, 50.0, axis=0)
    moved = np.array([0, 2, 3])[labels]
    without = neural_collapse(features, labels, weight)
    found = neural_collapse(features, moved, wider)
    assert (found[:-1], found.classes) == (without[:-1], (0, 2, 3))
    # but the network may say them, and is then at odds with the nearest mean
    loud = np.insert(bias, 1, 1e9)
    assert neural_collapse(features, moved, wider, loud).nc4 == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": np.ones((4, 2))}, r"\[4, 2\] for 3 feature dimensions"),
        ({"weight": None}, "the weight of the final layer is missing"),
        ({"weight": np.full((3, 3), np.inf)}, "weight hold NaN, infinity .* in rows 0, 1 and 2"),
        ({"bias": [0.0, 1.0]}, "bias must be 3 finite numbers"),
        ({"bias": [0.0, np.nan, 1.0]}, "bias must be 3 finite numbers"),
        ({"bias": [0.0, 0.0, 1.0], "predictions": [0, 1, 2, 0]}, "bias or the predictions, not both"),
        ({"predictions": [0, 1, 2, 3]}, r"predictions must be 0\.\.2; not so in row 3"),
        ({"labels": None}, "labels are missing"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], message: str) -> None:
    given = {"features": np.arange(12.0).reshape(4, 3), "labels": [0, 1, 2, 0], "weight": np.eye(3)}
    with pytest.raises(RequestError, match=message):
        neural_collapse(**{**given, **change})


def test_what_has_no_value_is_undefined() -> None:
    features, labels, weight, _ = example(11)
    with pytest.raises(UndefinedError, match="needs two classes or more; saw class 2 alone"):
        neural_collapse(features, np.full_like(labels, 2), weight)
    for constant in (np.full_like(features, 0.1), np.full(features.shape, 0.1, np.float32)):
        with pytest.raises(UndefinedError, match="means of all 4 classes are equal"):
            neural_collapse(constant, labels, weight)
    with pytest.raises(UndefinedError, match="all weights are 0"):
        neural_collapse(features, labels, np.zeros_like(weight))


def test_linearly_dependent_means_lower_the_rank() -> None:
    features, labels, weight, _ = example(13, (10, 10, 10, 10), 6)
    flat = features.copy()
    for c in range(4):  # the means of four classes on one line
        flat[labels == c] += c * np.array([1.0, 0, 0, 0, 0, 0]) - flat[labels == c].mean(0)
    found = neural_collapse(flat, labels, weight)
    assert found.rank == 1
    along = np.mean([flat[labels == c, 0].var() for c in range(4)])
    assert found.trace_sw_pinv_sb_over_c == pytest.approx(along / np.var([0, 1, 2, 3]) / 4)


def test_variability_is_the_trace_alone() -> None:
    features, labels, weight, _ = example(4, (9, 1, 40, 3), 6, offset=5.0)
    trace = neural_collapse(features, labels, weight).trace_sw_pinv_sb_over_c
    assert variability_collapse(features, labels) == pytest.approx(trace, rel=1e-12)


def test_cdnv_is_the_mean_of_its_literal_pairs() -> None:
    features, labels, _, _ = example(3, (9, 4, 12, 20), 7, offset=5.0)
    pairs = []
    for one, other in itertools.combinations(range(4), 2):
        a, b = features[labels == one], features[labels == other]
        apart = ((a.mean(0) - b.mean(0)) ** 2).sum()
        pairs.append((a.var(0).sum() + b.var(0).sum()) / (2 * apart))
    assert cdnv(features, labels) == pytest.approx(np.mean(pairs), rel=1e-9)
    assert cdnv(features + 1e4, labels) == pytest.approx(np.mean(pairs), rel=1e-7)
    assert cdnv(np.eye(4)[labels], labels) == pytest.approx(0, abs=1e-15)
