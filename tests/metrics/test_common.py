"""Every metric at once: what changes it and what does not, kinds of arrays, names, banks, bad input.

A new metric is one line of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pandas
import pytest
import torch

import penultimate as pu
from penultimate import FeatureBank
from penultimate.metrics import UndefinedError
from penultimate.metrics.accuracy import accuracy, mean_per_class, top_k
from penultimate.metrics.activations import (
    class_centroids,
    cosine_distances,
    nonzero_share,
    rankme,
    singular_values,
    stable_rank,
)
from penultimate.metrics.collapse import cdnv, variability_collapse
from penultimate.metrics.likeness import mutual_neighbours, permuted_cka, procrustes
from penultimate.metrics.outside import mahalanobis_squared, within_class_whitening
from penultimate.probes.knn import KNNProbe
from penultimate.probes.linear import LinearProbe

N, K, M = 60, 3, 5
random = np.random.default_rng(0)
Y = random.integers(0, K, N)
NAMES = np.array(["ant", "bee", "cat"])[Y]
X = np.maximum(random.normal(size=(N, M)) + 2 * np.eye(K, M)[Y], 0) + np.eye(1, M) * 0.1
W = random.normal(size=(K, M))
Z = random.normal(size=(N, K)) + np.eye(K)[Y]
P = torch.from_numpy(Z).softmax(1).numpy()
GUESS = Z.argmax(1)
BANK = FeatureBank(X.astype(np.float32), Y, Z.astype(np.float32))
ROTATION = np.linalg.qr(random.normal(size=(M, M)))[0]
LENGTHS, ORDER = random.uniform(0.2, 5, (N, 1)), random.permutation(N)


@pytest.fixture(autouse=True)
def as_for_users() -> Iterator[None]:
    """Without the tests' checks of annotations, which would answer before the functions do."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def separation(distance: str, unbiased: bool = False) -> Callable[..., float]:
    return lambda *given: pu.class_separation(*given, distance=distance, unbiased=unbiased)


def distances(*given: Any) -> tuple[float, float]:
    found = cosine_distances(*given)
    return found.mean_within, found.mean_between


OF_FEATURES: dict[str, tuple[Callable[..., Any], str]] = {
    "R2, cosine": (separation("cosine"), "rotation scale lengths"),
    "R2, cosine_centered": (separation("cosine_centered"), "rotation scale shift"),
    "R2, euclidean": (separation("euclidean"), "rotation scale shift"),
    "unbiased R2, cosine": (separation("cosine", True), "rotation scale lengths"),
    "unbiased R2, cosine_centered": (separation("cosine_centered", True), "rotation scale shift"),
    "unbiased R2, euclidean": (separation("euclidean", True), "rotation scale shift"),
    "variability_collapse": (variability_collapse, "rotation scale shift"),
    "cdnv": (cdnv, "rotation scale shift"),
    "cosine_distances": (distances, "rotation scale lengths"),
    "logme": (pu.logme, "rotation scale"),
    "h_score": (pu.h_score, "rotation scale shift"),
    "transrate": (pu.transrate, "rotation shift"),
    "mahalanobis": (
        lambda x, y: mahalanobis_squared(x, *within_class_whitening(x, y)).mean(),
        "rotation scale shift",
    ),
}
"""Functions of features and labels, and what does not change them."""
UNLABELLED: dict[str, tuple[Callable[..., Any], str]] = {
    "nonzero_share": (nonzero_share, "scale lengths"),
    "singular_values": (singular_values, "rotation"),
    "centred singular_values": (lambda x: singular_values(x, centred=True), "rotation shift"),
    "rankme": (rankme, "rotation scale"),
    "stable_rank": (stable_rank, "rotation scale shift"),
}
CHANGES: dict[str, Callable[[Any], Any]] = {
    "rotation": lambda x: x @ ROTATION,
    "scale": lambda x: 3.7 * x,
    "shift": lambda x: x + np.arange(M) - 0.7,
    "lengths": lambda x: LENGTHS * x,
}
of_features = pytest.mark.parametrize("name", OF_FEATURES)


def equal(found: Any, expected: Any, tolerance: float = 1e-9) -> bool:
    return np.allclose(np.asarray(found), np.asarray(expected), rtol=tolerance, atol=tolerance)


