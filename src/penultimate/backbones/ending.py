"""The end of a network: its penultimate features are what its final layer is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from penultimate.objectives.heads import Head

FINAL = (nn.Linear, Head)
"""What a classifier ends in: a linear layer, or the head of an objective."""


class Ending(NamedTuple):
    """The penultimate features [n ...] of a forward pass, and the logits [n k] if it has a final layer."""

    features: Tensor
    logits: Tensor | None


def ending(module: nn.Module, run: Callable[[], Any]) -> Ending | None:
    """How a forward pass of a module ends; `run` makes it and returns its output. None without a tensor.

    If the output [n k] (or its `.logits`, as transformers have it) is that of a linear layer inside the
    module, unchanged, it is taken for logits, and what the layer was given are the features. Any other
    output is the features itself: so of a network whose final layer was cut off, and of a lone layer.

    >>> net = nn.Sequential(nn.Flatten(), nn.ReLU(), nn.Linear(6, 2))
    >>> images = torch.ones(5, 2, 3)
    >>> [list(part.shape) for part in ending(net, lambda: net(images))]
    [[5, 6], [5, 2]]
    >>> ending(net[:2], lambda: net[:2](images)).logits is None
    True
    """
    passed: dict[int, tuple[Tensor, Tensor, int]] = {}

    def remember(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if inputs and isinstance(output, Tensor):
            passed[id(output)] = inputs[0], output, output._version

    layers = [layer for name, layer in module.named_modules() if name and isinstance(layer, FINAL)]
    handles = [layer.register_forward_hook(remember) for layer in layers]
    try:
        with torch.inference_mode(False):  # where tensors do not say whether they were overwritten
            output = run()
    finally:
        for handle in handles:
            handle.remove()
    if not isinstance(output, Tensor):
        output = getattr(output, "logits", None)
    if not isinstance(output, Tensor):
        return None
    features, last, version = passed.get(id(output), (output, None, 0))
    if last is not output or output._version != version or output.ndim != 2:
        return Ending(output, None)
    return Ending(features, output)
