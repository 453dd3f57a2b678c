"""The interface of a backbone, and how one is built from a spec string."""

from __future__ import annotations

import itertools

import torch
from jaxtyping import Float
from torch import Tensor, nn

from penultimate.errors import RequestError, with_article
from penultimate.registry import entry
from penultimate.specs import parse


class Backbone(nn.Module):
    """Images [n c h w] -> penultimate features [n m], m = `num_features`: after the last ReLU and pooling."""

    num_features: int

    def forward(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n m"]:
        raise TypeError(f"{type(self).__name__} defines no forward(images)")


def device_of(module: nn.Module) -> torch.device:
    """Return the device of a module's first parameter or buffer, or the CPU if it has none.

    >>> device_of(nn.Linear(1, 1)), device_of(nn.ReLU())
    (device(type='cpu'), device(type='cpu'))
    """
    tensors = itertools.chain(module.parameters(), module.buffers())
    return next((tensor.device for tensor in tensors), torch.device("cpu"))


def build(text: str, seed: int = 0) -> Backbone:
    """Return the backbone that a spec names; `seed` alone determines its weights.

    Global generators are unaffected. A plug-in's function or class is called with the spec's arguments and
    returns a module with `num_features`. Convolution kernels are stored channels-last.

    Raises RequestError for an unknown name, for an argument that the backbone does not take or refuses, and
    for a plug-in that returns something else.

    >>> net = build("glyphnet(width=4, features=32)", seed=1)
    >>> net(torch.zeros(2, 3, 24, 24)).shape, net.num_features
    (torch.Size([2, 32]), 32)
    >>> build("glyphnet(depth=3)")
    Traceback (most recent call last):
    penultimate.errors.RequestError: backbone 'glyphnet(depth=3)': ...unexpected keyword argument 'depth'
    """
    spec = parse(text)
    make = entry("backbone", spec.name).resolve()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        try:
            backbone = make(**spec.arguments)
        except TypeError as error:
            raise RequestError(f"backbone '{spec}': {error}") from None
    if not isinstance(backbone, nn.Module) or not isinstance(getattr(backbone, "num_features", None), int):
        raise RequestError(
            f"backbone '{spec.name}' returns {with_article(type(backbone).__name__)};"
            " expected a torch.nn.Module with an integer attribute num_features"
        )
    return backbone.to(memory_format=torch.channels_last)  # type: ignore[return-value]
