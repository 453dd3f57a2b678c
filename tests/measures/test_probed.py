"""What either probe predicts of each test image is what its accuracy is of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.measures.steps import Parents, measured, value
from tests.probes.conftest import blobs

from penultimate.features.bank import FeatureBank
from penultimate.probes.knn import KNNProbe
from penultimate.probes.linear import LinearProbe


def bank(seed: int, n: int) -> FeatureBank:
    features, labels = blobs(0, 120, 4, 3, 2.0)
    rows = np.random.default_rng(seed).permutation(120)[:n]
    return FeatureBank(features[rows].astype(np.float32), labels[rows], None, rows)


def test_predictions_are_those_of_the_probes_that_are_scored(tmp_path: Path) -> None:
    train, test = bank(0, 60), bank(1, 50)
    parents = Parents(tmp_path, target="tasks").bank("train", train).bank("test", test)
    rows = measured("probed", parents, accuracy="mean_per_class").rows
    linear = LinearProbe(metric="mean_per_class").fit(train.features, train.labels)
    knn = KNNProbe().fit(train.features, train.labels)
    with np.load(tmp_path / "out" / "probe_predictions.npz") as arrays:
        assert arrays["ids"].tolist() == (test.ids if test.ids is not None else np.zeros(0)).tolist()
        assert arrays["labels"].tolist() == test.labels.tolist()
        for name, probe in {"linear": linear, "knn": knn}.items():
            assert arrays[name].tolist() == probe.predict(test.features).tolist()
            score = np.mean([(arrays[name][test.labels == c] == c).mean() for c in range(3)])
            assert abs(value(rows, f"{name}_mean_per_class") - score) < 1e-12
        assert arrays["linear"].tolist() != arrays["knn"].tolist()


def test_a_target_of_one_class_leaves_its_reason(tmp_path: Path) -> None:
    of_one = FeatureBank(np.eye(4, dtype=np.float32), np.zeros(4, np.int64))
    parents = Parents(tmp_path, target="tasks").bank("train", of_one).bank("test", of_one)
    outcome = measured("probed", parents, accuracy="top1")
    assert not outcome.rows
    assert outcome.facts["undefined"].startswith("probes on 'tasks': y holds one class only")


def test_where_nothing_can_validate_there_is_knn_alone(tmp_path: Path) -> None:
    of_each = FeatureBank(np.eye(3, dtype=np.float32), np.arange(3))
    parents = Parents(tmp_path, target="tasks").bank("train", of_each).bank("test", of_each)
    outcome = measured("probed", parents, accuracy="top1")
    assert {row.metric for row in outcome.rows} == {"knn_top1", "knn_k", "knn_leave_one_out"}
    said = outcome.facts["undefined"]
    assert said.startswith("the linear probe on 'tasks': every class has a single example")
