"""A sweep: it trains what ordinary grids train, and refuses what is no curve."""

from __future__ import annotations

import dataclasses

import pytest

from penultimate.errors import RequestError
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
        (
            {"values": (0.1,)},
            "1 of the two values that a curve needs at least; give another value of beta, or",
        ),
        ({"values": ()}, "0 of the two values"),
        ({"values": (0.1, 0.2, 0.1)}, "values names 0.1 twice; name it once"),
        ({"values": (1, 1.0)}, "values names 1.0 twice"),
        ({"values": (0.1, "0.2")}, "values holds numbers, not '0.2'"),
        ({"values": (0.1, -1.0)}, "logit_penalty: beta must be a number in [0, inf)"),
        ({"zero": "sigmoid + logit_penalty(beta=0.01)"}, "twice; name it once"),
        (
            {"objective": "sigmoid + logit_penalty(beta=0.3)"},
            "gives beta a value already, and the sweep varies it; leave it out",
        ),
        ({"family": " "}, "family is the name of an arm"),
        ({"objective": "sigmoyd"}, "Did you mean 'sigmoid'?"),
    ],
)
def test_what_is_no_curve_is_refused_with_the_nearest_fix(changes: dict[str, object], told: str) -> None:
    with pytest.raises(RequestError) as refused:
        dataclasses.replace(PENALTY, **changes)  # type: ignore[arg-type]
    assert told in str(refused.value)
    assert str(refused.value).startswith("the sweep of ")


def test_a_sweep_itself_among_networks_is_answered_with_its_runs() -> None:
    with pytest.raises(
        RequestError, match=r"networks holds Runs\(...\), Given\(...\) and \*Sweep\(...\).runs"
    ):
        of(PENALTY)  # type: ignore[arg-type]
