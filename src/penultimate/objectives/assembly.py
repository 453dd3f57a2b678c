"""What an objective is assembled of: its components' functions, tried once, so that a wrong one is named."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn

from penultimate.errors import RequestError
from penultimate.objectives.heads import Head
from penultimate.objectives.presets import Component

FORMS = {
    "head": "logits for every class",
    "projector": "its num_features for every example",
    "fixed head": "a weight for every class and feature",
}
"""What a component returns, in the words of an error; all others return a value for every example."""


def component_function(component: Component) -> functools.partial[Any]:
    """Return a component's function with the values of its hyperparameters."""
    return functools.partial(component.resolve(), **component.hyperparameters)


def make_projector(component: Component | None, num_features: int, seed: int) -> nn.Module | None:
    """Return a projector with weights that follow from the seed, or None where there is none.

    Raise RequestError unless it takes features [n m] to [n num_features] of its own.
    """
    if component is None:
        return None
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        made = component_function(component)(num_features)
    width = getattr(made, "num_features", None)
    if not isinstance(made, nn.Module) or not isinstance(width, int) or isinstance(width, bool) or width < 1:
        raise RequestError(
            f"projector '{component.name}' must return an nn.Module with an integer num_features, got"
            f" {type(made).__name__} with num_features={width!r}"
        )
    made.float().eval()  # in training, this would move the moments of batch normalisation
    with torch.no_grad():
        tried = made(torch.zeros(2, num_features, dtype=torch.float32))
        expect_form("projector", component.name, tried, (2, width), torch.float32)
    return made.train()


def make_fixed_weight(
    component: Component, num_classes: int, width: int, generator: torch.Generator
) -> Tensor:
    """Return the weight of a fixed head; raise RequestError unless it is [k m] and finite."""
    made = component_function(component)(num_classes, width, generator)
    expect_form("fixed head", component.name, made, (num_classes, width), torch.float32)
    weight: Tensor = made.detach()
    if not weight.isfinite().all():
        raise RequestError(f"fixed head '{component.name}' must return finite weights")
    return weight


def compares_examples(
    component: Component, regulariser: functools.partial[Any], head: Head, num_features: int
) -> bool:
    """Return whether a regulariser treats the examples of a batch together, after trying it on three.

    They are tried as three classes and as one, for some compare examples of one class alone. Raise
    RequestError unless it returns a finite value per example and leaves its inputs alone.
    """
    n, k = 3, len(head.weight)
    generator = torch.Generator("cpu").manual_seed(0)
    weight = head.weight.clone()
    features = torch.rand(n, num_features, generator=generator, dtype=weight.dtype, device="cpu")
    one_hot = torch.eye(k, dtype=weight.dtype, device="cpu")
    targets = one_hot[torch.arange(n) % k]
    given = features.clone(), targets.clone()
    values = regulariser(*given, head)
    expect_form("regulariser", component.name, values, (n,), features.dtype)
    if not values.isfinite().all():
        raise RequestError(f"regulariser '{component.name}' must return finite values, got {values.tolist()}")
    inputs = {"features": features, "targets": targets, "head": weight}
    for (name, before), after in zip(inputs.items(), (*given, head.weight), strict=True):
        if not torch.equal(before, after):
            raise RequestError(f"regulariser '{component.name}' changes its {name} in place; others read it")
    alone = regulariser(features[:1].clone(), targets[:1].clone(), head)
    expect_form("regulariser", component.name, alone, (1,), features.dtype)
    alike = regulariser(features.clone(), one_hot[torch.zeros_like(torch.arange(n))], head)
    return not all(torch.allclose(alone, of[:1], rtol=1e-4, atol=1e-6) for of in (values, alike))


def expect_form(kind: str, name: str, value: Any, expected: tuple[int, ...], dtype: torch.dtype) -> None:
    actual = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
    if actual != list(expected):
        hint = FORMS.get(kind, "one value per example")
        raise RequestError(f"{kind} '{name}' must return {hint}, {list(expected)} here, got {actual}")
    if value.dtype != dtype:
        raise RequestError(f"{kind} '{name}' must return {dtype}, like its inputs, got {value.dtype}")