def of(name: str) -> Callable[[Any], Any]:
    """A metric as a function of features alone."""
    return (lambda x: OF_FEATURES[name][0](x, Y)) if name in OF_FEATURES else UNLABELLED[name][0]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", [*OF_FEATURES, *UNLABELLED])
def test_a_change_of_features_does_not_matter_exactly_where_the_table_says(name: str, change: str) -> None:
    metric, invariances = of(name), (OF_FEATURES | UNLABELLED)[name][1].split()
    tolerance = 1e-6 if name == "logme" else 1e-9
    assert equal(metric(CHANGES[change](X)), metric(X), tolerance) == (change in invariances)


@of_features
def test_order_and_names_of_classes_do_not_matter_but_which_example_is_of_which_class_does(name: str) -> None:
    metric, value = OF_FEATURES[name][0], OF_FEATURES[name][0](X, Y)
    assert equal(metric(X[ORDER], Y[ORDER]), value)
    assert equal(metric(X, np.array([70, 5, 1_000_000_007])[Y]), value)
    assert not equal(metric(X, Y[ORDER]), value, 1e-4)
    assert equal(metric(X, NAMES), value, 0)


@pytest.mark.parametrize("name", [*OF_FEATURES, *UNLABELLED])
def test_every_kind_of_array_gives_the_same_value(name: str, tmp_path: Path) -> None:
    metric, before = of(name), X.copy()
    value = metric(X)
    np.save(tmp_path / "features.npy", X)
    kinds = {
        "list": X.tolist(),
        "memory map": np.load(tmp_path / "features.npy", mmap_mode="r"),
        "backwards": X[::-1].copy()[::-1],
        "big-endian": X.astype(">f8"),
        "columns": np.asfortranarray(X),
        "tensor": torch.from_numpy(X),
        "with gradients": torch.tensor(X, requires_grad=True),
    }
    for kind, given in kinds.items():
        assert equal(metric(given), value), kind
    assert equal(metric(X.astype(np.float32)), value, 1e-4)
    assert equal(metric(torch.from_numpy(X).bfloat16()), value, 0.1)
    whole = np.round(10 * X)
    assert equal(metric(whole.astype(np.int16)), metric(whole), 1e-6)
    assert np.array_equal(X, before), "the input was written to"


@pytest.mark.parametrize("name", [*OF_FEATURES, *UNLABELLED])
def test_a_bank_is_its_features_and_labels(name: str) -> None:
    metric = (OF_FEATURES | UNLABELLED)[name][0]
    if name == "mahalanobis":
        assert equal(within_class_whitening(BANK).places, within_class_whitening(BANK.features, Y).places)
        return
    assert equal(metric(BANK), of(name)(BANK.features), 0)


OF_LABELS: dict[str, Callable[[Any], Any]] = {
    **{name: lambda y, function=function: function(X, y) for name, (function, _) in OF_FEATURES.items()},
    "class_centroids": lambda y: class_centroids(X, y),
    "neural_collapse": lambda y: pu.neural_collapse(X, y, W)[:8],
    "angular_visual_hardness": lambda y: pu.angular_visual_hardness(X, y, W),
    "top_k": lambda y: top_k(Z, y, 2),
    "fit_temperature": lambda y: pu.fit_temperature(Z, y),
    "expected_calibration_error": lambda y: pu.expected_calibration_error(P, y),
    "negative_log_likelihood": lambda y: pu.negative_log_likelihood(P, y),
    "leep": lambda y: pu.leep(P, y),
    "nce": lambda y: pu.nce(GUESS, y),
    "linear": lambda y: LinearProbe([1.0]).fit(X, y).score(X, y),
    "knn": lambda y: KNNProbe(max_k=5).fit(X, y).leave_one_out_,
}
KINDS = {
    "names": NAMES,
    "list of names": NAMES.tolist(),
    "name objects": NAMES.astype(object),
    "series": pandas.Series(NAMES),
    "nullable text": pandas.Series(NAMES, dtype="string"),
    "categories": pandas.Categorical(NAMES),
    "bytes": NAMES.astype("S"),
    "objects": Y.astype(object),
    "nullable integers": pandas.Series(Y, dtype="Int64"),
    "big-endian": Y.astype(">i4"),
    "backwards": Y[::-1].copy()[::-1],
    "16 bits": Y.astype(np.uint16),
    "tensor": torch.from_numpy(Y),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OF_LABELS)
