"""Names of classes in place of their indices, and banks in place of features and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jaxtyping
import numpy as np
import pandas
import pytest
import torch
from sklearn import metrics as sklearn_metrics

import penultimate as pu
from penultimate import FeatureBank, KNNProbe, LinearProbe
from penultimate.metrics.accuracy import accuracy, mean_per_class, top_k
from penultimate.metrics.activations import class_centroids, cosine_distances, nonzero_share, singular_values

K, M = 3, 4
NAMES = np.array(["cat", "ant", "bee"])[np.random.default_rng(0).integers(0, K, 60)]
RANKS = np.unique(NAMES, return_inverse=True)[1]
random = np.random.default_rng(1)
X = (random.normal(size=(60, M)) + 3 * np.eye(K, M)[RANKS]).astype(np.float32)
W = random.normal(size=(K, M))
Z = (random.normal(size=(60, K)) + np.eye(K)[RANKS]).astype(np.float32)
P = torch.from_numpy(Z).double().softmax(1).numpy()
GUESS = Z.argmax(1)
BANK = FeatureBank(X, RANKS, Z)


@pytest.fixture(autouse=True)
def as_for_users() -> Iterator[None]:
    """Without the tests' checks of annotations, which would answer before the functions do."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


OF_LABELS: dict[str, Callable[[Any], Any]] = {
    "class_separation": lambda y: pu.class_separation(X, y),
    "class_centroids": lambda y: class_centroids(X, y),
    "cosine_distances": lambda y: cosine_distances(X, y).within,
    "neural_collapse": lambda y: pu.neural_collapse(X, y, W)[:8],
    "angular_visual_hardness": lambda y: pu.angular_visual_hardness(X, y, W),
    "top_k": lambda y: top_k(Z, y, 2),
    "fit_temperature": lambda y: pu.fit_temperature(Z, y),
    "expected_calibration_error": lambda y: pu.expected_calibration_error(P, y),
    "negative_log_likelihood": lambda y: pu.negative_log_likelihood(P, y),
    "logme": lambda y: pu.logme(X, y),
    "h_score": lambda y: pu.h_score(X, y),
    "transrate": lambda y: pu.transrate(X, y),
    "leep": lambda y: pu.leep(P, y),
    "nce": lambda y: pu.nce(GUESS, y),
    "linear": lambda y: LinearProbe([1.0]).fit(X, y).score(X, y),
    "knn": lambda y: KNNProbe(max_k=5).fit(X, y).leave_one_out_,
}
KINDS = {
    "array": NAMES,
    "list": NAMES.tolist(),
    "objects": NAMES.astype(object),
    "series": pandas.Series(NAMES),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OF_LABELS)
def test_names_are_the_classes_in_sorted_order(name: str, kind: str) -> None:
    np.testing.assert_array_equal(OF_LABELS[name](KINDS[kind]), OF_LABELS[name](RANKS))


READ = {
    "objects": RANKS.astype(object),
    "nullable integers": pandas.Series(RANKS, dtype="Int64"),
    "nullable text": pandas.Series(NAMES, dtype="string"),
    "categories": pandas.Categorical(NAMES),
    "bytes": NAMES.astype("S"),
    "big-endian": RANKS.astype(">i4"),
    "backwards": RANKS[::-1].copy()[::-1],
    "16 bits": RANKS.astype(np.uint16),
    "a tensor": torch.from_numpy(RANKS),
}


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("name", OF_LABELS)
def test_labels_of_any_kind_are_the_same_classes(name: str, kind: str) -> None:
    np.testing.assert_array_equal(OF_LABELS[name](READ[kind]), OF_LABELS[name](RANKS))


def some(values: Any, row: int, one: Any) -> list[Any]:
    """The values as a list, of which one row is replaced."""
    return [one if place == row else value for place, value in enumerate(np.asarray(values).tolist())]


