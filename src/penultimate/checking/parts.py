"""The checks of the parts of an objective: losses, heads, penalties, regularisers and fixed heads.

What holds for all of them is checked by their form (`penultimate.checking.forms`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from penultimate.checking.examination import Check, Examined, kind_of, signature_of
from penultimate.checking.forms import SIZES, Form, Tensors
from penultimate.checking.report import require
from penultimate.objectives.heads import Head, linear
from penultimate.objectives.losses import needs_class_counts
from penultimate.objectives.objective import objective

EXTREME = 1e4
HINTS = (
    "Compute the logarithms of probabilities with log_softmax or logsigmoid, never softmax(...).log(), and"
    " log(1 + exp(z)) with softplus.",
    "The slope of a root, a norm or a power below 1 is infinite at 0, and NaN wherever infinity meets 0;"
    " torch.where and clamp do not help after that: change what goes into the root, not what comes out.",
)
"""Advice where a value, or a gradient, is not finite."""


class _WithHead(nn.Module):
    """Module that gives a function a real head whose weight, bias and centres can be any tensors."""

    def __init__(self, function: Callable[..., Any], of_head: Tensors) -> None:
        super().__init__()
        self.function = function
        weight, bias = of_head["weight"].detach(), of_head["bias"].detach()
        self.head = Head(linear, {}, weight, bias, centres=of_head.get("centres", weight).detach())

    def forward(self, *given: Tensor) -> Any:
        return self.function(*given, self.head)


def _with_head(function: Callable[..., Any], given: Tensors, *names: str) -> Any:
    of_head = {name: values for name, values in given.items() if name in ("weight", "bias", "centres")}
    weights = {f"head.{name}": values for name, values in of_head.items()}
    return functional_call(_WithHead(function, of_head), weights, tuple(given[name] for name in names))


def _regularised(regulariser: Callable[..., Any], given: Tensors) -> Any:
    """Call a regulariser; as in training, it may ask for a gradient by the features."""
    features = given["features"]
    if features.requires_grad or not torch.is_grad_enabled():
        return _with_head(regulariser, given, "features", "targets")
    shown = features.detach().requires_grad_().clone()
    value = _with_head(regulariser, {**given, "features": shown}, "features", "targets")
    features.copy_(shown.detach())  # so that a change in place is found
    sloped = any(values.requires_grad for values in given.values())
    return value.detach() if isinstance(value, Tensor) and not sloped else value


LOSS = Form(
    inputs={"logits": "nk", "targets": "nk"},
    output="n",
    invoke=lambda function, given: function(given["logits"], given["targets"]),
    smooth=("logits",),
    needed=(("logits",),),
    remark="; targets are always distributions [n k], never class indices",
)
COUNTED_LOSS = dataclasses.replace(
    LOSS,
    inputs={**LOSS.inputs, "class_counts": "k"},
    invoke=lambda function, given: function(given["logits"], given["targets"], given["class_counts"]),
)
"""The form of a loss that asks for the number of training images of each class."""
HEAD = Form(
    inputs={"features": "nm", "weight": "km", "bias": "k"},
    output="nk",
    invoke=lambda function, given: function(given["features"], given["weight"], given["bias"]),
    smooth=("features", "weight", "bias"),
    needed=(("features",), ("weight",)),
)
PENALTY = Form(
    inputs={"logits": "nk", "weight": "km", "bias": "k"},
    output="n",
    invoke=lambda function, given: _with_head(function, given, "logits"),
    smooth=("logits", "weight", "bias"),
    needed=(("logits", "weight", "bias"),),
)
REGULARISER = Form(
    inputs={"features": "nm", "targets": "nk", "weight": "km", "bias": "k", "centres": "km"},
    output="n",
    invoke=_regularised,
    smooth=("features", "weight", "bias", "centres"),
    needed=(("features",),),
    remark=LOSS.remark,
)


def _one_hot(examples: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.eye(SIZES["k"], dtype=dtype)[torch.arange(examples) % SIZES["k"]]


def _extreme_logits() -> Iterator[tuple[str, Tensor]]:
    """Yield extreme logits of every kind, after their description in an error message."""
    right, size = 2 * _one_hot(SIZES["n"]) - 1, f"{EXTREME:g}"
    yield f"at logits of {size} for the right class and -{size} for the others", EXTREME * right
    yield f"at logits of -{size} for the right class and {size} for the others", -EXTREME * right
    yield "at logits that are all 0 (dead features)", 0 * right


def _form_of(examined: Examined) -> Form:
    return COUNTED_LOSS if needs_class_counts(examined.function) else LOSS


def loss_targets(examined: Examined) -> str:
    """Check that the whole distribution of a target matters, and not only its largest entry."""
    form, hard = _form_of(examined), _one_hot(SIZES["n"], torch.float64)
    tensors, other = form.draw(), hard.roll(1, dims=-1)
    value, of_other, mixed = (
        form.call(examined, {**tensors, "targets": targets})
        for targets in (hard, other, 0.7 * hard + 0.3 * other)
    )
    require(not torch.equal(value, of_other), f"{examined.name} does not depend on its targets.")
    require(
        not torch.equal(value, mixed),
        f"{examined.name} reads only the largest entry of a target (argmax); Mixup and label smoothing give"
        " distributions: weight by them, as in (targets * values).sum(-1).",
    )
    return "soft targets count in full"


def loss_direction(examined: Examined) -> str:
    """Check that a step down the gradient makes the correct class likelier."""
    form, count = _form_of(examined), SIZES["k"]
    tensors = form.draw(count, torch.float32)
    _, gradients = form.gradients(
        examined, {**tensors, "logits": tensors["logits"] / 20, "targets": _one_hot(count)}
    )
    slope = gradients["logits"]
    assert slope is not None
    others = (slope.sum() - slope.diagonal().sum()) / (slope.numel() - count)
    require(
        slope.diagonal().mean() < others,
        f"{examined.name} does not fall as the correct class becomes likelier; is a minus sign missing?",
    )
    return "falls as the correct class becomes likelier"


def extreme_logits(examined: Examined) -> str:
    """Check a loss or a penalty at extreme logits, with hard and with soft targets."""
    form, hard = PENALTY if examined.entry.kind == "penalty" else _form_of(examined), _one_hot(SIZES["n"])
    tensors = form.draw(dtype=torch.float32)
    for where, logits in _extreme_logits():
        for targets in (hard, 0.7 * hard + 0.3 / SIZES["k"]):
            given = {**tensors, "logits": logits, "targets": targets}
            form.ask_finite(examined, {name: given[name] for name in form.inputs}, where, HINTS)
    return f"finite, with a finite gradient, at logits of +-{EXTREME:g} and 0 (float32)"


def head_extremes(examined: Examined) -> str:
    """Check that large, small and dead features do not spoil the gradient of the weights."""
    tensors = HEAD.draw(dtype=torch.float32)
    dead = tensors["features"].clone()
    dead[2] = 0
    cases = {
        f"at features of about {factor:g}": factor * tensors["features"] for factor in (EXTREME, 1 / EXTREME)
    }
    hints = ("Divide by a norm only where it is not 0; a power overflows.", HINTS[1])
    for where, features in {"where all features of an example are 0": dead, **cases}.items():
        HEAD.ask_finite(examined, {**tensors, "features": features}, where, hints)
    return f"finite, with a finite gradient, at features of 0 and {1 / EXTREME:g} to {EXTREME:g} (float32)"


def regulariser_copies(examined: Examined) -> str:
    """Check that examples that are copies of each other, or dead, do not spoil the gradient of the batch."""
    tensors = REGULARISER.draw(dtype=torch.float32)
    tensors["features"][1] = tensors["features"][0]
    tensors["features"][2:4] = 0
    hints = ("Add a small number to what goes into a logarithm or a quotient.", HINTS[1])
    REGULARISER.ask_finite(examined, tensors, "where examples are equal, or all their features 0", hints)
    return "finite, with a finite gradient, where examples are equal or all their features are 0 (float32)"


def as_objective(examined: Examined) -> str:
    """Check that the plug-in works as part of an objective, and that a gradient reaches what is trained."""
    counts = torch.arange(SIZES["k"]) + 1
    built = objective(examined.name, num_features=6, num_classes=SIZES["k"], class_counts=counts)
    leaves = torch.rand(SIZES["n"], 6, requires_grad=True)
    features = leaves * 1  # the output of a network that is trained
    built.loss(features, torch.arange(SIZES["n"]) % SIZES["k"]).mean().backward()  # type: ignore[no-untyped-call]
    fixed = examined.entry.kind == "fixed_head"
    gradient = leaves.grad if fixed else built.head.weight.grad
    require(
        gradient is not None and gradient.isfinite().all() and (gradient.any() or not fixed),
        f"as the objective '{built.spec}' it gives the {'features' if fixed else 'final layer'} no finite"
        " gradient.",
    )
    sums = built.probabilities(built(features)).sum(-1)
    require(
        torch.allclose(sums, torch.ones_like(sums), atol=1e-4),
        f"as the objective '{built.spec}' its class probabilities do not sum to 1.",
    )
    return f"runs as the objective '{built.spec}'"


def _fixed(examined: Examined) -> Any:
    generator, (k, m) = torch.Generator().manual_seed(0), (SIZES["k"], SIZES["m"])
    given = f"{k} classes, {m} features and a generator"
    return examined.call(examined.function, k, m, generator, given=given)


def fixed_weight(examined: Examined) -> str:
    """Check that a constructed weight has its shape, is finite, and comes from the generator alone."""
    made, expected = _fixed(examined), [SIZES["k"], SIZES["m"]]
    shape = list(made.shape) if isinstance(made, Tensor) else kind_of(made)
    require(
        shape == expected and made.dtype is torch.float32 and made.isfinite().all(),
        f"{examined.name} returns {shape} for {expected[0]} classes and {expected[1]} features; return the"
        f" weight [k m], {expected}, finite and of torch.float32.",
    )
    require(
        torch.equal(made, _fixed(examined)),
        f"{examined.name} returns another weight for the same generator; draw from the generator alone, so"
        " that a seed decides it.",
    )
    return "returns the weight [k m], the same for the same generator"


def _loss_checks(form: Form) -> tuple[Check, ...]:
    return (
        signature_of(tuple(form.inputs)),
        *form.checks(),
        Check("examples", form.ask_examples),
        Check("targets", loss_targets),
        Check("direction", loss_direction),
        Check("extreme logits", extreme_logits),
        Check("objective", as_objective),
    )


LOSS_CHECKS, COUNTED_LOSS_CHECKS = _loss_checks(LOSS), _loss_checks(COUNTED_LOSS)
HEAD_CHECKS = (
    signature_of(("features", "weight", "bias")),
    *HEAD.checks(),
    Check("examples", HEAD.ask_examples),
    Check("extreme features", head_extremes),
    Check("objective", as_objective),
)
PENALTY_CHECKS = (
    signature_of(("logits", "head")),
    *PENALTY.checks(),
    Check("examples", PENALTY.ask_examples),
    Check("extreme logits", extreme_logits),
    Check("objective", as_objective),
)
REGULARISER_CHECKS = (
    signature_of(("features", "targets", "head")),
    *REGULARISER.checks(),
    Check("order", REGULARISER.ask_order),
    Check("copies", regulariser_copies),
    Check("objective", as_objective),
)
FIXED_HEAD_CHECKS = (
    signature_of(("num_classes", "num_features", "generator")),
    Check("weight", fixed_weight, essential=True),
    Check("objective", as_objective),
)
