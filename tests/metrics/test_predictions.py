"""Accuracies, agreement, votes and areas against literal loops, scikit-learn and SciPy; ties."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, mode
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score, top_k_accuracy_score
from tests.oracles import agreement as oracle
from tests.oracles import auc as areas
from tests.oracles import separation as loops

from penultimate import RequestError
from penultimate.metrics import accuracy as module
from penultimate.metrics.accuracy import accuracy, mean_per_class, top_k
from penultimate.metrics.agreement import agreement, ensemble, half_and_half, pairwise_agreement
from penultimate.metrics.auc import auc, auc_interval
from penultimate.metrics.dendrogram import dendrogram

seeds = st.integers(0, 10_000)


@given(seed=seeds)
@settings(max_examples=30)
def test_accuracies_against_scikit_learn_and_the_loops(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels, predictions = random.integers(0, 5, 40), random.integers(0, 5, 40)
    assert accuracy(predictions, labels) == pytest.approx(accuracy_score(labels, predictions), abs=1e-15)
    labels[(labels == 4) | (labels == 1)] = 3  # classes 1 and 4 are predicted but never present
    expected = loops.mean_per_class(predictions.tolist(), labels.tolist())
    assert mean_per_class(predictions, labels) == pytest.approx(expected, abs=1e-15)
    labels[:5] = predictions[:5] = np.arange(5)
    assert mean_per_class(predictions, labels) == pytest.approx(balanced_accuracy_score(labels, predictions))


@given(seed=seeds, k=st.integers(1, 8), block=st.sampled_from([1, 21, 1 << 22]))
@settings(max_examples=40)
def test_top_k_against_scikit_learn_and_the_loop(seed: int, k: int, block: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 7, 30)
    distinct, tied = random.normal(size=(30, 7)), random.integers(0, 3, (30, 7))
    before, module.BLOCK_ELEMENTS = module.BLOCK_ELEMENTS, block
    try:
        for logits in (distinct, tied, torch.from_numpy(distinct)):
            assert top_k(logits, labels, k) == loops.top_k(np.asarray(logits).tolist(), labels.tolist(), k)
    finally:
        module.BLOCK_ELEMENTS = before
    if k < 7:
        expected = top_k_accuracy_score(labels, distinct, k=k, labels=np.arange(7))
        assert top_k(distinct, labels, k) == pytest.approx(expected, abs=1e-15)


def test_equal_logits_earn_what_argmax_earns() -> None:
    labels = np.arange(10) % 5
    assert top_k(np.zeros((10, 5)), labels, 1) == 0.2
    assert top_k(np.zeros((10, 5)), labels, 3) == 0.6
    masked = np.full((2, 3), -np.inf)
    masked[0, 2] = 1.0
    assert top_k(masked, [2, 1], 1) == 0.5


def example(seed: int, models: int = 4, n: int = 40, k: int = 4) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, k, n)
    guesses = random.integers(0, k, (models, n))
    return np.where(random.random((models, n)) < 0.5, labels, guesses), labels


@given(seed=seeds)
@settings(max_examples=20)
def test_pairs_against_counting(seed: int) -> None:
    predictions, labels = example(seed)
    found = pairwise_agreement(predictions, labels)
    for i, a in enumerate(predictions):
        for j, b in enumerate(predictions):
            same, together, alike = oracle.agreement(a.tolist(), b.tolist(), labels.tolist())
            one = agreement(a, torch.from_numpy(b), labels.tolist())
            assert one == found.pair(i, j) == found.pair(j, i)
            assert (one.same, one.both_right_or_wrong) == pytest.approx((same, together), abs=1e-15)
            assert one.same_when_both_wrong == (None if alike is None else pytest.approx(alike, abs=1e-15))
        assert found.accuracy[i] == pytest.approx(accuracy_score(labels, a), abs=1e-15)
    assert np.isnan(found.same_when_both_wrong).tolist() == (found.both_wrong == 0).tolist()
    assert agreement([0, 1, 2], [0, 1, 1], [0, 1, 2]).same_when_both_wrong is None


@given(seed=seeds, models=st.integers(1, 7))
@settings(max_examples=30)
def test_votes_against_counting_and_scipy(seed: int, models: int) -> None:
    a, b = example(seed, models)[0], example(seed + 1, models)[0]
    found = ensemble(a)
    assert found.tolist() == oracle.modal(a.tolist()) == mode(a, axis=0).mode.tolist()
    order = np.random.default_rng(seed).permutation(models)
    assert ensemble(a[order]).tolist() == found.tolist()
    half = models // 2
    if half:  # no seed twice
        one, other = half_and_half(a, b)
        assert one.tolist() == oracle.modal([*a[:half].tolist(), *b[half : 2 * half].tolist()])
        assert other.tolist() == oracle.modal([*b[:half].tolist(), *a[half : 2 * half].tolist()])


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


examples = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=2, max_size=30)


def divided(pairs: list[tuple[int, bool]], least: int) -> tuple[list[float], list[int]]:
    scores, labels = [score / 8 for score, _ in pairs], [int(label) for _, label in pairs]
    assume(least <= sum(labels) <= len(labels) - least)
    return scores, labels


@given(examples, st.integers(2, 40))
def test_the_auc_counts_pairs_and_ties_half(pairs: list[tuple[int, bool]], thresholds: int) -> None:
    scores, labels = divided(pairs, 1)
    assert auc(scores, labels) == pytest.approx(areas.auc(scores, labels), abs=1e-12)
    assert auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    binned = areas.binned(scores, labels, thresholds)
    assert auc(scores, labels, thresholds=thresholds) == pytest.approx(binned, abs=1e-12)


@given(examples)
def test_the_interval_is_delongs_of_which_only_the_order_counts(pairs: list[tuple[int, bool]]) -> None:
    scores, labels = divided(pairs, 2)
    interval = auc_interval(scores, labels)
    assert interval.value == pytest.approx(areas.auc(scores, labels), abs=1e-12)
    assert interval.standard_error == pytest.approx(areas.delong(scores, labels), abs=1e-12)
    reach = 1.959964 * interval.standard_error
    if interval.value in (0.0, 1.0):
        disjoint = min(sum(labels), len(labels) - sum(labels))
        reach = 1 - binomtest(disjoint, disjoint).proportion_ci(method="exact").low
    assert interval.low == pytest.approx(max(0, interval.value - reach), abs=1e-6)
    assert interval.high == pytest.approx(min(1, interval.value + reach), abs=1e-6)
    assert auc_interval(np.exp(scores) * 1e6 - 3, labels) == pytest.approx(interval)
    assert auc_interval([-score for score in scores], labels).value == pytest.approx(1 - interval.value)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    truth, held = 0.760250, 0  # Phi(1 / sqrt 2): normal scores one apart
    for _ in range(1000):
        labels = np.repeat([0, 1], [60, 40])
        interval = auc_interval(generator.normal(size=100) + labels, labels)
        held += interval.low <= truth <= interval.high
    assert 920 <= held <= 965  # 95 % of 1,000, and the slight optimism of DeLong's interval


VOTES, LABELS = example(0, models=2, n=4)
SPOILT = [[0.0, 1.0, 2.0], [0.0, float("nan"), 1.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: top_k(SPOILT, [0, 1]), "logits hold NaN in row 1"),
        (lambda: top_k(np.zeros((4, 3)), LABELS % 3, 0), "k must be a whole number"),
        (lambda: top_k(np.zeros((0, 3)), []), "are empty"),
        (lambda: accuracy([], []), "no examples"),
        (lambda: accuracy(LABELS, LABELS[1:]), "4 examples, but 3 labels"),
        (lambda: mean_per_class([-1, 0], [1, 0]), "predictions must be 0 or more; not so in row 0"),
        (lambda: accuracy([-1] * 20, [0] * 20), "rows 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"),
        (lambda: agreement(VOTES[0], VOTES[1][1:], LABELS), "4 examples, but 3 .*model 1"),
        (lambda: agreement(*VOTES, LABELS[1:]), "4 examples, but 3 labels"),
        (lambda: pairwise_agreement([], LABELS), "one model or more"),
        (lambda: ensemble([[]]), "one example or more"),
        (lambda: half_and_half(VOTES, VOTES[:1]), "not alike"),
        (lambda: half_and_half(VOTES[:1], VOTES[:1]), "two models of each"),
        (lambda: dendrogram([[1.0, float("nan")], [float("nan"), 1.0]]), "no similarity"),
        (lambda: auc([0.1, 0.2], [1, 1]), "no negative example among 2"),
        (lambda: auc([0.1, 0.2], [0, 0]), "no positive example among 2"),
        (lambda: auc([0.1, float("nan")], [0, 1]), "NaN in row 1"),
        (lambda: auc([0.1, 0.2], [0, -1]), "labels are 0 or 1, not -1; say first"),
        (lambda: auc([0.1, 0.2, 0.3], [0, 1]), r"of one length; got \[3\] and \[2\]"),
        (lambda: auc([0.1, 1.2], [0, 1], thresholds=9), "thresholds cover scores from 0 to 1"),
        (lambda: auc_interval([0.1, 0.2], [0, 1]), "takes two positive and two negative"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        call()
