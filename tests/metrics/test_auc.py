"""The AUC and its interval against counting pairs, scikit-learn, and what must not change them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score
from tests.oracles import auc as oracle

from penultimate.errors import RequestError
from penultimate.metrics.auc import auc, auc_interval

examples = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=2, max_size=30)


def divided(pairs: list[tuple[int, bool]], least: int) -> tuple[list[float], list[int]]:
    scores, labels = [score / 8 for score, _ in pairs], [int(label) for _, label in pairs]
    assume(least <= sum(labels) <= len(labels) - least)
    return scores, labels


@given(examples)
def test_the_auc_counts_pairs_and_ties_half(pairs: list[tuple[int, bool]]) -> None:
    scores, labels = divided(pairs, 1)
    assert auc(scores, labels) == pytest.approx(oracle.auc(scores, labels), abs=1e-12)
    assert auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


@given(examples)
def test_the_standard_error_is_delongs(pairs: list[tuple[int, bool]]) -> None:
    scores, labels = divided(pairs, 2)
    interval = auc_interval(scores, labels)
    assert interval.value == pytest.approx(oracle.auc(scores, labels), abs=1e-12)
    assert interval.standard_error == pytest.approx(oracle.delong(scores, labels), abs=1e-12)
    reach = 1.959964 * interval.standard_error
    if interval.value in (0.0, 1.0):
        disjoint = min(sum(labels), len(labels) - sum(labels))
        reach = 1 - binomtest(disjoint, disjoint).proportion_ci(method="exact").low
    assert interval.low == pytest.approx(max(0, interval.value - reach), abs=1e-6)
    assert interval.high == pytest.approx(min(1, interval.value + reach), abs=1e-6)


@pytest.mark.parametrize(("positives", "negatives"), [(2, 2), (5, 40), (300, 31)])
def test_a_perfect_order_of_few_examples_has_an_interval(positives: int, negatives: int) -> None:
    """DeLong's error is 0 there; of as many pairs as have no example in common all are in order."""
    labels = np.repeat([1, 0], [positives, negatives])
    exact = binomtest(min(positives, negatives), min(positives, negatives)).proportion_ci(method="exact")
    right, wrong = auc_interval(labels, labels), auc_interval(-labels, labels)
    assert (right.value, right.low, right.high) == (1.0, pytest.approx(exact.low), 1.0)
    assert (wrong.value, wrong.low, wrong.high) == (0.0, 0.0, pytest.approx(1 - exact.low))


@given(examples)
def test_only_the_order_of_scores_counts_and_turning_them_round_mirrors_it(
    pairs: list[tuple[int, bool]],
) -> None:
    scores, labels = divided(pairs, 2)
    interval = auc_interval(scores, labels)
    assert auc_interval(np.exp(scores) * 1e6 - 3, labels) == pytest.approx(interval)
    turned = auc_interval([-score for score in scores], labels)
    assert turned.value == pytest.approx(1 - interval.value)
    assert turned.standard_error == pytest.approx(interval.standard_error)


@given(examples, st.integers(2, 40))
def test_thresholds_are_trapezoids_between_their_points(
    pairs: list[tuple[int, bool]], thresholds: int
) -> None:
    scores, labels = divided(pairs, 1)
    ours = auc(scores, labels, thresholds=thresholds)
    assert ours == pytest.approx(oracle.binned(scores, labels, thresholds), abs=1e-12)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    truth, held = 0.760250, 0  # Phi(1 / sqrt 2): normal scores one apart
    for _ in range(1000):
        labels = np.repeat([0, 1], [60, 40])
        interval = auc_interval(generator.normal(size=100) + labels, labels)
        held += interval.low <= truth <= interval.high
    assert 920 <= held <= 965  # 95 % of 1,000, and the slight optimism of DeLong's interval


@pytest.mark.parametrize(
    ("scores", "labels", "said"),
    [
        ([0.1, 0.2], [1, 1], "no negative example among 2"),
        ([0.1, 0.2], [0, 0], "no positive example among 2"),
        ([0.1, float("nan")], [0, 1], "not numbers: row 1"),
        ([0.1, 0.2], [0, -1], "labels are 0 or 1, not -1; say first what an uncertain label counts as"),
        ([0.1, 0.2, 0.3], [0, 1], r"of one length; got \[3\] and \[2\]"),
        ([[0.1, 0.2]], [[0, 1]], r"are \[n\] each"),
    ],
)
def test_what_has_no_auc_is_refused_in_a_sentence(scores: object, labels: object, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        auc(scores, labels)  # type: ignore[arg-type]


def test_whole_numbers_beyond_float64_keep_their_order() -> None:
    scores = np.array([2**53 + 1, 2**53, 2**62 + 1, 2**62], dtype=np.int64)
    assert auc(scores, [1, 0, 1, 0]) == 0.75
    assert auc(-scores, [1, 0, 1, 0]) == 0.25
    assert auc(np.array([2**53 + 1, 2**53]), [1, 0]) == 1.0
    assert auc(np.array([-(2**63), -(2**63) + 1]), [0, 1]) == 1.0
