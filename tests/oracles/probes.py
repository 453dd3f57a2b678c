"""The probes, written slowly from SPEC section 3: Newton's method on all of (W, b); votes counted singly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np


def objective(weight, intercept, features, codes, penalty):
    """sum_i CE + lambda/2 |W|^2, with CE = log(1 + sum_{k != y} exp(z_k - z_y)), example by example."""
    terms = []
    for x, y in zip(np.asarray(features, dtype=float), codes, strict=True):
        z = weight @ x + intercept
        differences = [z[k] - z[y] for k in range(len(z)) if k != y]
        top = max(0.0, *differences)
        if top == 0.0:
            terms.append(math.log1p(math.fsum(math.exp(d) for d in differences)))
        else:
            terms.append(top + math.log(math.exp(-top) + math.fsum(math.exp(d - top) for d in differences)))
    return math.fsum(terms) + penalty / 2 * float((weight**2).sum())


def derivatives(weight, intercept, features, codes, penalty):
    """Gradient and Hessian of the objective in (w_1, b_1, w_2, b_2, ...)."""
    classes, columns = weight.shape
    size = columns + 1
    gradient = np.zeros(classes * size)
    hessian = np.zeros((classes * size, classes * size))
    for x, y in zip(np.asarray(features, dtype=float), codes, strict=True):
        z = weight @ x + intercept
        q = np.exp(z - z.max())
        q /= q.sum()
        residual = q.copy()
        residual[y] = -sum(q[k] for k in range(classes) if k != y)
        extended = np.append(x, 1.0)
        gradient += np.kron(residual, extended)
        curvature = -np.outer(q, q)
        for k in range(classes):
            curvature[k, k] = q[k] * sum(q[j] for j in range(classes) if j != k)
        hessian += np.kron(curvature, np.outer(extended, extended))
    ridge = np.tile(np.append(np.full(columns, penalty), 0.0), classes)
    flat = np.concatenate([np.append(row, b) for row, b in zip(weight, intercept, strict=True)])
    return gradient + ridge * flat, hessian + np.diag(ridge)


def optimum(features, codes, classes, penalty):
    """The minimiser (W, b) and F*: damped Newton, lambda brought down by tens from 1e6 to its value."""
    features = np.asarray(features, dtype=float)
    columns = features.shape[1]
    mean = features.mean(0)
    centered = features - mean
    weight, intercept = np.zeros((classes, columns)), np.zeros(classes)
    steps = max(2, math.ceil(math.log10(1e6 / penalty)) + 1)
    for current in np.geomspace(1e6, penalty, steps):
        value = objective(weight, intercept, centered, codes, current)
        for _ in range(100):
            gradient, hessian = derivatives(weight, intercept, centered, codes, current)
            free = np.tile(np.append(np.zeros(columns), 1.0), classes)
            anchored = hessian + np.outer(free, free) * max(np.diag(hessian).max(), 1e-300)
            scale = np.sqrt(np.diag(anchored))
            step = -np.linalg.solve(anchored / np.outer(scale, scale), gradient / scale) / scale
            step = step.reshape(classes, columns + 1)
            length = 1.0
            while length > 1e-6:
                trial = weight + length * step[:, :-1], intercept + length * step[:, -1]
                lower = objective(*trial, centered, codes, current)
                if lower < value:
                    break
                length /= 2
            if not lower < value:
                break
            gain = (value - lower) / value
            (weight, intercept), value = trial, lower
            if gain < 1e-13:
                break
    return weight, intercept - weight @ mean, value


def neighbour_order(features, query, metric, leave_out=None):
    """Indices by (distance, index), in exact rational arithmetic."""

    def distance(point):
        if metric == "euclidean":
            return sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(point, query, strict=True))
        dot = sum(Fraction(a) * Fraction(b) for a, b in zip(point, query, strict=True))
        squares = sum(Fraction(a) ** 2 for a in point) * sum(Fraction(b) ** 2 for b in query)
        return -(1 if dot > 0 else -1) * dot**2 / squares if squares else Fraction(0)

    points = [[float(value) for value in row] for row in features]
    query = [float(value) for value in query]
    others = [index for index in range(len(points)) if index != leave_out]
    return sorted(others, key=lambda index: (distance(points[index]), index))


def vote(labels):
    """The label of most votes; of equals the smallest."""
    labels = list(labels)
    return min(set(labels), key=lambda label: (-labels.count(label), label))


def leave_one_out(features, labels, most, metric):
    """Accuracy for k = 1..most, each example predicted from all the others."""
    orders = [neighbour_order(features, features[i], metric, leave_out=i) for i in range(len(labels))]
    return [
        sum(vote([labels[j] for j in orders[i][:k]]) == labels[i] for i in range(len(labels))) / len(labels)
        for k in range(1, most + 1)
    ]
