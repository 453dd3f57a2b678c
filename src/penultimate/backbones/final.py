"""The final layers of a module, once they are found: how its output follows from theirs, and without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from penultimate.backbones.products import CONVOLUTIONS, averaged

FORMS = {
    "logits": "the output is the layer's, times a number, averaged over its positions if there are several",
    "probabilities": "the output is a softmax or log softmax of that",
    "independent": "the output is a sigmoid, or another increasing function, of that",
    "capped": "the output is a bounded function of that, such as 30 tanh(z / 30)",
    "average": "the output is the average of several layers' (distilled transformers)",
    "sum": "the output is the sum of several layers'",
    "mixed": "the output is made of several layers' in another way",
    "rectified": "the output is the average over the positions after a ReLU (SqueezeNet)",
    "assisted": "the output is the layer's plus half of the next one's maximum over positions (VOLO)",
}
Form: TypeAlias = Literal[
    "logits", "probabilities", "independent", "capped", "average", "sum", "mixed", "rectified", "assisted"
]
ENTANGLED = ("independent", "capped", "mixed", "rectified", "assisted")
"""Forms in which no linear layer maps the features to the logits of a softmax."""


@dataclass(frozen=True)
class Final:
    """The final layers of a module, by name, and how its output is made of theirs, times `factor`.

    `shared` is true if several layers receive the same features, which then count once, and `beside` if
    their outputs stand side by side, as one layer's. A layer that is not a module but a function of a weight
    has the name "".
    """

    layers: tuple[str, ...]
    form: Form
    shared: bool = False
    factor: float = 1.0
    beside: bool = False


def cut(module: nn.Module, final: Final) -> nn.Module:
    """Make the module return its penultimate features, and return it; its layers keep their names."""
    given: dict[str, Tensor] = {}

    def remember(name: str) -> Callable[[nn.Module, Any], None]:
        def fire(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
            given[name] = averaged(layer, inputs[0]).clone()  # a layer may overwrite its input

        return fire

    def features(module: nn.Module, inputs: Any, output: Any) -> Tensor:
        parts = [given.pop(name) for name in final.layers]
        return side_by_side(parts, final.shared)

    for name in final.layers:
        module.get_submodule(name).register_forward_pre_hook(remember(name))
    module.register_forward_hook(features)
    return module


def classifier(module: nn.Module, final: Final) -> nn.Module | None:
    """Return the layer that maps the features to the logits, or an equal one; None if ENTANGLED."""
    layers = [module.get_submodule(name) for name in final.layers]
    if final.form in ENTANGLED:
        return None
    if len(layers) == 1 and not isinstance(layers[0], CONVOLUTIONS) and final.factor == 1:
        return layers[0]
    if not all(isinstance(getattr(layer, "weight", None), Tensor) for layer in layers):
        return None
    share = final.factor / len(layers) if final.form == "average" else final.factor
    weights = [share * layer.weight.detach().flatten(1) for layer in layers]  # type: ignore[operator]
    biases = [
        share * layer.bias.detach() if isinstance(layer.bias, Tensor) else each.new_zeros(len(each))
        for layer, each in zip(layers, weights, strict=True)
    ]
    join = torch.cat if final.beside else _sum
    weight = join(weights) if final.shared else torch.cat(weights, 1)
    has_bias = any(isinstance(layer.bias, Tensor) for layer in layers)
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=has_bias)
    linear.weight = nn.Parameter(weight, requires_grad=False)
    if has_bias:
        linear.bias = nn.Parameter(join(biases), requires_grad=False)
    return linear


def _sum(parts: list[Tensor]) -> Tensor:
    return torch.stack(parts).sum(0)


def side_by_side(parts: list[Tensor], shared: bool) -> Tensor:
    """Return the features of several layers as one; those that are the same count once."""
    return parts[0] if shared or len(parts) == 1 else torch.cat(parts, 1)
