"""The axes of a tuning: the values of a hyperparameter that are tried, and those between and beyond them.

Values are spaced geometrically: by equal ratios of the value itself or, for those in `FROM_ABOVE`, of its
distance from the upper end of the range (a keep probability of 0.9 is doubled to 0.8). If a given grid
contains zero or both signs, its spacing is arithmetic.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penultimate import specs
from penultimate.checks import is_number
from penultimate.data.augmentation.settings import MOST_MIXUP
from penultimate.errors import RequestError, nearest
from penultimate.objectives.hyperparameters import REQUIRED, Hyperparameter, Interval
from penultimate.objectives.presets import hyperparameters_of_term, resolve
from penultimate.specs import Spec
from penultimate.training.recipe import Recipe

Number = int | float

RATIO = 2.0
"""The ratio between neighbours of a default grid."""
RUNGS, RUNGS_OF_SEVERAL = 5, 3
"""The number of values of a default grid: for a single axis, and for each of several."""
FROM_ABOVE = ("keep", "momentum")
DIGITS = 3
"""Significant digits of values that the search computes; given values are left as they are."""
FINEST = 40
"""The most parts into which the smallest step of a grid may be divided."""

RECIPE = "recipe"
RECIPE_SETTINGS = {
    setting.name: setting
    for setting in (
        Hyperparameter("learning_rate", None, "the peak of the learning rate", "η", Interval(0)),
        Hyperparameter("weight_decay", None, "the weight decay", "decay", Interval(0, closed="left")),
        Hyperparameter(
            "exposure", None, "the exposure to weight decay", "exposure", Interval(0, closed="left")
        ),
        Hyperparameter(
            "head_decay", None, "the final layer's weight decay", "head decay", Interval(0, closed="left")
        ),
        Hyperparameter(
            "rate_times_decay", None, "learning rate x weight decay", "η × decay", Interval(0, closed="left")
        ),
        Hyperparameter("mixup", None, "Mixup's alpha", "Mixup's α", Interval(0, MOST_MIXUP, "both")),
        Hyperparameter("momentum", None, "of the optimiser", "momentum", Interval(0, 1)),
        Hyperparameter("warmup", None, "a share of all steps", "warm-up", Interval(0, 1, "both")),
        Hyperparameter("final_fraction", None, "of the peak", "final fraction", Interval(0, 1, "right")),
        Hyperparameter("averaging_window", None, "a share of all steps", "window", Interval(0, 1, "both")),
        Hyperparameter("batch_size", None, "images a step", "batch", Interval(2, closed="left"), "integer"),
        Hyperparameter("epochs", None, "of training", "epochs", Interval(1, closed="left"), "integer"),
    )
}
"""The settings of a recipe that can be tuned, with their ranges.

