"""The searches behind the paper's hyperparameters, against its tables and its text; no image is needed."""

from __future__ import annotations

import csv
import importlib
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from tests.inprocess import InProcess
from tests.studies.test_shrunk import shrunk

from penultimate import registry
from penultimate.cli import main
from penultimate.data.readers.entries import ENTRIES
from penultimate.errors import RequestError
from penultimate.objectives.presets import resolve
from penultimate.paper.studies.paper import NINE, RECIPE, lasting
from penultimate.records.tuning import CellRun, Tuned, read_tuning
from penultimate.report import exhibit, read_study
from penultimate.study import load_study
from penultimate.study.blocks import Runs, Search, runs_by_recipe
from penultimate.study.selection import restrict
from penultimate.study.settings import override
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe
from penultimate.training.schedules import learning_rate
from penultimate.tuning.axes import axes_of, kind_of
from penultimate.tuning.chosen import chosen_source
from penultimate.tuning.conduct import Setting, SettingOutcome, conduct, plan_tuning
from penultimate.tuning.run import cells_graph, record_of, tune

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


def grids(name: str, *objectives: str) -> dict[tuple[str, str], tuple[float, ...]]:
    """What is tried first: {(objective, axis): values}."""
    candidates = plan_tuning(load_study(name), objectives or ("all",)).candidates
    return {(one.slug, axis.key): axis.grid for one in candidates for axis in one.axes}


def answered(score: Callable[[Setting], Sequence[float]]) -> Callable[..., dict[Setting, SettingOutcome]]:
    """A runner in place of trainings: the accuracies of a setting's runs follow from a function of it."""

    def runner(asked: Sequence[Setting]) -> dict[Setting, SettingOutcome]:
        return {
            one: SettingOutcome(tuple(CellRun(seed, value) for seed, value in enumerate(score(one))), 180)
            for one in asked
        }

    return runner


def searched(name: str, objective: str, score: Callable[[Setting], Sequence[float]]) -> Tuned:
    (tuned,) = conduct(plan_tuning(load_study(name), [objective]), answered(score))
    return tuned


def test_the_searches_of_the_papers_size_are_these() -> None:
    assert sorted(SEARCHES) == [
        "cifar100_search",
        "cifar10_search",
        "imagenet_autoaugment_search",
        "imagenet_inception_v3_search",
        "imagenet_mixup_search",
        "imagenet_search",
    ]


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
    plan = plan_tuning(study)
    cells = {tuned.slug: len(tuned.cells) for tuned in conduct(plan, answered(lambda one: [0.5] * 3))}
    assert sum(cells.values()) == sum(one.most_cells(plan) for one in plan.candidates) == 34
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
        plan = plan_tuning(load_study(name))
        assert [one.most_cells(plan) for one in plan.candidates] == [1] * count
    four = {row["objective"] for row in rows("neurips_tableC5_augmentation")}
    mixed = {place: values for place, values in grids("imagenet_mixup_search").items() if len(values) > 1}
    assert mixed == {(objective, "recipe.mixup"): (0.1, 0.2, 0.3, 0.4) for objective in four}


def test_mixups_alpha_is_that_of_what_is_trained_and_of_what_is_chosen() -> None:
    study = load_study("imagenet_mixup_search")
    (one,) = plan_tuning(study, ["sigmoid"]).candidates
    _, owner = cells_graph(study, [one.setting((alpha,)) for alpha in (0.2, 0.3)])
    alphas = {
        changes: step.config["recipe"]["augmentation"]["mixup"] for ((_, changes), _), step in owner.items()
    }
    assert alphas == {(): 0.2, (("mixup", 0.3),): 0.3}
    tuned = searched(
        "imagenet_mixup_search", "sigmoid", lambda each: [0.7 + dict(each[1]).get("mixup", 0)] * 3
    )
    assert tuned.best is not None
    changes: dict[str, Mapping[str, object]] = {}
    exec(chosen_source(record_of(plan_tuning(study, ["sigmoid"]), (tuned,))), changes)
    chosen = changes["RECIPE_CHANGES"]
    (block,) = runs_by_recipe(("sigmoid",), study.main.recipe, chosen)  # type: ignore[arg-type]
    assert block.recipe.augmentation.mixup == 0.4
    assert (block.recipe.epochs, block.recipe.augmentation.crop) == (180, (0.1, 1.0))


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


