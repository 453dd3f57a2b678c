"""What a relation would look like in a study whose objectives lie closer together, by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penultimate.errors import RequestError
from penultimate.statistics.correlation import spearman
from penultimate.statistics.lines import least_squares
from penultimate.statistics.summary import numbers

if TYPE_CHECKING:
    import numpy as np

DRAWS = 20_000
"""The number of simulated studies: a share of 1 in 100 is known to 0.07 in 100."""


@dataclass(frozen=True)
class Restricted:
    """The rank correlations of simulated studies.

    `median` is the middle one and `low` to `high` the central 95 % of them; `beyond_chance` is the share of
    studies with a two-sided p below 0.05; `as_high` and `as_low` are the shares whose rho is at least, and at
    most, the observed one.
    """

    median: float
    low: float
    high: float
    beyond_chance: float
    as_high: float
    as_low: float


def restricted_correlation(
    reference: tuple[Sequence[float], Sequence[float]],
    x: Sequence[float],
    observed: float,
    noise: float = 0.0,
    draws: int = DRAWS,
) -> Restricted | None:
    """Return what rho studies at `x` [n] would show if y followed the line and scatter of a reference.

    y_i = a + b x_i + s e_i + noise f_i,    e_i, f_i ~ N(0, 1),    rho = Spearman(x, y)

    a and b are those of least squares through the reference's points (x_r, y_r) [m], and s^2 is the sum of
    their squared residuals over m - 2. `noise` is in units of y. If x lies in a narrower range than x_r does,
    rho is nearer to zero although the relation is the same. The result is deterministic. Return None if
    the reference has fewer than three points or its x are equal, if there are fewer than four x, or if all x
    are equal. Raise RequestError for a value that is not finite, a negative noise, or no draw.

    >>> reference = [0.3, 0.4, 0.5, 0.6, 0.8], [76.0, 74.5, 71.0, 69.5, 60.0]
    >>> wide = restricted_correlation(reference, [0.3, 0.4, 0.5, 0.6, 0.8], observed=0.0)
    >>> narrow = restricted_correlation(reference, [0.35, 0.36, 0.37, 0.38, 0.39], observed=0.0)
    >>> wide.median, narrow.median
    (-1.0, -0.3)

    Kornblith et al., 2021, section 3.4, is the relation; restriction of range: Thorndike, 1949.
    """
    import numpy as np

    given, theirs = numbers(x, "values of x"), [numbers(of, "values of the reference") for of in reference]
    if not all(map(math.isfinite, (*given, *theirs[0], *theirs[1], observed, noise))) or noise < 0:
        raise RequestError(
            "a simulated study takes finite numbers and a noise of zero or more; got"
            f" x = {given}, a reference of {theirs}, rho = {observed!r} and a noise of {noise!r}"
        )
    if draws < 1:
        raise RequestError(f"the number of simulated studies is one or more; got {draws!r}")
    line = least_squares(*theirs)
    n, m = len(given), len(theirs[0])
    if line is None or m < 3 or n < 4 or len(set(given)) == 1:
        return None
    residuals = [y - line.height(at) for at, y in zip(*theirs, strict=True)]
    scatter = math.sqrt(math.fsum(r * r for r in residuals) / (m - 2) + noise * noise)
    heights = np.array([line.height(at) for at in given])
    simulated = heights + scatter * np.random.default_rng(0).standard_normal((draws, n))
    ranks = 2 * simulated.argsort(1, kind="stable").argsort(1) - (n - 1)
    places = np.array(given)
    own = np.sign(places[:, None] - places[None, :]).sum(1)
    rhos = np.round(ranks @ own / math.sqrt(float((own**2).sum()) * (n**3 - n) / 3), 12)
    low, middle, high = np.quantile(rhos, [0.025, 0.5, 0.975])
    return Restricted(
        float(middle),
        float(low),
        float(high),
        float((np.abs(rhos) >= _least_beyond_chance(given, ranks, rhos)).mean()),
        float((rhos >= round(observed, 12)).mean()),
        float((rhos <= round(observed, 12)).mean()),
    )


def _least_beyond_chance(x: list[float], ranks: np.ndarray, rhos: np.ndarray) -> float:
    """Return the smallest |rho| among simulated ones whose p is below 0.05, or infinity."""
    import numpy as np

    sizes, where = np.unique(np.abs(rhos), return_index=True)
    few, enough = -1, len(sizes)
    while enough - few > 1:
        middle = (few + enough) // 2
        is_beyond = spearman(x, [float(rank) for rank in ranks[where[middle]]]).p < 0.05
        few, enough = (few, middle) if is_beyond else (middle, enough)
    return float(sizes[enough]) if enough < len(sizes) else math.inf
