"""Class separation, literally: the double sums of the paper's eq. 11 as loops over Python floats."""

from __future__ import annotations

from math import fsum, sqrt


def sim(x, y):
    lengths = sqrt(fsum(a * a for a in x)) * sqrt(fsum(b * b for b in y))
    return fsum(a * b for a, b in zip(x, y, strict=True)) / lengths if lengths else 0.0


def cosine_distance(x, y):
    return 1 - sim(x, y)


def squared_distance(x, y):
    return fsum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def class_separation(features, labels, distance):
    """R^2 = 1 - d_within / d_total; `features` a list of lists of floats."""
    x = [list(map(float, row)) for row in features]
    if distance == "cosine_centered":
        mean = [fsum(column) / len(x) for column in zip(*x, strict=True)]
        x = [[a - b for a, b in zip(row, mean, strict=True)] for row in x]
    d = squared_distance if distance == "euclidean" else cosine_distance
    classes = [[x[i] for i in range(len(x)) if labels[i] == k] for k in sorted(set(labels))]
    K = len(classes)
    d_within = fsum(d(a, b) / (K * len(c) ** 2) for c in classes for a in c for b in c)
    d_total = fsum(
        d(a, b) / (K**2 * len(one) * len(two)) for one in classes for two in classes for a in one for b in two
    )
    return 1 - d_within / d_total


def unbiased_class_separation(features, labels, distance):
    """The same without the pairs of an example with itself, in both sums."""
    x = [list(map(float, row)) for row in features]
    if distance == "cosine_centered":
        mean = [fsum(column) / len(x) for column in zip(*x, strict=True)]
        x = [[a - b for a, b in zip(row, mean, strict=True)] for row in x]
    d = squared_distance if distance == "euclidean" else cosine_distance
    classes = sorted(set(labels))
    K = len(classes)
    d_within = d_total = 0.0
    for j in classes:
        for k in classes:
            pairs = [
                d(x[m], x[n])
                for m in range(len(x))
                for n in range(len(x))
                if labels[m] == j and labels[n] == k and m != n
            ]
            d_total += fsum(pairs) / len(pairs) / K**2
            if j == k:
                d_within += fsum(pairs) / len(pairs) / K
    return 1 - d_within / d_total


def mean_per_class(predictions, labels):
    """The mean over the labels' classes of the share of each class predicted right."""
    shares = []
    for k in sorted(set(labels)):
        of_class = [p for p, y in zip(predictions, labels, strict=True) if y == k]
        shares.append(sum(p == k for p in of_class) / len(of_class))
    return sum(shares) / len(shares)


def top_k(logits, labels, k):
    """A label counts when it is among the first k classes, sorted by falling logit, then by index."""
    hits = 0
    for z, y in zip(logits, labels, strict=True):
        order = sorted(range(len(z)), key=lambda j: (-z[j], j))
        hits += y in order[:k]
    return hits / len(labels)