def small(**search: object) -> Study:
    """Three objectives on a world that is drawn in no time, three epochs of two seeds."""
    smoke = load_study("smoke")
    recipe = replace(smoke.main.recipe, epochs=3, evaluate_every=1, warmup=0.1)
    return replace(
        smoke,
        targets=(),
        measure=("accuracy",),
        networks=(Runs(("dropout",), recipe, smoke.main.backbones, (0, 1)),),
        search=Search({"keep": (0.5, 0.9)}, 2, refine=False, **search),  # type: ignore[arg-type]
    )


@pytest.mark.long
def test_a_cell_is_judged_in_the_epoch_of_its_highest_mean_and_that_epoch_is_chosen(tmp_path: Path) -> None:
    """The same trainings, judged at their ends and in their best epochs."""
    at_end = tune(plan_tuning(small()), tmp_path, engine=InProcess()).tuning
    best = tune(plan_tuning(small(stops=True)), tmp_path, engine=InProcess())
    assert best.summary.computed == 0
    for ended, stopped in zip(at_end.objectives[0].cells, best.tuning.objectives[0].cells, strict=True):
        assert stopped.peak_epoch == ended.peak_epoch is not None
        assert stopped.mean >= ended.mean
        if stopped.peak_epoch == 3:
            assert stopped.mean == ended.mean
    cell = best.tuning.objectives[0].best
    assert cell is not None
    source = (best.folder / "chosen.py").read_text()
    assert f'"epochs": {cell.peak_epoch}, ' in source
    assert "(the mean over seeds, in the epoch\nthat is best of 3 epochs)" in source
    read = read_tuning(best.folder / "tuning.json")
    assert read is not None
    assert (read.stops, read) == (True, best.tuning)
    built = exhibit("tableA1", read_study(tmp_path, "tune-smoke"), allow_limited=True)
    (table,) = [table for table in built.tables if table.source == "ours"]
    assert "training is to stop at that epoch" in " ".join(table.notes)


@pytest.mark.long
def test_an_epoch_within_the_warm_up_is_none_to_stop_at(tmp_path: Path) -> None:
    late = small(stops=True)
    block = late.main
    late = replace(late, networks=(replace(block, recipe=replace(block.recipe, warmup=0.8)),))
    tuned = tune(plan_tuning(late), tmp_path, engine=InProcess()).tuning.objectives[0]
    assert {cell.peak_epoch for cell in tuned.cells} == {3}
    assert "highest in the last epoch, 3" in " ".join(tuned.remarks)


def test_by_mean_the_best_of_cells_that_seeds_cannot_tell_apart_is_chosen() -> None:
    """Three cells within the margin: the paper takes the highest, our own searches the middle one."""
    scores = {
        0.08: [0.701, 0.69],
        0.09: [0.69, 0.702],
        0.1: [0.7035, 0.6895],
        0.11: [0.6, 0.6],
        0.12: [0.5, 0.5],
    }

    def score(setting: Setting) -> Sequence[float]:
        return scores[resolve(setting[0]).terms[0].arguments["alpha"]]

    assert (best := searched("imagenet_search", "label_smoothing", score).best) is not None
    assert best.values == (0.1,)
    study = load_study("imagenet_search")
    assert study.search is not None
    ours = replace(study, search=replace(study.search, by_mean=False))
    (tuned,) = conduct(plan_tuning(ours, ["label_smoothing"]), answered(score))
    assert tuned.best is not None
    assert tuned.best.values == (0.09,)


def exponents(tuned: Tuned, phase: str) -> set[tuple[float, float]]:
    """Decades of the learning rate and of the decay times it, rounded to eighths."""
    return {
        tuple(round(8 * math.log10(value)) / 8 for value in cell.values[-2:])  # type: ignore[misc]
        for cell in tuned.cells
        if cell.phase == phase
    }


def peaked(rate: float, product: float) -> Callable[[Setting], Sequence[float]]:
    """A holdout accuracy that is highest at these decades, of what is really trained."""

    def score(setting: Setting) -> Sequence[float]:
        recipe = load_study("cifar10_search").main.recipe.changed(dict(setting[1]))
        along = abs(math.log10(recipe.learning_rate) - rate)
        across = abs(math.log10(recipe.learning_rate * recipe.weight_decay) - product)
        return [0.9 - 0.05 * along - 0.04 * across] * 5

    return score


