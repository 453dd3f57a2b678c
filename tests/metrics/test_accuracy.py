"""Accuracies against literal loops and scikit-learn; ties, absent classes and bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, top_k_accuracy_score
from tests.oracles import separation as oracle

from penultimate import RequestError
from penultimate.metrics import accuracy as module
from penultimate.metrics.accuracy import accuracy, mean_per_class, top_k

seeds = st.integers(0, 10_000)


@given(seed=seeds)
@settings(max_examples=30)
def test_predictions_against_scikit_learn_and_the_loops(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels, predictions = random.integers(0, 5, 40), random.integers(0, 5, 40)
    labels[(labels == 4) | (labels == 1)] = 3  # classes 1 and 4 are predicted but never present
    assert accuracy(predictions, labels) == pytest.approx(accuracy_score(labels, predictions), abs=1e-15)
    expected = oracle.mean_per_class(predictions.tolist(), labels.tolist())
    assert mean_per_class(predictions, labels) == pytest.approx(expected, abs=1e-15)
    assert mean_per_class(torch.from_numpy(predictions), labels.tolist()) == pytest.approx(
        expected, abs=1e-15
    )
    with pytest.warns(UserWarning, match="y_pred contains classes not in y_true"):
        outside = balanced_accuracy_score(np.append(labels, 0), np.append(predictions, 4))
    assert mean_per_class(np.append(predictions, 4), np.append(labels, 0)) == pytest.approx(
        outside, abs=1e-15
    )


@given(seed=seeds, k=st.integers(1, 8), block=st.sampled_from([1, 21, 1 << 22]))
@settings(max_examples=40)
def test_top_k_against_scikit_learn_and_the_loop(seed: int, k: int, block: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 7, 30)
    distinct, tied = random.normal(size=(30, 7)), random.integers(0, 3, (30, 7))
    before, module.BLOCK_ELEMENTS = module.BLOCK_ELEMENTS, block
    try:
        for logits in (distinct, tied, torch.from_numpy(distinct), distinct.tolist()):
            plain = np.asarray(logits).tolist()
            assert top_k(logits, labels, k) == oracle.top_k(plain, labels.tolist(), k)
    finally:
        module.BLOCK_ELEMENTS = before
    if k < 7:
        expected = top_k_accuracy_score(labels, distinct, k=k, labels=np.arange(7))
        assert top_k(distinct, labels, k) == pytest.approx(expected, abs=1e-15)
    else:
        assert top_k(distinct, labels, k) == 1


def test_equal_logits_earn_what_argmax_earns() -> None:
    labels = np.arange(10) % 5
    assert top_k(np.zeros((10, 5)), labels, 1) == 0.2
    assert top_k(np.zeros((10, 5)), labels, 3) == 0.6
    masked = np.full((2, 3), -np.inf)
    masked[0, 2] = 1.0
    assert top_k(masked, [2, 1], 1) == 0.5


def test_bad_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, labels = np.zeros((4, 3)), np.array([0, 1, 2, 0])
    spoilt = logits.copy()
    spoilt[2, 1] = np.nan
    for call, message in [
        (lambda: top_k(spoilt, labels), "logits hold NaN in row 2"),
        (lambda: top_k(logits, labels + 2), r"labels must be 0\.\.2; not so in rows 1 and 2"),
        (lambda: top_k(logits, labels, 0), "k must be a whole number"),
        (lambda: top_k(logits, labels, True), "k must be a whole number"),
        (lambda: top_k(logits[:0], labels[:0]), "no examples"),
        (lambda: top_k(logits[0], labels), r"\[examples, classes\]"),
        (lambda: top_k(np.zeros((4, 0)), labels), r"shape .4, 0."),
        (lambda: accuracy(labels, labels[1:]), "4 examples, but 3 labels"),
        (lambda: accuracy(logits, labels), "argmax"),
        (lambda: accuracy([], []), "no examples"),
        (lambda: mean_per_class(labels[:0], labels[:0]), "no examples"),
        (lambda: mean_per_class(labels - 1, labels), "predictions must be 0 or more; not so in rows 0 and 3"),
    ]:
        with pytest.raises(RequestError, match=message):
            call()
    with monkeypatch.context() as patch:
        patch.setattr(module, "BLOCK_ELEMENTS", 3)
        with pytest.raises(RequestError, match="logits hold NaN in row 2"):
            top_k(spoilt, labels)
    many = np.full(20, -1)
    with pytest.raises(RequestError, match="rows 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"):
        accuracy(many, many)
