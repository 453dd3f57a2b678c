"""A sweep: it trains what ordinary grids train, and refuses what is no curve."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penultimate.errors import RequestError
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


def test_its_specs_are_the_objective_with_each_value_after_that_at_zero() -> None:
    assert PENALTY.specs == (
        "sigmoid",
        "logit_penalty(beta=0.001) + sigmoid",
        "logit_penalty(beta=0.01) + sigmoid",
    )
    cosine = Sweep("t", "cosine_softmax(scale=2)", "temperature", (0.05, 0.1))
    assert cosine.specs == tuple(f"cosine_softmax(scale=2, temperature={tau})" for tau in (0.05, 0.1))


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
    ("changes", "told"),
    [
        (
            {"hyperparameter": "bta"},
            "'sigmoid + logit_penalty' has no hyperparameter 'bta': it has logit_penalty.beta."
            " Did you mean 'beta'?",
        ),
        (
            {"objective": "softmax", "hyperparameter": "alpha"},
            "'softmax' has no hyperparameter 'alpha': it has none",
        ),
        (
            {"hyperparameter": "logit_penaltie.beta"},
            "it has logit_penalty.beta. Did you mean 'logit_penalty.beta'?",
        ),
        ({"values": (0.1,)}, "a curve needs two values of beta or more"),
        ({"values": (0.1, 0.1)}, "twice; name it once"),
        ({"values": (0.1, "0.2")}, "values holds numbers, not '0.2'"),
        ({"values": (0.1, -1.0)}, "logit_penalty: beta must be a number in [0, inf)"),
        ({"zero": "sigmoid + logit_penalty(beta=0.01)"}, "twice; name it once"),
        (
            {"objective": "sigmoid + logit_penalty(beta=0.3)"},
            "gives beta a value already, and the sweep varies it; leave it out",
        ),
        ({"objective": "sigmoyd"}, "Did you mean 'sigmoid'?"),
        ({"values": (0.4, 0.1, 0.2)}, "rise or fall"),
    ],
)
def test_what_is_no_curve_is_refused_with_the_nearest_fix(changes: dict[str, object], told: str) -> None:
    with pytest.raises(RequestError) as refused:
        dataclasses.replace(PENALTY, **changes)  # type: ignore[arg-type]
    assert told in str(refused.value)
    assert str(refused.value).startswith("the sweep of ")


@pytest.mark.parametrize(
    ("objective", "hyperparameter", "values", "wrong"),
    [
        ("softmax + projector(width=24)", "projector.depth", (1, 2, 3), (1, 4)),
        ("sigmoid + projector", "width", (16, 64), (0, 64)),
        ("softmax + koleo", "weight", (0.01, 0.1), (-0.1, 0.1)),
        ("koleo + center_loss", "center_loss.weight", (0.01, 0.1), (0.01, "0.1")),
        ("simplex_etf", "scale", (1, 5), (0, 1)),
        ("simplex_etf + entropy", "entropy.weight", (0.5, 0.05), (0.5, 0.5)),
    ],
)
def test_projectors_regularisers_and_fixed_heads_are_knobs_like_any(
    objective: str, hyperparameter: str, values: tuple[float, ...], wrong: tuple[float, ...]
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
    with pytest.raises(RequestError, match="the sweep of 'a knob': "):
        dataclasses.replace(sweep, values=wrong)


def test_a_curve_may_begin_without_its_term_or_at_another_strength_of_it() -> None:
    assert Sweep("p", "softmax + projector", "depth", (1, 2), zero="softmax").specs[0] == "softmax"
    at_zero = dataclasses.replace(PENALTY, zero="logit_penalty(beta=0) + sigmoid")
    assert at_zero.specs[0] == "logit_penalty(beta=0) + sigmoid"
    assert dataclasses.replace(PENALTY, values=(0, 0.1), zero="").specs[0].startswith("logit_penalty(beta=0)")


def test_one_arm_is_one_curve() -> None:
    other = Sweep(PENALTY.family, "softmax + projector", "depth", (1, 2), seeds=(5,))
    with pytest.raises(RequestError, match=r"sweeps over logit_penalty.beta and over projector.depth, which"):
        of(*PENALTY.runs, *other.runs)
    further = dataclasses.replace(PENALTY, values=(0.02, 0.03), seeds=(5,))
    of(*PENALTY.runs, *further.runs)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"sigmoid": {"epoch": 5}}, "unknown setting of the recipe 'epoch'. Did you mean 'epochs'?"),
        ({"sigmoid": 5}, "changes of a recipe are {setting: value}, not 5"),
        (5, "changes are {objective: {setting of the recipe: value}}, not 5"),
        ({"sigmoyd": {}}, "Did you mean 'sigmoid'?"),
    ],
)
def test_changes_that_no_recipe_has_are_refused(changes: Any, told: str) -> None:
    with pytest.raises(RequestError) as refused:
        dataclasses.replace(PENALTY, changes=changes).runs  # noqa: B018
    assert told in str(refused.value)
    with pytest.raises(RequestError, match="recipe is a Recipe, not None"):
        dataclasses.replace(PENALTY, recipe=None).runs  # type: ignore[arg-type]  # noqa: B018


def test_a_sweep_itself_among_networks_is_answered_with_its_runs() -> None:
    with pytest.raises(
        RequestError, match=r"networks holds Runs\(...\), Given\(...\) and \*Sweep\(...\).runs"
    ):
        of(PENALTY)  # type: ignore[arg-type]
