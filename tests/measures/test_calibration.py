"""Calibration: the numbers of the metrics, with the temperature of the holdout, bin by bin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.measures.banks import CLASSES, bank, flawless
from tests.measures.steps import Parents, measured, value
from tests.oracles import calibration as oracle

import penultimate as pu
from penultimate.data.images import ChannelStatistics
from penultimate.engine.execute import Outcome
from penultimate.features.bank import FeatureBank
from penultimate.measures.inputs import sample
from penultimate.networks.trained import build, save_network

BACKBONE = "glyphnet(features=8, width=2)"


def calibrated(root: Path, spec: str, holdout: FeatureBank, test: FeatureBank) -> Outcome:
    """The step's outcome for logits of a network with this objective."""
    body, head = build(spec, BACKBONE, CLASSES, seed=0)
    card = {"objective": spec, "backbone": BACKBONE, "num_classes": CLASSES, "class_names": list("abcd")}
    save_network(root / "network", body, head, ChannelStatistics((0.5,) * 3, (0.3,) * 3), card)
    return measured(
        "calibration", Parents(root).bank("holdout", holdout).bank("test", test).network(root / "network")
    )


@pytest.mark.parametrize("spec", ["softmax", "sigmoid"])
def test_calibration_is_measured_on_test_and_fitted_on_the_holdout(tmp_path: Path, spec: str) -> None:
    holdout, test = bank(1), bank(2)
    outcome = calibrated(tmp_path, spec, holdout, test)
    rows = outcome.rows
    assert outcome.facts == {}
    assert {(row.split, row.layer) for row in rows} == {("test", None)}
    objective = pu.objective(spec, num_features=1, num_classes=CLASSES)
    scores = [objective.log_probabilities(one.logits.astype(float)) for one in (holdout, test)]  # type: ignore[union-attr]
    temperature = pu.fit_temperature(scores[0], holdout.labels)
    assert value(rows, "temperature") == temperature
    for suffix, at in (("", 1.0), ("_scaled", temperature)):
        probabilities = [oracle.softmax(row, at) for row in scores[1].tolist()]
        nll = oracle.negative_log_likelihood(probabilities, test.labels.tolist())
        ece = oracle.expected_calibration_error(probabilities, test.labels.tolist(), 15)
        assert value(rows, f"nll{suffix}") == pytest.approx(nll)
        assert value(rows, f"ece{suffix}") == pytest.approx(ece)
        bins = [row for row in rows if row.metric == f"reliability_share{suffix}"]
        assert sum(row.value for row in bins) == pytest.approx(1)
        assert {row.settings["bins"] for row in bins} == {"15"}
        gaps = [
            row.value
            * abs(
                value(rows, f"reliability_accuracy{suffix}", setting=row.setting)
                - value(rows, f"reliability_confidence{suffix}", setting=row.setting)
            )
            for row in bins
        ]
        assert sum(gaps) == pytest.approx(ece)


def test_without_a_best_temperature_the_rest_is_measured_and_the_reason_kept(tmp_path: Path) -> None:
    outcome = calibrated(tmp_path, "softmax", flawless(bank(1)), bank(2))
    assert "as T goes to 0" in outcome.facts["undefined"]
    metrics = {row.metric for row in outcome.rows if not row.metric.startswith("reliability")}
    assert metrics == {"nll", "ece"}


def as_classifier(root: Path, test: FeatureBank, holdout: FeatureBank | None = None) -> Outcome:
    body, head = build("softmax", BACKBONE, CLASSES, seed=0)
    card = {"objective": "softmax", "backbone": BACKBONE, "num_classes": CLASSES, "class_names": list("abcd")}
    save_network(root / "network", body, head, ChannelStatistics((0.5,) * 3, (0.3,) * 3), card)
    parents = Parents(root).bank("test", test).network(root / "network")
    return measured("classifier", parents if holdout is None else parents.bank("holdout", holdout))


def test_without_a_holdout_each_half_has_the_temperature_of_the_other(tmp_path: Path) -> None:
    test = bank(2)
    assert test.logits is not None
    half = np.zeros(len(test), bool)
    half[sample(len(test), len(test) // 2)] = True
    fitted = [
        pu.fit_temperature(test.logits[part].astype(float), test.labels[part]) for part in (half, ~half)
    ]
    assert fitted[0] != pytest.approx(fitted[1], rel=1e-3)
    probabilities = [
        oracle.softmax(row, fitted[1] if first else fitted[0])
        for row, first in zip(test.logits.astype(float).tolist(), half, strict=True)
    ]
    rows = as_classifier(tmp_path, test).rows
    assert value(rows, "temperature") == pytest.approx((fitted[0] * fitted[1]) ** 0.5)
    nll = oracle.negative_log_likelihood(probabilities, test.labels.tolist())
    ece = oracle.expected_calibration_error(probabilities, test.labels.tolist(), 15)
    assert value(rows, "nll_scaled") == pytest.approx(nll)
    assert value(rows, "ece_scaled") == pytest.approx(ece)


def test_with_a_holdout_a_classifier_is_calibrated_as_networks_trained_here_are(tmp_path: Path) -> None:
    holdout, test = bank(1), bank(2)
    rows = as_classifier(tmp_path / "a", test, holdout).rows
    expected = calibrated(tmp_path / "b", "softmax", holdout, test).rows
    for metric in ("nll", "ece", "nll_scaled", "ece_scaled", "temperature"):
        assert value(rows, metric) == value(expected, metric)


def test_a_disk_too_small_for_the_probabilities_is_an_error_and_no_bus_error(
    tmp_path: Path, small_disk: Path
) -> None:
    (tmp_path / "out").symlink_to(small_disk)
    with pytest.raises(OSError, match="No space left"):
        calibrated(tmp_path, "softmax", bank(1), bank(2, n=20_000))
