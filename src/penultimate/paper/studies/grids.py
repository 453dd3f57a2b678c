"""The searches behind the paper's hyperparameters: grids, runs and what is chosen, from its text and tables.

    Kornblith et al., NeurIPS 2021 (appendices A.1 and B, table C.5) and its ICLR version (appendix A.1)

Whatever is not stated is chosen here, once: trainings of 240 epochs on ImageNet, and seeds that no other
study uses. For CIFAR 5,000 training images are held out, and hyperparameters of a loss are those of table
A.2, because no grids of them are stated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from penultimate.paper.published import table
from penultimate.paper.studies.paper import KEYWORDS, RECIPE, cifar_choices, runs
from penultimate.study.blocks import Runs, Search
from penultimate.study.spec import Study
from penultimate.training.recipe import Recipe
from penultimate.tuning.axes import hyperparameters_of

LONGEST = 240
"""Epochs of a training whose best epoch is searched; in table A.1 none stops after epoch 196."""
THREE_RUNS, FIVE_RUNS = (100, 101, 102), (100, 101, 102, 103, 104)
RATES = tuple(float(f"{10 ** (half / 2):.6g}") for half in range(-4, 2))
"""The coarse grid of learning rates for CIFAR: 10^-2, 10^-1.5, ..., 10^0.5."""
RATES_TIMES_DECAYS = tuple(float(f"{10 ** (half / 2):.6g}") for half in range(-9, -5))
"""The coarse grid of the weight decay times the learning rate: 10^-4.5, ..., 10^-3."""


def fixed(objectives: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """Return a grid of one value for every hyperparameter of some objectives: the value that it has.

    >>> fixed(["dropout(keep=0.8)"])
    {'dropout.keep': (0.8,)}
    """
    return {
        f"{term}.{name}": (value,)
        for objective in objectives
        for (term, name), (_, value) in hyperparameters_of(objective).items()
    }


def grids_of_table_a1() -> dict[str, tuple[float, ...]]:
    """Return the grids of table A.1; where it prints none, the value that it prints."""
    return {
        f"{row['objective']}.{KEYWORDS.get(str(row['hyperparameter']), row['hyperparameter'])}": tuple(
            float(value) for value in str(row["grid"] or row["chosen_value"]).split(";")
        )
        for row in table("neurips_tableA1_hyperparameters")
        if row["hyperparameter"] != "none"
    }


def searched(
    objectives: Iterable[str],
    backbone: str = "resnet50",
    recipe: Recipe = RECIPE,
    seeds: Sequence[int] = THREE_RUNS,
) -> tuple[Runs, ...]:
    """Return the trainings on ImageNet from which a search begins, all of them LONGEST epochs long."""
    looked_at = dataclasses.replace(recipe, evaluate_every=2)
    return runs(dict.fromkeys(objectives, LONGEST), seeds, backbone, recipe=looked_at)


def with_epoch(grids: Mapping[str, tuple[float, ...]]) -> Search:
    """Return a search of these grids for the highest mean in any epoch of a training."""
    return Search(grids, stops=True, by_mean=True)


def cifar_search(dataset: str, backbone: str, called: str, recipe: Recipe) -> Study:
    """Return the search for learning rates and weight decays on a CIFAR set; `called` names its network."""
    objectives = tuple(cifar_choices(dataset))
    begun = dataclasses.replace(recipe, learning_rate=0.1, weight_decay=1e-3)
    grids = {"recipe.learning_rate": RATES, "recipe.rate_times_decay": RATES_TIMES_DECAYS}
    return Study(
        name=f"{dataset}_search",
        title=f"The search for nine objectives' learning rates and decays, {called}",
        question="Which learning rate and weight decay of each objective do best on held-out training"
        " images?",
        source=f"{dataset}_tuning",
        targets=(),
        networks=(Runs(objectives, begun, (backbone,), FIVE_RUNS, draws=0),),
        measure=("accuracy",),
        search=Search({**fixed(objectives), **grids}, product=True, by_mean=True),
        threads=4,
        gpus=0.5,
    )