def test_labels_of_any_kind_are_the_same_classes(name: str, kind: str) -> None:
    np.testing.assert_array_equal(OF_LABELS[name](KINDS[kind]), OF_LABELS[name](Y))


def test_predictions_and_labels_may_both_be_names() -> None:
    guessed = np.array(["ant", "bee", "cat"])[GUESS]
    assert accuracy(guessed, NAMES) == accuracy(GUESS, Y) == (GUESS == Y).mean()
    assert mean_per_class(guessed, NAMES) == mean_per_class(GUESS, Y)
    assert accuracy(["dog"] * N, NAMES) == 0  # a name that is no label's
    assert pu.agreement(guessed, NAMES, NAMES) == pu.agreement(GUESS, Y, Y)
    judged = pu.neural_collapse(X, NAMES, W, predictions=guessed)
    assert judged == pu.neural_collapse(X, Y, W, predictions=GUESS)
    assert pu.assignment_accuracy(GUESS, NAMES, GUESS[:9], NAMES[:9]) == pu.assignment_accuracy(
        GUESS, Y, GUESS[:9], Y[:9]
    )


def test_of_a_bank_logits_and_labels_are_taken_too() -> None:
    assert top_k(BANK, k=2) == top_k(BANK.logits, Y, 2)
    assert pu.fit_temperature(BANK) == pu.fit_temperature(BANK.logits, Y)
    assert pu.neural_collapse(BANK, weight=W) == pu.neural_collapse(BANK.features, Y, W)
    assert equal(pu.angular_visual_hardness(BANK, weight=W), pu.angular_visual_hardness(BANK.features, Y, W))
    assert pu.class_separation(BANK, Y % 2) == pu.class_separation(BANK.features, Y % 2)  # not its own labels
    with pytest.raises(pu.RequestError, match="the bank has no logits"):
        pu.fit_temperature(FeatureBank(BANK.features, Y))


OF_PAIRS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "minibatch_cka": (lambda x, y: pu.minibatch_cka([x], [y]), "rotation scale shift"),
    "permuted_cka": (lambda x, y: permuted_cka([x], [y], 3).cka, "rotation scale shift"),
    "procrustes": (procrustes, "rotation scale shift"),
    "mutual_neighbours": (mutual_neighbours, "rotation scale lengths"),
}
"""Functions of two representations of the same examples, and what does not change them."""
OTHER = X @ random.normal(size=(M, 7)) + random.normal(size=(N, 7))
of_pairs = pytest.mark.parametrize("name", OF_PAIRS)


@pytest.mark.parametrize("change", CHANGES)
@of_pairs
def test_a_change_of_one_side_does_not_matter_exactly_where_the_table_says(name: str, change: str) -> None:
    metric, invariances = OF_PAIRS[name][0], OF_PAIRS[name][1].split()
    for value, changed in (
        (metric(X, OTHER), metric(CHANGES[change](X), OTHER)),
        (metric(OTHER, X), metric(OTHER, CHANGES[change](X))),
    ):
        assert equal(changed, value) == (change in invariances)
    if change in invariances:
        assert equal(metric(X, CHANGES[change](X)), 1)


@of_pairs
def test_sides_may_be_swapped_and_examples_reordered_together(name: str) -> None:
    metric = OF_PAIRS[name][0]
    value = metric(X, OTHER)
    assert equal(metric(OTHER, X), value)
    assert equal(metric(X[ORDER], OTHER[ORDER]), value)
    assert metric(X, OTHER[ORDER]) < value - 0.1
    assert equal(metric(torch.from_numpy(X), OTHER.astype(np.float32)), value, 1e-5)


# -- bad input ----------------------------------------------------------------------------------------------


def some(values: Any, row: int, one: Any) -> list[Any]:
    """The values as a list, of which one row is replaced."""
    return [one if place == row else value for place, value in enumerate(np.asarray(values).tolist())]


