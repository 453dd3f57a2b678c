"""Depth: the probes of `linear` and `knn` on the pooled output of every block."""

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
from penultimate.layers.pooling import pooled_layers
from penultimate.networks.trained import load_network
from penultimate.probes.knn import KNNProbe
from penultimate.probes.linear import LinearProbe

LAYERS = ["block1", "block2", "bottleneck1", "penultimate"]


def of_depth(root: Path, dead: bool = False) -> Any:
    images, folder = world(root), network(root, "softmax", dead=dead)
    parents = Parents(root, target="tasks").network(folder)
    for split in ("train", "test"):
        bank = extract(load_network(folder), load_images(images, split))
        parents.images(split, images).bank(split, bank)
    return measured("depth", parents, accuracy="mean_per_class")


@pytest.mark.long
def test_each_layer_has_the_numbers_of_probes_fitted_to_it_alone(tmp_path: Path) -> None:
    """The last block, pooled, is the penultimate features, and is not probed twice."""
    rows = of_depth(tmp_path).rows
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
        best = max(linear.validation_accuracy_)
        assert value(rows, "linear_validation_accuracy", layer=layer, split="train") == best
        assert value(rows, "linear_certified_gap", layer=layer) <= 1e-4
        assert value(rows, "knn_leave_one_out", layer=layer) == max(knn.leave_one_out_)


def test_a_constant_block_leaves_its_reason_and_the_rest_is_measured(tmp_path: Path) -> None:
    outcome = of_depth(tmp_path, dead=True)
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
