"""Statistics, literally: sums over runs, all permutations."""

from __future__ import annotations

import random
from itertools import permutations
from math import comb, exp, log, sqrt


def standard_error(values):
    m = sum(values) / len(values)
    return sqrt(sum((v - m) ** 2 for v in values) / (len(values) - 1)) / sqrt(len(values))


def pearson(x, y):
    mx, my = sum(x) / len(x), sum(y) / len(y)
    top = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return top / sqrt(sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y))


def ranks(values):
    """The mean position, counted from 1, that a value has in the sorted list."""
    ordered = sorted(values)
    return [
        sum(i + 1 for i, other in enumerate(ordered) if other == value) / ordered.count(value)
        for value in values
    ]


def spearman(x, y):
    return pearson(ranks(x), ranks(y))


def spearman_interval(rho, n, z):
    """Bonett and Wright (2000): Fisher's transform with variance (1 + rho^2/2)/(n - 3)."""
    half = z * sqrt((1 + rho**2 / 2) / (n - 3))
    ends = (0.5 * log((1 + rho) / (1 - rho)) + sign * half for sign in (-1, 1))
    return [(exp(2 * end) - 1) / (exp(2 * end) + 1) for end in ends]


def spearman_p(x, y):
    """Two-sided: the share of all orders of y whose |rho| is at least the observed one."""
    observed = abs(spearman(x, y))
    all_rhos = [abs(pearson(ranks(x), order)) for order in permutations(ranks(y))]
    return sum(rho >= observed - 1e-9 for rho in all_rhos) / len(all_rhos)


def binomial_tail(at_least, of, p):
    """P(X >= at_least), summed term by term."""
    return sum(comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(at_least, of + 1))


def proportion_interval(right, of, level):
    """Clopper and Pearson (1934), by bisection of both tails of the binomial distribution."""

    def solve(at_least, wanted):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if binomial_tail(at_least, of, middle) < wanted else (low, middle)
        return (low + high) / 2

    tail = (1 - level) / 2
    lower = solve(right, tail) if right else 0.0
    upper = solve(right + 1, 1 - tail) if right < of else 1.0
    return lower, upper


def restricted_share(reference, x, noise, draws, seed, wanted):
    """Return the share of simulated studies whose rank correlation is as wanted, one after another."""
    xs, ys = reference
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    products = sum((a - mean_x) * (b - mean_y) for a, b in zip(xs, ys, strict=True))
    slope = products / sum((a - mean_x) ** 2 for a in xs)
    left = [b - mean_y - slope * (a - mean_x) for a, b in zip(xs, ys, strict=True)]
    scatter = (sum(r**2 for r in left) / (len(xs) - 2)) ** 0.5
    drawn = random.Random(seed)
    met = 0
    for _ in range(draws):
        y = [mean_y + slope * (a - mean_x) + drawn.gauss(0, scatter) + drawn.gauss(0, noise) for a in x]
        met += wanted(spearman(x, y))
    return met / draws
