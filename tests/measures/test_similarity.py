"""Similarity of all layers of several networks: the numbers of one comparison, said of the right layers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluation.pictures import split_folders
from tests.measures.steps import Parents, measured
from tests.measures.worlds import BACKBONE, network, world

from penultimate.data.disk.listed import leave_listing
from penultimate.data.images import load_images
from penultimate.data.readers.located import located
from penultimate.engine.execute import Outcome
from penultimate.graph import Step
from penultimate.layers.comparison import at_initialisation, compare_networks
from penultimate.measures.layers import PENULTIMATE
from penultimate.networks.key import NetworkKey
from penultimate.networks.trained import CARD, load_network
from penultimate.study import Study, load_study
from penultimate.study.unfold import unfold

LAYERS = ["block1", "block2", "bottleneck1", "bottleneck2", PENULTIMATE]
SOFTMAX, SECOND, SIGMOID = models = [("softmax", 0), ("softmax", 1), ("sigmoid", 0)]
UNUSED = 2
"""The first seed that none of the networks has."""


def key(model: tuple[str, int]) -> NetworkKey:
    return NetworkKey(model[0], BACKBONE, seed=model[1], draw=0)


def compared(
    root: Path, models: Sequence[tuple[str, int]], absent: Sequence[tuple[str, int]] = (), **settings: Any
) -> Outcome:
    """The step on networks of `network`, those that are absent apart."""
    parents = Parents(root)
    for model in models:
        parents.network(root / f"train.{model[0]}-{model[1]}", key(model))
    data = root / "data"
    parents.images("train", data).images("test", data)
    values = {"images": 39, "batch_size": 13, "passes": 2, **settings}
    seeds = sorted({seed for _, seed in models})
    return measured(
        "similarity", parents, values, key=None, absent=[key(model) for model in absent], seeds=seeds
    )


def test_networks_that_want_images_on_disk_cropped_differently_are_not_compared(tmp_path: Path) -> None:
    found = located("mine", str(split_folders(tmp_path / "mine", ("a", "b"), 4, 8)))
    (tmp_path / "data").mkdir()
    leave_listing(found, tmp_path / "data", 0, lambda news: None)
    for model, side in (("softmax", 16), ("sigmoid", 24)):
        card = network(tmp_path, model) / CARD
        card.write_text(json.dumps({**json.loads(card.read_text()), "resize": 28, "crop": side}))
    outcome = compared(tmp_path, [SOFTMAX, SIGMOID])
    assert not outcome.rows
    assert "these want them in 2 ways" in outcome.facts["undefined"]


def test_rows_and_arrays_are_those_of_one_comparison(tmp_path: Path) -> None:
    images = load_images(world(tmp_path), "test")
    networks = {str(key(model)): load_network(network(tmp_path, *model)) for model in models}
    outcome = compared(tmp_path, models, images=40)
    truth = compare_networks(networks, images, passes=2, batch_size=13, output=PENULTIMATE)
    found = {
        (row.objective, row.seed, row.objective_b, row.seed_b, row.layer): row.value
        for row in outcome.rows
        if row.metric == "cka"
    }
    assert len(found) == 3 * len(LAYERS)
    between = truth.between(str(key(SECOND)), str(key(SIGMOID))).diagonal()
    for layer, number in zip(LAYERS, between, strict=True):
        assert found["softmax", 1, "sigmoid", 0, layer] == pytest.approx(number, rel=1e-9)
    initial = [row for row in outcome.rows if row.metric == "cka_initial"]
    assert [row.layer for row in initial] == 3 * LAYERS
    assert all(row.layer == row.layer_b for row in outcome.rows if row.metric.startswith("cka"))
    with np.load(tmp_path / "out" / "layer_cka.npz", allow_pickle=False) as arrays:
        assert arrays["matrix"].shape == arrays["standard_error"].shape == (20, 20)
        assert arrays["layers"].tolist() == 4 * LAYERS
        assert arrays["seeds"].tolist() == [0] * 5 + [1] * 5 + [0] * 5 + [-1] * 5
        assert arrays["objectives"].tolist()[9:16] == ["softmax"] + ["sigmoid"] * 5 + [""]
        assert arrays["epochs"].tolist() == [-1] * 15 + [0] * 5
        assert arrays["matrix"][:15, :15] == pytest.approx(truth.matrix, rel=1e-9)
        assert np.isfinite(arrays["standard_error"]).all()
        assert arrays["sizes"].sum() == 80
        assert initial[4].value == arrays["matrix"][4, 19]
    assert outcome.rows[-1].metric == "layer_cka"
    assert outcome.rows[-1].value == 20


def test_the_control_is_drawn_from_a_seed_that_no_network_started_from(tmp_path: Path) -> None:
    data = world(tmp_path)
    trained = load_network(network(tmp_path, *SOFTMAX))
    network(tmp_path, *SECOND)
    outcome = compared(tmp_path, [SOFTMAX, SECOND], images=40)
    control = at_initialisation(trained, load_images(data, "train"), UNUSED)
    truth = compare_networks(
        {"trained": trained, "control": control},
        load_images(data, "test"),
        passes=2,
        batch_size=13,
        output=PENULTIMATE,
    )
    initial = [row.value for row in outcome.rows if (row.metric, row.seed) == ("cka_initial", 0)]
    assert initial == pytest.approx(truth.between("trained", "control").diagonal().tolist(), rel=1e-9)


def test_each_pass_draws_its_own_batches_of_the_images_chosen(tmp_path: Path) -> None:
    world(tmp_path)
    network(tmp_path, *SOFTMAX)
    outcome = compared(tmp_path, [SOFTMAX], images=26)
    with np.load(tmp_path / "out" / "layer_cka.npz") as arrays:
        assert arrays["sizes"].tolist() == [13] * 4
        assert arrays["passes"].tolist() == [0, 0, 1, 1]
    assert outcome.facts["notes"] == []  # which would say so, had both passes seen the same batches
    assert {row.metric for row in outcome.rows} == {"cka_initial", "layer_cka"}


def test_runs_that_diverged_are_left_out(tmp_path: Path) -> None:
    world(tmp_path)
    three = [("softmax", 0), ("sigmoid", 0), ("dropout(keep=0.9)", 0)]
    for model in (three[0], three[2]):
        network(tmp_path, *model)
    outcome = compared(tmp_path, three, absent=three[1:2])
    pairs = {(row.objective, row.objective_b) for row in outcome.rows if row.metric == "cka"}
    assert pairs == {("softmax", "dropout(keep=0.9)")}
    assert compared(tmp_path, three[1:2], absent=three[1:2]).rows == []


def test_a_constant_layer_is_said_and_no_nan_is_in_a_table(tmp_path: Path) -> None:
    world(tmp_path)
    network(tmp_path, *SOFTMAX, dead=True)
    network(tmp_path, *SIGMOID)
    outcome = compared(tmp_path, [SOFTMAX, SIGMOID])
    assert all(np.isfinite(row.value) for row in outcome.rows)
    assert "block1" not in {row.layer for row in outcome.rows if row.metric == "cka"}
    assert f"the same for all examples: block1 of {key(SOFTMAX)}" in outcome.facts["undefined"]


def test_a_given_network_may_be_called_like_a_state_of_a_trained_one(tmp_path: Path) -> None:
    world(tmp_path)
    folder = network(tmp_path, *SOFTMAX)
    parents = Parents(tmp_path).images("train", tmp_path / "data").images("test", tmp_path / "data")
    parents.network(folder, key(SOFTMAX))
    for name in ("at initialisation", "earlier"):
        parents.network(folder, NetworkKey(name))
    rows = measured("similarity", parents, {"images": 40, "batch_size": 20}, key=None, seeds=[0]).rows
    alike = {(row.objective, row.objective_b): row.value for row in rows if row.metric == "cka"}
    assert len(alike) == 3
    assert list(alike.values()) == pytest.approx([1.0] * 3)


# -- which networks meet ------------------------------------------------------------------------------------


@pytest.fixture
def smoke() -> Study:
    return load_study("smoke")


def comparisons(study: Study) -> list[Step]:
    return [step for step in unfold(study).steps.values() if step.name == "similarity"]


def networks(step: Step) -> list[NetworkKey]:
    return [supply.network for supply in step.supplies if supply.network is not None]


def test_two_networks_of_each_objective_meet_on_the_first_draw(smoke: Study) -> None:
    runs = replace(smoke.main, seeds=(3, 0, 1))
    sweep = replace(
        runs, objectives=("cosine_softmax(scale=0.03, temperature=0.03)",), arm="temperature", measure=()
    )
    study = replace(smoke, networks=(runs, sweep))
    graph = unfold(study)
    (step,) = comparisons(study)
    met = networks(step)
    assert {(one.objective, one.seed) for one in met} == {
        (spec, seed) for spec in runs.objectives for seed in (3, 0)
    }
    assert {one.arm for one in met} == {""}
    assert step.config["seeds"] == [0, 1, 3]
    images = [supply for supply in step.supplies if supply.kind == "images"]
    assert {supply.parent.partition(".")[2].partition(".")[0] for supply in images} == {"d3-glyphs_smoke"}
    for supply in step.supplies:
        if supply.network is not None:
            columns = graph.steps[supply.parent].columns
            assert (columns["objective"], columns["seed"]) == (supply.network.objective, supply.network.seed)


def test_each_architecture_is_compared_by_itself(smoke: Study) -> None:
    second = "glyphnet(features=16, width=4)"
    two = replace(smoke, networks=(replace(smoke.main, backbones=(*smoke.main.backbones, second)),))
    first, other = comparisons(two)
    assert [step.columns["backbone"] for step in (first, other)] == list(two.backbones)
    of_networks = [{supply.parent for supply in step.supplies if supply.network} for step in (first, other)]
    assert of_networks[0].isdisjoint(of_networks[1])
    assert sum(step.name == "layers" for step in unfold(two).steps.values()) == 6
