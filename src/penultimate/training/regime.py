"""The regime of a recipe in dimensionless numbers, and the paper's regime for a run of any length."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from penultimate.training.recipe import Recipe
from penultimate.training.schedules import learning_rate


@dataclass(frozen=True)
class Regime:
    """The properties of a recipe that do not depend on its number of steps.

    warmup            the warm-up's share of all steps
    final_fraction    the last learning rate, as a share of the peak
    averaging_window  the horizon of the weights' average, as a share of all steps
    exposure          the weight decay accumulated by the end of training: weight_decay x the sum of the
                      learning rates / (1 - momentum). Without gradients, weights would shrink by a factor of
                      exp(-exposure); far below 1, weight decay hardly acts before training ends
    """

    warmup: float
    final_fraction: float
    averaging_window: float
    exposure: float


def regime(recipe: Recipe, steps: int) -> Regime:
    """Return the regime of a recipe over `steps` steps.

    >>> constant = Recipe(learning_rate=1.0, warmup=0.0, schedule="constant", weight_decay=1e-4)
    >>> round(regime(constant, steps=1000).exposure, 6)
    1.0
    """
    window = 1 / (steps * (1 - recipe.momentum_of_average(steps)))
    final = 1.0 if recipe.schedule == "constant" else recipe.final_fraction
    return Regime(recipe.warmup, final, window, weight_decay(recipe, steps) * _reach(recipe, steps))


def weight_decay(recipe: Recipe, steps: int) -> float:
    """Return the weight decay of a run of `steps` steps, given directly or computed from the exposure.

    >>> recipe = Recipe(exposure=17.5)
    >>> round(weight_decay(recipe, 9000) / weight_decay(recipe, 18000), 2)
    2.0
    """
    return recipe.weight_decay if recipe.exposure is None else recipe.exposure / _reach(recipe, steps)


def _reach(recipe: Recipe, steps: int) -> float:
    """Return the sum of the learning rates over 1 - momentum: how far a unit gradient would move a weight."""
    total = math.fsum(learning_rate(recipe, step, steps) for step in range(steps))
    return total / (1 - recipe.momentum)


IMAGENET = Regime(warmup=10 / 146, final_fraction=0.975**136, averaging_window=0.219, exposure=17.3)
"""The paper's regime for softmax: 10 epochs of warm-up to 1.6, then x 0.975 per epoch until epoch 146, with
312.8 steps per epoch; weight decay 8e-5, momentum 0.9, averaging 0.9999."""


def matched(recipe: Recipe) -> Recipe:
    """Return the recipe in the paper's regime: its shares of warm-up, decay and averaging, and its exposure.

    The regime does not depend on the number of steps or the learning rate. Weight decay is given as
    exposure, so that a longer run, or one with another learning rate, accumulates the same amount.

    >>> recipe = matched(Recipe(epochs=28))
    >>> [round(value, 3) for value in (recipe.warmup, recipe.final_fraction, recipe.averaging_window)]
    [0.068, 0.032, 0.219]
    >>> round(regime(recipe, 8960).exposure, 1)
    17.3

    Kornblith et al., NeurIPS 2021, appendix A.1.
    """
    return dataclasses.replace(recipe, schedule="exponential", averaging_momentum=None, **vars(IMAGENET))
