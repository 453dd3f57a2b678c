"""The parameters that weight decay acts on."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from penultimate.objectives.heads import Head
from penultimate.training.recipe import Recipe


def parameter_groups(network: nn.Module, recipe: Recipe, decay: float) -> list[dict[str, Any]]:
    """Return the parameters in groups, as the recipe says: with weight decay, and without.

    If the recipe has a `head_decay`, a third group holds what decays of the final layer. What is not trained
    is in no group, and class centres do not decay.
    """
    norms = _parameters_of(network, nn.modules.batchnorm._BatchNorm)
    final = set() if recipe.head_decay is None else _parameters_of(network, Head)
    decayed: list[Tensor] = []
    undecayed: list[Tensor] = []
    decayed_apart: list[Tensor] = []
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:
            continue
        if id(parameter) in norms:
            decays = recipe.decay_batch_norm
        elif name.endswith("bias"):
            decays = recipe.decay_biases
        else:
            decays = not name.endswith("head.centres")
        of_its_kind = decayed_apart if id(parameter) in final else decayed
        (of_its_kind if decays else undecayed).append(parameter)
    apart = [] if recipe.head_decay is None else [(decayed_apart, recipe.head_decay)]
    groups = [(decayed, decay), (undecayed, 0.0), *apart]
    return [{"params": parameters, "weight_decay": each} for parameters, each in groups]


def _parameters_of(network: nn.Module, kind: type[nn.Module]) -> set[int]:
    """Return the identities of the parameters of a network's modules of a kind."""
    modules = (module for module in network.modules() if isinstance(module, kind))
    return {id(parameter) for module in modules for parameter in module.parameters()}
