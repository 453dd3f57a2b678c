"""The searches behind the paper's hyperparameters, against its tables and its text; no image is needed."""

from __future__ import annotations

import csv
import itertools
import math
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from tests.studies.test_shrunk import shrunk
from tests.tuning.planted import plan_of

from penultimate import registry
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.paper.studies.imagenet import NINE, RECIPE, lasting
from penultimate.records.reading import study_folder
from penultimate.records.tuning import Tuning
from penultimate.results.exhibit import show
from penultimate.study import load_study
from penultimate.study.selection import restrict
from penultimate.study.settings import override
from penultimate.training.recipe import Recipe
from penultimate.training.schedules import learning_rate
from penultimate.tuning.axes import kind_of
from penultimate.tuning.grid import recipe_changes, search_study

SEARCHES = tuple(
    name
    for name in registry.names("study")
    if name.startswith(("imagenet", "cifar")) and name.endswith("search")
)
WITH_EPOCHS = tuple(name for name in SEARCHES if name.startswith("imagenet"))
KEYWORDS = {
    "keep_probability_rho": "keep",
    "temperature_tau": "temperature",
    "target_magnitude_m": "target",
    "loss_scale": "scale",
}


def rows(name: str) -> list[dict[str, str]]:
    """A published table as it lies in its file, not as `penultimate.paper.published` reads it."""
    text = (resources.files("penultimate.paper.published") / f"{name}.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


def plan(name: str, *objectives: str) -> Tuning:
    return plan_of(search_study(load_study(name), objectives or ("all",)))


def grids(name: str) -> dict[tuple[str, str], tuple[float, ...]]:
    """What is tried: {(objective, axis): values}."""
    return {(one.slug, axis.key): axis.grid for one in plan(name).objectives for axis in one.axes}


def test_the_grids_of_table_a1_are_tried_cell_by_cell_with_three_runs_each() -> None:
    found = grids("imagenet_search")
    expected = {
        (row["objective"], KEYWORDS.get(row["hyperparameter"], row["hyperparameter"])): tuple(
            sorted(float(value) for value in (row["grid"] or row["chosen_value"]).split(";"))
        )
        for row in rows("neurips_tableA1_hyperparameters")
        if row["hyperparameter"] != "none"
    }
    assert found == {**expected, ("cosine_softmax", "scale"): (1,)}
    study = load_study("imagenet_search")
    assert {kind_of(text)[0] for text in study.objectives} == {
        row["objective"] for row in rows("neurips_tableA1_hyperparameters")
    }
    assert len(study.main.seeds) == 3
    cells = {tuned.slug: len(tuned.cells) for tuned in plan("imagenet_search").objectives}
    assert sum(cells.values()) == 34
    assert (cells["label_smoothing"], cells["final_layer_l2"], cells["softmax"]) == (5, 4, 1)


@pytest.mark.parametrize("name", WITH_EPOCHS)
def test_a_training_of_a_search_is_the_papers_and_longer_than_any_that_it_kept(name: str) -> None:
    study = load_study(name)
    assert (study.source, study.card(study.source).sizes["holdout"]) == ("imagenet_tuning", 50046)
    for block in study.runs:
        side = (299, 342) if "inception" in name else (224, 256)
        assert (block.recipe.size, block.recipe.resize) == side
        assert block.recipe.epochs > max(NINE.values()) == 196
        assert block.recipe.evaluate_every == 2
        assert {epochs % 2 for epochs in NINE.values()} == {0}
        usual = {"autoaugment": ("autoaugment" in name), "mixup": 0.2 if "mixup" in name else 0.0}
        expected = replace(
            RECIPE,
            **lasting(block.recipe.epochs),
            evaluate_every=2,
            size=side[0],
            resize=side[1],
            augmentation=replace(RECIPE.augmentation, **usual),  # type: ignore[arg-type]
        )
        assert block.recipe == expected
    assert not set(study.main.seeds) & set(range(25))
    backbone = "inception_v3" if "inception" in name else "resnet50"
    assert study.backbones == (backbone,)


def test_inception_and_autoaugment_have_only_their_epochs_chosen_and_mixup_its_alpha() -> None:
    for name, count in (("imagenet_inception_v3_search", 9), ("imagenet_autoaugment_search", 4)):
        assert {len(values) for values in grids(name).values()} == {1}
        assert [len(one.cells) for one in plan(name).objectives] == [1] * count
    four = {row["objective"] for row in rows("neurips_tableC5_augmentation")}
    mixed = {place: values for place, values in grids("imagenet_mixup_search").items() if len(values) > 1}
    assert mixed == {(objective, "recipe.mixup"): (0.1, 0.2, 0.3, 0.4) for objective in four}


@pytest.mark.parametrize("epochs", [26, 146, 239])
def test_a_run_that_stops_earlier_has_the_learning_rates_of_the_longer_one(epochs: int) -> None:
    recipe = load_study("imagenet_search").main.recipe
    shorter = recipe.changed(recipe.stopped_after(epochs))
    for step in (0, 299, 2999, 3000, 3001, 25 * 300, epochs * 300 - 1):
        whole = learning_rate(recipe, step, recipe.epochs * 300)
        assert learning_rate(shorter, step, epochs * 300) == pytest.approx(whole, rel=1e-9)
    assert shorter == replace(recipe, **{**lasting(epochs), **recipe.stopped_after(epochs)})
    for name, value in lasting(epochs).items():
        assert getattr(shorter, name) == pytest.approx(value, rel=1e-9)


def test_the_average_of_a_run_that_stops_earlier_forgets_as_fast() -> None:
    recipe = Recipe(epochs=40, averaging_window=0.2, schedule="constant")
    shorter = recipe.changed(recipe.stopped_after(10))
    assert shorter.momentum_of_average(100) == pytest.approx(recipe.momentum_of_average(400))
    assert recipe.first_stop() == 0.2 * 40


def test_the_coarse_grid_of_cifar_is_that_of_the_iclr_version() -> None:
    for name in ("cifar10_search", "cifar100_search"):
        (softmax,) = plan(name, "softmax").objectives
        decades = {tuple(round(2 * math.log10(value)) / 2 for value in cell.values) for cell in softmax.cells}
        rates, products = (-2, -1.5, -1, -0.5, 0, 0.5), (-4.5, -4, -3.5, -3)
        assert decades == {*itertools.product(rates, products)}
        assert len(softmax.cells) == 24
        assert len(load_study(name).main.seeds) == 5
        assert plan(name).by_mean


def test_cifars_losses_keep_the_hyperparameters_of_table_a2_and_decay_is_lambda_over_the_rate() -> None:
    for dataset in ("cifar10", "cifar100"):
        table = [row for row in rows("iclr_tableA2_cifar_hyperparameters") if row["dataset"] == dataset]
        found = grids(f"{dataset}_search")
        for row in table:
            for n in (1, 2):
                if row[f"hyperparameter_{n}"]:
                    name = KEYWORDS.get(row[f"hyperparameter_{n}"], row[f"hyperparameter_{n}"])
                    assert found[row["objective"], name] == (float(row[f"hyperparameter_{n}_value"]),)
        assert len({objective for objective, _ in found}) == len(table) == 9
        (softmax,) = plan(f"{dataset}_search", "softmax").objectives
        assert [axis.key for axis in softmax.axes] == ["recipe.learning_rate", "recipe.rate_times_decay"]
        (cell,) = [cell for cell in softmax.cells if cell.values == (0.0316228, 0.000316228)]
        assert dict(cell.settings) == {"learning_rate": 0.0316228, "weight_decay": 0.01}


def test_a_search_for_epochs_is_refused_where_they_change_what_went_before() -> None:
    study = load_study("imagenet_search")
    for change, why in (
        (
            "recipe.schedule=cosine",
            "schedule is exponential or constant where the epoch to stop at is chosen",
        ),
        ("recipe.steps=100", "steps is None where"),
        ("recipe.stopping=best", "stopping is last, with a patience of 0 where"),
    ):
        with pytest.raises(RequestError, match=why):
            search_study(override(study, [change]))
    assert plan_of(search_study(override(study, ["recipe.schedule=constant"]))).stops


@pytest.mark.long
@pytest.mark.parametrize("name", ["imagenet_mixup_search", "cifar10_search"])
def test_a_search_runs_to_its_end_on_tiny_copies(name: str, tmp_path: Path) -> None:
    study, is_cifar = restrict(load_study(name), (), (0, 1)), name.startswith("cifar")
    small = shrunk(study, tmp_path / "data", 32, epochs=1 if is_cifar else 2)
    small = override(small, ["recipe.learning_rate=0.1"])
    if is_cifar:  # of the coarse grid a corner
        assert small.search is not None
        few = {"recipe.learning_rate": (0.01, 0.0316228), "recipe.rate_times_decay": (1e-5, 1e-4)}
        small = replace(small, search=replace(small.search, grids={**small.search.grids, **few}))
    search = search_study(small, ("sigmoid",))
    summary = run(search, tmp_path / "out", 1)
    assert (summary.failed, summary.diverged) == ({}, {})
    found = study_folder(tmp_path / "out", search.name).search()
    assert found is not None
    (tuned,) = found.objectives
    assert [len(cell.accuracies) for cell in tuned.cells] == [2] * 4
    assert tuned.best is not None
    assert ("epochs" in recipe_changes(found, tuned.best)) is not is_cifar
    shown = show("tableA1", tmp_path / "out", search.name, allow_limited=True)
    assert [table.source for table in shown.tables] == ["ours", "published"]
    assert not shown.tables[0].has_gaps
