"""The probes are scikit-learn classifiers: its own checks, its tools around them, and its kinds of labels."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.probes.conftest import blobs

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.probes.inputs import as_features
from penultimate.probes.knn import KNNProbe
from penultimate.probes.linear import LinearProbe

each_probe = pytest.mark.parametrize("probe", [LinearProbe([0.1, 1.0]), KNNProbe(max_k=9)])


@parametrize_with_checks([LinearProbe([0.1, 1.0]), KNNProbe(), KNNProbe("euclidean")])
def test_scikit_learns_own_checks(estimator, check, monkeypatch):
    keep(estimator, check, monkeypatch)


@pytest.mark.long
@parametrize_with_checks([LinearProbe()])
def test_scikit_learns_own_checks_of_the_whole_path(estimator, check, monkeypatch):
    keep(estimator, check, monkeypatch)


def keep(estimator, check, monkeypatch):
    # A parameter is judged by `fit`, not when it is set; only this suite looks at annotations at every call.
    monkeypatch.setattr(type(estimator), "__init__", inspect.unwrap(type(estimator).__init__))
    check(estimator)


ANIMALS = np.array(["wolf", "ant", "cat"])
"""Not in alphabetical order: positions among the sorted labels differ from the codes."""

KINDS = {
    "strings": lambda codes: ANIMALS[codes],
    "objects": lambda codes: ANIMALS.astype(object)[codes],
    "series": lambda codes: pd.Series(ANIMALS[codes]),
    "categories": lambda codes: pd.Series(ANIMALS[codes], dtype="category"),
    "list": lambda codes: ANIMALS[codes].tolist(),
    "negative": lambda codes: codes - 7,
    "whole floats": lambda codes: codes * 2.0,
    "booleans": lambda codes: codes > 0,
    "small integers": lambda codes: codes.astype(np.uint8),
    "tensor": lambda codes: torch.from_numpy(codes),
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_every_kind_are_given_back(kind):
    points, codes = blobs(1, 90, 4, 3, 2.0)
    labels = KINDS[kind](codes)
    outside = labels.numpy() if kind == "tensor" else labels
    peers = {
        LinearProbe([0.3], tolerance=1e-9): LogisticRegression(
            C=(2.0 if kind == "booleans" else 1.0) / 0.3, tol=1e-10, max_iter=10000
        ),
        KNNProbe("euclidean"): KNeighborsClassifier(algorithm="brute"),
    }
    for probe, peer in peers.items():
        probe.fit(points, labels)
        if isinstance(peer, KNeighborsClassifier):
            peer.set_params(n_neighbors=probe.k_)
        peer.fit(points, outside)
        assert probe.classes_.tolist() == peer.classes_.tolist()
        assert probe.predict(points).tolist() == peer.predict(points).tolist()
        assert probe.score(points, labels) == pytest.approx(peer.score(points, outside))
        expected = balanced_accuracy_score(outside, peer.predict(points))
        assert probe.score(points, labels, metric="mean_per_class") == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["top1", "mean_per_class"])
def test_lambda_does_not_depend_on_what_the_classes_are_called(metric):
    points, codes = blobs(3, 120, 4, 3, 2.5)
    names = np.sort(ANIMALS)
    numbered = LinearProbe(metric=metric).fit(points[:60], codes[:60], points[60:], codes[60:])
    named = LinearProbe(metric=metric).fit(points[:60], names[codes[:60]], points[60:], names[codes[60:]])
    assert named.validation_accuracy_.tolist() == numbered.validation_accuracy_.tolist()
    assert named.lambda_ == numbered.lambda_
    assert named.coef_.tobytes() == numbered.coef_.tobytes()
    assert named.predict(points).tolist() == names[numbered.predict(points)].tolist()


def test_a_name_that_only_validation_has_is_learnt_in_the_refit():
    points, codes = blobs(0, 80, 4, 3)
    labels = ANIMALS[codes]
    known = labels[:40] != "cat"
    probe = LinearProbe([1.0]).fit(points[:40][known], labels[:40][known], points[40:], labels[40:])
    assert probe.classes_.tolist() == ["ant", "cat", "wolf"]
    assert probe.validation_accuracy_.max() <= np.mean(labels[40:] != "cat")
    assert "cat" in probe.predict(points)


@each_probe
def test_scikit_learns_tools_take_it(probe):
    points, codes = blobs(0, 60, 3, 2)
    labels = ANIMALS[codes]
    assert cross_val_score(probe, points, labels, cv=3).min() > 0.6
    assert cross_val_score(make_pipeline(StandardScaler(), probe), points, labels, cv=3).min() > 0.6
    name, values = ("seed", [0, 1]) if isinstance(probe, LinearProbe) else ("max_k", [1, 5])
    search = GridSearchCV(probe, {name: values}, cv=3).fit(points, labels)
    assert search.best_params_[name] in values
    assert set(search.predict(points)) == set(labels)
    copy = clone(search.best_estimator_)
    assert copy.get_params() == search.best_estimator_.get_params()
    assert not hasattr(copy, "classes_")


def test_the_decision_of_two_classes_is_one_number():
    points, codes = blobs(4, 60, 3, 2, 2.0)
    labels = ANIMALS[codes]
    probe = LinearProbe([0.5], tolerance=1e-11).fit(points, labels)
    peer = LogisticRegression(C=2 / 0.5, tol=1e-12, max_iter=10000, solver="newton-cg").fit(points, labels)
    np.testing.assert_allclose(probe.decision_function(points), peer.decision_function(points), atol=1e-4)
    assert cross_val_score(probe, points, labels, cv=3, scoring="roc_auc").min() > 0.5


@each_probe
def test_the_columns_of_a_table_keep_their_names(probe):
    points, codes = blobs(0, 40, 3, 3)
    table = pd.DataFrame(points, columns=["beak", "fur", "wing"])
    probe = clone(probe).fit(table, codes)
    assert probe.feature_names_in_.tolist() == ["beak", "fur", "wing"]
    assert probe.predict(table).tolist() == clone(probe).fit(points, codes).predict(points).tolist()
    with pytest.raises(RequestError, match="must be in the same order as they were in fit"):
        probe.predict(table[["fur", "beak", "wing"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        probe.predict(points)
    if isinstance(probe, LinearProbe):
        with pytest.raises(RequestError, match="X_val: The feature names should match"):
            probe.fit(table, codes, table.rename(columns={"fur": "hair"}), codes)


@each_probe
def test_what_scikit_learn_refuses_is_refused_in_our_words_and_its_types(probe):
    points, codes = blobs(0, 40, 3, 3)
    with pytest.raises(NotFittedError, match="not fitted yet: call") as caught:
        clone(probe).predict(points)
    assert isinstance(caught.value, RequestError)
    with pytest.raises(RequestError, match=r"toarray\(\)") as caught:
        clone(probe).fit(csr_array(points), codes)
    assert isinstance(caught.value, TypeError)
    with pytest.raises(UndefinedError, match="y holds one class only"):
        clone(probe).fit(points, ["cat"] * 40)
    mixed = np.array(["cat", 1] * 20, dtype=object)
    with pytest.raises(RequestError, match="y mix names and numbers"):
        clone(probe).fit(points, mixed)
    fitted = clone(probe).fit(points, codes)
    with pytest.raises(RequestError, match="labels must be of one kind; got both"):
        fitted.score(points, codes.astype(str))
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        clone(probe).fit(points, codes[:, None])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_features_are_taken_as_they_lie(dtype):
    points = np.arange(12, dtype=dtype).reshape(6, 2)
    for values in (points, torch.from_numpy(points)):
        features = as_features(values)
        assert features.dtype == dtype
        assert np.shares_memory(features, points)
