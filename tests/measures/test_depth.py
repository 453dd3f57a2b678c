"""Depth: probes on the pooled output of every block, and the layer that validation images choose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.measures.steps import Parents, measured, value
from tests.measures.worlds import network, world

from penultimate.data.images import load_images
from penultimate.features.extraction import extract
from penultimate.layers import pooling
from penultimate.layers.pooling import pooled_layers
from penultimate.networks.trained import load_network
from penultimate.probes.knn import KNNProbe
from penultimate.probes.linear import LinearProbe
from penultimate.probes.validation import split_off

LAYERS = ["block1", "block2", "bottleneck1", "penultimate"]


def made(root: Path, dead: bool = False) -> Parents:
    images, folder = world(root), network(root, "softmax", dead=dead)
    parents = Parents(root, target="tasks").network(folder)
    for split in ("train", "test"):
        bank = extract(load_network(folder), load_images(images, split))
        parents.images(split, images).bank(split, bank)
    return parents


@pytest.mark.long
def test_each_layer_has_the_numbers_of_probes_fitted_to_it_alone(tmp_path: Path) -> None:
    """The last block, pooled, is the penultimate features, and is not probed twice."""
    rows = measured("depth", made(tmp_path), accuracy="mean_per_class").rows
    assert list(dict.fromkeys(row.layer for row in rows)) == LAYERS
    trained = load_network(tmp_path / "train.softmax-0")
    images = {split: load_images(tmp_path / "data", split) for split in ("train", "test")}
    files = {split: pooled_layers(trained, of, tmp_path / split) for split, of in images.items()}
    for layer in LAYERS:
        train, test = (np.load(of[layer if layer in of else "bottleneck2"]) for of in files.values())
        linear = LinearProbe(metric="mean_per_class", seed=0).fit(train, images["train"].labels)
        knn = KNNProbe().fit(train, images["train"].labels)
        for what, probe in (("linear", linear), ("knn", knn)):
            score = probe.score(test, images["test"].labels, metric="mean_per_class")
            assert value(rows, f"{what}_mean_per_class", layer=layer, split="test") == score
        assert value(rows, "linear_lambda", layer=layer) == linear.lambda_
        assert value(rows, "knn_leave_one_out", layer=layer) == max(knn.leave_one_out_)


def test_a_constant_block_leaves_its_reason_and_the_rest_is_measured(tmp_path: Path) -> None:
    outcome = measured("depth", made(tmp_path, dead=True), accuracy="top1")
    assert "block1: " in outcome.facts["undefined"]
    assert "block1" not in {row.layer for row in outcome.rows}


def test_smokes_penultimate_layer_has_the_rows_of_linear_and_knn(finished_smoke: Path) -> None:
    """And no features are kept: the step's folder holds its rows and its record alone."""
    steps = finished_smoke / "runs" / "steps"

    def rows(step: Path, layer: str | None) -> dict[str, float]:
        lines = map(json.loads, (step / "rows.jsonl").read_text().splitlines())
        return {line["metric"]: line["value"] for line in lines if line.get("layer") == layer}

    folders = sorted(steps.glob("depth.*"))
    assert len(folders) == 3 * 2
    for folder in folders:
        assert {path.name for path in folder.iterdir()} == {"rows.jsonl", "meta.json"}
        of = folder.name.split(".")[1]
        alone = {
            metric: number
            for kind in ("linear", "knn")
            for step in steps.glob(f"{kind}.{of}.*")
            for metric, number in rows(step, None).items()
        }
        assert rows(folder, "penultimate") == pytest.approx(alone)
        assert len(alone) == 7


def test_the_layer_that_does_best_on_validation_is_chosen_whatever_the_test_images_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`honest` tells validation images apart and no test image, `tempting` the other way round."""
    parents = made(tmp_path)
    labels = {split: load_images(tmp_path / "data", split).labels for split in ("train", "test")}
    validation = split_off(labels["train"], 0.2, 0)
    noise = np.random.default_rng(0)

    def layers(network: Any, images: Any, stem: Path) -> dict[str, Path]:
        split = stem.name
        known = 5.0 * np.eye(4)[labels[split]]
        blurred = noise.normal(size=known.shape)
        held = np.where(validation[:, None], blurred, known) if split == "train" else known
        found = {"honest": known if split == "train" else blurred, "tempting": held}
        for name, values in found.items():
            np.save(tmp_path / f"{name}-{split}.npy", values.astype(np.float32))
        return {name: tmp_path / f"{name}-{split}.npy" for name in found}

    monkeypatch.setattr(pooling, "pooled_layers", layers)
    (row,) = [row for row in measured("readout", parents, accuracy="top1").rows if row.unit == "fraction"]
    assert (row.metric, row.layer) == ("readout_top1", "honest")
    assert row.value < 0.6
    with np.load(tmp_path / "out" / "readout_predictions.npz") as arrays:
        assert (arrays["chosen"] == arrays["labels"]).mean() == row.value
        assert arrays["labels"].tolist() == labels["test"].tolist()
        assert (arrays["last"] != arrays["chosen"]).any()
