"""Class separation against the paper's double sums, linear regression and CKA; accumulation; extremes."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from tests.oracles import separation as oracle

from penultimate import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.separation import DISTANCES, SeparationAccumulator, class_separation

every_distance = pytest.mark.parametrize("distance", DISTANCES)


def example(seed: int, sizes: tuple[int, ...] = (1, 40, 3), dimensions: int = 6, apart: float = 1.0):
    """Clustered, post-ReLU-like features of classes of the given sizes, in random order."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centers = apart * random.normal(size=(len(sizes), dimensions))
    return np.maximum(centers[labels] + random.normal(size=(len(labels), dimensions)) + 0.5, 0), labels


@every_distance
@settings(max_examples=20)
@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(2, 9), min_size=2, max_size=5).map(tuple),
    zeros=st.integers(0, 3),
)
def test_it_is_the_double_sum_over_pairs_whichever_way_the_examples_come(
    distance: str, seed: int, sizes: tuple[int, ...], zeros: int
) -> None:
    features, labels = example(seed, sizes)
    features[:zeros] = 0
    biased = oracle.class_separation(features.tolist(), labels.tolist(), distance)
    unbiased = oracle.unbiased_class_separation(features.tolist(), labels.tolist(), distance)
    expected = pytest.approx((biased, unbiased), abs=1e-13)
    both = [class_separation(features, labels, distance, unbiased=each) for each in (False, True)]
    assert tuple(both) == expected
    center = features.mean(0) if distance == "cosine_centered" else None
    batches = SeparationAccumulator(distance, center)
    for start in range(0, len(labels), 3):
        batches.update(features[start : start + 3], labels[start : start + 3])
    by_class = SeparationAccumulator(distance, center, by_class=True)
    for row in np.argsort(labels):
        by_class.update(features[row : row + 1], labels[row : row + 1])
    for seen in (batches, by_class):
        assert (seen.compute(), seen.compute(unbiased=True)) == expected


@every_distance
@pytest.mark.parametrize("sizes", [(1, 40, 3), (1, 1), (1,) * 5])
def test_classes_of_one_example_have_the_biased_value_alone(distance: str, sizes: tuple[int, ...]) -> None:
    features, labels = example(1, sizes)
    expected = oracle.class_separation(features.tolist(), labels.tolist(), distance)
    found = class_separation(features.astype(np.float32), labels, distance)
    assert class_separation(features, labels, distance) == pytest.approx(expected, abs=4e-15)
    assert found == pytest.approx(expected, abs=1e-6)
    assert found <= 1
    with pytest.raises(UndefinedError, match="two examples of every class; class 0 has one"):
        class_separation(features, labels, distance, unbiased=True)


def test_a_strong_common_direction_does_not_cancel() -> None:
    features, labels = example(4)
    far = features + 1e6
    expected = oracle.class_separation(far.tolist(), labels.tolist(), "euclidean")
    assert class_separation(far, labels, "euclidean") == pytest.approx(expected, abs=1e-9)
    assert separation_without_origin(far, labels) != pytest.approx(expected, abs=1e-6)


def separation_without_origin(points, labels) -> float:
    """The closed form about 0, in float64: what subtracting an origin first is for."""
    means = np.array([points[labels == k].mean(0) for k in np.unique(labels)])
    squares = np.mean([(points[labels == k] ** 2).sum(1).mean() for k in np.unique(labels)])
    return 1 - (squares - (means**2).sum(1).mean()) / (squares - (means.mean(0) ** 2).sum())


def test_euclidean_is_linear_regressions_r2_on_class_indicators() -> None:
    features, labels = example(5, (10, 10, 10))
    indicators = np.eye(3)[labels]
    fitted = LinearRegression().fit(indicators, features)
    # `score` would average the R^2 of the columns: here they are weighed by their variance
    residual = ((features - fitted.predict(indicators)) ** 2).sum()
    weighted = 1 - residual / ((features - features.mean(0)) ** 2).sum()
    assert class_separation(features, labels, "euclidean") == pytest.approx(weighted, abs=1e-13)


@every_distance
def test_collapsed_classes_are_fully_separate_and_equal_ones_not_at_all(distance: str) -> None:
    corners, labels = np.repeat(np.eye(3), 4, axis=0), np.repeat([0, 1, 2], 4)
    for unbiased in (False, True):
        assert class_separation(corners, labels, distance, unbiased=unbiased) == pytest.approx(1, abs=1e-14)
    assert class_separation(corners, np.tile([0, 1, 2, 3], 3), distance) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_classes_weigh_equally_whatever_their_size(distance: str) -> None:
    features, labels = example(7)
    twice = np.r_[np.arange(len(labels)), np.flatnonzero(labels == 1)]
    once = class_separation(features, labels, distance)
    assert class_separation(features[twice], labels[twice], distance) == pytest.approx(once, abs=1e-14)


