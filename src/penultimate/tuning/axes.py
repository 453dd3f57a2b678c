"""The axes of a search: an objective's hyperparameters and settings of the recipe, with the values to try."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from penultimate import specs
from penultimate.checks import is_number
from penultimate.errors import RequestError, nearest
from penultimate.objectives.hyperparameters import REQUIRED, Hyperparameter
from penultimate.objectives.presets import hyperparameters_of_term, resolve
from penultimate.records.tuning import Number, TunedAxis
from penultimate.specs import Spec
from penultimate.training.recipe import Recipe

Axes: TypeAlias = dict[tuple[str, str], TunedAxis]
"""Axes by their term of the objective (or RECIPE) and the name of the hyperparameter."""
Grids: TypeAlias = Mapping[str, Sequence[Number]]
"""Values to try by name: "temperature", "dropout.keep" or "recipe.learning_rate"."""

RATIO = 2.0
"""The ratio between neighbours of a default grid."""
RUNGS, RUNGS_OF_SEVERAL = 5, 3
"""The number of values of a default grid: for a single axis, and for each of several."""
FROM_ABOVE = ("keep", "momentum")
"""Settings whose distance from 1 is what counts: a keep probability of 0.9 is doubled to 0.8."""
DIGITS = 3
"""Significant digits of the values of a default grid."""
RECIPE = "recipe"
SYMBOLS = {"learning_rate": "η", "rate_times_decay": "η × decay", "mixup": "Mixup's α"}
"""Symbols of settings of the recipe; the others are called by their names."""
DECAYS = ("exposure", "weight_decay", "rate_times_decay")
"""The settings of a recipe each of which fixes the weight decay.

