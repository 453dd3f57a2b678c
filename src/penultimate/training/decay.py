"""The parameters that weight decay acts on."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from penultimate.training.recipe import Recipe


def parameter_groups(network: nn.Module, recipe: Recipe, decay: float) -> list[dict[str, Any]]:
    """Return the parameters in two groups, with and without weight decay, as the recipe says."""
    norms = {
        id(parameter)
        for module in network.modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm)
        for parameter in module.parameters()
    }
    decayed: list[Tensor] = []
    undecayed: list[Tensor] = []
    for name, parameter in network.named_parameters():
        if id(parameter) in norms:
            decays = recipe.decay_batch_norm
        elif name.endswith("bias"):
            decays = recipe.decay_biases
        else:
            decays = True
        (decayed if decays else undecayed).append(parameter)
    return [
        {"params": decayed, "weight_decay": decay},
        {"params": undecayed, "weight_decay": 0.0},
    ]
