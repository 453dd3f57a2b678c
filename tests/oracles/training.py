"""Literal, slow equations of training, written from SPEC section 2: one weight at a time, in float64."""

from __future__ import annotations

import math


def learning_rates(peak: float, warm: int, steps: int, kind: str, final: float) -> list[float]:
    """Linear to the peak in `warm` steps; then towards final x peak, exponentially or as a cosine."""
    rates = []
    for step in range(steps):
        if step < warm:
            rates.append(peak * (step + 1) / warm)
            continue
        share = (step - warm) / (steps - warm)
        decays = {"exponential": math.exp(share * math.log(final)), "constant": 1.0}
        decays["cosine"] = final + (1 - final) * 0.5 * (1 + math.cos(math.pi * share))
        rates.append(peak * decays[kind])
    return rates


def nesterov(
    weight: float, gradients: list[float], rates: list[float], momentum: float, decay: float
) -> float:
    """v <- m v + g + decay w;  w <- w - rate (g + decay w + m v), PyTorch's form of Nesterov's momentum."""
    velocity = 0.0
    for gradient, rate in zip(gradients, rates, strict=True):
        slope = gradient + decay * weight
        velocity = momentum * velocity + slope
        weight = weight - rate * (slope + momentum * velocity)
    return weight


def average(start: float, weights: list[float], momentum: float) -> float:
    """a <- d a + (1 - d) w, d = min(momentum, (1 + t) / (10 + t))."""
    value = start
    for step, weight in enumerate(weights):
        d = min(momentum, (1 + step) / (10 + step))
        value = d * value + (1 - d) * weight
    return value
