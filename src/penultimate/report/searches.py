"""The searches behind a study's hyperparameters: their choices for each objective, and their cells."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from penultimate.data.catalog import card
from penultimate.errors import RequestError
from penultimate.records.tuning import (
    Number,
    Tuned,
    Tuning,
    budget_text,
    searches_held,
    searches_named,
)
from penultimate.report.base import MISSING, Cell, Column, Missing
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.text import listed

CELLS = Column("cells", "Cells")
SEARCH = "The search for hyperparameters"
"""What an exhibit lacks if a study's hyperparameters were not searched."""
SYMBOLS = {
    "none": "none",
    "alpha": "α",
    "lambda_final": "λ",
    "keep_probability_rho": "ρ",
    "beta": "β",
    "temperature_tau": "τ",
    "kappa": "κ",
    "target_magnitude_m": "M",
    "loss_scale": "scale",
}
"""The paper's letters by the names of the printed tables."""


def searches_of(measurements: Measurements) -> tuple[Tuning, ...]:
    """Return the searches behind a study's hyperparameters.

    An objective that several of them tuned has the search's name in its label.
    """
    held = searches_held(measurements.results.description)
    labels = Counter(tuned.label for tuning in held for tuned in tuning.objectives)
    return tuple(
        dataclasses.replace(
            tuning,
            objectives=tuple(
                dataclasses.replace(tuned, label=f"{tuned.label} ({tuning.study})")
                if labels[tuned.label] > 1
                else tuned
                for tuned in tuning.objectives
            ),
        )
        for tuning in held
    )


def each_of(searches: Sequence[Tuning]) -> list[tuple[Tuning, Tuned]]:
    """Return every objective of some searches, with its search."""
    return [(tuning, tuned) for tuning in searches for tuned in tuning.objectives]


def not_searched(measurements: Measurements, searches: Sequence[Tuning]) -> tuple[Missing, ...]:
    """Return the gaps for searches that the study is tuned by and that were not made."""
    if not searches:
        command = f"penultimate tune all --study {measurements.words['name']}"
        return (Missing(SEARCH, command),)
    made = {tuning.study for tuning in searches}
    named = searches_named(measurements.results.description)
    lacking = [name for name in named if name not in made] if made & {*named} else []
    return tuple(Missing(f"The search {name}", f"penultimate tune all --study {name}") for name in lacking)


def budgets(searches: Sequence[Tuning]) -> list[str]:
    """Return the cells and seeds of the search, or of each search with the objectives that it chose."""
    if len(searches) == 1:
        return [f"The search: {budget_text(searches[0])}."]
    chosen = [
        [tuned.label.removesuffix(f" ({tuning.study})") for tuned in tuning.objectives if tuned.best]
        for tuning in searches
    ]
    return [
        f"The search {tuning.study} chose for {listed(labels)}. It had {budget_text(tuning)}."
        for tuning, labels in zip(searches, chosen, strict=True)
    ]


def sources_of(searches: Sequence[Tuning]) -> str:
    """Return the titles of the data sets whose holdout images were used."""
    return listed(list(dict.fromkeys(card(tuning.source).title for tuning in searches)))


def in_use(measurements: Measurements) -> list[tuple[StudyObjective, Mapping[str, Any]]]:
    """Return every objective of the study, in any arm, with the recipe that it was trained with.

    Objectives that were trained only with other architectures are left out.
    """
    arms = [measurements.in_arm(arm) for arm in measurements.arms]
    every = [(objective, of_arm.recipe_of(objective)) for of_arm in arms for objective in of_arm.objectives]
    return [(objective, recipe) for objective, recipe in every if recipe]


def mark_of(measurements: Measurements, tuned: Tuned) -> str:
    """Return the slug of a tuned objective if the study has it and so has a mark, or an empty string."""
    arms = map(measurements.in_arm, measurements.arms)
    return tuned.slug if tuned.slug in {one.slug for of_arm in arms for one in of_arm.objectives} else ""


def values_of(spec: str) -> tuple[tuple[str, Number], ...]:
    """Return the hyperparameters of a spec as (symbol in the paper, value); none for an unknown name."""
    from penultimate.tuning.axes import hyperparameters_of

    try:
        parameters = hyperparameters_of(spec)
    except RequestError:
        return ()
    return tuple((parameter.symbol or parameter.name, value) for parameter, value in parameters.values())


def number_cell(value: Number | None) -> Cell:
    """Return a cell with a hyperparameter's value in its shortest form."""
    return Cell(MISSING) if value is None else Cell(f"{value:.6g}", float(value))


def cells_cell(tuned: Tuned) -> Cell:
    """Return a cell with the number of search cells of an objective."""
    return Cell(str(len(tuned.cells)), float(len(tuned.cells)))
