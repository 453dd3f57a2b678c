"""What an objective is assembled of: its components' functions, tried once, so that a wrong one is named."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
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

    Raise RequestError unless it takes features [n m] to finite ones [n num_features] of its own, and leaves
    those that it is given as they are: regularisers see them too.
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
    with torch.no_grad(), unchanged("projector", component.name, {"features": features}):
        tried = made(features)
        expect_form("projector", component.name, tried, (2, width), torch.float32)
    _expect_finite("projector", component.name, tried)
    return made.train()


def make_fixed_weight(
    component: Component, num_classes: int, width: int, generator: torch.Generator
) -> Tensor:
    """Return the weight of a fixed head; raise RequestError unless it is [k m] and finite."""
    made = component_function(component)(num_classes, width, generator)
    expect_form("fixed head", component.name, made, (num_classes, width), torch.float32)
    weight: Tensor = made.detach()
    _expect_finite("fixed head", component.name, weight, "weights")
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
    features = torch.rand(n, num_features, generator=generator, dtype=head.weight.dtype, device="cpu")
    one_hot = torch.eye(k, dtype=head.weight.dtype, device="cpu")

    def tried(rows: slice, classes: Tensor) -> Tensor:
        leaf = features[rows].clone().requires_grad_()
        inputs = {"features": leaf.clone(), "targets": one_hot[classes[rows]]}
        with unchanged("regulariser", component.name, inputs, head):
            values = regulariser(*inputs.values(), head)
        expect_form("regulariser", component.name, values, (len(leaf),), features.dtype)
        _expect_finite("regulariser", component.name, values)
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
    return not all(torch.allclose(alone, of[:1], rtol=1e-4, atol=1e-6) for of in (values, alike))


@contextlib.contextmanager
def unchanged(kind: str, name: str, inputs: Mapping[str, Tensor], head: Head | None = None) -> Iterator[None]:
    """Raise RequestError afterwards if a component has changed its inputs in place, or the head's weights.

    So it is of a change to the same values too, which the way back through the network would not stand.
    """
    given = {**inputs, **({} if head is None else dict(head.named_parameters()))}
    before = {what: (values.detach().clone(), _version(values)) for what, values in given.items()}
    changes = f"{kind} '{name}' changes its {{}} in place; others read it"
    try:
        yield
    except RuntimeError as error:
        if "in-place operation" not in str(error):
            raise
        raise RequestError(changes.format("head" if "leaf" in str(error) else "inputs")) from None
    now = {**inputs, **({} if head is None else dict(head.named_parameters()))}
    for what, values in given.items():
        were, version = before[what]
        is_same = now.get(what) is values and _version(values) == version
        if not is_same or not torch.allclose(were, values.detach(), rtol=0, atol=0, equal_nan=True):
            raise RequestError(changes.format(what if what in inputs else "head"))


def _version(values: Tensor) -> int:
    """Return how often a tensor was changed in place; in inference mode that is not counted."""
    return 0 if values.is_inference() else values._version


def _expect_finite(kind: str, name: str, values: Tensor, what: str = "values") -> None:
    if not values.isfinite().all():
        got = f", got {values.tolist()}" if values.ndim == 1 else ""
        raise RequestError(f"{kind} '{name}' must return finite {what}{got}")


def expect_form(kind: str, name: str, value: Any, expected: tuple[int, ...], dtype: torch.dtype) -> None:
    actual = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
    if actual != list(expected):
        hint = FORMS.get(kind, "one value per example")
        raise RequestError(f"{kind} '{name}' must return {hint}, {list(expected)} here, got {actual}")
    if value.dtype != dtype:
        raise RequestError(f"{kind} '{name}' must return {dtype}, like its inputs, got {value.dtype}")


def added(per_example: Tensor, values: Tensor, component: Component) -> Tensor:
    """Return the sum; raise RequestError for values of another form, which may depend on the batch."""
    if not isinstance(values, Tensor) or values.shape != per_example.shape:
        expect_form(component.kind, component.name, values, tuple(per_example.shape), per_example.dtype)
    return per_example + values


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
