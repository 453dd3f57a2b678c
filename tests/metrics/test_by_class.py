"""Class separation of examples that come class by class: the same value from O(m) numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from penultimate.metrics.separation import SeparationAccumulator, class_separation


def by_class(seed: int, sizes: tuple[int, ...], dimensions: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Features of classes of these sizes, one class after the other, the classes in no order."""
    random = np.random.default_rng(seed)
    labels = np.repeat(random.permutation(len(sizes)), sizes)
    centres = random.normal(size=(len(sizes), dimensions))
    return np.maximum(centres[labels] + random.normal(size=(len(labels), dimensions)) + 0.5, 0), labels


@settings(max_examples=25)
@given(
    st.integers(0, 10_000),
    st.lists(st.integers(1, 9), min_size=2, max_size=6).map(tuple),
    st.lists(st.integers(0, 50), max_size=4),
)
@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_any_cut_gives_the_value_of_all_examples(
    distance: str, seed: int, sizes: tuple[int, ...], cuts: list[int]
) -> None:
    features, labels = by_class(seed, sizes)
    seen = SeparationAccumulator(distance=distance, by_class=True)
    for part, names in zip(
        np.split(features, sorted(min(cut, len(labels)) for cut in cuts)),
        np.split(labels, sorted(min(cut, len(labels)) for cut in cuts)),
        strict=True,
    ):
        if len(names):
            seen.update(part, names)
    assert seen.compute() == pytest.approx(class_separation(features, labels, distance), rel=1e-10, abs=1e-12)
    assert seen.examples == len(labels)


def test_the_state_does_not_grow_with_the_classes() -> None:
    seen = SeparationAccumulator(by_class=True)
    for label in range(300):
        seen.update(np.random.default_rng(label).normal(size=(2, 50)), [label, label])
    kept = [value for value in vars(seen._moments).values() if isinstance(value, torch.Tensor)]
    assert sum(value.numel() for value in kept) <= 3 * 50
