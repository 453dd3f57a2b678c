"""Training: one loop for every objective, a recipe as data, interrupted anywhere and resumed exactly."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penultimate.training.recipe import Recipe

if TYPE_CHECKING:
    from penultimate.training.loop import TrainingResult, train
    from penultimate.training.network import Network, load_network

_LOCATIONS = {
    "Network": "penultimate.training.network",
    "TrainingResult": "penultimate.training.loop",
    "load_network": "penultimate.training.network",
    "train": "penultimate.training.loop",
}

__all__ = ["Network", "Recipe", "TrainingResult", "load_network", "train"]


def __getattr__(name: str) -> Any:
    if name in _LOCATIONS:
        return getattr(importlib.import_module(_LOCATIONS[name]), name)
    raise AttributeError(f"module 'penultimate.training' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
