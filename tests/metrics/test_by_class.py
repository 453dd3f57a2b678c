"""Class separation of examples that come class by class: the same value from O(m) numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import separation as oracle

from penultimate import RequestError
from penultimate.metrics import UndefinedError, separation
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


def test_it_is_the_double_sum_with_a_strong_common_direction_and_zero_vectors() -> None:
    features, labels = by_class(3, (4, 1, 7))
    features[:, 0] += 30
    features[[2, 9]] = 0
    seen = SeparationAccumulator(by_class=True).update(features, labels)
    assert seen.compute() == pytest.approx(oracle.class_separation(features, labels, "cosine"), rel=1e-12)
    assert seen.zero_vectors == 2


def test_blocks_do_not_change_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = by_class(1, (5, 9, 2))
    whole = SeparationAccumulator(by_class=True).update(features, labels).compute()
    monkeypatch.setitem(separation.BLOCK_ELEMENTS, "cpu", 18)
    assert SeparationAccumulator(by_class=True).update(features, labels).compute() == pytest.approx(whole)


def test_the_state_does_not_grow_with_the_classes() -> None:
    seen = SeparationAccumulator(by_class=True)
    for label in range(300):
        seen.update(np.random.default_rng(label).normal(size=(2, 50)), [label, label])
    kept = [value for value in vars(seen._moments).values() if isinstance(value, torch.Tensor)]
    assert sum(value.numel() for value in kept) <= 3 * 50


def test_a_class_that_comes_back_is_refused_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = by_class(2, (3, 4))
    seen = SeparationAccumulator(by_class=True).update(features, labels)
    before = seen.compute()
    first = int(labels[0])
    for bad in ([first], [int(labels[-1]), first]):
        with pytest.raises(RequestError, match=f"class {first} comes back: sort them by label"):
            seen.update(np.ones((len(bad), 6)), bad)
    monkeypatch.setitem(separation.BLOCK_ELEMENTS, "cpu", 6)
    with pytest.raises(RequestError, match="row 1"):
        seen.update(np.array([np.ones(6), np.full(6, np.nan)]), [7, 7])
    with pytest.raises(RequestError, match="comes back"):
        seen.update(np.ones((3, 6)), [8, 9, 8])
    assert (seen.compute(), seen.examples) == (before, 7)
    with pytest.raises(RequestError, match="do not merge"):
        seen.merge(SeparationAccumulator(by_class=True))


def test_what_has_no_value_is_said() -> None:
    seen = SeparationAccumulator(by_class=True).update(np.ones((3, 2)), [0, 0, 1])
    with pytest.raises(UndefinedError, match="equal in direction"):
        seen.compute()
    with pytest.raises(UndefinedError, match="class 4 alone"):
        SeparationAccumulator(by_class=True).update(np.ones((3, 2)), [4, 4, 4]).compute()
