"""Scores and class overlap as steps: the functions' numbers, of the training images of a target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.measures.steps import Parents, measured, value
from tests.measures.worlds import STATISTICS

import penultimate as pu
from penultimate.data.images import ImageSet, save_images
from penultimate.errors import RequestError
from penultimate.features.bank import FeatureBank
from penultimate.metrics.collapse import variability_collapse
from penultimate.networks.trained import build, save_network

SOURCE = ("tiger cat", "beagle", "crane", "crane (machine)", "bee")


def bank(seed: int, n: int = 40) -> FeatureBank:
    """Features [n 6] and source logits [n 5] that know something of three classes."""
    random = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    features = random.normal(size=(n, 6)) + 2 * np.eye(3, 6)[labels]
    logits = random.normal(size=(n, 5)) + 3 * np.eye(3, 5)[labels]
    return FeatureBank(features.astype(np.float32), labels, logits.astype(np.float32))


def images(root: Path, name: str, classes: tuple[str, ...]) -> Path:
    n = len(classes)
    pixels = np.zeros((n, 2, 2, 3), np.uint8)
    save_images(root / name, "train", ImageSet(pixels, np.arange(n), np.arange(n), classes))
    return root / name


def test_scores_are_those_of_the_training_features(tmp_path: Path) -> None:
    train = bank(0)
    rows = measured("transferability", Parents(tmp_path, target="digits").bank("train", train)).rows
    expected = {
        "logme": pu.logme(train.features, train.labels),
        "h_score": pu.h_score(train.features, train.labels),
        "transrate": pu.transrate(train.features, train.labels),
        "target_nc1": variability_collapse(train.features, train.labels),
        "target_separation": pu.class_separation(train.features, train.labels),
    }
    assert {row.metric: row.value for row in rows} == expected
    assert {(row.target, row.split) for row in rows} == {("digits", "train")}


def test_a_score_without_a_value_leaves_the_others_and_a_reason(tmp_path: Path) -> None:
    """At full collapse LogME has no bound; the others say that nothing is left within classes."""
    train = bank(0)
    collapsed = FeatureBank(np.eye(3, 6, dtype=np.float32)[train.labels], train.labels)
    outcome = measured("transferability", Parents(tmp_path).bank("train", collapsed))
    assert {row.metric for row in outcome.rows} == {
        "h_score",
        "transrate",
        "target_nc1",
        "target_separation",
    }
    assert value(outcome.rows, "target_nc1") == pytest.approx(0, abs=1e-12)
    assert outcome.facts["undefined"].startswith("logme: LogME is undefined")


@pytest.mark.parametrize("spec", ["softmax", "sigmoid"])
def test_leep_reads_logits_as_the_objective_does(tmp_path: Path, spec: str) -> None:
    train = bank(1)
    body, head = build(spec, "glyphnet(features=6, width=2)", 5, seed=0)
    card = {"objective": spec, "backbone": "glyphnet(features=6, width=2)", "num_classes": 5}
    save_network(tmp_path / "network", body, head, STATISTICS, {**card, "class_names": list(SOURCE)})
    parents = Parents(tmp_path, target="digits").bank("train", train).network(tmp_path / "network")
    objective = pu.objective(spec, num_features=6, num_classes=5)
    assert train.logits is not None
    probabilities = objective.probabilities(train.logits.astype(float))
    found = value(measured("leep", parents).rows, "leep")
    assert found == pytest.approx(pu.leep(probabilities, train.labels), rel=1e-9)


def test_nce_is_that_of_the_most_likely_source_classes(tmp_path: Path) -> None:
    train = bank(2)
    assert train.logits is not None
    rows = measured("nce", Parents(tmp_path, target="digits").bank("train", train)).rows
    assert value(rows, "nce") == pu.nce(train.logits.argmax(1), train.labels)


def overlapping(root: Path) -> Parents:
    parents = Parents(root, target="digits").bank("train", bank(3)).bank("test", bank(4, n=31))
    parents.images("train", images(root, "source", SOURCE), of="glyphs")
    return parents.images("train", images(root, "target", ("Tiger_Cat", "dog", "crane")), of="digits")


def test_overlap_assigns_on_training_images_and_counts_names(tmp_path: Path) -> None:
    rows = measured("overlap", overlapping(tmp_path)).rows
    train, test = bank(3), bank(4, n=31)
    assert train.logits is not None and test.logits is not None  # noqa: PT018
    seen, tried = train.logits.argmax(1), test.logits.argmax(1)
    for split, (predictions, labels) in {"train": (seen, train.labels), "test": (tried, test.labels)}.items():
        expected = pu.assignment_accuracy(seen, train.labels, predictions, labels)
        assert value(rows, "assignment_accuracy", split=split) == expected
    assert value(rows, "semantic_overlap") == 2


def test_a_study_says_which_classes_correspond(tmp_path: Path) -> None:
    told = {"dog": ["beagle"], "crane": []}
    rows = measured("overlap", overlapping(tmp_path), counterparts={**told, "Tiger_Cat": []}).rows
    assert value(rows, "semantic_overlap") == 1
    with pytest.raises(RequestError, match=r"unknown class of the source 'eagle'\. Did you mean 'beagle'"):
        measured("overlap", overlapping(tmp_path / "other"), counterparts={"dog": ["eagle"]})
