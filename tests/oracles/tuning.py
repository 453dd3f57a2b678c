"""The search for hyperparameters, literally: one axis, exponents of two, one cell after the other."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

Score = Callable[[Fraction], float]


def one_axis_search(
    score: Score, budget: int, expansions: int, lowest: int = -(10**6), highest: int = 10**6
) -> tuple[Fraction, set[Fraction]]:
    """The best exponent and all that were tried, of a grid of five around 0 with neighbours one apart.

    `score` gives no two exponents the same; exponents outside lowest..highest do not exist.
    """
    tried = {}
    for whole in (-2, -1, 0, 1, 2):
        if lowest <= whole <= highest:
            tried[Fraction(whole)] = score(Fraction(whole))
    expanded = 0
    while expanded < expansions and len(tried) < budget:
        best = max(tried, key=lambda one: tried[one])
        if best == max(tried) and best + 1 <= highest:
            tried[best + 1] = score(best + 1)
        elif best == min(tried) and best - 1 >= lowest:
            tried[best - 1] = score(best - 1)
        else:
            break
        expanded += 1
    while len(tried) < budget:
        best = max(tried, key=lambda one: tried[one])
        above = [one for one in tried if one > best]
        below = [one for one in tried if one < best]
        sides = ([min(above)] if above else []) + ([max(below)] if below else [])
        sides.sort(key=lambda side: tried[side], reverse=True)
        middles = [(best + side) / 2 for side in sides if abs(best - side) / 2 >= Fraction(1, 40)]
        if not middles:
            break
        for middle in middles:
            if len(tried) < budget:
                tried[middle] = score(middle)
    return max(tried, key=lambda one: tried[one]), set(tried)


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean and standard error: the sample's standard deviation over the root of its size."""
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, (variance / len(values)) ** 0.5
