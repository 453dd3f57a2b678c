"""Layers: non-zero activations and class separation of every block, and the penultimate features last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.measures.steps import Parents, measured
from tests.measures.worlds import network, world

from penultimate.data.images import load_images
from penultimate.features.extraction import extract
from penultimate.layers.profiles import profile_layers
from penultimate.measures.layers import PENULTIMATE
from penultimate.networks.trained import load_network
from penultimate.records.reading import study_folder

LAYERS = ["block1", "block2", "bottleneck1", "bottleneck2", PENULTIMATE]


def of_layers(root: Path, dead: bool) -> Any:
    images, folder = world(root), network(root, "softmax", dead=dead)
    bank = extract(load_network(folder), load_images(images, "test"))
    return measured("layers", Parents(root).network(folder).images("test", images).bank("test", bank))


def test_rows_are_the_profiles_of_the_layers(tmp_path: Path) -> None:
    outcome = of_layers(tmp_path, dead=False)
    assert outcome.facts == {"layers": LAYERS}
    found = {(row.metric, row.layer): row.value for row in outcome.rows}
    folder, images = tmp_path / "train.softmax-0", load_images(tmp_path / "data", "test")
    profiles = profile_layers(load_network(folder), images)
    assert [profile.layer for profile in profiles] == LAYERS
    for profile in profiles:
        assert found["nonzero_share", profile.layer] == pytest.approx(profile.nonzero_share, rel=1e-12)
        assert found["class_separation", profile.layer] == pytest.approx(profile.class_separation, rel=1e-6)
    assert len(found) == 2 * len(LAYERS)


def test_a_constant_block_leaves_its_reason_and_the_rest_is_measured(tmp_path: Path) -> None:
    outcome = of_layers(tmp_path, dead=True)
    assert "block1" not in [row.layer for row in outcome.rows if row.metric == "class_separation"]
    assert "block1 (test): class separation is undefined" in outcome.facts["undefined"]
    assert [row.layer for row in outcome.rows if row.metric == "nonzero_share"] == LAYERS


def rows_of(runs: Path, pattern: str) -> list[dict[str, Any]]:
    (folder,) = (runs / "steps").glob(pattern)
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def test_the_last_layer_has_the_values_of_the_steps_that_measure_it_alone(finished_smoke: Path) -> None:
    runs = finished_smoke / "runs"
    rows = rows_of(runs, "layers.squared_error*")
    assert [row["layer"] for row in rows if row["metric"] == "nonzero_share"] == LAYERS
    last = {row["metric"]: row["value"] for row in rows if row["layer"] == PENULTIMATE}
    (separation,) = (
        row["value"]
        for row in rows_of(runs, "class_separation.squared_error*")
        if (row["metric"], row["split"]) == ("class_separation", "test")
    )
    assert last["class_separation"] == separation
    (trained,) = (runs / "steps").glob("train.squared_error*")
    (data,) = (runs / "steps").glob("data.d0-glyphs_smoke.*")
    features = extract(load_network(trained), load_images(data, "test")).features
    assert last["nonzero_share"] == (features != 0).mean()
    assert study_folder(runs, "smoke").described()["layers"] == LAYERS