@every_distance
def test_without_bias_the_mean_at_random_features_is_zero(distance: str) -> None:
    """Of 200 draws without classes; the paper's estimate is about 1/n."""
    values, biased = [], []
    for seed in range(200):
        features, labels = example(seed, (2, 3, 4, 6, 2, 3, 4, 6), apart=0.0)
        center = features.mean(0) if distance == "cosine_centered" else None
        seen = SeparationAccumulator(distance, center).update(features, labels)
        values.append(seen.compute(unbiased=True))
        biased.append(seen.compute())
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values)) < 3 * error < 0.03
    assert np.mean(biased) > 0.2


def test_without_bias_few_examples_of_a_class_read_as_many_do() -> None:
    """Four of sixty examples of a class: the mean is the value of all, the paper's is (1 - R2)/4 above it."""
    features, labels = example(1, (60,) * 20)
    whole = class_separation(features, labels, unbiased=True)
    random = np.random.default_rng(0)
    few, biased = [], []
    for _ in range(100):
        rows = np.concatenate(
            [random.choice(np.flatnonzero(labels == k), 4, replace=False) for k in range(20)]
        )
        few.append(class_separation(features[rows], labels[rows], unbiased=True))
        biased.append(class_separation(features[rows], labels[rows]))
    error = np.std(few) / np.sqrt(len(few))
    assert abs(np.mean(few) - whole) < 4 * error + 0.003
    assert np.mean(biased) - whole == pytest.approx((1 - whole) / 4, rel=0.1)


@every_distance
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_that_differ_by_their_rounding_have_no_separation(distance: str, dtype: type) -> None:
    features, labels = np.full((30, 5), 12345.678, dtype), np.arange(30) % 3
    last_bit = np.nextafter(features, np.inf, where=np.arange(30)[:, None] % 2 == 0, out=features.copy())
    for each in (features, last_bit if distance == "euclidean" else features):
        with pytest.raises(UndefinedError, match="30 examples are equal"):
            class_separation(each, labels, distance)
    one_direction = np.outer(np.linspace(0.1, 10, 30), np.arange(1, 6)).astype(dtype)
    if distance == "cosine":
        with pytest.raises(UndefinedError, match="equal in direction"):
            class_separation(one_direction, labels, distance)


def test_what_cannot_be_accumulated_is_said() -> None:
    features, labels = example(14, (3, 3))
    with pytest.raises(RequestError, match="Did you mean 'cosine_centered'"):
        class_separation(features, labels, "cosine_centred")
    with pytest.raises(RequestError, match="2 dimensions, where 6"):
        SeparationAccumulator().update(features, labels).update(features[:, :2], labels)
    with pytest.raises(RequestError, match="class by class, and class 0 comes back"):
        SeparationAccumulator(by_class=True).update(features[:3], [0, 1, 0])
    with pytest.raises(RequestError, match="integer class indices; got text"):
        SeparationAccumulator().update(features[:2], ["a", "b"])  # other names may come in other batches


def test_r2_is_not_the_cka_with_classes_that_the_paper_says_it_equals() -> None:
    """Section 3.3 calls them equivalent for balanced data; the identity is another one (NOTES.md)."""
    draw = np.random.default_rng(0)
    classes, each = 5, 20
    labels = np.repeat(np.arange(classes), each)
    features = draw.normal(size=(classes, 10))[labels] + draw.normal(size=(len(labels), 10))
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    centre = np.eye(len(labels)) - 1 / len(labels)
    cosines = centre @ unit @ unit.T @ centre
    alike = centre @ (labels[:, None] == labels) @ centre
    cka = (cosines * alike).sum() / np.linalg.norm(cosines) / np.linalg.norm(alike)
    r2 = class_separation(features, labels)
    assert (round(r2, 3), round(cka, 3)) == (0.433, 0.569)
    assert cka == pytest.approx(r2 * np.trace(cosines) / np.linalg.norm(cosines) / (classes - 1) ** 0.5)
    notes = (resources.files("penultimate.paper.published") / "NOTES.md").read_text()
    assert f"R² is {r2:.3f} and CKA {cka:.3f} for five classes of 20 images" in notes
