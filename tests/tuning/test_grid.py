"""The study that a search is: which networks it trains, and which requests it refuses."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import pytest
from tests.evaluation.pictures import split_folders
from tests.tuning.planted import plan_of

from penultimate.errors import RequestError
from penultimate.records.tuning import from_json
from penultimate.study import load_study
from penultimate.study.blocks import Runs, Search, runs_by_recipe
from penultimate.study.settings import override
from penultimate.study.spec import Study
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe
from penultimate.tuning.axes import axes_of, parse_grids
from penultimate.tuning.grid import search_study


def grids_in(search: Study) -> dict[tuple[str, str], tuple[float, ...]]:
    return {(one.slug, axis.key): axis.grid for one in plan_of(search).objectives for axis in one.axes}


def trainings(study: Study) -> set[str]:
    return {step_id for step_id, step in unfold(study).steps.items() if step.name == "train"}


def test_cells_are_the_training_steps_of_a_study_and_nothing_else_is_measured() -> None:
    smoke = load_study("smoke")
    rates = {"recipe.learning_rate": (smoke.main.recipe.learning_rate, 0.1)}
    fixed = {"temperature": (0.06,), "scale": (0.5,)}
    search = search_study(smoke, ["softmax", "cosine_softmax"], rates | fixed)
    assert (search.name, search.targets, search.measure, search.limited) == ("tune-smoke", (), (), True)
    steps = unfold(search).steps
    assert {step.name for step in steps.values()} == {"data", "sheet", "train"}
    trained = trainings(search)
    same = unfold(smoke).steps
    slower = unfold(override(smoke, ["recipe.learning_rate=0.1"])).steps
    assert len(trained & {*same}) == len(trained & {*slower}) == len(trained) / 2


def test_a_cross_varies_one_value_at_a_time_around_the_start_and_a_product_all() -> None:
    grids = {"kappa": (5, 9, 18), "target": (30, 60), "scale": (10,)}
    (cross,) = plan_of(search_study(load_study("nine"), ["squared_error(kappa=9)"], grids)).objectives
    assert [cell.values for cell in cross.cells] == [(9, 60, 10), (5, 60, 10), (18, 60, 10), (9, 30, 10)]
    product = search_study(load_study("nine"), ["squared_error(kappa=9)"], grids, product=True)
    (whole,) = plan_of(product).objectives
    assert whole.cells[0].values == (9, 60, 10)
    assert {cell.values for cell in whole.cells} == {*itertools.product((5, 9, 18), (30, 60), (10,))}
    assert len(whole.cells) == 6
    assert product.objectives == tuple(cell.objective for cell in whole.cells)


def test_a_cell_with_its_own_recipe_has_an_arm_that_is_named_by_it() -> None:
    grids = {"keep": (0.5,), "recipe.learning_rate": (0.6, 1.2), "recipe.epochs": (12, 24)}
    search = search_study(load_study("smoke"), ["dropout(keep=0.5)"], grids, product=True)
    recipes = {block.arm: (block.recipe.learning_rate, block.recipe.epochs) for block in search.runs}
    assert recipes == {
        "": (0.6, 12),
        "epochs 24": (0.6, 24),
        "learning_rate 1.2": (1.2, 12),
        "learning_rate 1.2; epochs 24": (1.2, 24),
    }


def test_an_objective_is_searched_around_the_recipe_of_its_own_grid() -> None:
    smoke = load_study("smoke")
    changes = {"sigmoid": {"learning_rate": 0.7}}
    networks = runs_by_recipe(
        ("softmax", "sigmoid"), smoke.main.recipe, changes, backbones=smoke.main.backbones
    )
    study = dataclasses.replace(smoke, networks=networks)
    softmax, sigmoid = plan_of(search_study(study)).objectives
    assert (softmax.cells[0].settings, sigmoid.cells[0].settings) == ((), (("learning_rate", 0.7),))
    assert trainings(search_study(study)) == trainings(study)
    rates = {"recipe.learning_rate": (0.7, 1.4)}
    (beside,) = plan_of(search_study(study, ["sigmoid"], rates)).objectives
    assert str(beside.at_start) == "sigmoid with recipe.learning_rate=0.7"


def test_the_plan_is_described_with_the_study() -> None:
    search = search_study(load_study("nine"), ["dropout"], {"recipe.learning_rate": (0.5, 1)})
    told = json.loads(json.dumps(search.describe()))
    assert (told["tunes"], from_json(told["search"])) == ("nine", plan_of(search))
    assert "search" not in load_study("matched_search").describe()


def test_starts_are_the_studys_values_and_of_a_sweep_the_first() -> None:
    sweep = load_study("glyphs")
    starts = {one.slug: one.start for one in plan_of(search_study(sweep)).objectives}
    assert list(starts.values()) == list(sweep.objectives[:9])
    (bare,) = plan_of(search_study(sweep, ["squared_error"])).objectives
    (own,) = plan_of(search_study(sweep, ["squared_error(kappa=3)"])).objectives
    assert bare.start == starts["squared_error"]
    assert own.start == "squared_error(kappa=3, scale=10, target=60)"


def test_given_grids_take_the_place_of_those_that_the_study_declares() -> None:
    declared = Search({"dropout.keep": (0.5, 0.7), "alpha": (0.1,)}, product=True, stops=True, by_mean=True)
    study = dataclasses.replace(load_study("smoke"), search=declared)
    objectives = ["dropout", "label_smoothing"]
    study = override(study, [f"objectives={','.join(objectives)}"])
    assert grids_in(search_study(study)) == {
        ("dropout", "keep"): (0.5, 0.7),
        ("label_smoothing", "alpha"): (0.1,),
    }
    given = search_study(study, ["dropout"], {"keep": (0.6,), "recipe.learning_rate": (0.1, 0.2)})
    assert grids_in(given) == {("dropout", "keep"): (0.6,), ("dropout", "recipe.learning_rate"): (0.1, 0.2)}
    plan = plan_of(given)
    assert (plan.product, plan.stops, plan.by_mean) == (True, True, True)
    with pytest.raises(RequestError, match="Did you mean 'alpha'"):
        search_study(dataclasses.replace(study, search=Search({"alpa": (0.1,)})))


@pytest.mark.parametrize(
    ("objective", "grid"),
    [
        ("label_smoothing", (0.025, 0.05, 0.1, 0.2, 0.4)),
        ("label_smoothing(alpha=0.4)", (0.1, 0.2, 0.4, 0.8)),
        ("dropout(keep=0.9)", (0.6, 0.8, 0.9, 0.95, 0.975)),
        ("logit_norm", (0.01, 0.02, 0.04, 0.08, 0.16)),
        ("label_smoothing(alpha=0)", (0,)),
    ],
)
def test_default_grids_are_geometric_around_the_start(objective: str, grid: tuple[float, ...]) -> None:
    (axis,) = axes_of(objective, Recipe(), {}).values()
    assert (axis.grid, axis.centre) == (grid, axis.start)


@pytest.mark.parametrize(
    ("names", "grids", "answer"),
    [
        (["cosine_sofmax"], [], "Did you mean 'cosine_softmax'"),
        (["dropout", "dropout(keep=0.5)"], [], "is named twice"),
        (["dropout"], ["keep=0.5,1.5"], r"keep must be a number in \(0, 1\]"),
        (["dropout"], ["keep=0.5,high"], "--grid wants name=number"),
        (["dropout"], ["kep=0.5"], "Did you mean 'keep'"),
        (["dropout"], ["recipe.learning_rat=0.5"], "Did you mean 'learning_rate'"),
        (["dropout"], ["recipe.schedule=1"], "recipe schedule '1'"),
        (["dropout"], ["recipe.learning_rate=0,1"], "learning_rate is a number above 0"),
        (["dropout"], ["recipe.epochs=4,2.5"], "epochs is a whole number"),
        (["dropout"], ["recipe.mixup=0.1,-0.1"], "mixup"),
        (["dropout"], ["recipe.rate_times_decay=1e-4", "recipe.weight_decay=1e-3"], "both fix the weight"),
    ],
)
def test_a_wrong_request_is_refused_with_its_reason(names: list[str], grids: list[str], answer: str) -> None:
    with pytest.raises(RequestError, match=answer):
        search_study(load_study("nine"), names, parse_grids(grids))


def test_a_grid_of_a_weight_decay_that_the_exposure_fixes_is_refused() -> None:
    with pytest.raises(RequestError, match=r"make a grid of recipe\.exposure alone"):
        axes_of("softmax", Recipe(exposure=17.5), {"recipe.weight_decay": (1e-4,)})


def test_images_of_ones_own_are_searched_without_the_tasks(tmp_path: Path) -> None:
    split_folders(tmp_path / "pictures", ("ape", "bee", "cat"), 20, 4)
    split_folders(tmp_path / "others", ("x", "y"), 6, 3)
    mine = Study(
        "mine",
        "Mine",
        "Which?",
        "pictures",
        ("others",),
        (Runs(("softmax",), Recipe(epochs=1, size=24, resize=28), ("glyphnet(width=4, features=16)",)),),
        counterparts={"others": {"x": ("ape",)}},
        data={name: str(tmp_path / name) for name in ("pictures", "others")},
        reading={"others": {"copies": "drop"}},
    )
    search = search_study(mine)
    assert search.sets == ("pictures",)
    assert trainings(search) == trainings(mine)


def test_data_without_a_holdout_are_not_searched_on() -> None:
    with pytest.raises(RequestError, match="'cifar10' cannot be tuned on: it has no split holdout"):
        search_study(load_study("cifar10_allcnnc"))
    with pytest.raises(RequestError, match="'cifar100_tuning' is the same with a holdout: --set source="):
        search_study(load_study("cifar100_wrn16_8"))
    with pytest.raises(RequestError) as refused:
        search_study(load_study("imagenet64"))
    assert "is the same with a holdout" not in str(refused.value)
