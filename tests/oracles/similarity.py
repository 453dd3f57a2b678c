"""CKA, literally: eq. 10's sums as loops over Python floats, and in NumPy for whole networks."""

from __future__ import annotations

from math import fsum, sqrt

import numpy as np


def gram(x):
    """Uncentred inner products, the diagonal zeroed."""
    return [
        [
            0.0 if i == j else fsum(float(a) * float(b) for a, b in zip(x[i], x[j], strict=True))
            for j in range(len(x))
        ]
        for i in range(len(x))
    ]


def hsic_1(A, B):
    """[tr(AB) + (1'A1)(1'B1)/((n-1)(n-2)) - 2/(n-2) 1'AB1] / (n(n-3)) of matrices with zeroed diagonals."""
    n = len(A)
    each = range(n)
    trace = fsum(A[i][j] * B[j][i] for i in each for j in each)
    sums = fsum(A[i][j] for i in each for j in each) * fsum(B[i][j] for i in each for j in each)
    chain = fsum(A[i][j] * B[j][k] for i in each for j in each for k in each)
    return (trace + sums / ((n - 1) * (n - 2)) - 2 * chain / (n - 2)) / (n * (n - 3))


def minibatch_cka(batches_x, batches_y):
    """Means over batches, each weighed by its examples."""
    xy, xx, yy, examples = [], [], [], []
    for x, y in zip(batches_x, batches_y, strict=True):
        A, B = gram(x), gram(y)
        examples.append(len(x))
        xy.append(len(x) * hsic_1(A, B))
        xx.append(len(x) * hsic_1(A, A))
        yy.append(len(x) * hsic_1(B, B))
    n = fsum(examples)
    return (fsum(xy) / n) / sqrt((fsum(xx) / n) * (fsum(yy) / n))


def biased_cka(x, y):
    """|Y'X|_F^2 / (|X'X|_F |Y'Y|_F) of centred features (Kornblith et al., 2019)."""
    x, y = (np.asarray(z, np.float64) - np.asarray(z, np.float64).mean(0) for z in (x, y))
    return np.linalg.norm(y.T @ x) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))


def cka_matrix(batches, precision=np.float64):
    """CKA of all layers: `batches` a list of lists (one entry a layer) of activations [n ...]."""
    layers = len(batches[0])
    total = np.zeros((layers, layers))
    for activations in batches:
        n = len(activations[0])
        grams = []
        for layer in activations:
            flat = np.asarray(layer, precision).reshape(n, -1)
            A = flat @ flat.T
            np.fill_diagonal(A, 0)
            grams.append(A)
        one = np.ones(n)
        for i, A in enumerate(grams):
            for j, B in enumerate(grams):
                trace = np.trace(A @ B)
                sums = (one @ A @ one) * (one @ B @ one) / ((n - 1) * (n - 2))
                total[i, j] += n * (trace + sums - 2 * (one @ A @ B @ one) / (n - 2)) / (n * (n - 3))
    return total / np.sqrt(np.outer(np.diag(total), np.diag(total)))


def jackknife(batches):
    """The delete-one standard error of `cka_matrix`."""
    left_out = [cka_matrix(batches[:i] + batches[i + 1 :]) for i in range(len(batches))]
    middle = np.mean(left_out, axis=0)
    return np.sqrt((len(batches) - 1) / len(batches) * sum((one - middle) ** 2 for one in left_out))
