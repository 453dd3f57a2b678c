"""Statistics, literally: sums over runs, least squares on dummy variables, all permutations."""

from __future__ import annotations

from itertools import permutations
from math import exp, log, sqrt

import numpy as np


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


def objective_f(cells):
    """F of the objective: residual squares with and without its main effect, dummies coded to sum to 0.

    `cells[a][d]` is a list of runs. The full model has objective, data set and their interaction; where
    every cell holds one run, the interaction is left out and so becomes the error.
    """
    A, D = len(cells), len(cells[0])
    single = all(len(runs) == 1 for row in cells for runs in row)

    def code(level, levels):
        return (
            [-1.0] * (levels - 1) if level == levels - 1 else [float(level == j) for j in range(levels - 1)]
        )

    full, reduced, y = [], [], []
    for a in range(A):
        for d in range(D):
            for run in cells[a][d]:
                of_a, of_d = code(a, A), code(d, D)
                interaction = [] if single else [p * q for p in of_a for q in of_d]
                full.append([1.0, *of_d, *interaction, *of_a])
                reduced.append([1.0, *of_d, *interaction])
                y.append(run)

    def residual(design):
        X, target = np.array(design), np.array(y)
        return float(((target - X @ np.linalg.lstsq(X, target, rcond=None)[0]) ** 2).sum())

    error_degrees = len(y) - len(full[0])
    f = (residual(reduced) - residual(full)) / (A - 1) / (residual(full) / error_degrees)
    return f, A - 1, error_degrees
