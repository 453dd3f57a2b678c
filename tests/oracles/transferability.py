"""Transferability scores and class overlap, literally: matrices as the papers write them, in float64."""

from __future__ import annotations

from math import log, pi

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize_scalar


def evidence(F, y, a, b):
    """LogME's equation 2, by its matrix A."""
    n, d = F.shape
    A = a * np.eye(d) + b * F.T @ F
    m = b * np.linalg.solve(A, F.T @ y)
    return (
        n / 2 * log(b)
        + d / 2 * log(a)
        - n / 2 * log(2 * pi)
        - b / 2 * ((F @ m - y) ** 2).sum()
        - a / 2 * m @ m
        - np.linalg.slogdet(A)[1] / 2
    )


def best_evidence(F, y):
    """The highest of all local maxima over log(a/b), found on a fine grid and then refined.

    For a ratio t = a/b the misfit is r = min_w |Fw - y|^2 + t |w|^2, and the best b is n / r.
    """

    def at(x):
        t = np.exp(x)
        m = np.linalg.solve(t * np.eye(F.shape[1]) + F.T @ F, F.T @ y)
        b = len(y) / (((F @ m - y) ** 2).sum() + t * m @ m)
        return evidence(F, y, t * b, b)

    size = np.linalg.norm(F, 2) ** 2
    grid = log(size) + np.linspace(-25, 20, 1800)
    values = np.array([at(x) for x in grid])
    step = grid[1] - grid[0]
    best = values.max()
    for place in range(1, len(grid) - 1):
        if values[place] >= max(values[place - 1], values[place + 1]):
            bounds = (grid[place] - step, grid[place] + step)
            found = minimize_scalar(
                lambda x: -at(x), bounds=bounds, method="bounded", options={"xatol": 1e-10}
            )
            best = max(best, -found.fun)
    return best


def logme(features, labels):
    F, labels = np.asarray(features, float), np.asarray(labels)
    classes = sorted(set(labels.tolist()))
    return sum(best_evidence(F, (labels == c).astype(float)) for c in classes) / len(classes) / len(F)


def ledoit_wolf(x):
    """The shrinkage of Ledoit and Wolf, 2004, lemma 3.2 to 3.4, and the covariance."""
    n, d = x.shape
    S = sum(np.outer(one, one) for one in x) / n
    mu = np.trace(S) / d
    apart = ((S - mu * np.eye(d)) ** 2).sum() / d
    wavering = sum(((np.outer(one, one) - S) ** 2).sum() / d for one in x) / n**2
    return (min(wavering, apart) / apart if apart > 0 else 0.0), S, mu


def h_score(features, labels):
    x = np.asarray(features, float)
    labels = np.asarray(labels)
    x = x - x.mean(0)
    a, S, mu = ledoit_wolf(x)
    means = np.stack([x[labels == c].mean(0) for c in labels])
    between = means.T @ means / len(x)
    shrunk = (1 - a) * S + a * mu * np.eye(x.shape[1])
    return (1 - a) * np.trace(np.linalg.pinv(shrunk) @ between)


def coding_rate(Z, epsilon):
    n, d = Z.shape
    return np.linalg.slogdet(np.eye(d) + Z.T @ Z / (n * epsilon))[1] / 2


def transrate(features, labels, epsilon):
    x, labels = np.asarray(features, float), np.asarray(labels)
    x = x - x.mean(0)
    known = sum((labels == c).mean() * coding_rate(x[labels == c], epsilon) for c in set(labels.tolist()))
    return coding_rate(x, epsilon) - known


def leep(probabilities, labels):
    n, k = len(probabilities), len(probabilities[0])
    joint = {
        (y, z): sum(p[z] for p, label in zip(probabilities, labels, strict=True) if label == y) / n
        for y in set(labels)
        for z in range(k)
    }
    overall = [sum(joint[y, z] for y in set(labels)) for z in range(k)]
    return (
        sum(
            log(sum(joint[y, z] / overall[z] * p[z] for z in range(k) if overall[z] > 0))
            for p, y in zip(probabilities, labels, strict=True)
        )
        / n
    )


def nce(predictions, labels):
    n = len(labels)
    pairs = list(zip(predictions, labels, strict=True))
    total = 0.0
    for z, y in set(pairs):
        both, alone = pairs.count((z, y)), list(predictions).count(z)
        total += both / n * log(both / alone)
    return total


def matching(predictions, labels):
    rows, columns = sorted(set(predictions)), sorted(set(labels))
    counts = np.zeros((len(rows), len(columns)), int)
    for p, y in zip(predictions, labels, strict=True):
        counts[rows.index(p), columns.index(y)] += 1
    return counts


def replicated(counts, copies):
    """The value of the best assignment with every column `copies` times."""
    wide = np.tile(counts, (1, copies))
    rows, columns = linear_sum_assignment(wide, maximize=True)
    return int(wide[rows, columns].sum())


def copies(counts):
    """The paper's k: as many replications as bring something, and the value that they reach."""
    k = 1
    while replicated(counts, k + 1) > replicated(counts, k):
        k += 1
    return k, replicated(counts, k)
