"""Checks of what a plug-in's metric or probe returns, shared by `penultimate check` and by studies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from penultimate.errors import PenultimateError

if TYPE_CHECKING:
    import numpy.typing as npt


class WrongError(PenultimateError):
    """Description of what is wrong with a plug-in and of how to mend it."""


def kind_of(value: Any) -> str:
    """Return words for a value: "None", or its type.

    >>> kind_of(None), kind_of(1.5)
    ('None', 'a value of type float')
    """
    return "None" if value is None else f"a value of type {type(value).__name__}"


def numbers(name: str, answer: Any, where: str) -> dict[str, float]:
    """Return a metric's result as {name: float}; a single float is filed under the metric's name.

    `where` ends the message about a number that is not finite. Raises WrongError for a result that is neither
    a finite number nor a mapping of names to such numbers.

    >>> numbers("scale", {"mean": 1.0, "largest": 2.5}, "here"), numbers("scale", 3.0, "here")
    ({'mean': 1.0, 'largest': 2.5}, {'scale': 3.0})
    """
    named = dict(answer) if isinstance(answer, Mapping) else {name: answer}
    for part, number in named.items():
        if not isinstance(part, str) or not part.isidentifier():
            raise WrongError(f"{name} names a value {part!r}; a name must be a Python identifier.")
        if isinstance(number, bool) or not isinstance(number, Real):
            lone = hasattr(number, "item") and math.prod(getattr(number, "shape", ())) == 1
            hint = "; call .item() on it" if lone else ""
            raise WrongError(
                f"{name} returns {kind_of(number)}{hint}; a metric is a float, or"
                " {name: float} for several."
            )
        if not math.isfinite(number):
            which = name if part == name else f"{name}'s '{part}'"
            raise WrongError(
                f"{which} is {float(number)} {where}; where a value does not exist, raise"
                " penultimate.metrics.UndefinedError."
            )
    if not named:
        raise WrongError(f"{name} returns an empty dictionary; it measures nothing.")
    return {part: float(number) for part, number in named.items()}


def predictions(name: str, answer: Any, count: int) -> npt.NDArray[Any]:
    """Return a probe's predictions for `count` examples: integers [n]. Raises WrongError for anything else.

    >>> predictions("nearest_mean", [3, 4], 2).tolist()
    [3, 4]
    """
    import numpy as np

    predicted = np.asarray(answer)
    if predicted.shape != (count,) or predicted.dtype.kind not in "iu":
        raise WrongError(
            f"{name}.predict returns {predicted.dtype} {list(predicted.shape)}; return a label, an integer,"
            f" for each example: [n] = [{count}]."
        )
    return predicted
