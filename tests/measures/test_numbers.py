"""Measurements as steps: the numbers of the functions, of the banks that they name; what has no value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.measures.steps import KEY, Parents, measured, value
from tests.measures.worlds import STATISTICS, network, world

import penultimate as pu
from penultimate import KNNProbe, LinearProbe
from penultimate.data.images import ImageSet, save_images
from penultimate.errors import RequestError
from penultimate.features.bank import FeatureBank
from penultimate.measures.catalogue import measurement
from penultimate.measures.inputs import sample
from penultimate.metrics.activations import (
    class_centroids,
    cosine_distances,
    nonzero_share,
    rankme,
    singular_values,
    stable_rank,
)
from penultimate.metrics.collapse import cdnv, variability_collapse
from penultimate.metrics.hardness import hardness_density
from penultimate.metrics.likeness import mutual_neighbours, procrustes
from penultimate.networks.trained import build, load_network, save_network


def bank(seed: int, n: int = 40, classes: int = 3) -> FeatureBank:
    """Features [n 8] and source logits [n 5] that know something of the classes."""
    random = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    features = np.maximum(random.normal(size=(n, 8)) + 2 * np.eye(classes, 8)[labels], 0)
    logits = random.normal(size=(n, 5)) + 3 * np.eye(classes, 5)[labels]
    return FeatureBank(features.astype(np.float32), labels, logits.astype(np.float32), np.arange(n))


TRAIN, TEST = bank(0), bank(1, n=31)
LINEAR, KNN = LinearProbe().fit(TRAIN), KNNProbe().fit(TRAIN)


def separations(of: FeatureBank) -> dict[str, float]:
    named = {"": "cosine", "_cosine_centered": "cosine_centered", "_euclidean": "euclidean"}
    found = {f"class_separation{end}": pu.class_separation(of, distance=each) for end, each in named.items()}
    return {**found, "class_separation_unbiased": pu.class_separation(of, unbiased=True)}


EXPECTED: dict[str, Callable[[], dict[tuple[str, str], float]]] = {
    "class_separation": lambda: {
        (metric, split): number
        for split, of in (("train", TRAIN), ("test", TEST))
        for metric, number in separations(of).items()
    },
    "transferability": lambda: {
        ("logme", "train"): pu.logme(TRAIN),
        ("h_score", "train"): pu.h_score(TRAIN),
        ("transrate", "train"): pu.transrate(TRAIN),
        ("target_nc1", "train"): variability_collapse(TRAIN),
        ("target_separation", "train"): pu.class_separation(TRAIN),
    },
    "compactness": lambda: {
        ("cdnv", "train"): cdnv(TRAIN),
        ("rankme", "train"): rankme(TRAIN),
        ("stable_rank", "train"): stable_rank(TRAIN),
    },
    "nce": lambda: {("nce", "train"): pu.nce(TRAIN.predictions, TRAIN.labels)},
    "linear": lambda: {
        ("linear_top1", "test"): LINEAR.score(TEST),
        ("linear_lambda", "train"): LINEAR.lambda_,
        ("linear_validation_accuracy", "train"): max(LINEAR.validation_accuracy_),
        ("linear_certified_gap", "train"): max(*LINEAR.certificates_, LINEAR.certificate_),
    },
    "knn": lambda: {
        ("knn_top1", "test"): KNN.score(TEST),
        ("knn_k", "train"): KNN.k_,
        ("knn_leave_one_out", "train"): max(KNN.leave_one_out_),
    },
}


@pytest.mark.parametrize("what", EXPECTED)
def test_the_rows_are_the_numbers_of_the_functions(tmp_path: Path, what: str) -> None:
    parents = Parents(tmp_path, target="digits").bank("train", TRAIN).bank("test", TEST)
    rows = measured(what, parents, accuracy="top1").rows
    assert {(row.metric, row.split): row.value for row in rows} == pytest.approx(EXPECTED[what](), rel=1e-12)
    declared = {each.metric: each.unit for each in measurement(what).yields}
    assert all(row.unit == declared[row.metric] for row in rows)


@pytest.mark.parametrize(
    ("what", "labels", "remain", "reason"),
    [
        ("compactness", "several", {"rankme"}, "fills no direction"),
        ("compactness", "one", {"rankme"}, "cdnv (train): CDNV needs two classes"),
        ("class_separation", "several", set(), "features of all 40 examples are equal"),
        ("transferability", "several", {"logme", "transrate"}, "h_score (train): the H-score is undefined"),
        ("probed", "several", set(), "probes on 'digits': all 40 examples of X are one point"),
        ("probed", "one", set(), "probes on 'digits': y holds one class only"),
    ],
)
def test_what_has_no_value_costs_the_others_nothing(
    tmp_path: Path, what: str, labels: str, remain: set[str], reason: str
) -> None:
    of = TRAIN.labels if labels == "several" else np.zeros(40, np.int64)
    constant = FeatureBank(np.ones((40, 8), np.float32), of, None, np.arange(40))
    parents = Parents(tmp_path, target="digits").bank("train", constant).bank("test", constant)
    outcome = measured(what, parents, accuracy="top1")
    assert {row.metric for row in outcome.rows} == remain
    assert reason in outcome.facts["undefined"]


def test_a_class_of_one_image_leaves_out_the_unbiased_separation_alone(tmp_path: Path) -> None:
    few = FeatureBank(TEST.features[:4], np.array([0, 0, 1, 2]))
    outcome = measured("class_separation", Parents(tmp_path).bank("train", TRAIN).bank("test", few))
    assert sum(row.split == "test" for row in outcome.rows) == 3
    assert outcome.facts["undefined"].startswith("class_separation_unbiased (test): ")


def test_predictions_are_those_of_the_probes_that_are_scored(tmp_path: Path) -> None:
    parents = Parents(tmp_path, target="tasks").bank("train", TRAIN).bank("test", TEST)
    rows = measured("probed", parents, accuracy="top1").rows
    with np.load(tmp_path / "out" / "probe_predictions.npz") as arrays:
        assert arrays["ids"].tolist() == TEST.ids.tolist()  # type: ignore[union-attr]
        for name, probe in {"linear": LINEAR, "knn": KNN}.items():
            assert arrays[name].tolist() == probe.predict(TEST).tolist()
            assert value(rows, f"{name}_top1") == (arrays[name] == arrays["labels"]).mean()


def test_angles_distances_and_spectra(tmp_path: Path) -> None:
    folder = network(tmp_path, "softmax")
    own = FeatureBank(TRAIN.features, TRAIN.labels)
    parents = Parents(tmp_path).network(folder).bank("test", own).bank("train", own)
    weight = load_network(folder).head_weight
    scores = pu.angular_visual_hardness(own, weight=weight)
    rows = measured("hardness", parents).rows
    assert value(rows, "angular_visual_hardness", split="test") == float(scores.mean())
    rows = measured("distances", parents, {"count": 30, "seed": 3}).rows
    pairs = cosine_distances(own, None, 30, 3)
    assert value(rows, "cosine_distance_within") == pairs.mean_within
    assert value(rows, "cosine_distance_between") == pairs.mean_between
    measured("spectra", parents)
    for file, expected in (
        ("hardness_density", hardness_density(scores, 4)._asdict()),
        ("cosine_distance_density", {name: getattr(pairs, name) for name in ("points", "within", "between")}),
        (
            "singular_values",
            {"weights": singular_values(weight), "centroids": singular_values(class_centroids(own))},
        ),
    ):
        with np.load(tmp_path / "out" / f"{file}.npz") as arrays:
            for name, array in expected.items():
                assert arrays[name].tolist() == pytest.approx(array.tolist(), rel=1e-12)


def test_the_geometry_is_that_of_the_features_and_of_the_network(tmp_path: Path) -> None:
    features = TEST.features + np.eye(1, 8, dtype=np.float32) * 3e4  # far from the origin
    features[:, 2] = 0.3
    of = FeatureBank(features, TEST.labels)
    images, folder = world(tmp_path), network(tmp_path, "softmax")
    rows = measured(
        "geometry", Parents(tmp_path).network(folder).images("test", images).bank("test", of)
    ).rows
    shares = np.linalg.eigvalsh(np.cov(features.astype(float), rowvar=False))
    shares = shares[shares > 1e-9] / shares.sum()
    body = load_network(folder).backbone
    for metric, expected in {
        "effective_rank": np.exp(-(shares * np.log(shares)).sum()),
        "nonzero_share": nonzero_share(features),
        "feature_size": (features.astype(float) ** 2).mean() ** 0.5,
        "class_separation": pu.class_separation(of),
        "class_separation_unbiased": pu.class_separation(of, unbiased=True),
        "width": 8,
        "constant_features": 1,
        "input_side": 16,
        "parameters": sum(each.numel() for each in body.parameters()),
    }.items():
        assert value(rows, metric) == pytest.approx(expected, rel=1e-9), metric
    with np.load(tmp_path / "out" / "feature_spectrum.npz") as arrays:
        assert arrays["singular_values"].tolist() == singular_values(of, centred=True).tolist()


# -- likeness of two networks -------------------------------------------------------------------------------


def alike(root: Path, one: FeatureBank, other: FeatureBank, **settings: Any) -> Any:
    parents = Parents(root).bank("test", one).bank("test", other, dataclasses.replace(KEY, seed=1))
    return measured("pair_likeness", parents, {"permutations": 19, **settings}, key=None)


def test_likeness_is_that_of_one_sample_of_the_same_images(tmp_path: Path) -> None:
    outcome = alike(tmp_path, TRAIN, bank(2), images=30)
    x, y = (of.features[sample(40, 30)] for of in (TRAIN, bank(2)))
    assert value(outcome.rows, "likeness_cka") == pytest.approx(pu.minibatch_cka([x], [y]), rel=1e-6)
    assert value(outcome.rows, "procrustes") == pytest.approx(procrustes(x, y), rel=1e-9)
    assert value(outcome.rows, "mutual_neighbours") == pytest.approx(mutual_neighbours(x, y, 10))
    assert {(row.seed, row.seed_b) for row in outcome.rows} == {(0, 1)}
    again = alike(tmp_path / "again", bank(3), bank(4), images=30, batch_size=13)
    assert again.facts["sample"] == outcome.facts["sample"]
    constant = dataclasses.replace(TRAIN, features=np.ones((40, 8), np.float32))
    left = alike(tmp_path / "constant", TRAIN, constant)
    assert {row.metric for row in left.rows} == {"mutual_neighbours"}
    assert "CKA is undefined" in left.facts["undefined"]
    few = bank(0, 3)
    assert "needs 4 test images" in alike(tmp_path / "few", few, few).facts["undefined"]
    with pytest.raises(RequestError, match="other images"):
        alike(tmp_path / "other", TRAIN, dataclasses.replace(TRAIN, ids=np.arange(40) + 1))


# -- source classes and those of a target -------------------------------------------------------------------

SOURCE = ("tiger cat", "beagle", "crane", "crane (machine)", "bee")


@pytest.mark.parametrize("spec", ["softmax", "sigmoid"])
def test_leep_reads_logits_as_the_objective_does(tmp_path: Path, spec: str) -> None:
    body, head = build(spec, "glyphnet(features=6, width=2)", 5, seed=0)
    card = {"objective": spec, "backbone": "glyphnet(features=6, width=2)", "num_classes": 5}
    save_network(tmp_path / "network", body, head, STATISTICS, {**card, "class_names": list(SOURCE)})
    parents = Parents(tmp_path, target="digits").bank("train", TRAIN).network(tmp_path / "network")
    objective = pu.objective(spec, num_features=6, num_classes=5)
    probabilities = objective.probabilities(TRAIN.logits.astype(float))  # type: ignore[union-attr]
    found = value(measured("leep", parents).rows, "leep")
    assert found == pytest.approx(pu.leep(probabilities, TRAIN.labels), rel=1e-9)


def images(root: Path, name: str, classes: tuple[str, ...]) -> Path:
    n = len(classes)
    pixels = np.zeros((n, 2, 2, 3), np.uint8)
    save_images(root / name, "train", ImageSet(pixels, np.arange(n), np.arange(n), classes))
    return root / name


@pytest.mark.parametrize(
    ("told", "shared"), [({}, 2), ({"dog": ["beagle"], "crane": [], "Tiger_Cat": []}, 1)]
)
def test_overlap_assigns_on_training_images_and_counts_names(
    tmp_path: Path, told: dict[str, list[str]], shared: int
) -> None:
    parents = Parents(tmp_path, target="digits").bank("train", TRAIN).bank("test", TEST)
    parents.images("train", images(tmp_path, "source", SOURCE), of="glyphs")
    parents.images("train", images(tmp_path, "target", ("Tiger_Cat", "dog", "crane")), of="digits")
    rows = measured("overlap", parents, counterparts=told).rows
    for split, of in {"train": TRAIN, "test": TEST}.items():
        expected = pu.assignment_accuracy(TRAIN.predictions, TRAIN.labels, of.predictions, of.labels)
        assert value(rows, "assignment_accuracy", split=split) == expected
    assert value(rows, "semantic_overlap") == shared