NO_LABELS: dict[str, tuple[Any, str]] = {
    "None among names": (some(NAMES, 3, None), "no label for 1 of 60 examples .None or NaN in row 3"),
    "NaN among names": (some(NAMES, 3, float("nan")), "no label for 1 of 60 .*row 3"),
    "nullable text": (pandas.Series(some(NAMES, 3, None), dtype="string"), "no label for 1 of 60 .*row 3"),
    "NaN": (np.where(Y == 1, np.nan, Y), "no label for .* leave those examples out"),
    "masked": (np.ma.masked_array(Y, Y == 1), "masked places"),
    "a number among names": (some(NAMES, 3, 7), "mix names and numbers"),
    "ragged": ([[0, 1] if one else [0] for one in Y], "one rectangular array"),
    "a word": ("abc", "got a str"),
    "too few": (Y[:50], "60 examples, but|labels; each example needs one|50 label"),
    "fractions": (Y + 0.5, "integer class indices|fractions"),
    "one-hot": (np.eye(K)[Y], r"argmax\(1\) of one-hot rows"),
}


@pytest.mark.parametrize("name", NO_LABELS)
@pytest.mark.parametrize(
    "metric", ["R2, cosine", "top_k", "fit_temperature", "logme", "neural_collapse", "linear"]
)
def test_what_is_no_label_is_refused_in_a_sentence(metric: str, name: str) -> None:
    labels, message = NO_LABELS[name]
    with pytest.raises(pu.RequestError, match=message):
        OF_LABELS[metric](labels)


@pytest.mark.parametrize(
    "metric", ["top_k", "fit_temperature", "expected_calibration_error", "neural_collapse"]
)
def test_labels_beyond_the_columns_are_listed_and_too_few_names_refused(metric: str) -> None:
    with pytest.raises(pu.RequestError, match=r"labels must be 0\.\.2; not so in row 9"):
        OF_LABELS[metric](some(Y, 9, 3))
    with pytest.raises(pu.RequestError, match="2 names for 3 classes"):
        OF_LABELS[metric](np.array(["ant", "bee", "bee"])[Y])


NO_FEATURES: dict[str, tuple[Any, str]] = {
    "NaN": (np.where(np.arange(N)[:, None] == 7, np.nan, X), "NaN.* row 7"),
    "infinity": (np.where(np.arange(N)[:, None] == 7, np.inf, X), "infinity.* row 7"),
    "one dimension": (X[:, 0], r"shape \[60\]"),
    "maps": (X[:, :, None], r"shape \[60, 5, 1\]"),
    "no columns": (X[:, :0], r"shape \[60, 0\]"),
    "text": (X.astype(str), "real numbers"),
    "complex": (X.astype(complex), "real numbers"),
}


@pytest.mark.parametrize("kind", NO_FEATURES)
@of_features
def test_what_are_no_features_is_refused_in_a_sentence(name: str, kind: str) -> None:
    features, message = NO_FEATURES[kind]
    with pytest.raises(pu.RequestError, match=message):
        OF_FEATURES[name][0](features, Y)


@pytest.mark.parametrize("kind", ["NaN", "infinity", "text"])
@of_pairs
def test_a_side_that_is_no_features_is_refused(name: str, kind: str) -> None:
    with pytest.raises(pu.RequestError, match=NO_FEATURES[kind][1]):
        OF_PAIRS[name][0](OTHER, NO_FEATURES[kind][0])
    with pytest.raises(pu.RequestError):
        OF_PAIRS[name][0](OTHER, X[1:])


@of_features
def test_a_single_class_and_no_examples_have_no_value(name: str) -> None:
    metric = OF_FEATURES[name][0]
    if name != "mahalanobis":
        with pytest.raises(UndefinedError, match="class"):
            metric(X, np.full(N, 4))
    with pytest.raises(pu.RequestError):
        metric(X[:0], Y[:0])


CONSTANT = ["R2, cosine", "R2, euclidean", "variability_collapse", "cdnv", "h_score", "mahalanobis"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CONSTANT)
def test_features_that_are_the_same_for_all_examples_have_no_value(name: str, dtype: type) -> None:
    for value in (0.0, 0.1, 12345.678):
        with pytest.raises(UndefinedError):
            OF_FEATURES[name][0](np.full((N, M), value, dtype), Y)
