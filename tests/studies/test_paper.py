"""The studies of the paper's own size, unshrunk, against its tables, cell by cell; no image is needed."""

from __future__ import annotations

import csv
import math
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import torch

from penultimate import registry, specs
from penultimate.backbones.size import size_of
from penultimate.data.readers.entries import ENTRIES
from penultimate.errors import RequestError
from penultimate.graph import Step
from penultimate.objectives.presets import resolve
from penultimate.study import load_study
from penultimate.study.graph import Graph
from penultimate.study.selection import located_in
from penultimate.study.unfold import unfold
from penultimate.training.recipe import Recipe
from penultimate.training.regime import regime
from penultimate.training.schedules import learning_rate
from penultimate.tuning.grid import search_study

NAMES = tuple(
    name
    for name in registry.names("study")
    if name.startswith(("imagenet", "cifar")) and not name.endswith("search")
)
OF_IMAGENET = tuple(name for name in NAMES if name.startswith("imagenet_"))
SHARED = ("imagenet_transfer", "imagenet_robustness", "imagenet_relearning")
KEYWORDS = {
    "alpha": "alpha",
    "lambda_final": "lambda_final",
    "keep_probability_rho": "keep",
    "beta": "beta",
    "temperature_tau": "temperature",
    "kappa": "kappa",
    "target_magnitude_m": "target",
    "loss_scale": "scale",
}


def rows(name: str) -> list[dict[str, str]]:
    """A published table as it lies in its file, not as `penultimate.paper.published` reads it."""
    text = (resources.files("penultimate.paper.published") / f"{name}.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


@cache
def graph(name: str) -> Graph:
    return unfold(load_study(name))


def steps(name: str, kind: str) -> list[Step]:
    return [step for step in graph(name).steps.values() if step.name == kind]


def trainings(name: str) -> dict[tuple[str, str, int], Recipe]:
    """The recipes of the plan's trainings: {(objective, arm, seed): recipe}."""
    found = {}
    for step in steps(name, "train"):
        place = step.config["objective"], step.columns["arm"] or "", step.config["seed"]
        assert place not in found
        found[place] = Recipe(**step.config["recipe"])
    return found


def settings(objective: str) -> dict[str, Any]:
    """Of an objective of one term the hyperparameters, defaults among them."""
    (term,) = resolve(objective).terms
    return dict(term.arguments)


def one(name: str, slug: str, arm: str = "") -> tuple[str, list[int], Recipe]:
    """The only objective of that name in an arm: its spec, its seeds, its recipe."""
    of_slug = {place: recipe for place, recipe in trainings(name).items() if place[1] == arm}
    found = {place: recipe for place, recipe in of_slug.items() if place[0].split("(")[0] == slug}
    (spec,) = {place[0] for place in found}
    (recipe,) = set(found.values())
    return spec, sorted(place[2] for place in found), recipe


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "seeds", "squared_error"),
    [
        ("imagenet_resnet50", 8, True),
        ("imagenet_transfer", 8, True),
        ("imagenet_robustness", 8, True),
        ("imagenet_relearning", 8, True),
        ("imagenet_inception_v3", 3, True),
        ("imagenet_dynamics", 1, True),
        ("imagenet_calibration", 3, False),
    ],
)
def test_every_cell_of_table_a1_is_what_is_trained(name: str, seeds: int, squared_error: bool) -> None:
    table = rows("neurips_tableA1_hyperparameters")
    slugs = list(dict.fromkeys(row["objective"] for row in table))
    slugs = slugs if squared_error else [slug for slug in slugs if slug != "squared_error"]
    for slug in slugs:
        of_slug = [row for row in table if row["objective"] == slug]
        spec, found, recipe = one(name, slug)
        assert found == list(range(seeds))
        (epochs,) = {row["epochs"] for row in of_slug}
        assert recipe.epochs == int(epochs)
        chosen = {
            KEYWORDS[row["hyperparameter"]]: float(row["chosen_value"])
            for row in of_slug
            if row["hyperparameter"] != "none"
        }
        expected = {"scale": 1.0, **chosen} if slug == "cosine_softmax" else chosen
        assert settings(spec) == expected
    assert len(trainings(name)) == seeds * len(slugs)


