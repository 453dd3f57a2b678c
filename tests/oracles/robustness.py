"""The mean corruption error and restricted accuracy, literally."""

from __future__ import annotations


def mean_corruption_error(errors, reference):
    total = 0.0
    for name, values in errors.items():
        above = below = 0.0
        for severity, value in enumerate(values):
            above += value
            below += reference[name][severity]
        total += above / below
    return total / len(errors)


def subset_accuracy(logits, labels, classes):
    right = 0
    for row, label in zip(logits, labels, strict=True):
        best = None
        for k in sorted(classes):
            if best is None or row[k] > row[best]:
                best = k
        right += best == label
    return right / len(labels)
