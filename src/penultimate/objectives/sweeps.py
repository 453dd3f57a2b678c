"""Sweeps over a hyperparameter: the temperature of cosine softmax, read from a spec."""

from __future__ import annotations

from penultimate.errors import RequestError
from penultimate.registry import parse_sum


def temperature_of(spec: str) -> float | None:
    """The temperature of a cosine softmax on its own; None for anything else.

    >>> temperature_of("cosine_softmax(scale=1, temperature=0.05)")
    0.05
    >>> temperature_of("cosine_softmax(temperature=0.05) + dropout(keep=0.8)") is None
    True
    """
    try:
        terms = parse_sum(spec)
    except RequestError:
        return None
    if len(terms) != 1 or terms[0].name != "cosine_softmax":
        return None
    temperature = terms[0].arguments.get("temperature")
    return float(temperature) if isinstance(temperature, int | float) else None