@pytest.mark.parametrize("name", OF_IMAGENET)
def test_imagenet_is_trained_on_as_the_appendix_says(name: str) -> None:
    backbone = "inception_v3" if name == "imagenet_inception_v3" else "resnet50"
    assert {step.config["backbone"] for step in steps(name, "train")} == {backbone}
    for (_, arm, _), recipe in trainings(name).items():
        assert (recipe.batch_size, recipe.ghost_batch, recipe.learning_rate) == (4096, 32, 1.6)
        assert (recipe.momentum, recipe.nesterov, recipe.schedule) == (0.9, True, "exponential")
        assert (recipe.weight_decay, recipe.exposure, recipe.decay_batch_norm) == (8e-5, None, False)
        assert (recipe.averaging_momentum, recipe.stopping, recipe.size, recipe.resize) == (
            *(0.9999, "last"),
            *(224, 256),
        )
        augmented = recipe.augmentation
        assert (augmented.crop, augmented.flip, augmented.shift) == ((0.1, 1.0), True, 0)
        assert augmented.autoaugment == (arm in ("autoaugment", "long", "long mixup"))
        assert (augmented.mixup > 0) == ("mixup" in arm)


@pytest.mark.parametrize("name", [*OF_IMAGENET, "imagenet64"])
def test_features_of_targets_are_of_uncropped_shorter_sides_and_all_else_is_as_in_pretraining(
    name: str,
) -> None:
    """Appendix A.2 against A.1: of a target's image that is square, all of it is seen."""
    targets = load_study(name).targets
    features, found = {"extract", "transfer_dynamics", "depth"}, set()
    for step in graph(name).steps.values():
        of_target = step.name in features and step.columns["target"] in targets
        assert step.config.get("resize") == ("to the crop" if of_target else None)
        found |= {step.columns["target"]} if of_target else set()
    assert found == {*targets}


