"""Agreement, votes and the tree against counting one by one; batches, ties and bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mode
from sklearn.metrics import accuracy_score
from tests.oracles import agreement as oracle

from penultimate import RequestError
from penultimate.metrics.agreement import (
    agreement,
    ensemble,
    half_and_half,
    pairwise_agreement,
)
from penultimate.metrics.dendrogram import dendrogram

seeds = st.integers(0, 10_000)


def example(seed: int, models: int = 4, n: int = 40, k: int = 4) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, k, n)
    guesses = random.integers(0, k, (models, n))
    return np.where(random.random((models, n)) < 0.5, labels, guesses), labels


@given(seed=seeds)
@settings(max_examples=30)
def test_pairs_against_counting(seed: int) -> None:
    predictions, labels = example(seed)
    found = pairwise_agreement(predictions, labels)
    for i, a in enumerate(predictions):
        for j, b in enumerate(predictions):
            same, together, alike = oracle.agreement(a.tolist(), b.tolist(), labels.tolist())
            one = agreement(a, torch.from_numpy(b), labels.tolist())
            assert one == found.pair(i, j)
            assert (one.same, one.both_right_or_wrong) == pytest.approx((same, together), abs=1e-15)
            assert one.same_when_both_wrong == (None if alike is None else pytest.approx(alike, abs=1e-15))
        assert found.accuracy[i] == pytest.approx(accuracy_score(labels, a), abs=1e-15)
    assert found.pair(1, 1).same == 1


def test_where_nothing_is_wrong_twice_there_is_no_share() -> None:
    one = agreement([0, 1, 2], [0, 1, 1], [0, 1, 2])
    assert (one.same_when_both_wrong, one.both_wrong, one.examples) == (None, 0, 3)
    found = pairwise_agreement([[0, 1, 2], [0, 1, 1], [1, 1, 1]], [0, 1, 2])
    assert np.isnan(found.same_when_both_wrong).tolist() == (found.both_wrong == 0).tolist()
    assert found.pair(1, 2).same_when_both_wrong == 1
    assert agreement([1], [1], [0]) == (1, 1, 1, 1, 1)


@given(seed=seeds, models=st.integers(1, 7))
@settings(max_examples=30)
def test_votes_against_counting_and_scipy(seed: int, models: int) -> None:
    predictions, _ = example(seed, models)
    found = ensemble(predictions)
    assert found.tolist() == oracle.modal(predictions.tolist())
    assert found.tolist() == mode(predictions, axis=0).mode.tolist()
    order = np.random.default_rng(seed).permutation(models)
    assert ensemble(predictions[order]).tolist() == found.tolist()


@given(seed=seeds, models=st.integers(2, 7))
@settings(max_examples=20)
def test_half_and_half_uses_every_seed_once(seed: int, models: int) -> None:
    a, b = example(seed, models)[0], example(seed + 1, models)[0]
    half = models // 2
    left, right = half_and_half(a, b)
    assert left.tolist() == oracle.modal([*a[:half].tolist(), *b[half : 2 * half].tolist()])
    assert right.tolist() == oracle.modal([*b[:half].tolist(), *a[half : 2 * half].tolist()])
    pure = ensemble(a[: 2 * half]).tolist()
    assert [one.tolist() for one in half_and_half(a, a)] == [pure, pure]


@given(seed=seeds, models=st.integers(1, 7))
@settings(max_examples=20)
def test_the_tree_against_merging_the_nearest(seed: int, models: int) -> None:
    random = np.random.default_rng(seed)
    similarity = random.random((models, models))
    similarity = (similarity + similarity.T) / 2
    tree = dendrogram(similarity)
    assert sorted(tree.order) == list(range(models))
    members = [{i} for i in range(models)]
    for merge in tree.merges:
        members.append(members[merge.left] | members[merge.right])
        assert merge.models == len(members[-1])
    expected = oracle.average_linkage(similarity.tolist())
    assert [cluster for cluster, _ in expected] == members[models:]
    assert [merge.distance for merge in tree.merges] == pytest.approx([far for _, far in expected])
    for cluster in members[models:]:  # no branch crosses another
        places = sorted(tree.order.index(model) for model in cluster)
        assert places == list(range(places[0], places[0] + len(places)))


def test_bad_input_is_named() -> None:
    predictions, labels = example(0, models=2, n=4)
    for call, message in [
        (lambda: agreement(predictions[0], predictions[1][1:], labels), "4 examples, but 3 .*model 1"),
        (lambda: agreement(*predictions, labels[1:]), "4 examples, but 3 labels"),
        (lambda: agreement(*predictions, labels - 9), "labels must be 0 or more"),
        (
            lambda: agreement(predictions[0] - 9, predictions[1], labels),
            "predictions of model 0 must be 0 or",
        ),
        (lambda: agreement(predictions[0] * 0.5, predictions[1], labels), "model 0 must be integer class"),
        (lambda: agreement(np.eye(4), predictions[1], labels), "argmax"),
        (lambda: agreement(labels[:0], labels[:0], labels[:0]), "no examples"),
        (lambda: pairwise_agreement([], labels), "of no model"),
        (lambda: ensemble([]), "of no model"),
        (lambda: half_and_half(predictions, predictions[:1]), "not alike"),
        (lambda: half_and_half(predictions[:1], predictions[:1]), "two models of each"),
        (lambda: dendrogram([]), "square matrix"),
        (lambda: dendrogram([[1.0, 0.5]]), "square matrix"),
        (lambda: dendrogram([[1.0, 0.5], [0.4, 1.0]]), "not symmetric"),
        (lambda: dendrogram([[1.0, float("nan")], [0.5, 1.0]]), "models 0 and 1 have no similarity"),
    ]:
        with pytest.raises(RequestError, match=message):
            call()
