"""The checks of the parts of an objective: losses, heads, penalties, regularisers and fixed heads.

These functions differ in their inputs and outputs. Once those are written down axis by axis ("logits nk",
"weight km"), one set of checks serves all: permuting the classes permutes every axis k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.gradcheck import GradcheckError
from torch.func import functional_call

from penultimate.checking.examination import Check, Examined, WrongError, kind_of, signature
from penultimate.objectives.heads import Head, linear
from penultimate.objectives.losses import needs_class_counts
from penultimate.objectives.objective import objective
from penultimate.userfile import first_line

N, K, M = 7, 5, 4
"""Numbers of examples, classes and features, all different, so that a wrong axis is noticed."""
OF_LOGARITHMS = (
    "Compute the logarithms of probabilities with log_softmax or logsigmoid, never softmax(...).log(), and"
    " log(1 + exp(z)) with softplus; add a small number to what goes into another logarithm or a quotient"
)
OF_ROOTS = (
    "The slope of a root, a norm or a power below 1 is infinite at 0, and NaN wherever infinity meets 0;"
    " torch.where and clamp do not help after that: change what goes into the root, not what comes out"
)

Tensors = dict[str, Tensor]


class _WithHead(nn.Module):
    """Module that gives a function a real head whose weight, bias and centres can be any tensors."""

    def __init__(self, function: Callable[..., Any], of_head: Tensors) -> None:
        super().__init__()
        self.function = function
        weight, bias = of_head["weight"].detach(), of_head["bias"].detach()
        self.head = Head(linear, {}, weight, bias, centres=of_head.get("centres", weight).detach())

    def forward(self, *given: Tensor) -> Any:
        return self.function(*given, self.head)


def _with_head(function: Callable[..., Any], given: Tensors) -> Any:
    of_head = {name: values for name, values in given.items() if name in ("weight", "bias", "centres")}
    others = tuple(values for name, values in given.items() if name not in of_head)
    weights = {f"head.{name}": values for name, values in of_head.items()}
    return functional_call(_WithHead(function, of_head), weights, others)


LOSS = {"logits": "nk", "targets": "nk"}
INPUTS: dict[str, dict[str, str]] = {
    "loss": LOSS,
    "head": {"features": "nm", "weight": "km", "bias": "k"},
    "penalty": {"logits": "nk", "weight": "km", "bias": "k"},
    "regulariser": {"features": "nm", "targets": "nk", "weight": "km", "bias": "k", "centres": "km"},
}
"""The inputs of each kind, with a letter for each axis: n examples, k classes, m features."""
NEEDED = {"loss": ("logits",), "head": ("features", "weight"), "regulariser": ("features",)}
"""The inputs on which the value must depend; a penalty may depend on any."""
CONSTANT = ("targets", "class_counts")
"""The inputs by which nothing is differentiated."""
HINTS = {
    "n": "Sum over the classes alone: .sum(-1), no .mean() and no .squeeze(); expand(n) repeats a value",
    "nk": "The plain logits are features @ weight.T + bias",
}


class Part(Examined):
    """A part of an objective under examination."""

    @property
    def inputs(self) -> dict[str, str]:
        return LOSS | {"class_counts": "k"} if needs_class_counts(self.function) else INPUTS[self.kind]

    @property
    def output(self) -> str:
        return "nk" if self.kind == "head" else "n"

    def draw(self, examples: int = N, dtype: torch.dtype = torch.float64) -> Tensors:
        """Return ordinary inputs.

        Weights are unit normal, logits twice that, features non-negative as after a ReLU, targets one-hot and
        soft in turn, and class counts unequal.
        """
        generator = torch.Generator().manual_seed(0)
        sizes = {"n": examples, "k": K, "m": M}
        drawn = {}
        for name, axes in self.inputs.items():
            values = torch.randn([sizes[axis] for axis in axes], generator=generator, dtype=torch.float64)
            if name == "logits":
                values = 2 * values
            elif name == "features":
                values = values.abs()
            elif name == "class_counts":
                values = 10.0 * torch.arange(1, K + 1, dtype=torch.float64)
            elif name == "targets":
                is_hard = torch.arange(examples)[:, None] % 2 == 0
                values = torch.where(is_hard, one_hot(examples, torch.float64), values.softmax(-1))
            drawn[name] = values.to(dtype)
        return drawn

    def invoke(self, tensors: Tensors) -> Tensor:
        """Return the function's value on copies of the inputs, which it must leave as they are.

        As in training, a regulariser may ask for a gradient by the features.
        """
        copies = {name: values.clone() for name, values in tensors.items()}
        if self.kind == "regulariser" and not copies["features"].requires_grad:
            copies["features"] = copies["features"].requires_grad_().clone()
        is_of_head = self.kind in ("penalty", "regulariser")
        value: Tensor
        value = _with_head(self.function, copies) if is_of_head else self.function(*copies.values())
        for name, values in tensors.items():
            if values.device.type == "cpu" and not torch.equal(values, copies[name]):
                raise WrongError(
                    f"changes its {name} in place; replace += and the like by what makes a new one"
                )
        return value

    def call(self, tensors: Tensors) -> Tensor:
        """Return the function's value; if it raises, the shapes and the dtype are said."""
        listed = ", ".join(f"{name} [{' '.join(map(str, each.shape))}]" for name, each in tensors.items())
        self.given = f"{listed}, {next(iter(tensors.values())).dtype}"
        if "targets" in tensors:
            self.given += "; targets are always distributions [n k], never class indices"
        return self.invoke(tensors)

    def call_on(self, axis: str, index: Tensor) -> Tensor:
        """Return the value on ordinary inputs with some entries of an axis, wherever that axis occurs."""
        places = {name: axes.find(axis) for name, axes in self.inputs.items()}
        drawn = self.draw().items()
        chosen = {
            name: each if places[name] < 0 else each.index_select(places[name], index) for name, each in drawn
        }
        return self.call(chosen)

    def gradients(self, tensors: Tensors) -> tuple[Tensor, dict[str, Tensor | None]]:
        """Return the function's value, and the gradient of its sum by each smooth input (None if unused)."""
        smooth = [name for name in tensors if name not in CONSTANT]
        leaves = {
            name: values.detach().requires_grad_() if name in smooth else values
            for name, values in tensors.items()
        }
        value = self.call(leaves)
        if not value.requires_grad:
            raise WrongError(
                "carries no gradient; .detach(), .item(), torch.no_grad, NumPy or argmax cuts it"
            )
        slopes = torch.autograd.grad(value.sum(), [leaves[name] for name in smooth], allow_unused=True)
        return value.detach(), dict(zip(smooth, slopes, strict=True))


