"""The studies of the paper's ICLR version on CIFAR, with the hyperparameters of its table A.2.

    penultimate run cifar10_allcnnc --data cifar10=FOLDER
    penultimate tune all --study cifar10_search --data cifar10_tuning=FOLDER

Epochs and augmentation are not stated; here they are 200 epochs, shifts of four pixels and mirror images. The
searches have the coarse grid of appendix A.1, with 5,000 training images held out; the paper widens it where
the best lies on an edge and then doubles its density, which `--grid` with more values does.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from penultimate.data.augmentation.settings import Augmentation
from penultimate.paper.published import table
from penultimate.paper.studies import headings
from penultimate.paper.studies.imagenet import fixed, spec
from penultimate.study.blocks import Runs, Search, runs_by_recipe
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe

CIFAR10 = Recipe(
    epochs=200,
    batch_size=128,
    warmup=0.0,
    schedule="cosine",
    final_fraction=0.0,
    averaging_window=0.0,
    augmentation=Augmentation(shift=4, flip=True),
    size=32,
    resize=32,
)
CIFAR100 = dataclasses.replace(CIFAR10, batch_size=256, decay_batch_norm=True)
RATES = tuple(float(f"{10 ** (half / 2):.6g}") for half in range(-4, 2))
"""The coarse grid of learning rates: 10^-2, 10^-1.5, ..., 10^0.5."""
RATES_TIMES_DECAYS = tuple(float(f"{10 ** (half / 2):.6g}") for half in range(-9, -5))
"""The coarse grid of the weight decay times the learning rate: 10^-4.5, ..., 10^-3."""


def cifar_choices(dataset: str) -> dict[str, dict[str, Any]]:
    """Return {objective: its learning rate and weight decay} on a CIFAR set: table A.2 of the ICLR version.

    The table names no scale of squared error, and equation 10 of the same paper has none, so the scale is 1.
    """
    changes: dict[str, dict[str, Any]] = {}
    for row in table("iclr_tableA2_cifar_hyperparameters"):
        if row["dataset"] == dataset:
            settings = [(row[f"hyperparameter_{n}"], row[f"hyperparameter_{n}_value"]) for n in (1, 2)]
            scale = [("scale", 1)] if row["objective"] == "squared_error" else []
            changes[spec(row["objective"], [*settings, *scale])] = {
                "learning_rate": row["learning_rate"],
                "weight_decay": row["weight_decay_derived"],
            }
    return changes


def _study(name: str, dataset: str, backbone: str, recipe: Recipe) -> Study:
    changes, seeds = cifar_choices(dataset), tuple(range(25))
    of: dict[str, Any] = {"backbones": (backbone,), "seeds": seeds, "draws": 0}
    return Study(
        name,
        *headings(name),
        source=dataset,
        targets=(),
        networks=runs_by_recipe(tuple(changes), recipe, changes, **of),
        measure=("accuracy", "class_separation"),
        threads=4,
        gpus=0.5,
    )


def _search(dataset: str, backbone: str, recipe: Recipe) -> Study:
    name, objectives = f"{dataset}_search", tuple(cifar_choices(dataset))
    begun = dataclasses.replace(recipe, learning_rate=0.1, weight_decay=1e-3)
    grids = {"recipe.learning_rate": RATES, "recipe.rate_times_decay": RATES_TIMES_DECAYS}
    return Study(
        name,
        *headings(name),
        source=f"{dataset}_tuning",
        targets=(),
        networks=(Runs(objectives, begun, (backbone,), (100, 101, 102, 103, 104), draws=0),),
        measure=("accuracy",),
        search=Search({**fixed(objectives), **grids}, product=True, by_mean=True),
        threads=4,
        gpus=0.5,
    )


CIFAR10_ALLCNNC = _study("cifar10_allcnnc", "cifar10", "allcnnc", CIFAR10)
CIFAR100_WRN16_8 = _study("cifar100_wrn16_8", "cifar100", "wrn16_8", CIFAR100)
CIFAR10_SEARCH = _search("cifar10", "allcnnc", CIFAR10)
CIFAR100_SEARCH = _search("cifar100", "wrn16_8", CIFAR100)