def test_the_coarse_grid_of_cifar_is_that_of_the_iclr_version() -> None:
    for name in ("cifar10_search", "cifar100_search"):
        tuned = searched(name, "softmax", peaked(-1, -4))
        rates, products = (-2, -1.5, -1, -0.5, 0, 0.5), (-4.5, -4, -3.5, -3)
        assert exponents(tuned, "grid") == set(itertools.product(rates, products))
        assert exponents(tuned, "expansion") == set()
        assert len(load_study(name).main.seeds) == 5


def test_the_density_around_the_best_of_cifars_grid_is_doubled_as_in_the_papers_example() -> None:
    """For a best learning rate of 10^-1: 10^-0.5, 10^-0.75, 10^-1, 10^-1.25, 10^-1.5."""
    tuned = searched("cifar10_search", "softmax", peaked(-0.8, -3.7))
    fine = exponents(tuned, "refinement")
    rates, products = (-0.5, -0.75, -1, -1.25, -1.5), (-3, -3.25, -3.5, -3.75, -4)
    assert fine | exponents(tuned, "grid") >= set(itertools.product(rates, products))
    assert len(fine) == 25 - 9
    assert tuned.best is not None
    chosen = tuple(round(8 * math.log10(value)) / 8 for value in tuned.best.values)
    assert chosen == (-0.75, -3.75)  # table A.2's softmax


def test_cifars_grid_is_widened_where_the_best_lies_on_an_edge() -> None:
    """Cosine softmax's learning rate on CIFAR-10, 10^-2.25, lies outside the coarse grid."""
    tuned = searched("cifar10_search", "cosine_softmax", peaked(-2.25, -4))
    assert {rate for rate, _ in exponents(tuned, "expansion")} == {-2.5}
    assert tuned.best is not None
    assert [round(4 * math.log10(value)) / 4 for value in tuned.best.values[-2:]] == [-2.25, -4]
    assert not any(axis.edge for axis in tuned.axes)
    far = searched("cifar10_search", "softmax", peaked(-9, -12))
    assert len(exponents(far, "expansion")) == 10 * 8 - 24
    assert {phase for cell in far.cells if (phase := cell.phase)} == {"grid", "expansion", "refinement"}
    assert sum("that was tried" in remark for remark in far.remarks) == 2


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
        (axes,) = [one.axes for one in plan_tuning(load_study(f"{dataset}_search"), ["softmax"]).candidates]
        assert [axis.key for axis in axes] == ["recipe.learning_rate", "recipe.rate_times_decay"]
        (one,) = plan_tuning(load_study(f"{dataset}_search"), ["softmax"]).candidates
        assert dict(one.setting((0.0316228, 0.000316228))[1]) == {
            "learning_rate": 0.0316228,
            "weight_decay": 0.01,
        }


HEADER = re.compile(
    r"Computed, not measured: ([\d,]+) GPU hours of training on H100s at ([\d,]+) images a second, for"
    r" (?:the )?([\d,]+) trainings"
)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_header_says_the_command_and_what_the_grids_cost(name: str) -> None:
    study = load_study(name)
    header = " ".join((importlib.import_module(f"penultimate.paper.studies.{name}").__doc__ or "").split())
    assert f"penultimate tune all --study {name} --data {study.source}=FOLDER" in header
    found = HEADER.search(header)
    assert found is not None
    hours, rate, count = (int(text.replace(",", "")) for text in found.groups() if text)
    plan = plan_tuning(study)
    cells = sum(
        len(tuned.cells)
        for tuned in conduct(replace(plan, refine=False, expansions=0), answered(lambda _: [0.5]))
    )
    assert cells * len(study.main.seeds) == count
    recipe = study.main.recipe
    images = ENTRIES[study.source].card.sizes["train"] // recipe.batch_size * recipe.batch_size
    assert round(count * recipe.epochs * images / rate / 3600) == hours