The weight decay is "rate_times_decay" divided by the learning rate (the lambda of the paper's ICLR version).
"""


def kind_of(objective: str) -> tuple[str, ...]:
    """Return the names of an objective's terms, which identify it whatever its hyperparameters are.

    >>> kind_of("sigmoid + dropout(keep=0.8)")
    ('dropout', 'sigmoid')
    """
    return tuple(term.name for term in resolve(objective).terms)


def parse_grids(texts: Sequence[str]) -> dict[str, tuple[Number, ...]]:
    """Return the grids of a command line: {name: values}.

    >>> parse_grids(["temperature=0.04,0.05", "recipe.learning_rate=1"])
    {'temperature': (0.04, 0.05), 'recipe.learning_rate': (1,)}
    """
    grids: dict[str, tuple[Number, ...]] = {}
    for text in texts:
        name, _, listed = (part.strip() for part in text.partition("="))
        try:
            values = tuple(specs.literal(part.strip()) for part in listed.split(","))
        except specs.NOT_LITERAL:
            values = ()
        if not name or not values or not all(map(is_number, values)):
            raise RequestError(
                f"--grid wants name=number,number, such as temperature=0.04,0.05; got '{text}'"
            )
        grids[name] = values
    return grids


def hyperparameters_of(objective: str) -> dict[tuple[str, str], tuple[Hyperparameter, Number]]:
    """Return the numeric hyperparameters of an objective: {(term, name): (hyperparameter, value)}.

    >>> [(name, value) for (_, name), (_, value) in hyperparameters_of("dropout + logit_norm").items()]
    [('keep', 0.7), ('temperature', 0.04)]
    """
    numeric: dict[tuple[str, str], tuple[Hyperparameter, Number]] = {}
    for term in resolve(objective).terms:
        for parameter in hyperparameters_of_term(term.name):
            value = term.arguments.get(parameter.name, REQUIRED)
            if is_number(value):
                numeric[term.name, parameter.name] = parameter, value
    return numeric


def axes_of(objective: str, recipe: Recipe, grids: Grids, rungs: int | None = None) -> Axes:
    """Return every axis of an objective: its hyperparameters, then the recipe's settings that have a grid.

    Grids of other objectives are ignored. A default grid has `rungs` values, by default RUNGS or
    RUNGS_OF_SEVERAL. Raises RequestError for a value that is out of range, and for a setting of the recipe
    that cannot be tuned.

    >>> {axis.key: axis.grid for axis in axes_of("dropout(keep=0.9)", Recipe(), {}).values()}
    {'keep': (0.6, 0.8, 0.9, 0.95, 0.975)}
    """
    parameters = hyperparameters_of(objective)
    names = [name for _, name in parameters]
    given = {place: grids.get(".".join(place), grids.get(place[1])) for place in parameters}
    of_recipe = {name.removeprefix(f"{RECIPE}."): of for name, of in grids.items() if _is_of_recipe(name)}
    several = sum(grid is None or len(grid) > 1 for grid in (*given.values(), *of_recipe.values())) > 1
    steps = (rungs or (RUNGS_OF_SEVERAL if several else RUNGS)) // 2
    axes: Axes = {}
    for (term, name), (parameter, start) in parameters.items():
        grid = given[term, name]
        if grid is None:
            values = {start, *(parameter.grid or _around(parameter, term, start, steps))}
        else:
            values = {parameter.checked(value, term) for value in grid}
        key = name if names.count(name) == 1 else f"{term}.{name}"
        axes[term, name] = _axis(key, parameter.symbol or name, start, values)
    for name, grid in of_recipe.items():
        start = _start_of(name, recipe, sorted(grid))
        symbol = SYMBOLS.get(name, name.replace("_", " "))
        axes[RECIPE, name] = _axis(f"{RECIPE}.{name}", symbol, start, set(grid))
    fixing = [
        name for name in DECAYS if name in of_recipe or (name == "exposure" and recipe.exposure is not None)
    ]
    if len(fixing) > 1:
        raise RequestError(
            f"{' and '.join(f'{RECIPE}.{name}' for name in fixing)} both fix the weight decay; make a grid of"
            f" {RECIPE}.{fixing[0]} alone"
        )
    return axes


def _axis(key: str, symbol: str, start: Number, values: set[Number]) -> TunedAxis:
    return TunedAxis(key, symbol, start, tuple(sorted(values)), key.rpartition(".")[2] in FROM_ABOVE)


def _is_of_recipe(key: str) -> bool:
    return key.startswith(f"{RECIPE}.")


def _start_of(name: str, recipe: Recipe, values: Sequence[Number]) -> Number:
    """Return the value of a setting of a recipe, or the middle one of a grid if the recipe leaves it open."""
    if name == "rate_times_decay":
        return recipe.learning_rate * recipe.weight_decay
    recipe.changed({name: values[0]})  # an unknown setting is refused
    value = recipe.augmentation.mixup if name == "mixup" else getattr(recipe, name)
    return value if is_number(value) else values[len(values) // 2]


def _around(parameter: Hyperparameter, owner: str, start: Number, steps: int) -> Iterator[Number]:
    """Yield the values at up to `steps` ratios above and below the start, rounded; none out of range."""
    for step in (*range(-steps, 0), *range(1, steps + 1)):
        if parameter.name in FROM_ABOVE:
            value = round(1 - float(f"{(1 - start) / RATIO**step:.{DIGITS}g}"), 12)
        else:
            value = float(f"{start * RATIO**step:.{DIGITS}g}")
        with contextlib.suppress(RequestError):
            yield parameter.checked(round(value) if parameter.form == "integer" else value, owner)


def check_names(objectives: Sequence[str], grids: Grids) -> None:
    """Raise RequestError for a grid that belongs to none of the objectives (with the nearest name)."""
    parameters = [place for objective in objectives for place in hyperparameters_of(objective)]
    known = dict.fromkeys(key for term, name in parameters for key in (name, f"{term}.{name}"))
    for key in grids:
        if key not in known and not _is_of_recipe(key):
            listed = ", ".join(name for name in known if "." not in name) or "no hyperparameter"
            raise RequestError(
                f"no objective here has '{key}' to make a grid of.{nearest(key, known)} They have: {listed};"
                f" and each setting of the recipe, such as {RECIPE}.learning_rate."
            )


def with_values(objective: str, axes: Axes, values: Sequence[Number]) -> str:
    """Return the objective with these values on its axes, as its canonical string.

    >>> axes = axes_of("cosine_softmax", Recipe(), {})
    >>> with_values("cosine_softmax", axes, [0.1, 0.5])
    'cosine_softmax(scale=0.5, temperature=0.1)'
    """
    chosen = dict(zip(axes, values, strict=True))
    terms = []
    for term in resolve(objective).terms:
        arguments = {name: chosen.get((term.name, name), value) for name, value in term.arguments.items()}
        terms.append(Spec(term.name, arguments))
    return resolve(" + ".join(map(str, terms))).canonical


def recipe_at(recipe: Recipe, axes: Axes, values: Sequence[Number]) -> Recipe:
    """Return a recipe with these values on its axes.

    >>> axes = axes_of("softmax", Recipe(), {"recipe.learning_rate": (1, 2), "recipe.rate_times_decay": (1,)})
    >>> changed = recipe_at(Recipe(), axes, [2, 1])
    >>> changed.learning_rate, changed.weight_decay
    (2.0, 0.5)
    """
    places = zip(axes, values, strict=True)
    changes: dict[str, Number] = {name: value for (owner, name), value in places if owner == RECIPE}
    if "rate_times_decay" in changes:
        rate = changes.get("learning_rate", recipe.learning_rate)
        changes["weight_decay"] = float(f"{changes.pop('rate_times_decay') / rate:.6g}")
    return recipe.changed(changes)


def settings_of(usual: Recipe, changed: Recipe) -> tuple[tuple[str, Any], ...]:
    """Return the settings in which a recipe differs from the usual one.

    >>> settings_of(Recipe(), Recipe(epochs=3)), settings_of(Recipe(), Recipe().changed({"mixup": 0.2}))
    ((('epochs', 3),), (('mixup', 0.2),))
    """
    settings = {
        each.name: getattr(changed, each.name)
        for each in dataclasses.fields(usual)
        if getattr(changed, each.name) != getattr(usual, each.name)
    }
    mixup = changed.augmentation.mixup
    if settings.get("augmentation") == dataclasses.replace(usual.augmentation, mixup=mixup):
        del settings["augmentation"]
        settings["mixup"] = mixup
    return tuple(settings.items())
