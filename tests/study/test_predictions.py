"""Rows of calibration and likeness: the numbers of the instruments, said of the right networks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import penultimate as pu
from penultimate import FeatureBank, RequestError
from penultimate.study.predictions import calibration_rows, likeness_rows
from tests.oracles import agreement as agreement_oracle
from tests.oracles import calibration as oracle

CLASSES = 4


def bank(seed: int, n: int = 60, sure: float = 2.0) -> FeatureBank:
    """Logits that know something of their labels; every bank is of the same examples."""
    labels = np.arange(n) % CLASSES
    random = np.random.default_rng(seed)
    logits = sure * (random.normal(size=(n, CLASSES)) + np.eye(CLASSES)[labels])
    return FeatureBank(np.zeros((n, 1), np.float32), labels, logits.astype(np.float32))


def only(rows: list[dict[str, Any]], metric: str, **columns: Any) -> float:
    (found,) = (
        row["value"]
        for row in rows
        if row["metric"] == metric and all(row.get(key) == value for key, value in columns.items())
    )
    return float(found)


@pytest.mark.parametrize("spec", ["softmax", "sigmoid"])
def test_calibration_is_measured_on_test_and_fitted_on_the_holdout(spec: str) -> None:
    holdout, test = bank(1), bank(2)
    rows, reason = calibration_rows(spec, holdout, test)
    assert reason == ""
    assert {row["split"] for row in rows} == {"test"}
    objective = pu.objective(spec, num_features=1, num_classes=CLASSES)
    scores = [objective.log_probabilities(one.logits.astype(float)) for one in (holdout, test)]
    temperature = pu.fit_temperature(scores[0], holdout.labels)
    assert only(rows, "temperature") == temperature
    for suffix, at in (("", 1.0), ("_scaled", temperature)):
        probabilities = [oracle.softmax(row, at) for row in scores[1].tolist()]
        nll = oracle.negative_log_likelihood(probabilities, test.labels.tolist())
        ece = oracle.expected_calibration_error(probabilities, test.labels.tolist(), 15)
        assert only(rows, f"nll{suffix}") == pytest.approx(nll)
        assert only(rows, f"ece{suffix}") == pytest.approx(ece)
        bins = [row for row in rows if row["metric"] == f"reliability_share{suffix}"]
        assert sum(row["value"] for row in bins) == pytest.approx(1)
        gaps = [
            row["value"]
            * abs(
                only(rows, f"reliability_accuracy{suffix}", layer=row["layer"])
                - only(rows, f"reliability_confidence{suffix}", layer=row["layer"])
            )
            for row in bins
        ]
        assert sum(gaps) == pytest.approx(ece)


def test_without_a_best_temperature_the_rest_is_measured_and_the_reason_kept() -> None:
    holdout = bank(1)
    flawless = FeatureBank(
        holdout.features, holdout.labels, np.eye(CLASSES, dtype=np.float32)[holdout.labels]
    )
    rows, reason = calibration_rows("softmax", flawless, bank(2))
    assert "as T goes to 0" in reason
    assert {row["metric"] for row in rows if not row["metric"].startswith("reliability")} == {"nll", "ece"}


def test_likeness_of_all_pairs_and_ensembles_of_the_common_seeds() -> None:
    networks = [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2), ("b", 7)]
    banks = {network: bank(seed) for seed, network in enumerate(networks)}
    rows = likeness_rows(banks)
    labels = bank(0).labels.tolist()
    predicted = {network: one.logits.argmax(1).tolist() for network, one in banks.items()}
    same, together, alike = agreement_oracle.agreement(predicted["a", 1], predicted["b", 7], labels)
    pair = {"objective": "a", "seed": 1, "objective_b": "b", "seed_b": 7}
    assert only(rows, "agreement_same", **pair) == same
    assert only(rows, "agreement_both_right_or_wrong", **pair) == together
    assert only(rows, "agreement_same_when_both_wrong", **pair) == alike
    count = Counter((row["metric"], row.get("layer")) for row in rows)
    assert count["agreement_same", None] == 7 * 6 / 2
    assert count["agreement_same", "3"] == 1
    assert (count["ensemble_top1", "3"], count["ensemble_top1", "2"]) == (2, 3)

    def right(members: list[tuple[str, int]]) -> float:
        chosen = agreement_oracle.modal([predicted[one] for one in members])
        return sum(p == y for p, y in zip(chosen, labels, strict=True)) / len(labels)

    columns = {"objective": "a", "objective_b": "b", "layer": "2"}
    mixed = right([("a", 0), ("b", 1)]) + right([("b", 0), ("a", 1)])
    assert only(rows, "ensemble_top1", **columns) == pytest.approx(mixed / 2)
    pure = {"objective": "b", "objective_b": "b", "layer": "3"}
    assert only(rows, "ensemble_top1", **pure) == right([("b", 0), ("b", 1), ("b", 2)])


def test_two_networks_that_never_err_together_leave_no_row_of_it() -> None:
    one = bank(0)
    flawless = FeatureBank(one.features, one.labels, np.eye(CLASSES, dtype=np.float32)[one.labels])
    metrics = [row["metric"] for row in likeness_rows({("a", 0): one, ("b", 0): flawless})]
    assert metrics == ["agreement_same", "agreement_both_right_or_wrong"]


def test_other_examples_are_refused() -> None:
    with pytest.raises(RequestError, match="'b', seed 0, was measured on other examples"):
        likeness_rows({("a", 0): bank(0), ("b", 0): bank(1, n=56)})
    bare = FeatureBank(np.zeros((2, 1), np.float32), np.array([0, 1]))
    with pytest.raises(RequestError, match="needs logits"):
        calibration_rows("softmax", bare, bare)
    with pytest.raises(RequestError, match="no predictions without logits"):
        likeness_rows({("a", 0): bare})
