"""Angular visual hardness and kernel densities, literally, as loops over Python floats."""

from __future__ import annotations

from math import acos, exp, fsum, pi, sqrt


def angle(u, v):
    lengths = sqrt(fsum(a * a for a in u)) * sqrt(fsum(b * b for b in v))
    cosine = fsum(a * b for a, b in zip(u, v, strict=True)) / lengths if lengths else 0.0
    return acos(min(1.0, max(-1.0, cosine)))


def angular_visual_hardness(features, labels, weight):
    return [
        angle(x, weight[y]) / fsum(angle(x, w) for w in weight) for x, y in zip(features, labels, strict=True)
    ]


def gaussian_density(values, points, bandwidth):
    each = [[exp(-((p - v) ** 2) / (2 * bandwidth**2)) for v in values] for p in points]
    return [fsum(row) / (len(values) * bandwidth * sqrt(2 * pi)) for row in each]