@pytest.mark.parametrize("name", OF_IMAGENET)
def test_learning_rates_are_the_closed_form_of_the_paper(name: str) -> None:
    """Ten epochs of warm-up to 1.6, then x 0.975 (0.985) an epoch, at steps of every part of the run."""
    images = ENTRIES[load_study(name).source].card.sizes["train"]
    epoch = images // 4096
    assert epoch == (300 if load_study(name).source == "imagenet_tuning" else 312)
    for recipe in set(trainings(name).values()):
        decay, length = (0.985 if name == "imagenet_long" else 0.975), epoch * recipe.epochs
        for step in (0, 1, epoch, 10 * epoch - 1, 10 * epoch, 10 * epoch + 1, 47 * epoch + 5, length - 1):
            warm = step < 10 * epoch
            expected = (step + 1) / (10 * epoch) if warm else decay ** ((step - 10 * epoch) / epoch)
            assert learning_rate(recipe, step, length) == pytest.approx(1.6 * expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "dataset", "backbone", "batch", "decays"),
    [
        ("cifar10_allcnnc", "cifar10", "allcnnc", 128, False),
        ("cifar100_wrn16_8", "cifar100", "wrn16_8", 256, True),
    ],
)
def test_every_cell_of_the_cifar_table_is_what_is_trained(
    name: str, dataset: str, backbone: str, batch: int, decays: bool
) -> None:
    table = [row for row in rows("iclr_tableA2_cifar_hyperparameters") if row["dataset"] == dataset]
    assert len(table) == 9
    for row in table:
        spec, seeds, recipe = one(name, row["objective"])
        assert seeds == list(range(25))
        assert recipe.learning_rate == float(row["learning_rate"])
        assert recipe.weight_decay == float(row["weight_decay_derived"])
        assert recipe.learning_rate * recipe.weight_decay == pytest.approx(
            float(row["lr_times_weight_decay"]), rel=1e-4
        )
        chosen = {
            KEYWORDS[row[f"hyperparameter_{n}"]]: float(row[f"hyperparameter_{n}_value"])
            for n in (1, 2)
            if row[f"hyperparameter_{n}"]
        }
        scaled = row["objective"] in ("cosine_softmax", "squared_error")
        assert settings(spec) == ({"scale": 1.0, **chosen} if scaled else chosen)
        assert (recipe.batch_size, recipe.decay_batch_norm, recipe.momentum, recipe.nesterov) == (
            *(batch, decays),
            *(0.9, True),
        )
        length = recipe.epochs * (50000 // batch)
        assert recipe.momentum_of_average(length) == 0
        for step in (0, 1, length // 3, length - 1):
            expected = recipe.learning_rate * (1 + math.cos(math.pi * step / length)) / 2
            assert learning_rate(recipe, step, length) == pytest.approx(expected, rel=1e-12)
    assert len(trainings(name)) == 9 * 25
    assert {step.config["backbone"] for step in steps(name, "train")} == {backbone}


def test_every_temperature_of_table_4_scales_its_loss() -> None:
    table = rows("neurips_table4_temperature")
    found = trainings("imagenet_temperature")
    temperatures = {settings(spec)["temperature"]: settings(spec)["scale"] for spec, _, _ in found}
    assert temperatures == {float(row["temperature"]): float(row["temperature"]) for row in table}
    assert {(arm, seed, recipe.epochs) for (_, arm, seed), recipe in found.items()} == {
        ("temperature", 0, 158)
    }


def test_every_cell_of_table_c4_is_trained_with_images_held_out() -> None:
    assert load_study("imagenet_combinations").source == "imagenet_tuning"
    assert ENTRIES["imagenet_tuning"].card.sizes["holdout"] == 50046
    found = {(frozenset(spec.split(" + ")), arm) for spec, arm, _ in trainings("imagenet_combinations")}
    expected = set()
    for row in rows("neurips_tableC4_combinations"):
        value, name = row["objective_hyperparameter_value"], row["objective_hyperparameter"]
        terms = [f"{row['objective']}({KEYWORDS[name]}={value})" if value else row["objective"]]
        if row["added_regularizer"] != "none":
            keyword = KEYWORDS[row["regularizer_hyperparameter"]]
            terms.append(f"{row['added_regularizer']}({keyword}={row['regularizer_value']})")
            terms = terms if row["objective"] != "softmax" else terms[1:]
        canonical = resolve(" + ".join(terms)).canonical.split(" + ")
        expected.add((frozenset(canonical), "combinations" if len(terms) > 1 else ""))
    assert found == expected
    assert len(expected) == 57
    seeds = {seed for _, _, seed in trainings("imagenet_combinations")}
    assert seeds == {0, 1, 2}
    assert len(trainings("imagenet_combinations")) == 57 * 3


def test_every_row_of_table_c5_is_trained() -> None:
    arms = {"standard": "", "autoaugment": "autoaugment", "mixup": "mixup"}
    table = rows("neurips_tableC5_augmentation")
    for row in table:
        spec, seeds, recipe = one("imagenet_augmentation", row["objective"], arms[row["augmentation"]])
        assert len(seeds) == int(row["n_runs"] or 3)
        assert (spec, recipe.epochs) == (
            one("imagenet_resnet50", row["objective"])[0],
            one("imagenet_resnet50", row["objective"])[2].epochs,
        )
    assert len({place[:2] for place in trainings("imagenet_augmentation")}) == len(table) == 12


def test_every_row_of_table_c6_is_trained_for_its_epochs() -> None:
    arms = {"autoaugment": "long", "autoaugment+mixup": "long mixup"}
    table = [row for row in rows("neurips_tableC6_sota") if row["source"] == "this_paper"]
    for row in table:
        spec, _, recipe = one("imagenet_long", row["objective"], arms[row["augmentation"]])
        assert recipe.epochs == int(row["epochs"])
        assert spec == one("imagenet_resnet50", row["objective"])[0]
    assert len({place[:2] for place in trainings("imagenet_long")}) == len(table) == 6


def test_transfer_is_to_the_sets_of_table_a2_with_the_grid_of_appendix_a3() -> None:
    study = load_study("imagenet_transfer")
    ours = {"food": "food101", "flowers": "flowers102"}
    table = [row["dataset"] for row in rows("neurips_tableA2_datasets")]
    assert study.targets == (*(ours.get(name, name) for name in table), "chexpert")
    cells = steps("imagenet_transfer", "fine_tune_cell")
    rates = sorted({step.config["learning_rate"] for step in cells})
    assert [math.log10(rate) for rate in rates] == pytest.approx(
        [-5.5 + 4.5 * n / 7 for n in range(8)], abs=1e-4
    )
    none, *decays = sorted({step.config["decay"] for step in cells})
    assert none == 0
    assert [math.log10(one) for one in decays] == pytest.approx(
        [-6.5 + 3.5 * n / 7 for n in range(8)], abs=1e-4
    )
    assert {(step.config["steps"], step.config["head"]) for step in cells} == {(20000, "fresh")}
    assert len(cells) == 9 * 3 * 8 * 8 * 9
    assert len(steps("imagenet_transfer", "fine_tuning")) == 9 * 3 * 8
    for probe in ("linear", "knn"):
        assert len(steps("imagenet_transfer", probe)) == 9 * 8 * 8
    assert len(steps("imagenet_transfer", "multilabel")) == 9 * 8
    assert len(steps("imagenet_inception_v3", "linear")) == 9 * 3 * 8


def test_measurements_have_the_numbers_of_the_paper() -> None:
    (cka,) = steps("imagenet_resnet50", "similarity")
    assert (cka.config["passes"], cka.config["batch_size"], cka.config["images"]) == (10, 1500, 50000)
    assert len([supply for supply in cka.supplies if supply.kind == "network"]) == 18
    (count,) = {step.config["count"] for step in steps("imagenet_resnet50", "distances")}
    assert count == 10_000
    assert {step.config["shots"] for step in steps("imagenet_relearning", "relearning_from_test")} == {40}
    shifted = {
        supply.of for step in steps("imagenet_robustness", "published_robustness") for supply in step.supplies
    }
    assert shifted - {""} == {"imagenet_v2", "imagenet_a", "imagenet_r", "imagenet_sketch", "imagenet_c"}
    assert {step.config["every"] for step in steps("imagenet_dynamics", "transfer_dynamics")} == {6}
    assert {step.config["every"] for step in steps("imagenet_dynamics", "dynamics")} == {8}
    assert len(steps("imagenet_dynamics", "transfer_dynamics")) == 8 * 8
    kept = {recipe.snapshot_every for recipe in trainings("imagenet_dynamics").values()}
    assert kept == {2}


def test_imagenet64_has_the_papers_regime() -> None:
    (recipe,) = set(trainings("imagenet64").values())
    length = recipe.epochs * (126689 // recipe.batch_size)
    theirs = one("imagenet_resnet50", "softmax")[2]
    ours, paper = regime(recipe, length), regime(theirs, 312 * 146)
    assert length == pytest.approx(312 * 146, rel=0.01)
    for name in ("warmup", "averaging_window", "exposure", "final_fraction"):
        assert getattr(ours, name) == pytest.approx(getattr(paper, name), rel=0.02), name
    spec = one("imagenet64", "final_layer_l2")[0]
    rates = sum(learning_rate(recipe, step, length) for step in range(length))
    weight_decay = ours.exposure * (1 - recipe.momentum) / rates
    assert settings(spec)["lambda_final"] == pytest.approx(10 * weight_decay, rel=0.02)


def images_a_second(name: str) -> int:
    """How many images an H100 trains on in a second, from the operations of the architecture."""
    if name.startswith("cifar"):
        return 12_000 if "cifar10_" in name else 2_000
    if name == "imagenet64":
        return 15_000
    return 1_250 if name == "imagenet_inception_v3_search" else 2_500


@pytest.mark.parametrize(
    "name", [name for name in registry.names("study") if name.startswith(("imagenet", "cifar"))]
)
def test_the_page_of_costs_has_the_gpu_hours_of_a_study(name: str) -> None:
    study = load_study(name)
    size = ENTRIES[study.source].card.sizes["train"]
    if study.search:
        recipe = study.main.recipe
        epochs = len(search_study(study).keys()) * recipe.epochs
        shown = epochs * (size // recipe.batch_size * recipe.batch_size)
    else:
        shown = sum(
            recipe.epochs * (size // recipe.batch_size * recipe.batch_size)
            for recipe in trainings(name).values()
        )
    page = (Path(__file__).parents[2] / "docs/howto/cost.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{round(shown / images_a_second(name) / 3600):,}\b", page)


def test_what_networks_hold_on_disk_is_known_without_building_them() -> None:
    for name in (*registry.names("backbone"), "glyphnet(features=1024, width=32)", "glyphnet(width=8)"):
        spec = specs.parse(name)
        with torch.device("meta"):
            network = registry.entry("backbone", spec.name).resolve()(**spec.arguments)
        held = sum(value.numel() for value in network.state_dict().values())
        size = size_of(name)
        assert size is not None
        assert (size.numbers, size.features) == (held, network.num_features), name


def test_a_study_is_told_where_its_data_lie_by_name_or_by_a_root(tmp_path: Any) -> None:
    study = load_study("imagenet_inception_v3")
    (tmp_path / "stanford_cars").mkdir()
    with pytest.raises(RequestError, match="does not need --data glyphs: it takes imagenet, food101"):
        located_in(study, ["glyphs=x"])
    with pytest.raises(RequestError, match="--data wants NAME=FOLDER"):
        located_in(study, ["imagenet"])
    with pytest.raises(RequestError, match="data 'cars'"):
        located_in(study, [], str(tmp_path))
    assert located_in(study, []) is study
