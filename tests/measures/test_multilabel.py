"""Transfer to images of several labels, against scikit-learn label by label and DeLong's formula."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from tests.measures.steps import Parents, measured, value
from tests.oracles import auc as oracle

from penultimate.data.images import ImageSet, save_images
from penultimate.errors import RequestError
from penultimate.features.bank import FeatureBank
from penultimate.study.blocks import Runs
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold

NAMES = ("Edema", "Pleural Effusion")


def bank(n: int, seed: int, unsure: float = 0.2) -> FeatureBank:
    """Features that know something of two labels, a share of which is uncertain."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(n, 6)).astype(np.float32)
    labels = (features[:, :2] + random.normal(size=(n, 2)) > 0.4).astype(np.int64)
    return FeatureBank(features, np.where(random.random((n, 2)) < unsure, -1, labels))


def parents(root: Path, **banks: FeatureBank) -> Parents:
    pixels = np.zeros((2, 4, 4, 3), np.uint8)
    save_images(root / "data", "train", ImageSet(pixels, np.eye(2, dtype=int), np.arange(2), NAMES))
    made = Parents(root, target="findings").images("train", root / "data")
    for split, one in banks.items():
        made.bank(split, one)
    return made


def as_counted(bank: FeatureBank, place: int, uncertain: str) -> tuple[np.ndarray, np.ndarray]:
    """Example by example, as the words say."""
    counts = {"zeros": 0, "ones": 1}
    pairs = [
        (feature, counts[uncertain] if label == -1 else label)
        for feature, label in zip(bank.features, bank.labels[:, place], strict=True)
        if label != -1 or uncertain != "ignore"
    ]
    return np.stack([feature for feature, _ in pairs]).astype(float), np.array([label for _, label in pairs])


@pytest.mark.parametrize("uncertain", ["zeros", "ignore", "ones"])
def test_areas_are_those_of_scikit_learn_at_the_chosen_lambda(tmp_path: Path, uncertain: str) -> None:
    train, test, validation = bank(200, 0), bank(90, 1), bank(60, 2, unsure=0)
    outcome = measured(
        "multilabel",
        parents(tmp_path, train=train, test=test, validation=validation),
        {"uncertain": uncertain},
    )
    for split, tested in {"test": test, "validation": validation}.items():
        areas = []
        for place, name in enumerate(NAMES):
            setting = f"label={name}, uncertain={uncertain}"
            chosen = value(outcome.rows, "multilabel_lambda", setting=setting)
            fitted = LogisticRegression(C=1 / chosen, solver="newton-cholesky", tol=1e-8)
            fitted.fit(*as_counted(train, place, uncertain))
            features, labels = as_counted(tested, place, uncertain)
            scores = fitted.decision_function(features)
            found = [
                value(outcome.rows, f"multilabel_auc{part}", setting=setting, split=split)
                for part in ("", "_low", "_high")
            ]
            error = oracle.delong(scores, labels)
            expected = roc_auc_score(labels, scores)
            assert found[0] == pytest.approx(expected, abs=3e-3)
            assert found[1:] == pytest.approx(
                [max(0, expected - 1.959964 * error), min(1, expected + 1.959964 * error)], abs=5e-3
            )
            areas.append(found[0])
        mean = value(outcome.rows, "multilabel_mean_auc", split=split)
        assert mean == pytest.approx(np.mean(areas))
    assert "undefined" not in outcome.facts
    gaps = [row.value for row in outcome.rows if row.metric == "multilabel_certified_gap"]
    assert len(gaps) == 2
    assert max(gaps) <= 1e-4


@pytest.mark.parametrize("thresholds", [3, 1000])
def test_areas_over_thresholds_are_those_of_the_probabilities(tmp_path: Path, thresholds: int) -> None:
    train, test = bank(200, 0), bank(90, 1)
    asked = {"uncertain": "zeros", "thresholds": thresholds}
    made = parents(tmp_path, train=train, test=test)
    outcome, usual = (measured("multilabel", made, each) for each in (asked, {"uncertain": "zeros"}))
    areas = []
    for place, name in enumerate(NAMES):
        setting = f"label={name}, uncertain=zeros"
        chosen = value(outcome.rows, "multilabel_lambda", setting=setting)
        fitted = LogisticRegression(C=1 / chosen, solver="newton-cholesky", tol=1e-8)
        fitted.fit(*as_counted(train, place, "zeros"))
        features, labels = as_counted(test, place, "zeros")
        found = value(outcome.rows, "multilabel_auc", setting=setting)
        probabilities = fitted.predict_proba(features)[:, 1]
        assert found == pytest.approx(oracle.binned(probabilities, labels, thresholds), abs=5e-4)
        exact = value(usual.rows, "multilabel_auc", setting=setting)
        assert found != exact
        ends = [value(rows, "multilabel_auc_low", setting=setting) for rows in (outcome.rows, usual.rows)]
        assert ends[0] == ends[1] < exact
        areas.append(found)
    assert value(outcome.rows, "multilabel_mean_auc") == pytest.approx(np.mean(areas))


def test_a_label_without_an_example_costs_its_own_areas_and_the_mean(tmp_path: Path) -> None:
    train, test = bank(200, 0), bank(90, 1)
    labels = train.labels.copy()
    labels[:, 1] = 0
    outcome = measured(
        "multilabel",
        parents(tmp_path, train=FeatureBank(train.features, labels), test=test),
        {"uncertain": "zeros"},
    )
    assert {(row.metric, row.split, row.settings["label"]) for row in outcome.rows} >= {
        ("multilabel_auc", "test", "Edema")
    }
    assert {row.settings.get("label") for row in outcome.rows} == {"Edema"}
    assert "label 'Pleural Effusion' has no positive example among 200" in outcome.facts["undefined"]


RUNS = Runs(("softmax",))


def measured_on(study: Study) -> dict[str, set[str]]:
    """The targets of every measurement of targets."""
    found: dict[str, set[str]] = {}
    for step in unfold(study).steps.values():
        if step.name in ("linear", "knn", "multilabel"):
            found.setdefault(step.name, set()).add(step.columns["target"])
    return found


def test_each_measurement_is_asked_of_the_targets_with_its_kind_of_labels() -> None:
    targets = ("digits_smoke", "findings_smoke")
    study = Study("s", "", "", "glyphs_smoke", targets, (RUNS,), ("linear", "knn", "multilabel"))
    assert measured_on(study) == {
        "linear": {"digits_smoke"},
        "knn": {"digits_smoke"},
        "multilabel": {"findings_smoke"},
    }


def test_nothing_is_trained_on_images_of_several_labels() -> None:
    with pytest.raises(RequestError, match="'findings_smoke' cannot be trained on: its images have several"):
        Study("s", "", "", "findings_smoke", (), (RUNS,))