def one_hot(examples: int = N, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return targets of class 0, 1, 2 and so on."""
    return torch.eye(K, dtype=dtype)[torch.arange(examples) % K]


def _is_close(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and torch.allclose(first, second, rtol=1e-6, atol=1e-8)


def _worst(values: Tensor) -> str:
    return "NaN" if values.isnan().any() else "infinite"


def shape(part: Part) -> str:
    """Check that there is a value, or a row of logits, for each example."""
    output = part.output
    axes = f"[{' '.join(output)}]"
    for count in (N, 1):
        value = part.call(part.draw(count, torch.float32))
        if not isinstance(value, Tensor):
            raise WrongError(f"returns {kind_of(value)}; return a torch.Tensor {axes}")
        found, expected = list(value.shape), [{"n": count, "k": K}[axis] for axis in output]
        if found != expected:
            whole = f"return {axes}, {expected} here. {HINTS[output]}"
            raise WrongError(f"returns {found} for {count} examples; {whole}")
    return f"It returns {'one value per example' if output == 'n' else 'logits'}, {axes}"


def values(part: Part) -> None:
    """It is finite on ordinary inputs, and the same every time."""
    first, second = (part.call(part.draw()) for _ in range(2))
    if not first.isfinite().all():
        hint = ". Is it the logarithm of a target that is 0? torch.xlogy(t, t) is 0 there"
        raise WrongError(f"is {_worst(first)} on ordinary inputs{hint if 'targets' in part.inputs else ''}")
    if not torch.equal(first, second):
        raise WrongError(
            "gives different values for the same inputs; draw nothing at random and keep no state"
        )


def gradient(part: Part) -> str:
    """Check that the value depends on its inputs."""
    gradients = {name: each for name, each in part.gradients(part.draw())[1].items() if each is not None}
    for name in NEEDED.get(part.kind, ()):
        if name not in gradients:
            raise WrongError(f"does not depend on {name}, or its gradient is cut")
        if not gradients[name].any():
            steps = "a step (round, sign, a comparison) passes nothing on"
            raise WrongError(f"has a gradient by {name} that is 0 everywhere: {steps}")
    return f"A gradient reaches {' and '.join(gradients)}"


def slope(part: Part) -> None:
    """Its gradient is the slope of its value (torch.autograd.gradcheck, float64)."""
    tensors = part.draw()
    for name in [name for name, each in part.gradients(tensors)[1].items() if each is not None]:

        def value_at(values: Tensor, name: str = name) -> Tensor:
            return part.call({**tensors, name: values})

        try:
            torch.autograd.gradcheck(value_at, tensors[name].detach().requires_grad_())
        except GradcheckError as error:
            raise WrongError(
                f"has a gradient by {name} that is not the slope of its value (torch.autograd.gradcheck):"
                " part of it is detached, which may be on purpose, or rounded, or its own backward is wrong"
            ) from error


def device(part: Part) -> None:
    """It follows its inputs to another device."""
    drawn, first = part.draw(dtype=torch.float32), next(iter(part.inputs))
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):  # fake tensors, without values, stand for a GPU
            moved = {name: torch.empty(each.shape, device="cuda") for name, each in drawn.items()}
            on_cpu = part.invoke(moved).device.type != "cuda"
    except (Exception, SystemExit) as error:
        # An attempt to read a value (.item(), a mask) fails too, but says nothing about a GPU; nor does one
        # to take a gradient, for which torch asks a real GPU (hasPrimaryContext).
        line = first_line(error)
        on_cpu = "device" in line and "PrimaryContext" not in line
    if on_cpu:
        helps = f"torch.arange(..., device={first}.device), or torch.zeros_like({first})"
        raise WrongError(
            f"creates a tensor on the CPU when its {first} are on a GPU; name the device: {helps}"
        )


def classes(part: Part) -> None:
    """It treats all classes alike."""
    order, output = torch.tensor([2, 0, 4, 1, 3]), part.output
    value = part.call(part.draw())
    expected = value.index_select(output.index("k"), order) if "k" in output else value
    if not _is_close(part.call_on("k", order), expected):
        raise WrongError(
            "changes when the classes are reordered; a class has no number: do not use its index, and weight"
            " all classes alike"
        )


def examples(part: Part) -> None:
    """It treats each example alone."""
    whole = part.call(part.draw())
    for index in torch.arange(N)[:, None]:
        if not _is_close(part.call_on("n", index), whole[index]):
            raise WrongError(
                "gives an example a value that depends on the others of its batch; sum, normalise and compare"
                " along the last axis (dim=-1), not along the batch, and take no mean over it"
            )


def targets(part: Part) -> None:
    """Soft targets count in full."""
    hard = one_hot(dtype=torch.float64)
    other = hard.roll(1, dims=-1)
    value, of_other, mixed = (
        part.call({**part.draw(), "targets": each}) for each in (hard, other, 0.7 * hard + 0.3 * other)
    )
    if torch.equal(value, of_other):
        raise WrongError("does not depend on its targets")
    if torch.equal(value, mixed):
        raise WrongError(
            "reads only the largest entry of a target (argmax); Mixup and label smoothing give distributions:"
            " weight by them, as in (targets * values).sum(-1)"
        )


def direction(part: Part) -> None:
    """It falls as the correct class becomes likelier."""
    tensors = part.draw(K, torch.float32)
    near = {**tensors, "logits": tensors["logits"] / 20, "targets": one_hot(K)}
    slopes = part.gradients(near)[1]["logits"]
    assert slopes is not None
    if slopes.diagonal().mean() >= (slopes.sum() - slopes.diagonal().sum()) / (slopes.numel() - K):
        raise WrongError("does not fall as the correct class becomes likelier; is a minus sign missing?")


def _extremes(part: Part) -> Iterator[tuple[str, Tensors]]:
    tensors, right = part.draw(dtype=torch.float32), 2 * one_hot() - 1
    if "logits" in tensors:
        cases = {
            "at logits of 10000 for the right class and -10000 for the others": 1e4 * right,
            "at logits of -10000 for the right class and 10000 for the others": -1e4 * right,
            "at logits that are all 0 (dead features)": 0 * right,
        }
        for where, logits in cases.items():
            for each in (one_hot(), 0.7 * one_hot() + 0.3 / K) if "targets" in tensors else (None,):
                yield where, {**tensors, "logits": logits} | ({} if each is None else {"targets": each})
        return
    features = tensors["features"].clone()
    features[1], features[2:4] = features[0], 0
    yield "where examples are equal, or all features of an example are 0", {**tensors, "features": features}
    for size in (1e4, 1e-4) if part.kind == "head" else ():
        yield f"at features of about {size:g}", {**tensors, "features": size * tensors["features"]}


def extremes(part: Part) -> None:
    """It is finite, with a finite gradient, for very large, very small, equal and dead inputs (float32)."""
    for where, tensors in _extremes(part):
        value, gradients = part.gradients(tensors)
        if not value.isfinite().all():
            raise WrongError(f"is {_worst(value)} {where}. {OF_LOGARITHMS}")
        for name, each in gradients.items():
            if each is not None and not each.isfinite().all():
                raise WrongError(
                    f"is finite {where}, but its gradient by {name} is {_worst(each)}. {OF_ROOTS}"
                )


def as_objective(examined: Examined) -> str:
    """Check that the plug-in works as part of an objective that is trained."""
    built = objective(examined.name, num_features=6, num_classes=K, class_counts=torch.arange(K) + 1)
    features = torch.rand(N, 6, requires_grad=True)
    loss = built.loss(features * 1, torch.arange(N) % K).mean()  # features * 1: a network's output is no leaf
    loss.backward()  # type: ignore[no-untyped-call]
    if not loss.isfinite():
        raise WrongError(f"gives no finite loss as the objective '{built.spec}'")
    return f"It runs as the objective '{built.spec}'"


FIRST: tuple[Check, ...] = (signature, shape, values, gradient)
EVERY: tuple[Check, ...] = (slope, device, classes, extremes, as_objective)
CHECKS: dict[str, tuple[tuple[Check, ...], tuple[Check, ...], type[Examined]]] = {
    "loss": (FIRST, (*EVERY, examples, targets, direction), Part),
    "head": (FIRST, (*EVERY, examples), Part),
    "penalty": (FIRST, (*EVERY, examples), Part),
    "regulariser": (FIRST, EVERY, Part),
    "fixed_head": ((signature,), (as_objective,), Examined),
}
"""The checks of each kind: those whose failure ends the examination, and the others."""
