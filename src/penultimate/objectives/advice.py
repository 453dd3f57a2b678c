"""Advice on objectives whose settings suit another number of classes (no tensor library)."""

from __future__ import annotations

from penultimate.objectives.presets import SQUARED_ERROR
from penultimate.specs import Spec

FEW = 100
"""With fewer classes, squared error's defaults give gradients more than ten times as large as on ImageNet."""


def few_classes(term: Spec, num_classes: int) -> str:
    """Return advice if squared error has few classes but the paper's settings, which suit 1000 classes.

    Its gradients are proportional to 1/K: at K = 10 they are 100 times as large as on ImageNet, and training
    ends at chance. Return '' for any other term, and for FEW classes or more.

    >>> from penultimate.objectives.presets import resolve
    >>> few_classes(resolve("squared_error").terms[0], 1000)
    ''
    """
    defaults = {item.name: item.default for item in SQUARED_ERROR.hyperparameters}
    if term.name != SQUARED_ERROR.name or {**defaults, **term.arguments} != defaults or num_classes >= FEW:
        return ""
    chosen = Spec(term.name, {"kappa": 1, "target": 1, "scale": num_classes})
    return (
        f"{Spec(term.name, defaults)} is the paper's choice for 1000 classes; with {num_classes} its"
        f" gradients are {1000 / num_classes:.0f} times as large, and training may end at chance. Set them:"
        f" '{chosen}' is plain squared error; penultimate tune searches for others"
    )
