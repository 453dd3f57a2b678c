"""Networks trained with a projector, a fixed head or regularisers: what is kept, measured and refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from penultimate.errors import RequestError
from penultimate.networks.given import GivenNetwork
from penultimate.networks.trained import load_network
from penultimate.objectives.objective import objective
from penultimate.study import load_study
from penultimate.study.blocks import Given, Runs
from penultimate.study.existing import with_networks
from penultimate.study.unfold import unfold
from penultimate.training import Recipe, Start, train
from penultimate.training.decay import parameter_groups
from penultimate.training.run import Run
from tests.training.worlds import TINY, squares

RECIPE = Recipe(epochs=2, batch_size=32, learning_rate=0.1)
PROJECTED = "projector(depth=2, width=24) + koleo + sigmoid"
OF_WEIGHTS = {"collapse", "hardness", "spectra"}


def trained(text: str, folder: Path, recipe: Recipe = RECIPE) -> None:
    folder.mkdir(exist_ok=True)
    assert train(text, TINY, squares(128, 0), squares(32, 1), recipe, 5, folder).status == "done"


def test_a_trained_projector_gives_logits_and_leaves_the_features_to_the_body(tmp_path: Path) -> None:
    trained(PROJECTED, tmp_path)
    network = load_network(tmp_path)
    images = torch.from_numpy(squares(16, 2).images)
    features = network.features(images)
    assert features.shape == (16, 32)
    torch.testing.assert_close(features, network.backbone(network.prepared(images)).float())
    assert network.logits(features).shape == (16, 4)
    torch.testing.assert_close(network.logits(features[:1]), network.logits(features)[:1])
    assert network.head_weight is None
    norm = network.objective.projector[1]  # type: ignore[index]
    assert norm.num_batches_tracked == 2 * 4
    assert not torch.equal(norm.running_mean, torch.zeros(24))
    fresh = objective(PROJECTED, 32, 4, 5)
    assert not torch.equal(fresh.projector[0].weight, network.objective.projector[0].weight)  # type: ignore[index]


def test_a_fixed_head_stays_as_it_was_built_and_its_body_learns(tmp_path: Path) -> None:
    recipe = dataclasses.replace(RECIPE, weight_decay=0.1, decay_biases=True)
    trained("simplex_etf(scale=2) + sigmoid", tmp_path, recipe)
    network, built = load_network(tmp_path), objective("simplex_etf(scale=2) + sigmoid", 32, 4, 5)
    assert torch.equal(network.objective.head.weight, built.head.weight)
    assert torch.equal(network.objective.head.bias, built.head.bias)
    assert network.head_weight is not None
    plain = Run("sigmoid", TINY, squares(64, 0), None, RECIPE, 5, tmp_path, "cpu")
    states = plain.network.backbone.state_dict(), network.backbone.state_dict()
    assert any(not torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_what_is_not_trained_is_in_no_group_and_centres_do_not_decay() -> None:
    made = objective("simplex_etf + center_loss + projector(depth=1, width=8)", 6, 4)
    decayed, undecayed = (
        {id(each) for each in group["params"]} for group in parameter_groups(made, Recipe(), 0.1)
    )
    layer, norm = made.projector[0], made.projector[1]  # type: ignore[index]
    assert decayed == {id(layer.weight)}
    assert undecayed == {id(made.head.centres), id(norm.weight), id(norm.bias)}


def test_a_decay_of_a_layer_that_is_not_trained_is_refused_in_a_study_and_in_a_run(tmp_path: Path) -> None:
    recipe = dataclasses.replace(RECIPE, head_decay=8e-5)
    with pytest.raises(RequestError, match=r"head_decay=8e-05 .* 'simplex_etf\(scale=1\)' is not trained"):
        Runs(("simplex_etf",), recipe)
    with pytest.raises(RequestError, match="is not trained; leave head_decay out"):
        Run("simplex_etf", TINY, squares(64, 0), None, recipe, 5, tmp_path, "cpu")
    Runs(("simplex_etf",), RECIPE)


def test_a_projector_on_a_network_given_from_elsewhere_is_refused(tmp_path: Path) -> None:
    trained("softmax", tmp_path / "ours")
    ours = load_network(tmp_path / "ours")
    given = GivenNetwork(ours.backbone, None, ours.preparation, ())
    with pytest.raises(RequestError, match="has a projector, and the network to start from was not trained"):
        Run(PROJECTED, "", squares(64, 0), None, RECIPE, 5, tmp_path, "cpu", Start(given))
    Run("sigmoid", "", squares(64, 0), None, RECIPE, 5, tmp_path, "cpu", Start(given))


def test_what_needs_the_final_layers_weight_is_not_measured_behind_a_projector(tmp_path: Path) -> None:
    smoke = load_study("smoke")
    measure = ("accuracy", "class_separation", *sorted(OF_WEIGHTS))
    projected = Runs(("softmax", PROJECTED), RECIPE, smoke.backbones[:1], measure=measure)

    def measured(*blocks: Runs | Given) -> dict[str, set[str]]:
        study = dataclasses.replace(smoke, networks=blocks, measure=measure)
        found: dict[str, set[str]] = {}
        for step in unfold(study).steps.values():
            found.setdefault(str(step.columns.get("objective")), set()).add(step.name)
        return found

    found = measured(projected)
    assert found["softmax"] >= OF_WEIGHTS
    (others,) = (steps for text, steps in found.items() if text.startswith("koleo"))
    assert {"accuracy", "class_separation"} <= others
    assert not OF_WEIGHTS & others
    for text, name in (("softmax", "plain"), (PROJECTED, "projected")):
        trained(text, tmp_path / name)
    networks = {name: f"folder:{tmp_path / name}" for name in ("plain", "projected")}
    of_folders = measured(Given(networks, classifies=True))
    assert of_folders["plain"] >= OF_WEIGHTS
    assert "accuracy" in of_folders["projected"]
    assert not OF_WEIGHTS & of_folders["projected"]


def test_a_projector_is_not_taken_from_a_table_of_networks(tmp_path: Path) -> None:
    study = dataclasses.replace(
        load_study("smoke"), networks=(Runs((PROJECTED, "softmax"), RECIPE),), measure=("accuracy",)
    )
    trained("softmax", tmp_path)
    table = tmp_path / "networks.csv"
    table.write_text(f'file,objective,seed\nnetwork.safetensors,"{PROJECTED}",0\n')
    with pytest.raises(RequestError, match=r"has a projector, which files of networks do not hold"):
        with_networks(study, table)
    table.write_text("file,objective,seed\nnetwork.safetensors,softmax,0\n")
    assert with_networks(study, table).objectives == ("softmax",)