REFUSED: dict[str, tuple[Any, str]] = {
    "None among names": (some(NAMES, 3, None), "no label for 1 of 60 examples .None or NaN in row 3"),
    "NaN among names": (some(NAMES, 3, float("nan")), "no label for 1 of 60 .*row 3"),
    "nullable text": (pandas.Series(some(NAMES, 3, None), dtype="string"), "no label for 1 of 60 .*row 3"),
    "NaN": (np.where(RANKS == 1, np.nan, RANKS), "no label for .* leave those examples out"),
    "masked": (np.ma.masked_array(RANKS, RANKS == 1), "masked places"),
    "a number among names": (some(NAMES, 3, 7), "mix names and numbers"),
    "ragged": ([[0, 1] if rank else [0] for rank in RANKS], "one rectangular array"),
    "a word": ("abc", "got a str"),
    "too few": (RANKS[:50], "60 examples, but|labels; each example needs one|50 label"),
    "fractions": (RANKS + 0.5, "integer class indices|fractions"),
    "one-hot": (np.eye(K)[RANKS], r"argmax\(1\) of one-hot rows"),
    "one column": (RANKS[:, None].repeat(2, 1), "several labels of"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("metric", ["class_separation", "top_k", "fit_temperature", "logme", "linear"])
def test_what_is_no_label_is_refused_in_a_sentence(metric: str, name: str) -> None:
    labels, message = REFUSED[name]
    with pytest.raises(pu.RequestError, match=message):
        OF_LABELS[metric](labels)


FEATURES: dict[str, tuple[Any, str]] = {
    "NaN": (np.where(np.arange(M) == 1, np.nan, X), "NaN"),
    "infinity": (np.where(np.arange(M) == 1, np.inf, X), "infinity"),
    "one dimension": (X[:, 0], r"shape \[60\]"),
    "maps": (X[:, :, None], r"flatten each example first|dim 3"),
    "no columns": (X[:, :0], r"shape"),
    "text": (X.astype(str), "real numbers|NumPy array"),
    "complex": (X.astype(complex), "omplex"),
}


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("metric", [pu.class_separation, pu.logme, pu.h_score])
def test_what_are_no_features_is_refused_in_a_sentence(metric: Callable[..., Any], name: str) -> None:
    features, message = FEATURES[name]
    with pytest.raises(pu.RequestError, match=message):
        metric(features, RANKS)
    with pytest.raises(
        pu.UndefinedError if hasattr(pu, "UndefinedError") else pu.RequestError, match="class"
    ):
        metric(X, np.zeros(60, int))


def test_predictions_and_labels_may_both_be_names() -> None:
    guessed = np.array(["ant", "bee", "cat"])[GUESS]
    assert accuracy(guessed, NAMES) == accuracy(GUESS, RANKS)
    assert accuracy(guessed, NAMES) == sklearn_metrics.accuracy_score(NAMES, guessed)
    assert mean_per_class(guessed, NAMES) == sklearn_metrics.balanced_accuracy_score(NAMES, guessed)
    assert accuracy(["dog"] * 60, NAMES) == 0  # a name that is no label's
    assert pu.agreement(guessed, NAMES, NAMES) == pu.agreement(GUESS, RANKS, RANKS)
    judged = pu.neural_collapse(X, NAMES, W, predictions=guessed)
    assert judged == pu.neural_collapse(X, RANKS, W, predictions=GUESS)
    assert top_k(Z, NAMES) == sklearn_metrics.top_k_accuracy_score(NAMES, Z, k=1)
    assert pu.negative_log_likelihood(P, NAMES) == pytest.approx(sklearn_metrics.log_loss(NAMES, P))


OF_BANK: dict[str, tuple[Callable[[FeatureBank], Any], Callable[[], Any]]] = {
    "class_separation": (pu.class_separation, lambda: pu.class_separation(X, RANKS)),
    "class_centroids": (class_centroids, lambda: class_centroids(X, RANKS)),
    "cosine_distances": (lambda b: cosine_distances(b).within, lambda: cosine_distances(X, RANKS).within),
    "neural_collapse": (
        lambda b: pu.neural_collapse(b, weight=W)[:8],
        lambda: pu.neural_collapse(X, RANKS, W)[:8],
    ),
    "angular_visual_hardness": (
        lambda b: pu.angular_visual_hardness(b, weight=W),
        lambda: pu.angular_visual_hardness(X, RANKS, W),
    ),
    "nonzero_share": (nonzero_share, lambda: nonzero_share(X)),
    "singular_values": (singular_values, lambda: singular_values(X)),
    "top_k": (lambda b: top_k(b, k=2), lambda: top_k(Z, RANKS, 2)),
    "fit_temperature": (pu.fit_temperature, lambda: pu.fit_temperature(Z, RANKS)),
    "knn": (
        lambda b: KNNProbe(max_k=5).fit(b).score(b),
        lambda: KNNProbe(max_k=5).fit(X, RANKS).score(X, RANKS),
    ),
    "linear": (
        lambda b: LinearProbe([1.0, 10.0]).fit(b, X_val=b).predict(b),
        lambda: LinearProbe([1.0, 10.0]).fit(X, RANKS, X, RANKS).predict(X),
    ),
    "score": (
        lambda b: LinearProbe([1.0]).fit(b).score(b, metric="mean_per_class"),
        lambda: LinearProbe([1.0]).fit(X, RANKS).score(X, RANKS, "mean_per_class"),
    ),
}


@pytest.mark.parametrize("name", OF_BANK)
def test_a_bank_is_its_features_and_labels(name: str) -> None:
    of_bank, of_arrays = OF_BANK[name]
    np.testing.assert_array_equal(of_bank(BANK), of_arrays())


def test_labels_beside_a_bank_are_taken_instead_of_its_own() -> None:
    assert pu.class_separation(BANK, RANKS % 2) == pu.class_separation(X, RANKS % 2)


def test_neural_collapse_says_which_rows_of_the_weight_it_used() -> None:
    weight = np.vstack([W, np.ones((2, M))])[[3, 0, 4, 1, 2]]
    found = pu.neural_collapse(X, np.array([1, 3, 4])[RANKS], weight)
    assert found.classes == (1, 3, 4)
    alone = pu.neural_collapse(X, RANKS, W)
    assert (found[:8], alone.classes) == (alone[:8], (0, 1, 2))
