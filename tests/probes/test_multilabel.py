"""The probe of several labels: each label's optimum is scikit-learn's, its lambda the one of the best AUC."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import penultimate as pu
from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError


def drawn(examples: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features, and three labels: easy, hard and rare."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(examples, 6))
    noise = generator.normal(size=(examples, 3))
    margins = np.stack([features[:, 0], 0.3 * features[:, 1], features[:, 2] - 1.5], axis=1) + 0.5 * noise
    return features, (margins > 0).astype(int)


def test_the_coefficients_are_those_of_scikit_learn_at_the_same_lambda() -> None:
    features, labels = drawn()
    probe = pu.MultiLabelProbe(tolerance=1e-9).fit(features, labels)
    for place in range(3):
        oracle = LogisticRegression(C=1 / probe.lambda_[place], tol=1e-10, max_iter=10_000)
        oracle.fit(features, labels[:, place])
        assert probe.coef_[place] == pytest.approx(oracle.coef_[0], abs=2e-3 * abs(oracle.coef_).max())
        assert probe.intercept_[place] == pytest.approx(oracle.intercept_[0], abs=5e-3)


def test_each_label_has_the_lambda_of_the_best_validation_auc() -> None:
    (features, labels), (val, val_labels) = drawn(120), drawn(200, seed=1)
    grid = np.logspace(-4, 4, 9)
    probe = pu.MultiLabelProbe(grid, tolerance=1e-8).fit(features, labels, val, val_labels)
    for place in range(3):
        areas = []
        for penalty in grid:
            fitted = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000)
            fitted.fit(features, labels[:, place])
            areas.append(roc_auc_score(val_labels[:, place], fitted.decision_function(val)))
        chosen = probe.probes_[place].validation_accuracy_
        assert chosen == pytest.approx(areas, abs=1e-3)
        at = int(np.flatnonzero(np.isclose(grid, probe.lambda_[place]))[0])
        assert areas[at] >= max(areas) - 1e-3
    assert len(set(probe.lambda_)) > 1


@pytest.mark.parametrize("penalty", [1e3, 1e5])
def test_the_largest_lambdas_leave_the_direction_of_the_weights(penalty: float) -> None:
    """Weights of next to nothing cost next to no loss, and rank the examples all the same."""
    (features, labels), (test, test_labels) = drawn(), drawn(100, seed=2)
    probe = pu.MultiLabelProbe([penalty]).fit(0.1 * features, labels)
    for place in range(3):
        oracle = LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-12)
        oracle.fit(0.1 * features, labels[:, place])
        expected = roc_auc_score(test_labels[:, place], oracle.decision_function(0.1 * test))
        assert probe.scores(0.1 * test, test_labels)[place] == pytest.approx(expected, abs=3e-3)


def test_scores_are_exact_aucs_and_predictions_their_signs() -> None:
    (features, labels), (test, test_labels) = drawn(), drawn(100, seed=2)
    probe = pu.MultiLabelProbe().fit(features, labels)
    logits = probe.decision_function(test)
    assert probe.scores(test, test_labels) == pytest.approx(
        [roc_auc_score(test_labels[:, place], logits[:, place]) for place in range(3)]
    )
    assert probe.score(test, test_labels) == pytest.approx(probe.scores(test, test_labels).mean())
    assert (probe.predict(test) == (logits > 0)).all()
    assert all((one.certificates_ <= 1e-4).all() for one in probe.probes_)


def test_a_label_without_an_example_and_uncertain_ones_are_named() -> None:
    features, labels = drawn()
    none = labels.copy()
    none[:, 1] = 0
    with pytest.raises(UndefinedError, match="label 'Fracture' has no positive example among 300"):
        pu.MultiLabelProbe(names=("Edema", "Fracture", "Lesion")).fit(features, none)
    with pytest.raises(UndefinedError, match="label 1 has no negative example among 300"):
        pu.MultiLabelProbe().fit(features, np.where([False, True, False], 1, labels), features, labels)
    uncertain = labels.copy()
    uncertain[3, 2] = -1
    with pytest.raises(RequestError, match="y holds 0 and 1, not -1; say first what an uncertain label"):
        pu.MultiLabelProbe().fit(features, uncertain)
    with pytest.raises(RequestError, match=r"y is \[n l\], with a column for each label; got \[300\]"):
        pu.MultiLabelProbe().fit(features, labels[:, 0])
    with pytest.raises(RequestError, match="label 0: there is no positive example among 300, so no AUC"):
        pu.MultiLabelProbe().fit(features, labels, features, np.zeros_like(labels))
    rare = labels.copy()
    rare[:, 0] = np.arange(300) < 1
    with pytest.raises(RequestError, match="label 0 has one example of one kind, too few for any to be"):
        pu.MultiLabelProbe().fit(features, rare)
    rare[:, 0] = np.arange(300) < 2
    with pytest.raises(RequestError, match="label 0 has 2 examples of one kind, too few for any to be"):
        pu.MultiLabelProbe(validation_fraction=0.01).fit(features, rare)
    with pytest.raises(RequestError, match="must be one rectangular array"):
        pu.MultiLabelProbe().fit(features, [["a"], ["b", "c"]] * 150)
    fitted = pu.MultiLabelProbe().fit(features, labels)
    with pytest.raises(UndefinedError, match="label 2: there is no positive example among 300"):
        fitted.score(features, np.stack([labels[:, 0], labels[:, 1], np.zeros(300, int)], 1))
    with pytest.raises(RequestError, match="X has 5 features, and the probe was fitted on 6"):
        fitted.predict(features[:, :5])
    with pytest.raises(RequestError, match="is not fitted yet"):
        pu.MultiLabelProbe().predict(features)


@pytest.mark.parametrize("names", [("Edema",), ("Edema", "Fracture", "Lesion", "Cyst"), "Edema"])
def test_there_are_as_many_names_as_labels(names: tuple[str, ...] | str) -> None:
    features, labels = drawn()
    labels[:, 1] = 0
    listed = rf"names has {len(names)} \({', '.join(names)}\): name each column of y, or leave names out"
    with pytest.raises(RequestError, match=f"y has 3 labels, and {listed}"):
        pu.MultiLabelProbe(names=names).fit(features, labels)


def test_the_linear_probe_may_choose_by_auc_where_there_are_two_classes() -> None:
    features, labels = drawn()
    names = np.array(["absent", "present"])[labels[:, 2]]
    probe = pu.LinearProbe(metric="auc").fit(features, names)
    margins = probe.decision_function(features)
    assert probe.score(features, names) == pytest.approx(roc_auc_score(names == "present", margins))
    assert probe.score(features, names, metric="top1") == (probe.predict(features) == names).mean()
    with pytest.raises(RequestError, match="the metric 'auc' is for two classes; y has 3"):
        pu.LinearProbe(metric="auc").fit(features, np.arange(300) % 3)


def test_columns_are_taken_by_name_and_banks_as_they_are():
    random = np.random.default_rng(0)
    features = random.normal(size=(240, 4))
    labels = (features[:, :2] + 0.5 * random.normal(size=(240, 2)) > 0).astype(int)
    table = pd.DataFrame(features, columns=list("abcd"))
    marks = pd.DataFrame(labels, columns=["left", "right"])
    probe = pu.MultiLabelProbe([1.0]).fit(table, marks)
    expected = probe.score(table, marks)
    assert probe.score(table, marks[["right", "left"]]) == expected
    with pytest.raises(RequestError, match="columns left, up, and the probe was fitted on left, right"):
        probe.score(table, marks.rename(columns={"right": "up"}))
    with pytest.raises(RequestError, match="feature names"):
        probe.predict(table[list("badc")])
    bank = SimpleNamespace(features=features, labels=labels, logits=None)
    whole = pu.MultiLabelProbe([1.0]).fit(bank, None)
    assert whole.score(bank) == pytest.approx(expected)
    assert whole.predict(bank).shape == (240, 2)
