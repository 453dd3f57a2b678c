"""Sweeps: objectives of a study that differ in cosine softmax's temperature alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penultimate.errors import RequestError
from penultimate.registry import parse_sum

FEWEST = 3
"""Temperatures that make a sweep."""


def temperature_sweep(specs: Iterable[str]) -> tuple[tuple[float, str], ...]:
    """Cosine softmax alone at three or more temperatures: (temperature, spec), ascending; else nothing.

    They belong together where the loss is scaled by the temperature, as in the paper's sweep, or by one
    number.

    >>> temperature_sweep(f"cosine_softmax(scale={t}, temperature={t})" for t in (0.1, 0.05, 0.08))[0]
    (0.05, 'cosine_softmax(scale=0.05, temperature=0.05)')

    Kornblith et al., 2021, table 4.
    """
    families: dict[object, list[tuple[float, str]]] = {}
    for spec in specs:
        arguments = cosine_arguments(spec)
        temperature, scale = arguments.get("temperature"), arguments.get("scale", 1)
        if isinstance(temperature, int | float):
            family = "temperature" if scale == temperature else scale
            families.setdefault(family, []).append((float(temperature), spec))
    whole = [family for family in families.values() if len(family) >= FEWEST]
    whole.sort(key=len, reverse=True)
    return tuple(sorted(whole[0], key=lambda pair: pair[0])) if whole else ()


def compared(specs: Sequence[str]) -> tuple[str, ...]:
    """The objectives that are compared with each other: of a sweep none, or its first in place of it.

    >>> sweep = [f"cosine_softmax(scale={t}, temperature={t})" for t in (0.1, 0.05, 0.08)]
    >>> compared(["softmax", *sweep])
    ('softmax', 'cosine_softmax(scale=0.1, temperature=0.1)')
    >>> compared(["softmax", "cosine_softmax(scale=1, temperature=0.07)", *sweep])
    ('softmax', 'cosine_softmax(scale=1, temperature=0.07)')
    """
    sweep = [spec for _, spec in temperature_sweep(specs)]
    others = tuple(spec for spec in specs if spec not in sweep)
    if not sweep or any(cosine_arguments(spec) for spec in others):
        return others
    first = next(spec for spec in specs if spec in sweep)
    return tuple(spec for spec in specs if spec in others or spec == first)


def cosine_arguments(spec: str) -> dict[str, Any]:
    """The hyperparameters of cosine softmax alone; of anything else, nothing."""
    try:
        terms = parse_sum(spec)
    except RequestError:
        return {}
    return terms[0].arguments if len(terms) == 1 and terms[0].name == "cosine_softmax" else {}
