"""How many seeds a study needs to find a difference of a given size."""

from __future__ import annotations

import math
from collections.abc import Iterable

from penultimate.errors import RequestError
from penultimate.statistics.comparison import LEVEL
from penultimate.statistics.summary import numbers, summarise

POWER = 0.9
"""The usual target: nine studies in ten find a difference that exists."""
MOST_SEEDS = 10_000


def power(difference: float, spread: float, seeds: int, comparisons: int = 1, level: float = LEVEL) -> float:
    """Return the probability of finding a difference between two objectives that are compared within seeds.

    P(T > t), T noncentral t with n - 1 degrees of freedom and difference / spread * sqrt(n),
    t the quantile of Student's t at 1 - level / (2 comparisons)

    `spread` is the standard deviation, over seeds, of the difference within a seed (`pooled_spread`), in the
    same unit as `difference`. With several comparisons, the level is that of the first step of Holm's
    correction, which is the strictest. Raise RequestError for a spread that is not positive, fewer than two
    seeds, or a level outside (0, 1).

    >>> round(power(0.5, spread=0.265, seeds=9, comparisons=8), 3)
    0.938

    Student, 1908; Holm, 1979.
    """
    if not (math.isfinite(difference) and 0 < spread < math.inf):
        raise RequestError(
            f"a difference and the spread of such differences are expected; got {difference} and {spread}"
        )
    if seeds < 2 or comparisons < 1 or not 0 < level < 1:
        raise RequestError(
            "two seeds, one comparison and a level between 0 and 1 are the least for a test;"
            f" got {seeds}, {comparisons} and {level}"
        )
    from scipy.special import nctdtr, stdtrit

    degrees = seeds - 1
    quantile = float(stdtrit(degrees, 1 - level / (2 * comparisons)))
    expected = difference / spread * math.sqrt(seeds)
    found = 1 - float(nctdtr(degrees, expected, quantile))
    return found if math.isfinite(found) else float(expected > quantile)  # SciPy gives up this far out


def seeds_needed(
    difference: float,
    spread: float,
    comparisons: int = 1,
    aim: float = POWER,
    level: float = LEVEL,
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

    def enough(seeds: int) -> bool:
        return power(difference, spread, seeds, comparisons, level) >= aim

    if not enough(MOST_SEEDS):
        return None
    few, many = 1, MOST_SEEDS
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def pooled_spread(groups: Iterable[Iterable[float]]) -> float:
    """Return the pooled standard deviation within groups, such as each objective's differences from softmax.

    s^2 = sum_g sum_i (d_gi - mean_g)^2 / sum_g (n_g - 1)

    Raise RequestError if no group has two values.

    >>> pooled_spread([[0.0, 2.0], [5.0, 6.0, 7.0], [3.0]])
    1.1547...
    """
    summaries = [summarise(values) for group in groups if len(values := numbers(group, "differences")) > 1]
    if not summaries:
        raise RequestError("no group has the two values that show a spread")
    squares = math.fsum(s.standard_error**2 * s.n * (s.n - 1) for s in summaries)
    return math.sqrt(squares / sum(s.n - 1 for s in summaries))
