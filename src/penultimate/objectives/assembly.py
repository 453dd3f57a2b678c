"""What an objective is assembled of: its components' functions, tried once, so that a wrong one is named."""

from __future__ import annotations

import functools
from typing import Any

import torch
from jaxtyping import Float
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

    Raise RequestError unless it takes features [n m] to its own [n num_features].
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
    features = torch.randn(2, num_features, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
    with torch.no_grad():
        expect_form("projector", component.name, made(features), (2, width), torch.float32)
    return made.train()


def make_fixed_weight(
    component: Component, num_classes: int, width: int, generator: torch.Generator
) -> Tensor:
    """Return the weight of a fixed head; raise RequestError unless it is [k m]."""
    made = component_function(component)(num_classes, width, generator)
    expect_form("fixed head", component.name, made, (num_classes, width), torch.float32)
    weight: Tensor = made.detach()
    return weight


def compares_examples(
    component: Component, regulariser: functools.partial[Any], head: Head, num_features: int
) -> bool:
    """Return whether a regulariser treats the examples of a batch together, after trying it on three.

    They are tried as three classes and as one, for some compare examples of one class alone. Raise
    RequestError unless it returns a value per example.
    """
    n, k = 3, len(head.weight)
    generator = torch.Generator("cpu").manual_seed(0)
    features = torch.rand(n, num_features, generator=generator, dtype=head.weight.dtype, device="cpu")
    one_hot = torch.eye(k, dtype=head.weight.dtype, device="cpu")

    def tried(rows: slice, classes: Tensor) -> Tensor:
        leaf = features[rows].clone().requires_grad_()
        values = regulariser(leaf, one_hot[classes[rows]], head)
        expect_form("regulariser", component.name, values, (len(leaf),), features.dtype)
        found: Tensor = values.detach()
        return found

    places = torch.arange(n)
    cases = (slice(n), places % k), (slice(1), places % k), (slice(n), torch.zeros_like(places))
    try:
        with torch.no_grad():
            values, alone, alike = (tried(*case) for case in cases)
    except RuntimeError as error:  # one that asks for a gradient by the features, as it may in training
        if "require grad" not in str(error):
            raise
        with torch.enable_grad():
            values, alone, alike = (tried(*case) for case in cases)
    return not all(torch.allclose(alone, batch[:1], rtol=1e-4, atol=1e-6) for batch in (values, alike))


def expect_form(kind: str, name: str, value: Any, expected: tuple[int, ...], dtype: torch.dtype) -> None:
    """Raise RequestError unless a component returned a tensor of this shape and dtype."""
    actual = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
    if actual != list(expected):
        hint = FORMS.get(kind, "one value per example")
        raise RequestError(f"{kind} '{name}' must return {hint}, {list(expected)} here, got {actual}")
    if value.dtype != dtype:
        raise RequestError(f"{kind} '{name}' must return {dtype}, like its inputs, got {value.dtype}")


def checked_counts(owner: str, counts: Any, num_classes: int) -> Float[Tensor, " k"]:
    """Return the training images of each class, float32; raise RequestError unless all are positive."""
    if counts is None:
        raise RequestError(
            f"{owner} needs the number of training images of each class. A study counts them; here, give"
            " objective(..., class_counts=[...]) as torch.bincount(labels) returns it"
        )
    found = torch.as_tensor(counts).detach().to("cpu", torch.float32, copy=True)
    if found.shape != (num_classes,):
        raise RequestError(
            f"{owner}: class_counts must hold a number for each of {num_classes} classes, got"
            f" {list(found.shape)}"
        )
    wrong = (~(found.isfinite() & (found > 0))).nonzero()
    if len(wrong):
        place = int(wrong[0])
        raise RequestError(
            f"{owner} needs at least one training image of each class; class {place} has {found[place]:g}"
        )
    return found
