"""How many seeds a study needs to find a difference of a given size."""

from __future__ import annotations

import math
from bisect import bisect_left

from penultimate.errors import RequestError
from penultimate.statistics.comparison import LEVEL

POWER = 0.9
"""The usual target: nine studies in ten find a difference that exists."""
MOST_SEEDS = 10_000


def power(difference: float, spread: float, seeds: int, comparisons: int = 1, level: float = LEVEL) -> float:
    """Return the probability of finding a difference between two objectives that are compared within seeds.

    P(T > t), T noncentral t with n - 1 degrees of freedom and difference / spread * sqrt(n),
    t the quantile of Student's t at 1 - level / (2 comparisons)

    `spread` is the standard deviation, over seeds, of the difference within a seed, in the same unit as
    `difference`. With several comparisons, the level is that of the first step of Holm's correction, which is
    the strictest. Raise RequestError for a spread that is not positive, fewer than two seeds, or a level
    outside (0, 1).

    >>> round(power(0.5, spread=0.265, seeds=9, comparisons=8), 3)
    0.938

    Student, 1908; Holm, 1979.
    """
    from scipy.special import nctdtr, stdtrit

    if not (math.isfinite(difference) and 0 < spread < math.inf and seeds >= 2 and comparisons >= 1):
        raise RequestError(
            "a test needs a difference, a positive spread of such differences, two seeds and one comparison;"
            f" got {difference}, {spread}, {seeds} and {comparisons}"
        )
    if not 0 < level < 1:
        raise RequestError(f"the level of a test lies between 0 and 1; got {level}")
    quantile = float(stdtrit(seeds - 1, 1 - level / (2 * comparisons)))
    expected = difference / spread * math.sqrt(seeds)
    found = 1 - float(nctdtr(seeds - 1, expected, quantile))
    return found if math.isfinite(found) else float(expected > quantile)  # SciPy gives up this far out


def seeds_needed(
    difference: float, spread: float, comparisons: int = 1, aim: float = POWER, level: float = LEVEL
) -> int | None:
    """Return the smallest number of seeds whose `power` reaches the aim, or None if ten thousand do not.

    Raise RequestError for a difference that is not positive, for an aim outside (0, 1), and as `power` does.

    >>> seeds_needed(0.5, spread=0.265, comparisons=8), seeds_needed(0.5, spread=0.486, comparisons=8)
    (9, 20)
    """
    if not difference > 0 or not 0 < aim < 1:
        raise RequestError(
            f"a difference above 0 and an aim between 0 and 1 are expected; got {difference} and {aim}"
        )
    found = 2 + bisect_left(
        range(2, MOST_SEEDS + 1),
        True,
        key=lambda seeds: power(difference, spread, seeds, comparisons, level) >= aim,
    )
    return found if found <= MOST_SEEDS else None
