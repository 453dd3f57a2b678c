"""Simplex-ETF measures, literally: covariances as matrices, pairs as loops, in float64."""

from __future__ import annotations

import numpy as np


def sim(x, y):
    lengths = np.sqrt(x @ x) * np.sqrt(y @ y)
    return x @ y / lengths if lengths else 0.0


def population_std(values):
    mean = sum(values) / len(values)
    return (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5


def neural_collapse(features, labels, weight, bias=None):
    """The measures by their names in table E.2; a class without an example has no part in it."""
    x, W = np.asarray(features, float), np.asarray(weight, float)
    present = sorted(set(labels))
    groups = [x[np.asarray(labels) == c] for c in present]
    C = len(groups)
    mu = [group.mean(0) for group in groups]
    middle = sum(mu) / C
    centred = [m - middle for m in mu]
    w = [W[c] for c in present]
    pairs = [(a, b) for a in range(C) for b in range(C) if a != b]

    sigma_b = sum(np.outer(m, m) for m in centred) / C
    sigma_w = (
        sum(
            sum(np.outer(one - m, one - m) for one in group) / len(group)
            for group, m in zip(groups, mu, strict=True)
        )
        / C
    )
    rank = min(C - 1, x.shape[1])
    values, vectors = np.linalg.eigh(sigma_b)
    largest = np.argsort(values)[::-1][:rank]
    pinv = sum(np.outer(vectors[:, j], vectors[:, j]) / values[j] for j in largest)

    found = {}
    for name, vs in (("class_mean", centred), ("weight", w)):
        lengths = [np.sqrt(v @ v) for v in vs]
        cosines = [sim(vs[a], vs[b]) for a, b in pairs]
        found[f"{name}_norm_cv"] = population_std(lengths) / (sum(lengths) / C)
        found[f"{name}_cosine_std"] = population_std(cosines)
        found[f"{name}_etf_deviation"] = sum(abs(cosine + 1 / (C - 1)) for cosine in cosines) / len(pairs)
    M, Wp = np.stack(centred), np.stack(w)
    apart = Wp / np.sqrt((Wp**2).sum()) - M / np.sqrt((M**2).sum())
    found["weight_class_mean_distance_sq"] = (apart**2).sum()
    found["trace_sw_pinv_sb_over_c"] = np.trace(sigma_w @ pinv) / C
    if bias is not None:
        differing = 0
        for one in x:
            nearest = min(range(C), key=lambda c: ((one - mu[c]) ** 2).sum())
            differing += present[nearest] != int(np.argmax(W @ one + np.asarray(bias, float)))
        found["nc4"] = differing / len(x)
    return found
