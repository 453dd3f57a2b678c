"""The searches behind a study's hyperparameters: what they chose for which objective, and their budgets."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from penultimate.data.catalog import card
from penultimate.errors import RequestError
from penultimate.records.tuning import Number, Tuned, Tuning, budget_text, searches_held, searches_named
from penultimate.report.base import MISSING, Cell, Column, Missing
from penultimate.report.measurements import Measurements
from penultimate.report.networks import StudyObjective
from penultimate.report.text import listed

CELLS = Column("cells", "Cells")
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
    """Return the searches behind a study's hyperparameters; objectives that several tuned bear their
    names.
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
    """That no search was made, or not all that the study is tuned by, and how to make it."""
    if not searches:
        command = f"penultimate tune all --study {measurements.words['name']}"
        return (Missing("The search for hyperparameters", command),)
    made = {tuning.study for tuning in searches}
    named = searches_named(measurements.results.description)
    lacking = [name for name in named if name not in made] if made & {*named} else []
    return tuple(Missing(f"The search {name}", f"penultimate tune all --study {name}") for name in lacking)


def budgets(searches: Sequence[Tuning]) -> list[str]:
    """Return what every objective was given; of several searches, by which of them it was chosen."""
    if len(searches) == 1:
        return [f"The budget: {budget_text(searches[0])}."]
    chosen = [
        [tuned.label.removesuffix(f" ({tuning.study})") for tuned in tuning.objectives if tuned.best]
        for tuning in searches
    ]
    return [
        f"The search {tuning.study} chose for {listed(labels)}. Its budget: {budget_text(tuning)}."
        for tuning, labels in zip(searches, chosen, strict=True)
    ]


def sources_of(searches: Sequence[Tuning]) -> str:
    """Return the data sets that were held out from, by their titles."""
    return listed(list(dict.fromkeys(card(tuning.source).title for tuning in searches)))


def in_use(measurements: Measurements) -> list[tuple[StudyObjective, Mapping[str, Any]]]:
    """Return every objective of the study, of whichever arm, and the recipe that it was trained with.

    Those trained in other architectures alone are not among them.
    """
    arms = [measurements.in_arm(arm) for arm in measurements.arms]
    every = [(objective, of_arm.recipe_of(objective)) for of_arm in arms for objective in of_arm.objectives]
    return [(objective, recipe) for objective, recipe in every if recipe]


def mark_of(measurements: Measurements, tuned: Tuned) -> str:
    """Return the slug of an objective that the study has, so that it has a mark; else nothing."""
    arms = map(measurements.in_arm, measurements.arms)
    return tuned.slug if tuned.slug in {one.slug for of_arm in arms for one in of_arm.objectives} else ""


def values_of(spec: str) -> tuple[tuple[str, Number], ...]:
    """Return the hyperparameters of a spec in the paper's letters: (symbol, value);
    none for an unknown name.
    """
    from penultimate.tuning.axes import hyperparameters_of

    try:
        parameters = hyperparameters_of(spec)
    except RequestError:
        return ()
    return tuple((parameter.symbol or parameter.name, value) for parameter, value in parameters.values())


def number_cell(value: Number | None) -> Cell:
    """Return a hyperparameter's value, as short as it can be."""
    return Cell(MISSING) if value is None else Cell(f"{value:.6g}", float(value))


def cells_cell(tuning: Tuning, tuned: Tuned) -> Cell:
    """Return how many cells an objective took, of how many it was given."""
    return Cell(f"{len(tuned.cells)} of {tuning.budget}", float(len(tuned.cells)))
