"""A sweep: it trains what ordinary grids train, and refuses what is no curve."""

from __future__ import annotations

import dataclasses

import pytest

from penultimate.objectives.presets import resolve
from penultimate.paper.studies import smoke
from penultimate.study import Runs, Study, Sweep
from penultimate.study.selection import restrict
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe

PENALTY = Sweep(
    "logit penalty", "sigmoid + logit_penalty", "beta", (0.001, 0.01), seeds=(3, 4), zero="sigmoid"
)


def of(*networks: Runs) -> Study:
    return dataclasses.replace(smoke.STUDY, name="swept", networks=networks)


def test_its_steps_are_those_of_ordinary_grids() -> None:
    (grid,) = PENALTY.runs
    assert (grid.arm, grid.swept, grid.seeds) == ("logit penalty", "logit_penalty.beta", (3, 4))
    plain = Runs(PENALTY.specs, seeds=(3, 4))
    swept, ordinary = (unfold(of(one)).steps for one in (grid, plain))
    assert swept.keys() == ordinary.keys()
    assert sum(step.name == "train" for step in swept.values()) == 6


def test_two_families_share_the_network_at_strength_zero() -> None:
    other = dataclasses.replace(PENALTY, family="smaller", values=(0.01, 0.02))
    steps = unfold(of(*PENALTY.runs, *other.runs)).steps
    assert sum(step.name == "train" for step in steps.values()) == 4 * 2


def test_changes_of_the_recipe_split_it_into_grids_of_one_arm() -> None:
    changed = dataclasses.replace(PENALTY, recipe=Recipe(epochs=3), changes={"sigmoid": {"epochs": 5}})
    assert [(grid.arm, grid.recipe.epochs, len(grid.objectives)) for grid in changed.runs] == [
        ("logit penalty", 5, 1),
        ("logit penalty", 3, 2),
    ]


def test_it_is_described_and_restricted_like_any_grid() -> None:
    study = of(*PENALTY.runs)
    (block,) = study.describe()["networks"]
    assert block["swept"] == "logit_penalty.beta"
    assert "swept" not in of(Runs(("softmax",))).describe()["networks"][0]
    one = restrict(study, only=["sigmoid"], seeds=(4,))
    assert [str(key) for key in one.keys()] == ["sigmoid | glyphnet | logit penalty | seed 4, draw 4"]


@pytest.mark.parametrize(
    ("objective", "hyperparameter", "values"),
    [
        ("softmax + projector(width=24)", "projector.depth", (1, 2, 3)),
        ("sigmoid + projector", "width", (16, 64)),
        ("softmax + koleo", "weight", (0.01, 0.1)),
        ("koleo + center_loss", "center_loss.weight", (0.01, 0.1)),
        ("simplex_etf", "scale", (1, 5)),
        ("simplex_etf + entropy", "entropy.weight", (0.5, 0.05)),
    ],
)
def test_projectors_regularisers_and_fixed_heads_are_knobs_like_any(
    objective: str, hyperparameter: str, values: tuple[float, ...]
) -> None:
    sweep = Sweep("a knob", objective, hyperparameter, values, seeds=(0, 1))
    (grid,) = sweep.runs
    name = hyperparameter.rpartition(".")[2]
    owner = grid.swept.rpartition(".")[0]
    found = [next(term for term in resolve(spec).terms if term.name == owner) for spec in grid.objectives]
    assert tuple(term.arguments[name] for term in found) == values
    others = {tuple(str(term) for term in resolve(spec).terms if term.name != owner) for spec in sweep.specs}
    assert len(others) == 1
    trained = [step for step in unfold(of(grid)).steps.values() if step.name == "train"]
    assert len(trained) == 2 * len(values)
