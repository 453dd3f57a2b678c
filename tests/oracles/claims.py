"""What the verdicts on claims rest on, written out: t by quadrature, Holm by closure, ranks by counting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def t_cdf(t: float, degrees: float, steps: int = 600) -> float:
    """P(T <= t) of Student's t, by Simpson's rule on its density after x = tan(angle)."""
    log_constant = (
        math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    )

    def density(angle: float) -> float:
        x = math.tan(angle)
        log_density = log_constant - (degrees + 1) / 2 * math.log1p(x * x / degrees)
        return math.exp(log_density) * (1 + x * x)

    end = math.atan(abs(t))
    width = end / steps
    total = density(0.0) + density(end)
    for step in range(1, steps):
        total += density(step * width) * (4 if step % 2 else 2)
    half = total * width / 3
    return 0.5 + math.copysign(half, t)


def t_quantile(probability: float, degrees: float) -> float:
    """The t below which this share of Student's t lies, by bisection."""
    low, high = -1e4, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        if t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def linear_contrast(
    groups: Sequence[Sequence[float]], weights: Sequence[float], margin: float
) -> tuple[float, float, float, float, float]:
    """Estimate, 95 % interval, p against "<= 0" and p against ">= margin", from the runs."""
    estimate = variance = denominator = 0.0
    for values, weight in zip(groups, weights, strict=True):
        n = len(values)
        mean = sum(values) / n
        squared_error = sum((value - mean) ** 2 for value in values) / (n - 1) / n
        estimate += weight * mean
        variance += weight**2 * squared_error
        denominator += weight**4 * squared_error**2 / (n - 1)
    error, degrees = math.sqrt(variance), variance**2 / denominator
    reach = t_quantile(0.975, degrees) * error
    p_for = 1 - t_cdf(estimate / error, degrees)
    p_against = t_cdf((estimate - margin) / error, degrees)
    return estimate, estimate - reach, estimate + reach, p_for, p_against


def page_p(blocks: Sequence[Sequence[float]]) -> float:
    """The share of all orders within blocks whose L is at least the observed one."""

    def length(values: Sequence[float]) -> float:
        return sum(place * rank for place, rank in enumerate(ranks(values), 1))

    observed = sum(map(length, blocks)) - 1e-9
    orders = [[length(order) for order in itertools.permutations(values)] for values in blocks]
    found = [sum(lengths) >= observed for lengths in itertools.product(*orders)]
    return sum(found) / len(found)


def without_two(x: Sequence[float], y: Sequence[float]) -> list[float]:
    """rho of what is left, for every two that are left out."""
    return [
        rho([x[i] for i in kept], [y[i] for i in kept])
        for kept in itertools.combinations(range(len(x)), len(x) - 2)
    ]


def holm_by_closure(p_values: Sequence[float]) -> list[float]:
    """A hypothesis is rejected when Bonferroni rejects every intersection of hypotheses that holds it."""
    everyone = range(len(p_values))
    corrected = []
    for one in everyone:
        worst = 0.0
        for size in range(1, len(p_values) + 1):
            for group in itertools.combinations(everyone, size):
                if one in group:
                    worst = max(worst, size * min(p_values[index] for index in group))
        corrected.append(min(1.0, worst))
    return corrected


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of the places they take."""
    order = sorted(values)
    return [
        sum(place for place, other in enumerate(order, 1) if other == value) / order.count(value)
        for value in values
    ]


def rho(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's correlation of the ranks."""
    a, b = ranks(x), ranks(y)
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    covariance = sum((u - mean_a) * (v - mean_b) for u, v in zip(a, b, strict=True))
    size = sum((u - mean_a) ** 2 for u in a) * sum((v - mean_b) ** 2 for v in b)
    return covariance / math.sqrt(size)


def p_of_orders(x: Sequence[float], y: Sequence[float]) -> float:
    """The share of all orders of y whose correlation with x is as strong, either way."""
    observed = abs(rho(x, y)) - 1e-9
    orders = list(itertools.permutations(y))
    return sum(abs(rho(x, order)) >= observed for order in orders) / len(orders)


def rank_interval(correlation: float, n: int) -> tuple[float, float]:
    """Fisher's interval, Bonett and Wright's variance; a perfect order counts as half a step short of one."""
    step = 12 / (n**3 - n)
    inside = max(-1 + step / 2, min(1 - step / 2, correlation))
    z = 0.5 * math.log((1 + inside) / (1 - inside))
    reach = 1.959963984540054 * math.sqrt((1 + correlation**2 / 2) / (n - 3))
    return math.tanh(z - reach), math.tanh(z + reach)


def bootstrap_extremes(x: Sequence[dict[int, float]], y: Sequence[dict[int, float]]) -> tuple[float, float]:
    """The least and the largest rho over every way to draw the seeds again, all objectives at once."""
    seeds = sorted(x[0])
    found = []
    for drawn in itertools.product(seeds, repeat=len(seeds)):
        means_x = [sum(runs[seed] for seed in drawn) for runs in x]
        means_y = [sum(runs[seed] for seed in drawn) for runs in y]
        found.append(rho(means_x, means_y))
    return min(found), max(found)


def spread_ratios(
    x: Sequence[Sequence[Sequence[float]]], y: Sequence[Sequence[Sequence[float]]]
) -> tuple[float, list[float]]:
    """The ratio of the spreads of x and y [k n t], and that of every way to draw seeds and tasks again.

    The tasks are the same for both. Ways that draw one seed alone are left out.
    """

    def spread(
        values: Sequence[Sequence[Sequence[float]]], seeds: Sequence[int], tasks: Sequence[int]
    ) -> float:
        means = [[sum(of_seed[task] for task in tasks) / len(tasks) for of_seed in one] for one in values]
        products = []
        for s, r in itertools.permutations(range(len(seeds)), 2):
            if seeds[s] != seeds[r]:
                a, b = ([one[seed] for one in means] for seed in (seeds[s], seeds[r]))
                centre_a, centre_b = sum(a) / len(a), sum(b) / len(b)
                covariance = sum((u - centre_a) * (v - centre_b) for u, v in zip(a, b, strict=True))
                products.append(covariance / (len(a) - 1))
        return math.sqrt(max(0.0, sum(products) / len(products)))

    n, t = len(x[0]), len(x[0][0])
    drawn = [
        (seeds, tasks)
        for seeds in itertools.product(range(n), repeat=n)
        for tasks in itertools.product(range(t), repeat=t)
        if len(set(seeds)) > 1
    ]
    whole = range(n), range(t)
    return spread(x, *whole) / spread(y, *whole), [spread(x, *one) / spread(y, *one) for one in drawn]


def likeness_gaps(pairs: dict[tuple[str, int, str, int], float]) -> list[float]:
    """The jackknife's pseudo-values of within less between, leaving out an objective at a time."""

    def gap(without: str) -> float:
        kept = {
            key: value for key, value in pairs.items() if key[1] != key[3] and without not in (key[0], key[2])
        }
        same = [value for (a, _, b, _), value in kept.items() if a == b]
        apart = [value for (a, _, b, _), value in kept.items() if a != b]
        return sum(same) / len(same) - sum(apart) / len(apart)

    objectives = sorted({key[0] for key in pairs})
    n = len(objectives)
    return [n * gap("") - (n - 1) * gap(one) for one in objectives]
