"""The Brier score, its parts and further calibration errors as steps: of final layers and of probes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.measures.banks import CLASSES, bank, flawless
from tests.measures.steps import Parents, measured, value
from tests.oracles import calibration as oracle

import penultimate as pu
from penultimate import FeatureBank
from penultimate.data.images import ChannelStatistics
from penultimate.engine.execute import Outcome
from penultimate.measures.inputs import sample
from penultimate.networks.trained import build, save_network
from penultimate.probes.linear import LinearProbe
from penultimate.probes.validation import split_off
from penultimate.records.table import Row

BACKBONE = "glyphnet(features=8, width=2)"


def expect_numbers(
    rows: list[Row], probabilities: list[list[float]], labels: list[int], prefix: str, suffix: str
) -> None:
    """Expect what the oracle makes of probabilities."""
    brier = value(rows, f"{prefix}brier{suffix}")
    assert brier == pytest.approx(oracle.brier_score(probabilities, labels), abs=1e-9)
    names = ("reliability", "resolution", "uncertainty", "within")
    parts = [value(rows, f"{prefix}brier_{name}{suffix}") for name in names]
    assert parts[:3] == pytest.approx(oracle.brier_parts(probabilities, labels, 15), abs=1e-9)
    assert parts[0] - parts[1] + parts[2] + parts[3] == pytest.approx(brier, abs=1e-12)
    for name in ("adaptive", "classwise"):
        literal = getattr(oracle, f"{name}_calibration_error")(probabilities, labels, 15)
        assert value(rows, f"{prefix}{name}_ece{suffix}") == pytest.approx(literal, abs=1e-9)


def of_layer(root: Path, test: FeatureBank, holdout: FeatureBank | None = None) -> Outcome:
    body, head = build("softmax", BACKBONE, CLASSES, seed=0)
    card = {"objective": "softmax", "backbone": BACKBONE, "num_classes": CLASSES, "class_names": list("abcd")}
    save_network(root / "network", body, head, ChannelStatistics((0.5,) * 3, (0.3,) * 3), card)
    parents = Parents(root).bank("test", test).network(root / "network")
    return measured("brier", parents if holdout is None else parents.bank("holdout", holdout))


def logits_of(one: FeatureBank) -> list[list[float]]:
    assert one.logits is not None
    return one.logits.astype(float).tolist()


def test_final_layers_before_and_after_the_temperature_of_the_holdout(tmp_path: Path) -> None:
    test, holdout = bank(2), bank(1)
    outcome = of_layer(tmp_path, test, holdout)
    temperature = pu.fit_temperature(logits_of(holdout), holdout.labels)
    assert outcome.facts == {}
    for suffix, at in (("", 1.0), ("_scaled", temperature)):
        rows = [oracle.softmax(row, at) for row in logits_of(test)]
        expect_numbers(outcome.rows, rows, test.labels.tolist(), "", suffix)


def test_without_a_holdout_each_half_has_the_temperature_of_the_other(tmp_path: Path) -> None:
    test = bank(2)
    outcome = of_layer(tmp_path, test)
    logits, first = np.array(logits_of(test)), np.zeros(60, bool)
    first[sample(60, 30)] = True
    rows = np.zeros((60, CLASSES))
    for half in (first, ~first):
        temperature = pu.fit_temperature(logits[~half], test.labels[~half])
        rows[half] = [oracle.softmax(row, temperature) for row in logits[half].tolist()]
    expect_numbers(outcome.rows, rows.tolist(), test.labels.tolist(), "", "_scaled")


def test_without_a_best_temperature_the_rest_is_measured(tmp_path: Path) -> None:
    outcome = of_layer(tmp_path, bank(2), flawless(bank(1)))
    assert "as T goes to 0" in outcome.facts["undefined"]
    assert not any(row.metric.endswith("_scaled") for row in outcome.rows)
    assert value(outcome.rows, "brier") > 0


def features(seed: int, n: int, classes: int = 3) -> FeatureBank:
    random, labels = np.random.default_rng(seed), np.arange(n) % classes
    points = random.normal(size=(n, 5)) + 1.2 * np.eye(classes, 5)[labels]
    return FeatureBank(points.astype(np.float32), labels)


@pytest.mark.parametrize("classes", [2, 3])
def test_probes_before_and_after_the_temperature_of_images_they_have_not_seen(
    tmp_path: Path, classes: int
) -> None:
    train, test = features(1, 150, classes), features(2, 90, classes)
    parents = Parents(tmp_path, target="digits").bank("train", train).bank("test", test)
    outcome = measured("probe_calibration", parents, accuracy="top1")
    probe = LinearProbe().fit(train.features, train.labels)
    logits = np.log(probe.predict_proba(test.features))
    held = split_off(train.labels)
    scale = 2 / probe.lambda_ if classes == 2 else 1 / probe.lambda_
    rest = LogisticRegression(C=scale, tol=1e-10, max_iter=10_000)
    rest.fit(train.features[~held].astype(float), train.labels[~held])
    seen = np.log(rest.predict_proba(train.features[held].astype(float)))
    temperature = value(outcome.rows, "probe_temperature")
    assert temperature == pytest.approx(pu.fit_temperature(seen, train.labels[held]), rel=1e-2)
    for suffix, at in (("", 1.0), ("_scaled", temperature)):
        rows = [oracle.softmax(row, at) for row in logits.tolist()]
        expect_numbers(outcome.rows, rows, test.labels.tolist(), "probe_", suffix)
        nll = oracle.negative_log_likelihood(rows, test.labels.tolist())
        assert value(outcome.rows, f"probe_nll{suffix}") == pytest.approx(nll)
        ece = oracle.expected_calibration_error(rows, test.labels.tolist(), 15)
        assert value(outcome.rows, f"probe_ece{suffix}") == pytest.approx(ece)


def test_one_class_constant_features_and_single_images_have_no_number_and_say_why(tmp_path: Path) -> None:
    train, test = features(1, 30), features(2, 30)
    one = replace(train, labels=np.zeros(30, np.int64))
    flat = replace(train, features=np.ones((30, 5), np.float32))
    for name, given, told in (("one", one, "one class only"), ("flat", flat, "constant features")):
        parents = Parents(tmp_path / name, target="digits").bank("train", given).bank("test", test)
        outcome = measured("probe_calibration", parents, accuracy="top1")
        assert outcome.rows == []
        assert told in outcome.facts["undefined"]
    rare = replace(train, labels=np.where(np.arange(30) == 7, 3, train.labels))
    parents = Parents(tmp_path / "rare", target="digits").bank("train", rare).bank("test", test)
    assert value(measured("probe_calibration", parents, accuracy="top1").rows, "probe_brier") > 0