@pytest.mark.parametrize("name", SEARCHES)
def test_a_plan_says_what_a_search_takes(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", name, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    study = load_study(name)
    objectives, seeds = len(study.objectives), len(study.main.seeds)
    assert f"left: {objectives * seeds} trainings of " in said
    assert f"Its search, penultimate tune all --study {name}:" in said
    runs = {"imagenet_search": 102, "imagenet_inception_v3_search": 27, "imagenet_autoaugment_search": 12}
    runs |= {"imagenet_mixup_search": 48}
    expected = runs.get(name, 9 * 5 * 96)
    assert f"{expected} runs or fewer, of {study.main.recipe.epochs} epochs" in said.replace(",", "").replace(
        "fewer ", "fewer, "
    )


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
            plan_tuning(override(study, [change]))
    assert plan_tuning(override(study, ["recipe.schedule=constant"])).stops


def test_two_grids_of_the_weight_decay_are_refused_and_one_that_changes_nothing() -> None:
    both = {"recipe.rate_times_decay": (1e-4,), "recipe.weight_decay": (1e-3,)}
    with pytest.raises(RequestError, match=r"rate_times_decay and recipe\.weight_decay both fix the weight"):
        axes_of("softmax", Recipe(), both)
    with pytest.raises(RequestError, match=r"exposure, 17\.5, fixes the weight decay"):
        axes_of("softmax", Recipe(exposure=17.5), {"recipe.rate_times_decay": (1e-4,)})
    with pytest.raises(RequestError, match=r"mixup must be a number in \[0, 100\]"):
        axes_of("softmax", Recipe(), {"recipe.mixup": (0.1, -0.1)})


def test_a_search_of_another_form_is_refused() -> None:
    with pytest.raises(RequestError, match="expansions is an integer >= 0, or None, not -1"):
        Search(expansions=-1)
    with pytest.raises(RequestError, match="stops"):
        Search(stops="yes")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="by_mean"):
        Search(by_mean=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_is_refused_in_words(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = load_study(name).source
    for arguments, why in (
        (("all",), f"--data {source}=FOLDER"),
        (("all", "--data", f"{source}={tmp_path}/none"), f"data '{source}'"),
        (("hinge",), "unknown objective 'hinge'"),
        (("sigmoid", "sigmoid"), "'sigmoid' is named twice"),
        (("sigmoid", "--budget", "0"), "budget is a whole number, 1 or more"),
        (("sigmoid", "--grid", "tau=0.1"), "no objective here has 'tau' to make a grid of"),
        (("sigmoid", "--seeds", "-1"), "seed"),
    ):
        assert main(["tune", *arguments, "--study", name, "--out", str(tmp_path / "out")]) == 2
        assert why in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_the_study_without_a_holdout_is_told_of_the_one_with_it() -> None:
    with pytest.raises(RequestError, match="'cifar100_tuning' is the same with a holdout: --set source="):
        plan_tuning(load_study("cifar100_wrn16_8"))
    moved = override(load_study("cifar100_wrn16_8"), ["source=cifar100_tuning"])
    assert len(plan_tuning(moved, ["sigmoid"]).candidates) == 1
    with pytest.raises(RequestError) as refused:
        plan_tuning(override(load_study("imagenet64"), []))
    assert "is the same with a holdout" not in str(refused.value)


@pytest.mark.long
@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_runs_to_its_end_on_tiny_copies(name: str, tmp_path: Path) -> None:
    study = restrict(load_study(name), (), (0, 1))
    inception = "inception" in name
    is_cifar = name.startswith("cifar")
    brief = {"batch_size": 4 if inception else 8, "epochs": 1 if is_cifar else 2}
    small = shrunk(study, tmp_path / "data", 75 if inception else 32, **brief)
    small = override(small, ["recipe.learning_rate=0.1"])
    if is_cifar:  # of the coarse grid a corner
        assert small.search is not None
        few = {"recipe.learning_rate": (0.01, 0.0316228), "recipe.rate_times_decay": (1e-5, 1e-4)}
        narrow = replace(small.search, grids={**small.search.grids, **few}, budget=9, expansions=0)
        small = replace(small, search=narrow)
    tuned = ("sigmoid",) if is_cifar else ("softmax", "sigmoid")
    result = tune(plan_tuning(small, tuned), tmp_path / "out", 1)
    assert len(result.tuning.objectives) == len(tuned)
    assert (result.unfinished, result.summary.failed, result.summary.diverged) == ((), {}, {})
    cells = {"imagenet_mixup_search": 4}.get(name, 9 if is_cifar else 1)
    assert {len(tuned.cells) for tuned in result.tuning.objectives} == {cells}
    assert all(len(cell.runs) == 2 for tuned in result.tuning.objectives for cell in tuned.cells)
    source = (result.folder / "chosen.py").read_text()
    assert ('"epochs": ' in source) is name.startswith("imagenet")
    built = exhibit("tableA1", read_study(tmp_path / "out", result.folder.name), allow_limited=True)
    assert [table.source for table in built.tables] == ["ours", "published"]
    assert built.missing == ()
