"""The final layer's own weight decay: its group, its equation, its identity, its bad input, its tuning."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from penultimate.errors import RequestError
from penultimate.objectives.objective import objective
from penultimate.records.joining import _settings
from penultimate.study import load_study
from penultimate.study.settings import override
from penultimate.study.unfold import unfold
from penultimate.training import Recipe
from penultimate.training.decay import parameter_groups
from penultimate.training.run import Run
from penultimate.tuning.axes import axes_of, recipe_at, settings_of
from tests.training.worlds import TINY, squares

RECIPE = Recipe(epochs=1, batch_size=32, learning_rate=0.2, weight_decay=0.05)


@pytest.mark.parametrize("biases", [False, True])
def test_only_what_decays_of_the_final_layer_is_in_a_group_of_its_own(biases: bool) -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), objective("softmax", 2, 3))
    groups = parameter_groups(network, Recipe(head_decay=0.3, decay_biases=biases), 0.1)
    convolution, _, final = network
    head, bias = final.head.weight, final.head.bias
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0, 0.3]
    found = [{id(parameter) for parameter in group["params"]} for group in groups]
    assert found[0] == {id(convolution.weight), *([id(convolution.bias)] if biases else [])}
    assert found[2] == {id(head), *([id(bias)] if biases else [])}
    assert sum(map(len, found)) == len(list(network.parameters()))


@pytest.mark.parametrize("decay", [0.0, 0.02, 0.3])
def test_the_first_step_differs_by_what_the_equation_says_and_only_in_the_final_layer(
    tmp_path: Path, decay: float
) -> None:
    """Nesterov's first step is -lr (1 + momentum) (gradient + decay x weight)."""
    usual, own = (
        Run("softmax", TINY, squares(64, 0), None, recipe, 5, tmp_path, "cpu")
        for recipe in (RECIPE, dataclasses.replace(RECIPE, head_decay=decay, warmup=0.0))
    )
    usual.recipe = dataclasses.replace(RECIPE, warmup=0.0)
    before = usual.network.objective.head.weight.detach().clone()
    for run in (usual, own):
        run.advance(next(run.batches()))
    ours, theirs = own.network.state_dict(), usual.network.state_dict()
    moved = ours.pop("objective.head.weight") - theirs.pop("objective.head.weight")
    rate = 0.2 * (1 + RECIPE.momentum)
    torch.testing.assert_close(moved, -rate * (decay - RECIPE.weight_decay) * before, atol=1e-8, rtol=1e-5)
    assert all(torch.equal(ours[name], value) for name, value in theirs.items())


@pytest.mark.parametrize("decay", [-1e-9, math.nan, math.inf, True, "8e-5"])
def test_a_decay_that_is_none_is_refused(decay: object) -> None:
    with pytest.raises(RequestError, match="head_decay is a number, 0 or more, or None, not"):
        Recipe(head_decay=decay)  # type: ignore[arg-type]


def test_it_is_set_by_name_and_at_its_default_no_identity_knows_of_it() -> None:
    study = load_study("smoke")
    own = override(study, ["recipe.head_decay=8e-5"])
    assert {block.recipe.head_decay for block in own.runs} == {8e-5}
    usual, changed, back = (
        {name for name, step in unfold(one).steps.items() if step.name == "train"}
        for one in (study, own, override(own, ["recipe.head_decay=None"]))
    )
    assert back == usual
    assert len(changed - usual) == len(usual) > 3
    trained = [step for step in unfold(study).steps.values() if step.name == "train"]
    assert not any("head_decay" in step.identity["recipe"] for step in trained)
    assert {Recipe(**step.config["recipe"]).head_decay for step in trained} == {None}


def test_it_is_tuned_from_the_middle_of_its_grid_where_the_recipe_has_none() -> None:
    usual = Recipe()
    axes = axes_of("softmax", usual, {"recipe.head_decay": (8e-5, 1e-3, 4e-4)})
    (axis,) = axes.values()
    assert (axis.start, axis.centre) == (4e-4, 4e-4)
    settings = settings_of(usual, recipe_at(usual, axes, (8e-5,)))
    assert settings == (("head_decay", 8e-5),)
    assert dataclasses.replace(usual, **dict(settings)).head_decay == 8e-5


def test_a_kept_part_from_before_it_has_no_other_network_than_its_own() -> None:
    """What an older description does not say was trained at the default."""
    description = load_study("smoke").describe()
    older = [
        {**block, "recipe": {name: value for name, value in block["recipe"].items() if name != "head_decay"}}
        for block in description["networks"]
    ]
    assert _settings({**description, "networks": older}) == _settings(description)
    for settings in _settings({**description, "networks": older}).values():
        assert settings["recipe.head_decay"] is None
