"""The sweep over the temperature of cosine softmax: its specs, and the temperature read back from a spec."""

from __future__ import annotations

from penultimate.errors import RequestError
from penultimate.specs import Spec, parse_sum


def swept(temperature: float) -> str:
    """Return the spec of cosine softmax in the paper's sweep, whose loss is scaled by the temperature.

    >>> swept(0.05)
    'cosine_softmax(scale=0.05, temperature=0.05)'
    """
    return str(Spec("cosine_softmax", {"scale": temperature, "temperature": temperature}))


def temperature_of(spec: str) -> float | None:
    """Return the temperature that a spec gives cosine softmax, or None if it is not cosine softmax alone.

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
