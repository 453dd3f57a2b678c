"""The checks of a regulariser and of a fixed head, beside those that any tensor function has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from penultimate.checking.examination import Check, Examined, signature_of
from penultimate.checking.forms import SIZES, Form, Tensors
from penultimate.checking.functions import FINITE_GRADIENT, as_objective
from penultimate.checking.report import WrongError, kind_of
from penultimate.objectives.heads import Head, linear
from penultimate.objectives.objective import objective

OF_HEAD = ("weight", "bias", "centres")


class _Regularised(nn.Module):
    """Module that gives a regulariser a real head whose weight, bias and centres can be any tensors."""

    def __init__(self, regulariser: Callable[..., Any], given: Tensors) -> None:
        super().__init__()
        self.regulariser = regulariser
        weight, bias, centres = (given[name].detach() for name in OF_HEAD)
        self.head = Head(linear, {}, weight, bias, centres=centres)

    def forward(self, features: Tensor, targets: Tensor) -> Any:
        return self.regulariser(features, targets, self.head)


def _regularised(regulariser: Callable[..., Any], given: Tensors) -> Any:
    """Call a regulariser; as in training, it may ask for a gradient by the features."""
    weights, features = {f"head.{name}": given[name] for name in OF_HEAD}, given["features"]
    asked = features.requires_grad or not torch.is_grad_enabled()
    shown = features if asked else features.detach().requires_grad_().clone()
    value = functional_call(_Regularised(regulariser, given), weights, (shown, given["targets"]))
    if asked:
        return value
    features.copy_(shown.detach())  # so that a change in place is found
    sloped = any(given[name].requires_grad for name in OF_HEAD)
    return value.detach() if isinstance(value, Tensor) and not sloped else value


REGULARISER = Form(
    inputs={"features": "nm", "targets": "nk", "weight": "km", "bias": "k", "centres": "km"},
    output="n",
    invoke=_regularised,
    smooth=("features", *OF_HEAD),
    needed=(("features",),),
    remark="; targets are always distributions [n k], never class indices",
)


def regulariser_order(examined: Examined) -> str:
    """Check that the value of an example does not depend on its place in the batch."""
    tensors = REGULARISER.draw()
    order = torch.arange(SIZES["n"]).flip(0)
    value = REGULARISER.call(examined, tensors)
    reordered = REGULARISER.call(examined, REGULARISER.taken(tensors, "n", order))
    if not torch.allclose(reordered, value[order], rtol=1e-6, atol=1e-8):
        raise WrongError(
            f"{examined.name} gives an example another value when the batch is reordered; an example's place"
            " in its batch means nothing."
        )
    alone = REGULARISER.call(examined, REGULARISER.taken(tensors, "n", order[:1]), ": one example alone")
    if torch.allclose(alone, value[order[:1]], rtol=1e-6, atol=1e-8):
        return "treats each example alone"
    return "compares the examples of a batch, so that processes cannot share a training with it"


def regulariser_copies(examined: Examined) -> str:
    """Check that examples that are copies of each other, or dead, do not spoil the gradient of the batch."""
    tensors = REGULARISER.draw(dtype=torch.float32)
    tensors["features"][1] = tensors["features"][0]
    tensors["features"][2:4] = 0
    hints = ("Add a small number to what goes into a logarithm or a quotient.", FINITE_GRADIENT)
    REGULARISER.ask_finite(examined, tensors, "where examples are equal, or all their features 0", hints)
    return "finite, with a finite gradient, where examples are equal or all their features are 0 (float32)"


def _fixed(examined: Examined, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    sizes = SIZES["k"], SIZES["m"]
    made = examined.call(
        examined.function, *sizes, generator, given=f"{sizes[0]} classes, {sizes[1]} features and a generator"
    )
    if not isinstance(made, Tensor):
        raise WrongError(f"{examined.name} returns {kind_of(made)}; return the weight, a torch.Tensor [k m].")
    return made


def fixed_weight(examined: Examined) -> str:
    made, expected = _fixed(examined), [SIZES["k"], SIZES["m"]]
    if list(made.shape) != expected:
        hint = "; transpose it" if list(made.shape) == expected[::-1] else ""
        raise WrongError(
            f"{examined.name} returns {list(made.shape)} for {expected[0]} classes and {expected[1]}"
            f" features; return the weight [k m], {expected}{hint}."
        )
    if made.dtype is not torch.float32:
        raise WrongError(f"{examined.name} returns {made.dtype}; return torch.float32.")
    if not made.isfinite().all():
        raise WrongError(f"{examined.name} returns weights that are not finite.")
    return "returns the weight [k m]"


def fixed_seed(examined: Examined) -> str:
    if not torch.equal(_fixed(examined), _fixed(examined)):
        raise WrongError(
            f"{examined.name} returns another weight for the same generator; draw from the generator alone,"
            " so that a seed decides it."
        )
    return "the same weight for the same generator"


def fixed_classes(examined: Examined) -> str:
    weight = _fixed(examined)
    distances = torch.cdist(weight, weight).fill_diagonal_(torch.inf)
    if not bool((distances > 0).all()):
        raise WrongError(
            f"{examined.name} gives two classes the same weight, so that nothing tells them apart."
        )
    return "every class has a weight of its own"


def fixed_objective(examined: Examined) -> str:
    """Check that it works as an objective, and that a gradient reaches the features and not the weight."""
    built = objective(examined.name, num_features=6, num_classes=SIZES["k"])
    features = torch.rand(SIZES["n"], 6, requires_grad=True)
    built.loss(features, torch.arange(SIZES["n"]) % SIZES["k"]).mean().backward()  # type: ignore[no-untyped-call]
    if features.grad is None or not features.grad.isfinite().all() or not features.grad.any():
        raise WrongError(f"as the objective '{built.spec}' it gives the features no finite gradient.")
    return f"runs as the objective '{built.spec}'"


REGULARISER_CHECKS = (
    signature_of(("features", "targets", "head"), keyword_only=True),
    Check("shape", REGULARISER.ask_shape, essential=True),
    Check("dtype", REGULARISER.ask_dtype, essential=True),
    Check("device", REGULARISER.ask_device),
    Check("values", REGULARISER.ask_values, essential=True),
    Check("inputs", REGULARISER.ask_inputs, essential=True),
    Check("gradient", REGULARISER.ask_gradient, essential=True),
    Check("slope", REGULARISER.ask_slope),
    Check("order", regulariser_order),
    Check("classes", REGULARISER.ask_classes),
    Check("copies", regulariser_copies),
    Check("objective", as_objective),
)
FIXED_HEAD_CHECKS = (
    signature_of(("num_classes", "num_features", "generator"), keyword_only=True),
    Check("weight", fixed_weight, essential=True),
    Check("seed", fixed_seed),
    Check("classes", fixed_classes),
    Check("objective", fixed_objective),
)
