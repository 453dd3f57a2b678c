"""Literal, slow equations of training, written from SPEC section 2: one weight at a time, in float64."""

from __future__ import annotations

import math

import torch


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


def fine_tuned(
    body: torch.nn.Module,
    final: torch.nn.Linear,
    batches: list[tuple[torch.Tensor, torch.Tensor]],
    rate: float,
    decay: float,
) -> None:
    """SPEC section 3: all weights, SGD, momentum .9, the rate to zero as a cosine; kernels and W decay."""
    body.train()
    norms = [module for module in body.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    spared = {id(value) for norm in norms for value in norm.parameters()} | {id(final.bias)}
    weights = [*body.parameters(), *final.parameters()]
    velocities = [torch.zeros_like(value) for value in weights]
    for step, (images, labels) in enumerate(batches):
        loss = torch.nn.functional.cross_entropy(final(body(images)), labels)
        gradients = torch.autograd.grad(loss, weights)
        now = rate * 0.5 * (1 + math.cos(math.pi * step / len(batches)))
        with torch.no_grad():
            for value, gradient, velocity in zip(weights, gradients, velocities, strict=True):
                slope = gradient if id(value) in spared else gradient + decay * value
                velocity.mul_(0.9).add_(slope)
                value -= now * velocity
