"""Confidence intervals of a proportion, such as an accuracy, and of a mean of several proportions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penultimate.errors import RequestError
from penultimate.statistics.comparison import LEVEL

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def proportion_interval(right: float, of: float) -> tuple[float, float]:
    """Return the two ends of the exact interval of a proportion, given `right` successes in `of` trials.

    P(X >= right | lower) = P(X <= right | upper) = (1 - level) / 2,    X binomial of `of` trials

    with level 0.95. The interval covers the true proportion at least as often, whatever the count. Counts
    need not be whole: they may be those of an effective sample size. Raise RequestError for counts without
    0 <= right <= of.

    >>> [round(end, 3) for end in proportion_interval(31, 31)]
    [0.888, 1.0]
    >>> [round(end, 3) for end in proportion_interval(5, 20)]
    [0.087, 0.491]

    Clopper and Pearson, 1934.
    """
    from scipy.special import betainccinv, betaincinv

    if not 0 <= right <= of:
        raise RequestError(f"an interval needs 0 <= right <= of; got {right} and {of}")
    tail, wrong = LEVEL / 2, of - right
    lower = float(betaincinv(right, wrong + 1, tail)) if right > 1e-12 else 0.0
    upper = float(betainccinv(right + 1, wrong, tail)) if wrong > 1e-12 else 1.0
    return lower, upper


def mean_interval(
    shares: Sequence[float], counts: Sequence[float], weights: Sequence[float]
) -> tuple[float, float]:
    """Return an interval for a weighted mean of independent proportions, such as accuracies on several tasks.

    With shares x_g / n_g of k parts and weights w_g that sum to 1,

    sum_g w_g p_g +- z sqrt(sum_g w_g^2 p_g (1 - p_g) / (m_g - 1)),  m_g = n_g + 4/k,  p_g = (x_g + 2/k) / m_g

    Two more successes and failures, shared among the parts, keep the interval right where counts are small;
    m_g - 1 keeps it right where there are many small parts, such as classes. A single part has its exact
    interval.

    >>> [round(end, 3) for end in mean_interval([1.0, 1.0], [31, 4], [0.5, 0.5])]
    [0.736, 1.0]

    Agresti & Caffo, 2000, for two parts; Price & Bonett, 2004, for several.
    """
    import numpy as np
    from scipy.special import ndtri

    if len(shares) == 1:
        return proportion_interval(shares[0] * counts[0], counts[0])
    parts, of, weight = len(shares), np.asarray(counts, float), np.asarray(weights, float)
    larger = of + 4 / parts
    share = (np.asarray(shares, float) * of + 2 / parts) / larger
    middle = float(weight @ share)
    reach = float(ndtri(1 - LEVEL / 2) * np.sqrt(weight**2 @ (share * (1 - share) / (larger - 1))))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def effective_count(right: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], examples: int) -> float:
    """Return how many independent examples are as certain as examples in groups that are drawn whole.

    Group g adds `right` r_g of the `weights` w_g of its examples, which sum to 1 over all groups. With p the
    sum of r_g,

    n* = p (1 - p) / v (t_(n-1) / t_(G-1))^2,    v = G / (G - 1) sum_g (r_g - p w_g)^2,

    at most n, the number of `examples`, and at least one; t are Student's quantiles for n examples and G
    groups. If all answers are right, or all are wrong, nothing tells how alike the examples of a group are:
    n* is then 1 / sum_g w_g^2, the number of groups of one size. A single group says nothing, and counts 0.

    >>> import numpy as np
    >>> round(effective_count(np.full(31, 1 / 31), np.full(31, 1 / 31), 310))
    31

    Korn & Graubard, 1998.
    """
    import numpy as np
    from scipy.special import stdtrit

    groups, share = len(weights), float(np.clip(right.sum(), 0, 1))
    if groups < 2:
        return 0.0
    if groups == examples and np.allclose(weights, 1 / groups):
        return float(examples)
    deviations = right - share * weights
    variance = groups / (groups - 1) * float(deviations @ deviations)
    if variance < 1e-18:
        effective = 1 / float(weights @ weights)
    else:
        ratio = float(stdtrit(max(examples - 1, 1), LEVEL / 2) / stdtrit(groups - 1, LEVEL / 2))
        effective = share * (1 - share) / variance * ratio**2
    return min(max(effective, 1.0), float(examples))
