"""Non-zero shares and pairs of cosine distances, literally, as loops."""

from __future__ import annotations

from math import fsum, sqrt


def nonzero_share(features):
    return fsum(sum(value != 0 for value in row) / len(row) for row in features) / len(features)


def cosine_distance(x, y):
    lengths = sqrt(fsum(a * a for a in x)) * sqrt(fsum(b * b for b in y))
    return 1 - (fsum(a * b for a, b in zip(x, y, strict=True)) / lengths if lengths else 0.0)


def pair_distances(features, labels):
    """All pairs i < j: (distances within classes, distances between)."""
    within, between = [], []
    for i in range(len(features)):
        for j in range(i + 1, len(features)):
            distances = within if labels[i] == labels[j] else between
            distances.append(cosine_distance(features[i], features[j]))
    return within, between
