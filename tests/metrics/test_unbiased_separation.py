"""Class separation without the pairs of an example with itself: the double loop, and what it is for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import separation as oracle

import penultimate as pu
from penultimate.metrics import UndefinedError
from penultimate.metrics.separation import (
    DISTANCES,
    SeparationAccumulator,
    class_separation,
)

every_distance = pytest.mark.parametrize("distance", DISTANCES)
Array = npt.NDArray[np.float64]


def clustered(seed: int, sizes: tuple[int, ...], apart: float = 1.0) -> tuple[Array, npt.NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    features = apart * random.normal(size=(len(sizes), 6))[labels] + random.normal(size=(len(labels), 6))
    return features, labels


@every_distance
@settings(max_examples=15)
@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(2, 9), min_size=2, max_size=5).map(tuple),
    zeros=st.integers(0, 3),
)
def test_it_is_the_double_loop_whichever_way_the_examples_come(
    distance: str, seed: int, sizes: tuple[int, ...], zeros: int
) -> None:
    features, labels = clustered(seed, sizes)
    features[:zeros] = 0
    expected = oracle.unbiased_class_separation(features.tolist(), labels.tolist(), distance)
    close = pytest.approx(expected, abs=1e-13)
    assert pu.class_separation(features, labels, distance, unbiased=True) == close
    order = np.random.default_rng(seed).permutation(len(labels))
    batches = [(features[order[i : i + 3]], labels[order[i : i + 3]]) for i in range(0, len(labels), 3)]
    center = features.mean(0) if distance == "cosine_centered" else None
    whole = SeparationAccumulator(distance=distance, center=center)
    for batch in batches:
        whole.update(*batch)
    assert whole.compute(unbiased=True) == close
    one_by_one = SeparationAccumulator(distance=distance, center=center, by_class=True)
    for row, label in zip(features, labels, strict=True):
        one_by_one.update(row[None], [label])
    assert one_by_one.compute(unbiased=True) == close
    literal = oracle.class_separation(features.tolist(), labels.tolist(), distance)
    assert one_by_one.compute() == pytest.approx(literal, abs=1e-13)


@every_distance
def test_the_mean_at_random_features_is_zero(distance: str) -> None:
    """Of 200 draws without classes; the paper's estimate is about 1/n."""
    values, biased = [], []
    for seed in range(200):
        features, labels = clustered(seed, (2, 3, 4, 6, 2, 3, 4, 6), apart=0.0)
        center = features.mean(0) if distance == "cosine_centered" else None
        seen = SeparationAccumulator(distance=distance, center=center).update(features, labels)
        values.append(seen.compute(unbiased=True))
        biased.append(seen.compute())
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values)) < 3 * error < 0.03
    assert np.mean(biased) > 0.2


def test_few_examples_of_a_class_read_as_many_do() -> None:
    """Four of sixty examples of a class: the mean is the value of all, the paper's is (1 - R2)/4 above it."""
    features, labels = clustered(1, (60,) * 20)
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


def test_at_full_collapse_both_are_one() -> None:
    features, labels = np.eye(3)[[0, 0, 1, 1, 1, 2, 2]], [0, 0, 1, 1, 1, 2, 2]
    for distance in DISTANCES:
        assert class_separation(features, labels, distance, unbiased=True) == pytest.approx(1, abs=1e-14)


def test_a_class_of_one_example_is_refused_by_name() -> None:
    features, labels = clustered(0, (3, 1, 4))
    for by_class in (False, True):
        seen = SeparationAccumulator(by_class=by_class).update(features, labels)
        with pytest.raises(UndefinedError, match="two examples of every class; class 1 has one"):
            seen.compute(unbiased=True)
        assert seen.compute() == pytest.approx(class_separation(features, labels))
    several = class_separation(*clustered(0, (3, 2)), unbiased=True)
    assert several < class_separation(*clustered(0, (3, 2)))
    with pytest.raises(UndefinedError, match=r"3 classes \(0, ...\) have one"):
        class_separation(np.eye(3), [0, 1, 2], unbiased=True)
    with pytest.raises(UndefinedError, match="class 1 has one"):
        SeparationAccumulator(by_class=True).update(features[:4], labels[:4]).compute(unbiased=True)
