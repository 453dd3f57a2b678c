"""The objectives, literally: the paper's equations as loops over Python floats (NeurIPS text, section 2)."""

from __future__ import annotations

from math import exp, log, sqrt


def linear(x, W, b):
    return [sum(W[k][m] * x[m] for m in range(len(x))) + b[k] for k in range(len(b))]


def norm(v):
    return sqrt(sum(value * value for value in v))


def sim(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True)) / (norm(x) * norm(y))


def normalised_logits(x, W, b, tau):
    z = linear(x, W, b)
    return [value / (tau * norm(z)) for value in z]


def cosine_logits(x, W, b, tau):
    return [sim(W[k], x) / tau + b[k] for k in range(len(b))]


def softmax_loss(z, t):  # eq. 1, first form
    total = sum(exp(value) for value in z)
    return -sum(t[k] * log(exp(z[k]) / total) for k in range(len(z)))


def smooth_loss(z, t, alpha):  # eq. 2
    K = len(z)
    total = sum(exp(value) for value in z)
    mixed = [(1 - alpha) * t[k] + alpha / K for k in range(K)]
    return -1 / (1 - alpha) * sum(mixed[k] * log(exp(z[k]) / total) for k in range(K))


def sigmoid_loss(z, t):  # eq. 8, second form (the first loses 1 - p at large z)
    K = len(z)
    return -sum(t[k] * z[k] for k in range(K)) + sum(log(exp(z[k]) + 1) for k in range(K))


def squared_loss(z, t, kappa, M):  # eq. 9
    K = len(z)
    return sum(kappa * t[k] * (z[k] - M) ** 2 + (1 - t[k]) * z[k] ** 2 for k in range(K)) / K


def frobenius(W):
    return sqrt(sum(value * value for row in W for value in row))


# One entry per row of SPEC's table: (x, t, W, b) -> the loss of one example, with its hyperparameters.
PRESETS = {
    "softmax": lambda x, t, W, b: softmax_loss(linear(x, W, b), t),
    "label_smoothing": lambda x, t, W, b, alpha: smooth_loss(linear(x, W, b), t, alpha),
    "sigmoid": lambda x, t, W, b: sigmoid_loss(linear(x, W, b), t),
    "final_layer_l2": lambda x, t, W, b, lambda_final: (
        softmax_loss(linear(x, W, b), t) + lambda_final * frobenius(W) ** 2
    ),
    "dropout": lambda x, t, W, b, keep: softmax_loss(linear(x, W, b), t),  # outside training
    "logit_penalty": lambda x, t, W, b, beta: (
        softmax_loss(linear(x, W, b), t) + beta * norm(linear(x, W, b)) ** 2
    ),
    "logit_norm": lambda x, t, W, b, temperature: softmax_loss(normalised_logits(x, W, b, temperature), t),
    "cosine_softmax": lambda x, t, W, b, temperature, scale: (
        scale * softmax_loss(cosine_logits(x, W, b, temperature), t)
    ),
    "squared_error": lambda x, t, W, b, kappa, target, scale: (
        scale * squared_loss(linear(x, W, b), t, kappa, target)
    ),
}


def softmax_probabilities(z, temperature):
    powers = [exp(value / temperature) for value in z]
    return [power / sum(powers) for power in powers]


def sigmoid_probabilities(z, temperature):
    powers = [(1 / (1 + exp(-value))) ** (1 / temperature) for value in z]
    return [power / sum(powers) for power in powers]
