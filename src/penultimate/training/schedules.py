"""The learning rate of every step."""

from __future__ import annotations

import math

from penultimate.training.recipe import Recipe


def learning_rate(recipe: Recipe, step: int, steps: int) -> float:
    """Return the learning rate at a step, 0 <= step < steps.

    During the warm-up of w = round(warmup steps) steps it is peak (step + 1) / w. After that, with
    f = final_fraction and t = (step - w) / (steps - w), it is peak f^t (exponential),
    peak (f + (1 - f) (1 + cos pi t) / 2) (cosine) or peak (constant).

    >>> recipe = Recipe(learning_rate=1.0, warmup=0.1, schedule="exponential", final_fraction=0.01)
    >>> [round(learning_rate(recipe, step, 100), 3) for step in (0, 9, 10, 55, 99)]
    [0.1, 1.0, 1.0, 0.1, 0.011]
    """
    warmup = round(recipe.warmup * steps)
    if step < warmup:
        return recipe.learning_rate * (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    final = recipe.final_fraction
    if recipe.schedule == "exponential":
        return float(recipe.learning_rate * final**progress)
    if recipe.schedule == "cosine":
        return recipe.learning_rate * (final + (1 - final) * (1 + math.cos(math.pi * progress)) / 2)
    return recipe.learning_rate
