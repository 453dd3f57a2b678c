"""The exponential moving average of a network's weights."""

from __future__ import annotations

import copy
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)


class WeightAverage(Generic[Module]):
    """The moving average of a network: average <- d average + (1 - d) weights.

    d = min(momentum, (1 + t) / (10 + t)) after t steps, so the start is forgotten before the window is full,
    as in TensorFlow's average with `num_updates`. The batch-norm moments are averaged along with the
    parameters, so that both belong to about the same steps; this is our choice, since the paper does not say.
    With a window of at most one step, the average equals the weights.
    """

    def __init__(self, module: Module, momentum: float) -> None:
        self.momentum = momentum
        self.module: Module = copy.deepcopy(module)
        self.module.requires_grad_(False)
        self._pairs = _floats(self.module), _floats(module)
        self._counts = _integers(self.module), _integers(module)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Include the weights after the step numbered 0, 1, ..."""
        decay = min(self.momentum, (1 + step) / (10 + step))
        average, current = self._pairs
        torch._foreach_lerp_(average, current, 1 - decay)

    @torch.no_grad()
    def synchronise(self) -> None:
        """Copy the values that are counted, not averaged: the number of batches that batch norm has seen."""
        for average, current in zip(*self._counts, strict=True):
            average.copy_(current)


def _floats(module: nn.Module) -> list[Tensor]:
    return [value.detach() for value in _tensors(module) if value.is_floating_point()]


def _integers(module: nn.Module) -> list[Tensor]:
    return [value for value in _tensors(module) if not value.is_floating_point()]


def _tensors(module: nn.Module) -> list[Tensor]:
    """Return the tensors of a module, each once, even if several of its parts share it."""
    return list({id(value): value for value in module.state_dict(keep_vars=True).values()}.values())
