"""The steps that look at every layer: their rows are the instruments' numbers, said of the right layers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penultimate.data.images import ChannelStatistics, ImageSet, load_images, save_images
from penultimate.instruments import compare_networks
from penultimate.study import load_study
from penultimate.study.context import Context, Outcome
from penultimate.study.graph import Step, unfold
from penultimate.study.layers import PENULTIMATE, layers, similarity
from penultimate.study.reading import study_folder
from penultimate.training import load_network
from penultimate.training.network import Network, build, save_network

LAYERS = ["block1", "block2", "bottleneck1", "bottleneck2", PENULTIMATE]
ABOUT = {"slug": "softmax", "objective": "softmax", "seed": 0, "target": "glyphs"}
BACKBONE = "glyphnet(features=8, width=2)"
STATISTICS = ChannelStatistics((0.5,) * 3, (0.3,) * 3)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for split, n in (("train", 24), ("test", 40)):
        pixels = random.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8)
        images = ImageSet(pixels, np.arange(n) % 4, np.arange(n), tuple("abcd"))
        save_images(tmp_path / "data", split, images)
    return tmp_path


def trained(world: Path, spec: str, seed: int, dead: bool = False) -> Path:
    body, head = build(spec, BACKBONE, 4, seed)
    if dead:
        for norm in (body.block1.second.normalisation, body.block1.shortcut.normalisation):
            norm.weight.data.zero_()
            norm.bias.data.fill_(-1.0)
    card = {"objective": spec, "backbone": BACKBONE, "num_classes": 4, "class_names": list("abcd")}
    folder = world / f"train.{spec}-{seed}"
    save_network(folder, body, head, STATISTICS, card)
    return folder


def compared(
    world: Path, models: list[tuple[str, int]], absent: int | None = None, batch_size: int = 13, **config: Any
) -> Outcome:
    trainings = [f"train.{spec}-s{seed}" for spec, seed in models]
    content = {
        "split": "test",
        "images": 39,
        "batch_size": batch_size,
        "passes": 2,
        "models": [list(model) for model in models],
        "initial_seed": 9,
        "draw": 0,
        **config,
    }
    gone = () if absent is None else (trainings[absent],)
    about = {"backbone": BACKBONE, "source": "glyphs", "target": "glyphs"}
    step = Step("similarity", content, ("data.x", *trainings), about, gathers=True, absent=gone)
    parents = {"data": world / "data"}
    for name, (spec, seed) in zip(trainings, models, strict=True):
        if name not in gone:
            parents["train" if "train" not in parents else name] = world / f"train.{spec}-{seed}"
    (world / "out").mkdir(exist_ok=True)
    return similarity(Context(step, world / "out", parents, lambda news: None))


def test_rows_and_arrays_are_those_of_one_comparison(world: Path) -> None:
    models = [("softmax", 0), ("softmax", 1), ("sigmoid", 0)]
    folders = [trained(world, spec, seed) for spec, seed in models]
    outcome = compared(world, models, images=40)
    names = [f"{spec}, seed {seed}" for spec, seed in models]
    networks = {name: load_network(folder) for name, folder in zip(names, folders, strict=True)}
    truth = compare_networks(
        networks, load_images(world / "data", "test"), passes=2, batch_size=13, output=PENULTIMATE
    )
    found = {
        (row.objective, row.seed, row.objective_b, row.seed_b, row.layer): row.value
        for row in outcome.rows
        if row.metric == "cka"
    }
    assert len(found) == 3 * len(LAYERS)
    between = truth.between("softmax, seed 1", "sigmoid, seed 0").diagonal()
    for layer, value in zip(LAYERS, between, strict=True):
        assert found["softmax", 1, "sigmoid", 0, layer] == pytest.approx(value, rel=1e-9)
    initial = [row for row in outcome.rows if row.metric == "cka_initial"]
    assert [row.layer for row in initial] == 3 * LAYERS
    assert all(row.layer == row.layer_b for row in outcome.rows if row.metric.startswith("cka"))
    with np.load(world / "out" / "layer_cka.npz", allow_pickle=False) as arrays:
        assert arrays["matrix"].shape == arrays["standard_error"].shape == (20, 20)
        assert arrays["layers"].tolist() == 4 * LAYERS
        assert arrays["seeds"].tolist() == [0] * 5 + [1] * 5 + [0] * 5 + [-1] * 5
        assert arrays["objectives"].tolist()[9:16] == ["softmax"] + ["sigmoid"] * 5 + [""]
        assert arrays["matrix"][:15, :15] == pytest.approx(truth.matrix, rel=1e-9)
        assert np.isfinite(arrays["standard_error"]).all()
        assert arrays["sizes"].sum() == 80
        assert initial[4].value == arrays["matrix"][4, 19]
    assert outcome.rows[-1].metric == "layer_cka"
    assert outcome.rows[-1].value == 20


def test_each_pass_draws_its_own_batches_of_the_images_chosen(world: Path) -> None:
    trained(world, "softmax", 0)
    outcome = compared(world, [("softmax", 0)], images=26)
    with np.load(world / "out" / "layer_cka.npz") as arrays:
        assert arrays["sizes"].tolist() == [13] * 4
        assert arrays["passes"].tolist() == [0, 0, 1, 1]
    assert outcome.facts["notes"] == []  # which would say so, had both passes seen the same batches
    assert {row.metric for row in outcome.rows} == {"cka_initial", "layer_cka"}


def test_runs_that_diverged_are_left_out(world: Path) -> None:
    models = [("softmax", 0), ("sigmoid", 0), ("dropout(keep=0.9)", 0)]
    for spec, seed in (models[0], models[2]):
        trained(world, spec, seed)
    outcome = compared(world, models, absent=1)
    pairs = {(row.objective, row.objective_b) for row in outcome.rows if row.metric == "cka"}
    assert pairs == {("softmax", "dropout(keep=0.9)")}
    assert compared(world, models[1:2], absent=0).rows == []


def test_a_constant_layer_is_said_and_no_nan_is_in_a_table(world: Path) -> None:
    trained(world, "softmax", 0, dead=True)
    trained(world, "sigmoid", 0)
    outcome = compared(world, [("softmax", 0), ("sigmoid", 0)])
    assert all(np.isfinite(row.value) for row in outcome.rows)
    assert "block1" not in {row.layer for row in outcome.rows if row.metric == "cka"}
    assert "the same for all examples: block1 of softmax, seed 0" in outcome.facts["undefined"]


def rows_of(runs: Path, pattern: str) -> list[dict[str, Any]]:
    (folder,) = (runs / "steps").glob(pattern)
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def test_the_last_layer_has_the_values_of_the_steps_that_measure_it_alone(finished_smoke: Path) -> None:
    runs = finished_smoke / "runs"
    rows = rows_of(runs, "layers.squared_error*")
    assert [row["layer"] for row in rows if row["metric"] == "sparsity"] == LAYERS
    last = {row["metric"]: row["value"] for row in rows if row["layer"] == PENULTIMATE}
    (alone,) = rows_of(runs, "sparsity.squared_error*")
    assert last["sparsity"] == alone["value"]
    (separation,) = (
        row["value"]
        for row in rows_of(runs, "class_separation.squared_error*")
        if (row["metric"], row["split"]) == ("class_separation", "test")
    )
    assert last["class_separation"] == separation
    assert study_folder(runs, "smoke").described()["layers"] == LAYERS


def test_a_constant_block_leaves_its_reason_and_the_rest_is_measured(world: Path) -> None:
    from penultimate.extraction import extract

    folder = trained(world, "softmax", 0, dead=True)
    images = load_images(world / "data", "test")
    (world / "bank").mkdir()
    network: Network = load_network(folder)
    extract(network, images).save(world / "bank" / "test.npz")
    step = Step("layers", {"splits": ["test"]}, ("t", "d", "e"), ABOUT)
    parents = {"train": folder, "data": world / "data", "extract": world / "bank"}
    outcome = layers(Context(step, world, parents, lambda news: None))
    separate = [row.layer for row in outcome.rows if row.metric == "class_separation"]
    assert "block1" not in separate
    assert "block1, test images: class separation is undefined" in outcome.facts["undefined"]
    assert [row.layer for row in outcome.rows if row.metric == "sparsity"] == LAYERS


def test_two_networks_of_each_compared_objective_meet_on_the_first_draw() -> None:
    smoke = load_study("smoke")
    sweep = tuple(f"cosine_softmax(temperature={tau}, scale={tau})" for tau in (0.03, 0.05, 0.07))
    study = dataclasses.replace(smoke, objectives=(*smoke.objectives, *sweep), seeds=(3, 0, 1))
    graph = unfold(study)
    (step,) = (step for step in graph.steps.values() if step.name == "similarity")
    models = [tuple(model) for model in step.config["models"]]
    assert models == [(spec, seed) for spec in smoke.objectives for seed in (3, 0)]
    assert step.config["initial_seed"] == 2
    assert step.parents[0].startswith("data.d3-glyphs_smoke.")
    for model, parent in zip(models, step.parents[1:], strict=True):
        assert graph.steps[parent].name == "train"
        assert (graph.steps[parent].about["objective"], graph.steps[parent].about["seed"]) == model


def test_each_architecture_is_compared_by_itself() -> None:
    study = load_study("smoke")
    two = dataclasses.replace(study, backbones=(*study.backbones, "glyphnet(features=16, width=4)"))
    steps = [step for step in unfold(two).steps.values() if step.name == "similarity"]
    assert [step.about["backbone"] for step in steps] == list(two.backbones)
    assert set(steps[0].parents[1:]).isdisjoint(steps[1].parents[1:])
    assert sum(step.name == "layers" for step in unfold(two).steps.values()) == 6
