"""LEEP, NCE and class overlap against loops, scikit-learn and the paper's replication; bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score
from tests.oracles import transferability as oracle

import penultimate as pu
from penultimate import RequestError
from penultimate.metrics.source_classes import class_assignment, semantic_overlap

seeds = st.integers(0, 10_000)


def guesses(seed: int, n: int = 40, k: int = 6, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Distributions over source classes, the last of which nothing is given to, and labels."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, n)
    logits = 2 * random.normal(size=(classes, k))[labels] + random.normal(size=(n, k))
    logits[:, -1] = -np.inf
    probabilities = np.exp(logits - logits.max(1, keepdims=True))
    return probabilities / probabilities.sum(1, keepdims=True), labels


def predicted(seed: int, n: int, k: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, n)
    return np.where(random.random(n) < 0.6, labels * 2, random.integers(0, k, n)), labels


@settings(max_examples=20)
@given(seeds)
def test_leep_equals_its_loops_and_has_no_0_over_0(seed: int) -> None:
    probabilities, labels = guesses(seed)
    expected = oracle.leep(probabilities.tolist(), labels.tolist())
    assert pu.leep(probabilities, labels) == pytest.approx(expected, rel=1e-12)
    assert pu.leep(probabilities, 7 * labels + 1) == pytest.approx(expected, rel=1e-12)
    assert pu.leep(probabilities.astype(np.float32), labels) == pytest.approx(expected, rel=1e-6)


@settings(max_examples=20)
@given(seeds)
def test_leep_of_certain_predictions_is_nce(seed: int) -> None:
    probabilities, labels = guesses(seed)
    predictions = probabilities.argmax(1)
    assert pu.leep(np.eye(6)[predictions], labels) == pytest.approx(pu.nce(predictions, labels), abs=1e-12)


@settings(max_examples=20)
@given(seeds)
def test_nce_equals_its_loops_and_scikit_learns_information(seed: int) -> None:
    predictions, labels = predicted(seed, 60, 8, 4)
    found = pu.nce(predictions, labels)
    assert found == pytest.approx(oracle.nce(predictions.tolist(), labels.tolist()), abs=1e-12)
    entropy = mutual_info_score(labels, labels)
    assert found == pytest.approx(mutual_info_score(labels, predictions) - entropy, abs=1e-12)
    assert found <= 0


def test_extremes_of_leep_and_nce() -> None:
    assert pu.nce([3, 3, 9], [1, 1, 0]) == 0
    assert pu.leep(np.full((4, 5), 0.2), [0, 1, 2, 3]) == pytest.approx(-np.log(4))
    tiny = np.array([[1.0, 5e-324], [1.0, 0.0]])
    assert pu.leep(tiny, [0, 1]) == pytest.approx(-np.log(2))


@settings(max_examples=60)
@given(seeds, st.integers(1, 60), st.integers(1, 14), st.integers(1, 5))
def test_an_assignment_is_the_papers_and_reaches_its_limit(seed: int, n: int, k: int, classes: int) -> None:
    """The least replication after which the next brings nothing; its value is sum_i max_j C_ij / n."""
    predictions, labels = predicted(seed, n, k, classes)
    counts = oracle.matching(predictions.tolist(), labels.tolist())
    copies, value = oracle.copies(counts)
    found = class_assignment(predictions, labels)
    assert (found.copies, found.accuracy) == (copies, value / n)
    assert value == counts.max(1).sum() == oracle.replicated(counts, n)
    assert int(torch.bincount(found.target).max()) <= copies
    assert found.score(predictions, labels) == found.accuracy


def test_the_accuracy_on_other_examples_is_the_papers_where_no_counts_are_equal() -> None:
    random = np.random.default_rng(0)
    labels, other_labels = random.integers(0, 4, 3000), random.integers(0, 4, 500)

    def guessed(y: np.ndarray) -> np.ndarray:
        near, any_class = 3 * y + random.integers(0, 3, len(y)), random.integers(0, 12, len(y))
        return np.where(random.random(len(y)) < 0.5, near, any_class)

    predictions, others = guessed(labels), guessed(other_labels)
    counts = oracle.matching(predictions.tolist(), labels.tolist())
    wide = np.tile(counts, (1, 12))
    rows, columns = oracle.linear_sum_assignment(wide, maximize=True)
    told = dict(zip(rows.tolist(), (columns % 4).tolist(), strict=True))
    right = np.mean([told[p] == y for p, y in zip(others.tolist(), other_labels.tolist(), strict=True)])
    assert pu.assignment_accuracy(predictions, labels, others, other_labels) == pytest.approx(right)


def test_equal_counts_are_shared_out_so_that_no_class_has_more_copies_than_it_must() -> None:
    """Classes 5 and 6 meet both labels once: one each, for a third stands for label 0 already."""
    found = class_assignment([4, 4, 5, 5, 6, 6], [0, 0, 0, 1, 0, 1])
    assert found.copies == 2
    assert sorted(found.target.tolist()) == [0, 0, 1]
    assert found.accuracy == pytest.approx(4 / 6)


def test_a_prediction_never_seen_is_wrong() -> None:
    assert pu.assignment_accuracy([1, 1, 2], [0, 0, 1], [1, 2, 3, 99], [0, 1, 0, 1]) == 0.5
    assert pu.assignment_accuracy([1, 1, 2], [0, 0, 1], [0], [0]) == 0


def test_names_mean_the_same_in_training_and_test_examples() -> None:
    assert pu.assignment_accuracy([0, 1, 2], ["a", "b", "c"], [1, 2], ["b", "unseen"]) == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pu.leep([[0.5, 0.6]], [0]), "a distribution .* row 0"),
        (lambda: pu.leep([[0.5, 0.5], [np.nan, 1.0]], [0, 1]), "row 1"),
        (lambda: pu.leep(np.zeros((0, 2)), np.zeros(0, int)), "no examples"),
        (lambda: pu.nce([0.5], [0]), "predictions must be integer class indices"),
        (lambda: pu.nce([1, 2], [0]), "2 examples, but 1 labels"),
        (lambda: pu.nce(np.zeros(0, int), np.zeros(0, int)), "no examples"),
        (lambda: class_assignment([0, 1], ["a", "b"]), "integer class indices; got text"),
        (lambda: pu.assignment_accuracy([1], [0], [1, 2], [0]), "2 examples, but 1 labels"),
        (lambda: semantic_overlap(["dog"], ["beagle"], {"dg": []}), "class of the task 'dg'. Did you"),
        (lambda: semantic_overlap(["dog"], ["beagle"], {"dog": ["eagle"]}), "Did you mean 'beagle'"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        call()


def test_names_overlap_as_words_and_as_a_study_says() -> None:
    classes, source = ["dog", "Tiger_Cat", "crane", "_"], ["tiger cat", "beagle", "crane", "-"]
    assert semantic_overlap(classes, source) == 2
    assert semantic_overlap(classes, source, {"dog": ["beagle"]}) == 3
    assert semantic_overlap(classes, source, {"dog": ["beagle"], "crane": []}) == 2