The weight decay follows from "rate_times_decay", divided by the learning rate (the lambda of the paper's ICLR
version); "mixup" is a setting of the augmentation.
"""
DECAYS = ("rate_times_decay", "weight_decay", "exposure")
"""The settings of a recipe each of which fixes the weight decay."""


def tunable_value(recipe: Recipe, name: str) -> Number | None:
    """Return the value of one of RECIPE_SETTINGS; None where the recipe leaves it open.

    >>> tunable_value(Recipe(learning_rate=0.5, weight_decay=0.25), "rate_times_decay")
    0.125
    """
    if name == "mixup":
        return recipe.augmentation.mixup
    if name == "rate_times_decay":
        return recipe.learning_rate * recipe.weight_decay
    value: Number | None = getattr(recipe, name)
    return value


def kind_of(objective: str) -> tuple[str, ...]:
    """Return the names of an objective's terms, which identify it whatever its hyperparameters are.

    >>> kind_of("sigmoid + dropout(keep=0.8)")
    ('dropout', 'sigmoid')
    """
    return tuple(term.name for term in resolve(objective).terms)


@dataclass(frozen=True)
class Axis:
    """One hyperparameter: the ascending grid of values that is tried first, and its starting value.

    >>> axis = make_axis("keep", hyperparameters_of_term("dropout")[0], "dropout", 0.9, rungs=5)
    >>> axis.grid
    (0.6, 0.8, 0.9, 0.95, 0.975)
    >>> axis.between(0.8, 0.9), axis.beyond(0.6, 0.8), axis.beyond(0.2, 0.6)
    (0.859, 0.2, None)
    """

    key: str
    parameter: Hyperparameter
    owner: str
    start: Number
    grid: tuple[Number, ...]

    def __str__(self) -> str:
        return f"{self.key} from {', '.join(map(repr, self.grid))}"

    @property
    def centre(self) -> Number:
        """The value of the grid at which the search begins: the one nearest to the start."""
        return min(self.grid, key=lambda value: (abs(value - self.start), value))

    @property
    def from_above(self) -> bool:
        """Whether values are spaced by their distance from the upper end of the range."""
        return self.parameter.name in FROM_ABOVE

    @property
    def _scale(self) -> tuple[float, int] | None:
        """(origin, sign): values are origin + sign e^t, t evenly spaced; None for arithmetic spacing."""
        if self.from_above:
            end = self.parameter.interval.high
            return (end, -1) if self.grid[-1] < end else None
        signs = {(value > 0) - (value < 0) for value in self.grid}
        return (0.0, signs.pop()) if len(signs) == 1 and 0 not in signs else None

    def position(self, value: Number) -> float:
        """Return the position of a value on an ascending scale on which equal steps are equal ratios."""
        if self._scale is None:
            return float(value)
        origin, sign = self._scale
        return sign * math.log(sign * (value - origin))

    @property
    def step(self) -> float:
        """The smallest step of the grid on the scale of `position`; 1 for a grid of one value."""
        return min((b - a for a, b in itertools.pairwise(map(self.position, self.grid))), default=1.0)

    def between(self, one: Number, other: Number) -> Number | None:
        """Return the value halfway between two, or None if the two are too close for another value."""
        low, high = sorted((self.position(one), self.position(other)))
        if len(self.grid) < 2 or (high - low) / 2 < self.step / FINEST:
            return None
        middle = self._value((low + high) / 2)
        return middle if middle is not None and min(one, other) < middle < max(one, other) else None

    def beyond(self, edge: Number, inner: Number) -> Number | None:
        """Return the value as far outside `edge` as `inner` is inside it, or None if it is out of range."""
        further = self._value(2 * self.position(edge) - self.position(inner))
        return further if further is not None and (further - edge) * (edge - inner) > 0 else None

    def _value(self, position: float) -> Number | None:
        """Return the rounded value at a position, or None outside the range."""
        try:
            if self._scale is None:
                value = float(f"{position:.6g}")
            else:
                origin, sign = self._scale
                value = round(origin + sign * float(f"{math.exp(sign * position):.{DIGITS}g}"), 12)
            if self.parameter.form == "integer":
                value = round(value)
            checked: Number = self.parameter.checked(value, self.owner)
            return checked
        except (RequestError, OverflowError):
            return None


def make_axis(
    key: str,
    parameter: Hyperparameter,
    owner: str,
    start: Number,
    rungs: int = RUNGS,
    given: Sequence[Number] | None = None,
) -> Axis:
    """Return an axis with a given grid, that of the hyperparameter, or `rungs` values around the start.

    Values around the start are spaced by RATIO. If no ratio leads anywhere from the start, as from 0, the
    start alone is the grid. Raises RequestError for a given value that is out of range (with the range) or
    occurs twice.
    """
    if given is not None:
        values = tuple(sorted(parameter.checked(value, owner) for value in given))
        for one, other in itertools.pairwise(values):
            if one == other:
                raise RequestError(f"the grid of {key} names {one!r} twice; name it once")
        return Axis(key, parameter, owner, start, values)
    if parameter.grid:
        return Axis(key, parameter, owner, start, tuple(sorted({*parameter.grid, start})))
    alone = Axis(key, parameter, owner, start, (start,))
    if alone._scale is None:
        return alone
    centre = alone.position(start)
    steps = (rung for rung in range(-(rungs // 2), rungs // 2 + 1) if rung)
    ladder = {start, *(alone._value(centre + step * math.log(RATIO)) for step in steps)}
    return dataclasses.replace(alone, grid=tuple(sorted(value for value in ladder if value is not None)))


def parse_grids(texts: Sequence[str]) -> dict[str, tuple[Number, ...]]:
    """Return the grids of a command line: {name: values}, each name once.

    >>> parse_grids(["temperature=0.04,0.05", "recipe.learning_rate=1"])
    {'temperature': (0.04, 0.05), 'recipe.learning_rate': (1,)}
    """
    grids: dict[str, tuple[Number, ...]] = {}
    for text in texts:
        name, equals, listed = (part.strip() for part in text.partition("="))
        if not equals or not name or not listed:
            raise RequestError(f"--grid wants name=value,value, such as temperature=0.04,0.05; got '{text}'")
        if name in grids:
            raise RequestError(f"--grid is given twice for '{name}'; give all its values at once")
        grids[name] = tuple(_number(part.strip(), text) for part in listed.split(","))
    return grids


def _number(text: str, whole: str) -> Number:
    try:
        value = specs.literal(text)
    except specs.NOT_LITERAL:
        value = None
    if not is_number(value):
        raise RequestError(f"--grid {whole}: '{text}' is not a number; a grid holds only numbers")
    return value


def hyperparameters_of(objective: str) -> dict[tuple[str, str], tuple[Hyperparameter, Number]]:
    """Return the numeric hyperparameters of an objective: {(term, name): (hyperparameter, value)}.

    >>> [(name, value) for (_, name), (_, value) in hyperparameters_of("dropout + logit_norm").items()]
    [('keep', 0.7), ('temperature', 0.04)]
    """
    numeric: dict[tuple[str, str], tuple[Hyperparameter, Number]] = {}
    for term in resolve(objective).terms:
        for parameter in hyperparameters_of_term(term.name):
            value = term.arguments.get(parameter.name, REQUIRED)
            if isinstance(value, int | float) and not isinstance(value, bool):
                numeric[term.name, parameter.name] = parameter, value
    return numeric


def axes_of(objective: str, recipe: Recipe, grids: Mapping[str, Sequence[Number]]) -> tuple[Axis, ...]:
    """Return every axis of an objective: its hyperparameters, then the recipe's settings that have a grid.

    `grids` holds the given grids by name ("temperature", "dropout.keep", "recipe.learning_rate"); those of
    other objectives are ignored. Raises RequestError for a recipe setting that cannot be tuned.
    """
    parameters = hyperparameters_of(objective)
    names = [name for _, name in parameters]
    decays = [f"{RECIPE}.{name}" for name in DECAYS if f"{RECIPE}.{name}" in grids]
    if len(decays) > 1:
        raise RequestError(f"{' and '.join(decays)} both fix the weight decay; make a grid of one of them")
    if f"{RECIPE}.rate_times_decay" in grids and recipe.exposure is not None:
        raise RequestError(
            f"the recipe's exposure, {recipe.exposure:g}, fixes the weight decay, so that"
            f" {RECIPE}.rate_times_decay changes nothing; make a grid of {RECIPE}.exposure"
        )
    planned: list[tuple[str, Hyperparameter, str, Number, Sequence[Number] | None]] = []
    for (term, name), (parameter, value) in parameters.items():
        key = name if names.count(name) == 1 else f"{term}.{name}"
        planned.append((key, parameter, term, value, grids.get(f"{term}.{name}", grids.get(name))))
    for key in grids:
        if not key.startswith(f"{RECIPE}."):
            continue
        name = key.removeprefix(f"{RECIPE}.")
        if name not in RECIPE_SETTINGS:
            raise RequestError(
                f"no setting '{RECIPE}.{name}' that can be tuned.{nearest(name, RECIPE_SETTINGS)}"
                f" These can: {', '.join(RECIPE_SETTINGS)}."
            )
        start = tunable_value(recipe, name)
        if start is None:  # the recipe leaves it open: the search sets out from the middle of the grid
            start = sorted(grids[key])[len(grids[key]) // 2]
        planned.append((key, RECIPE_SETTINGS[name], RECIPE, start, grids[key]))
    several = sum(given is None or len(given) > 1 for *_, given in planned) > 1
    rungs = RUNGS_OF_SEVERAL if several else RUNGS
    return tuple(
        make_axis(key, parameter, owner, start, rungs, given)
        for key, parameter, owner, start, given in planned
    )


def check_names(objectives: Sequence[str], grids: Mapping[str, Sequence[Number]]) -> None:
    """Raise RequestError for a grid that belongs to none of the objectives (with the nearest name)."""
    parameters = [place for objective in objectives for place in hyperparameters_of(objective)]
    known = dict.fromkeys(key for term, name in parameters for key in (name, f"{term}.{name}"))
    for key in grids:
        if key not in known and not key.startswith(f"{RECIPE}."):
            listed = ", ".join(name for name in known if "." not in name) or "no hyperparameter"
            raise RequestError(
                f"no objective here has '{key}' to make a grid of.{nearest(key, known)} They have: {listed};"
                f" and each setting of the recipe, such as {RECIPE}.learning_rate."
            )


def with_values(objective: str, axes: Sequence[Axis], values: Sequence[Number]) -> str:
    """Return the objective with these values on its axes, as its canonical string.

    >>> axes = axes_of("cosine_softmax", Recipe(), {})
    >>> with_values("cosine_softmax", axes, [0.1, 0.5])
    'cosine_softmax(scale=0.5, temperature=0.1)'
    """
    chosen = {(axis.owner, axis.parameter.name): value for axis, value in zip(axes, values, strict=True)}
    terms = []
    for term in resolve(objective).terms:
        arguments = {name: chosen.get((term.name, name), value) for name, value in term.arguments.items()}
        terms.append(Spec(term.name, arguments))
    return resolve(" + ".join(map(str, terms))).canonical


def settings_of(
    recipe: Recipe, adjusted: Recipe, axes: Sequence[Axis], values: Sequence[Number]
) -> tuple[tuple[str, Number], ...]:
    """Return what these values and the objective's own recipe change in the recipe.

    Each value has its type in the recipe, so that 1 and 1.0 are one setting.

    >>> usual = Recipe(learning_rate=1.0)
    >>> axes = axes_of("softmax", usual, {"recipe.learning_rate": (1, 2)})
    >>> settings_of(usual, Recipe(learning_rate=1.0, epochs=3), axes, [2])
    (('epochs', 3), ('learning_rate', 2.0))
    >>> settings_of(usual, usual, axes, [1])
    ()
    """
    chosen = {field.name: getattr(adjusted, field.name) for field in dataclasses.fields(recipe)}
    for axis, value in zip(axes, values, strict=True):
        if axis.owner == RECIPE:
            usual = tunable_value(recipe, axis.parameter.name)
            chosen[axis.parameter.name] = float(value) if isinstance(usual, float) else value
    if "rate_times_decay" in chosen:
        decay = chosen.pop("rate_times_decay") / chosen["learning_rate"]
        chosen["weight_decay"] = float(f"{decay:.6g}")
    return tuple((name, value) for name, value in chosen.items() if value != tunable_value(recipe, name))
