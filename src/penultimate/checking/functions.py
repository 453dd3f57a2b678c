"""The checks of a loss, a head and a penalty that go beyond their form: targets, direction, extremes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from penultimate.checking.examination import Check, Examined, signature_of
from penultimate.checking.forms import SIZES, Form, Tensors
from penultimate.checking.report import WrongError
from penultimate.objectives.heads import Head, linear
from penultimate.objectives.losses import needs_class_counts
from penultimate.objectives.objective import objective

EXTREME = 1e4
FINITE_VALUE = (
    "Compute the logarithms of probabilities with log_softmax or logsigmoid, never softmax(...).log(), and"
    " log(1 + exp(z)) with softplus."
)
FINITE_GRADIENT = (
    "The slope of a root, a norm or a power below 1 is infinite at 0, and NaN wherever infinity meets 0;"
    " torch.where and clamp do not help after that: change what goes into the root, not what comes out."
)


class _WithHead(nn.Module):
    """Module that gives a penalty a real head whose weight and bias can be any tensors."""

    def __init__(self, penalty: Callable[..., Any], weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.penalty = penalty
        self.head = Head(linear, {}, weight.detach(), bias.detach())

    def forward(self, logits: Tensor) -> Any:
        return self.penalty(logits, self.head)


def _penalised(penalty: Callable[..., Any], given: Tensors) -> Any:
    caller = _WithHead(penalty, given["weight"], given["bias"])
    weights = {"head.weight": given["weight"], "head.bias": given["bias"]}
    return functional_call(caller, weights, (given["logits"],))


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
    invoke=_penalised,
    smooth=("logits", "weight", "bias"),
    needed=(("logits", "weight", "bias"),),
)


def _one_hot(labels: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.eye(SIZES["k"], dtype=dtype)[labels]


def _extreme_logits(labels: Tensor) -> dict[str, Tensor]:
    """Return extreme logits of every kind, by their description in an error message."""
    right = 2 * _one_hot(labels) - 1
    size = f"{EXTREME:g}"
    return {
        f"at logits of {size} for the right class and -{size} for the others": EXTREME * right,
        f"at logits of -{size} for the right class and {size} for the others": -EXTREME * right,
        f"at logits that are all {size}": torch.full_like(right, EXTREME),
        f"at logits that are all -{size}": torch.full_like(right, -EXTREME),
        "at logits that are all 0 (dead features)": torch.zeros_like(right),
    }


def _form_of(examined: Examined) -> Form:
    return COUNTED_LOSS if needs_class_counts(examined.function) else LOSS


def _given(form: Form, logits: Tensor, targets: Tensor) -> Tensors:
    """Return what a loss of this form receives: these logits and targets, and class counts if it asks."""
    return {**form.draw(dtype=logits.dtype), "logits": logits, "targets": targets}


def loss_targets(examined: Examined) -> str:
    """Check that the whole distribution of a target matters, and not only its largest entry."""
    form = _form_of(examined)
    logits = form.draw()["logits"]
    labels = torch.arange(SIZES["n"]) % SIZES["k"]
    hard = _one_hot(labels, logits.dtype)
    other = hard.roll(1, dims=-1)
    value = form.call(examined, _given(form, logits, hard))
    if torch.equal(value, form.call(examined, _given(form, logits, other))):
        raise WrongError(f"{examined.name} does not depend on its targets.")
    mixed = form.call(examined, _given(form, logits, 0.7 * hard + 0.3 * other))
    if torch.equal(value, mixed):
        raise WrongError(
            f"{examined.name} reads only the largest entry of a target (argmax); Mixup and label smoothing"
            " give distributions: weight by them, as in (targets * values).sum(-1)."
        )
    form.ask_finite(
        examined,
        _given(form, logits, torch.full_like(hard, 1 / SIZES["k"])),
        "for uniform targets",
        (FINITE_VALUE, FINITE_GRADIENT),
    )
    return "soft targets count in full"


def loss_direction(examined: Examined) -> str:
    """Check that a step down the gradient makes the correct class likelier."""
    labels = torch.arange(SIZES["k"])
    generator = torch.Generator().manual_seed(0)
    logits = 0.1 * torch.randn(len(labels), SIZES["k"], generator=generator)
    form = _form_of(examined)
    _, gradients = form.gradients(examined, _given(form, logits, _one_hot(labels)))
    slope = gradients["logits"]
    assert slope is not None
    right = slope.diagonal().mean()
    others = (slope.sum() - slope.diagonal().sum()) / (slope.numel() - len(slope))
    if not right < others:
        raise WrongError(
            f"{examined.name} does not fall as the correct class becomes likelier; is a minus sign missing?"
        )
    return "falls as the correct class becomes likelier"


def loss_extremes(examined: Examined) -> str:
    labels = torch.arange(SIZES["n"]) % SIZES["k"]
    hard = _one_hot(labels)
    form, hints = _form_of(examined), (FINITE_VALUE, FINITE_GRADIENT)
    for where, logits in _extreme_logits(labels).items():
        for targets in (hard, 0.7 * hard + 0.3 / SIZES["k"]):
            form.ask_finite(examined, _given(form, logits, targets), where, hints)
    return f"finite, with a finite gradient, at logits of +-{EXTREME:g} and 0 (float32)"


def head_zero_features(examined: Examined) -> str:
    """Check that a dead example does not spoil the gradient of the weights for the whole batch."""
    tensors = HEAD.draw(dtype=torch.float32)
    tensors["features"][2] = 0
    hints = ("Divide by a norm only where it is not 0.", FINITE_GRADIENT)
    HEAD.ask_finite(examined, tensors, "where all features of an example are 0", hints)
    return "finite, with a finite gradient, where all features of an example are 0"


def head_extremes(examined: Examined) -> str:
    tensors = HEAD.draw(dtype=torch.float32)
    for factor in (EXTREME, 1 / EXTREME):
        scaled = {**tensors, "features": factor * tensors["features"]}
        hints = ("Logits grow at most in proportion to the features; a power overflows.", FINITE_GRADIENT)
        HEAD.ask_finite(examined, scaled, f"at features of about {factor:g}", hints)
    return f"finite, with a finite gradient, at features of {1 / EXTREME:g} to {EXTREME:g} (float32)"


def penalty_extremes(examined: Examined) -> str:
    tensors = PENALTY.draw(dtype=torch.float32)
    labels = torch.arange(SIZES["n"]) % SIZES["k"]
    for where, logits in _extreme_logits(labels).items():
        PENALTY.ask_finite(examined, {**tensors, "logits": logits}, where, (FINITE_VALUE, FINITE_GRADIENT))
    return f"finite, with a finite gradient, at logits of +-{EXTREME:g} and 0 (float32)"


def as_objective(examined: Examined) -> str:
    """Check that the plug-in works as part of an objective, and that a gradient reaches the final layer."""
    counts = torch.arange(SIZES["k"]) + 1
    built = objective(examined.name, num_features=6, num_classes=SIZES["k"], class_counts=counts)
    features = torch.rand(SIZES["n"], 6, requires_grad=True) * 1  # the output of a network that is trained
    loss = built.loss(features, torch.arange(SIZES["n"]) % SIZES["k"]).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    gradient = built.head.weight.grad
    if gradient is None or not gradient.isfinite().all():
        raise WrongError(f"as the objective '{built.spec}' it gives the final layer no finite gradient.")
    sums = built.probabilities(built(features)).sum(-1)
    if not torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        raise WrongError(f"as the objective '{built.spec}' its class probabilities do not sum to 1.")
    return f"runs as the objective '{built.spec}'"


def _form_checks(form: Form) -> list[Check]:
    return [
        Check("shape", form.ask_shape, essential=True),
        Check("dtype", form.ask_dtype, essential=True),
        Check("device", form.ask_device),
        Check("values", form.ask_values, essential=True),
        Check("inputs", form.ask_inputs, essential=True),
        Check("gradient", form.ask_gradient, essential=True),
        Check("slope", form.ask_slope),
        Check("examples", form.ask_examples),
        Check("classes", form.ask_classes),
    ]


def _loss_checks(form: Form) -> tuple[Check, ...]:
    return (
        signature_of(tuple(form.inputs), keyword_only=True),
        *_form_checks(form),
        Check("targets", loss_targets),
        Check("direction", loss_direction),
        Check("extreme logits", loss_extremes),
        Check("objective", as_objective),
    )


LOSS_CHECKS, COUNTED_LOSS_CHECKS = _loss_checks(LOSS), _loss_checks(COUNTED_LOSS)
HEAD_CHECKS = (
    signature_of(("features", "weight", "bias"), keyword_only=True),
    *_form_checks(HEAD),
    Check("zero features", head_zero_features),
    Check("extreme features", head_extremes),
    Check("objective", as_objective),
)
PENALTY_CHECKS = (
    signature_of(("logits", "head"), keyword_only=True),
    *_form_checks(PENALTY),
    Check("extreme logits", penalty_extremes),
    Check("objective", as_objective),
)
