"""How much of the spread of estimates each choice behind them explains, where all choices are crossed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from penultimate.errors import RequestError
from penultimate.statistics.summary import mean, numbers


def crossed_part(levels: Sequence[tuple[str, ...]]) -> list[int]:
    """Return the places of estimates that cross all their choices, given the level of each choice.

    While a combination of levels is missing, the level that lacks the greatest share of its combinations is
    left out; of equal ones the last. What is left has every combination of its levels once. Raise
    RequestError if two estimates have the same levels, or unequal numbers of choices.

    >>> crossed_part([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "x")])
    [0, 1, 2, 3]
    """
    if len({*levels}) < len(levels) or len({len(each) for each in levels}) > 1:
        raise RequestError("estimates differ in a level of some choice, and have as many choices; got others")
    kept = [*range(len(levels))]
    while kept:
        of_choices = [list(dict.fromkeys(of)) for of in zip(*(levels[at] for at in kept), strict=True)]
        whole = math.prod(map(len, of_choices))
        if len(kept) == whole:
            break
        lacking = {
            (choice, level): 1 - sum(levels[at][choice] == level for at in kept) * len(of) / whole
            for choice, of in enumerate(of_choices)
            for level in of
            if len(of) > 1
        }
        choice, level = max(reversed(lacking), key=lambda one: round(lacking[one], 12))
        kept = [at for at in kept if levels[at][choice] != level]
    return kept


def explained_shares(
    estimates: Iterable[float], levels: Mapping[str, Sequence[str]]
) -> dict[str, float] | None:
    """Return the share of the variance of estimates y [n] that each choice explains (eta squared).

    eta²_c = sum_l n_l (m_l - M)^2 / sum_i (y_i - M)^2

    m_l is the mean of the n_l estimates made with level l of choice c, and M that of all. In a crossed design
    the shares of different choices do not overlap; what they leave belongs to choices together. Return None
    if the estimates do not vary. Raise RequestError if a choice has another number of levels than there are
    estimates, if the choices are not crossed, or if an estimate is not finite.

    >>> explained_shares([1, 2, 5, 6], {"probe": ("a", "b", "a", "b"), "layer": ("x", "x", "y", "y")})
    {'probe': 0.058..., 'layer': 0.941...}

    Fisher, 1925; of specifications: Simonsohn, Simmons and Nelson, 2020; Steegen et al., 2016.
    """
    values = numbers(estimates, "estimates")
    if any(len(of) != len(values) for of in levels.values()) or not all(map(math.isfinite, values)):
        counts = {name: len(of) for name, of in levels.items()}
        raise RequestError(
            f"every choice has a level for each finite estimate; got {counts} for {len(values)} estimates"
        )
    rows = list(zip(*levels.values(), strict=True))
    if crossed_part(rows) != [*range(len(rows))]:
        missing = {*itertools.product(*map(dict.fromkeys, levels.values()))} - {*rows}
        raise RequestError(f"the choices are crossed; got no estimate for {min(missing)}")
    if not values:
        return None
    centre = mean(values)
    whole = math.fsum((value - centre) ** 2 for value in values)
    if whole <= 1e-24 * max(map(abs, values)) ** 2 * len(values):
        return None
    shares = {}
    for name, of in levels.items():
        groups = {level: [y for y, own in zip(values, of, strict=True) if own == level] for level in of}
        shares[name] = math.fsum(len(y) * (mean(y) - centre) ** 2 for y in groups.values()) / whole
    return shares
