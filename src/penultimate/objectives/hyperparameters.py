"""Hyperparameters as data: their names, defaults and ranges, and the check of values that a user gives."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from penultimate.errors import RequestError, nearest, unknown

REQUIRED: Any = inspect.Parameter.empty
INTERVAL = re.compile(r"([\[(])\s*([^\s,]+)\s*,\s*([^\s,]+)\s*([\])])")
Form: TypeAlias = Literal["number", "integer", "any"]


@dataclass(frozen=True)
class Interval:
    """The real numbers between two ends, each closed (included) or open.

    >>> keep = Interval(0, 1, closed="right")
    >>> str(keep), 0.0 in keep, 1.0 in keep
    ('(0, 1]', False, True)
    """

    low: float = -math.inf
    high: float = math.inf
    closed: Literal["neither", "left", "right", "both"] = "neither"

    @classmethod
    def read(cls, text: str) -> Interval:
        """Return the interval that `str` writes; raise RequestError for other text.

        >>> Interval.read("[0, inf)")
        Interval(low=0.0, high=inf, closed='left')
        """
        found = INTERVAL.fullmatch(text.strip()) if isinstance(text, str) else None
        try:
            low, high = (float(end) for end in found.group(2, 3)) if found else (math.nan, math.nan)
        except ValueError:
            low = high = math.nan
        if found is None or not low < high:
            raise RequestError(f"a range is written as '[0, inf)' or '(0, 1]', got {text!r}")
        ends: dict[str, Literal["neither", "left", "right", "both"]] = {
            "()": "neither",
            "[)": "left",
            "(]": "right",
            "[]": "both",
        }
        return cls(low, high, ends[found[1] + found[4]])

    def __contains__(self, value: float) -> bool:
        above = value >= self.low if self.closed in ("left", "both") else value > self.low
        below = value <= self.high if self.closed in ("right", "both") else value < self.high
        return above and below

    def __str__(self) -> str:
        left = "[" if self.closed in ("left", "both") else "("
        right = "]" if self.closed in ("right", "both") else ")"
        return f"{left}{self.low:g}, {self.high:g}{right}"


@dataclass(frozen=True)
class Hyperparameter:
    """One setting of an objective; `default` is the paper's ImageNet choice, `symbol` is its letter there.

    `grid` holds the values that a search tries first; without one they are spaced around the start. A
    hyperparameter with `choices` takes one of these words, and a spec does not name it at its default.
    """

    name: str
    default: Any
    meaning: str = ""
    symbol: str = ""
    interval: Interval = Interval()
    form: Form = "number"
    grid: tuple[int | float, ...] = ()
    choices: tuple[str, ...] = ()

    def checked(self, value: Any, owner: str) -> Any:
        """Return the value in canonical form: an integral float becomes an integer, so 1.0 and 1 are equal.

        Raise RequestError for a value of the wrong type or out of range.

        >>> Hyperparameter("keep", 0.7, interval=Interval(0, 1, "right")).checked(1.0, "dropout")
        1
        """
        if self.choices and value not in self.choices:
            raise unknown(f"{self.name} of {owner}", str(value), self.choices)
        if self.form == "any" or self.choices:
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._refused(value, owner)
        if self.form == "integer" and not isinstance(value, int):
            raise self._refused(value, owner)
        try:
            in_range = math.isfinite(value) and float(value) in self.interval
        except OverflowError:  # an integer beyond the largest float
            in_range = False
        if not in_range:
            raise self._refused(value, owner)
        if self.form == "integer":
            return value
        return int(value) if value == int(value) and abs(value) < 1e15 else float(value)

    def _refused(self, value: Any, owner: str) -> RequestError:
        expected = "an integer" if self.form == "integer" else "a number"
        where = "" if self.interval == Interval() else f" in {self.interval}"
        meaning = f" ({self.meaning})" if self.meaning else ""
        return RequestError(f"{owner}: {self.name} must be {expected}{where}{meaning}, got {value!r}")


def bind(
    owner: str, known: Sequence[Hyperparameter], given: Mapping[str, Any], called: str = "hyperparameter"
) -> dict[str, Any]:
    """Return the value of every hyperparameter of `owner` in declared order: the given one or the default.

    `called` is the word for a hyperparameter in errors; those of measurements and architectures are called
    settings. Raise RequestError for a name that `owner` does not have, for a value of the wrong type or out
    of range, and for a missing required value.

    >>> bind("dropout", [Hyperparameter("keep", 0.7)], {})
    {'keep': 0.7}
    >>> bind("dropout", [Hyperparameter("keep", 0.7)], {"kep": 0.5})
    Traceback (most recent call last):
    penultimate.errors.RequestError: dropout has no hyperparameter 'kep'. Did you mean 'keep'? Known: keep.
    """
    names = [hyperparameter.name for hyperparameter in known]
    for name in given:
        if name not in names:
            known_names = ", ".join(names) or "none"
            raise RequestError(
                f"{owner} has no {called} '{name}'.{nearest(name, names)} Known: {known_names}."
            )
    bound = {}
    for hyperparameter in known:
        value = given.get(hyperparameter.name, hyperparameter.default)
        if value is REQUIRED:
            raise RequestError(
                f"{owner}: {hyperparameter.name} has no default; write {owner}({hyperparameter.name}=...)"
            )
        bound[hyperparameter.name] = hyperparameter.checked(value, owner)
    return bound


def of_function(function: Callable[..., Any], inputs: int | None = None) -> tuple[Hyperparameter, ...]:
    """Return the hyperparameters of a plug-in: the keyword-only arguments of its signature.

    If the number of its `inputs` is given, they are all the arguments after the inputs. A numeric default
    requires a number, and an `int` annotation requires an integer; without either, any value is accepted.

    >>> def focal(logits, targets, *, gamma=2.0, classes: int = 3, mode="hard"): ...
    >>> [(h.name, h.default, h.form) for h in of_function(focal)]
    [('gamma', 2.0, 'number'), ('classes', 3, 'integer'), ('mode', 'hard', 'any')]
    >>> [h.name for h in of_function(lambda bank, power=2.0, *, root=1: ..., inputs=1)]
    ['power', 'root']
    """
    hyperparameters = []
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        keyword_only = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        named = keyword_only or parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        if not (keyword_only if inputs is None else named and place >= inputs):
            continue
        default = parameter.default
        form: Form = "any"
        if parameter.annotation in (int, "int"):
            form = "integer"
        elif parameter.annotation in (float, "float") or type(default) in (int, float):
            form = "number"
        hyperparameters.append(Hyperparameter(parameter.name, default, form=form))
    return tuple(hyperparameters)


def stated(
    owner: str, known: Sequence[Hyperparameter], facts: Mapping[str, Any]
) -> tuple[Hyperparameter, ...]:
    """Return hyperparameters with the `ranges` and `grids` that a plug-in states of them.

    Raise RequestError for a name that is none of its hyperparameters, for a range that cannot be read, and
    for a value of a grid that is out of range.

    >>> facts = {"ranges": {"gamma": "[0, inf)"}, "grids": {"gamma": (1, 2, 5)}}
    >>> (gamma,) = stated("focal", [Hyperparameter("gamma", 2.0)], facts)
    >>> gamma.checked(-1, "focal")
    Traceback (most recent call last):
    penultimate.errors.RequestError: focal: gamma must be a number in [0, inf), got -1
    """
    ranges, grids = facts.get("ranges", {}), facts.get("grids", {})
    names = [hyperparameter.name for hyperparameter in known]
    for what, of in (("range", ranges), ("grid", grids)):
        for name in of:
            if name not in names:
                listed = ", ".join(names) or "none"
                raise RequestError(
                    f"{owner} states a {what} of '{name}', which is none of its hyperparameters."
                    f"{nearest(name, names)} They are: {listed}."
                )
    made = []
    for hyperparameter in known:
        name = hyperparameter.name
        if name in ranges:
            hyperparameter = dataclasses.replace(hyperparameter, interval=Interval.read(ranges[name]))
        grid = tuple(hyperparameter.checked(value, owner) for value in grids.get(name, ()))
        made.append(dataclasses.replace(hyperparameter, grid=grid))
    return tuple(made)
