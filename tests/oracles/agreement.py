"""Agreement, literally: counting examples one by one; the tree by merging the nearest clusters."""

from __future__ import annotations

from collections import Counter
from math import fsum


def agreement(a, b, labels):
    """(same, both right or wrong, same when both wrong or None)."""
    both_wrong = [(p, q) for p, q, y in zip(a, b, labels, strict=True) if p != y and q != y]
    same = sum(p == q for p, q in zip(a, b, strict=True)) / len(labels)
    together = sum((p == y) == (q == y) for p, q, y in zip(a, b, labels, strict=True)) / len(labels)
    alike = sum(p == q for p, q in both_wrong) / len(both_wrong) if both_wrong else None
    return same, together, alike


def modal(predictions):
    """The most common class of each example; among equally common ones the smallest."""
    chosen = []
    for votes in zip(*predictions, strict=True):
        counts = Counter(votes)
        chosen.append(min(counts, key=lambda label: (-counts[label], label)))
    return chosen


def average_linkage(similarity):
    """The merges [(members, distance)]: always the two clusters of least mean 1 - similarity."""
    clusters = [{i} for i in range(len(similarity))]
    merges = []
    while len(clusters) > 1:
        distance, a, b = min(
            (fsum(1 - similarity[i][j] for i in x for j in y) / (len(x) * len(y)), m, n)
            for m, x in enumerate(clusters)
            for n, y in enumerate(clusters)
            if m < n
        )
        joined = clusters[a] | clusters[b]
        merges.append((joined, distance))
        clusters = [c for place, c in enumerate(clusters) if place not in (a, b)] + [joined]
    return merges
