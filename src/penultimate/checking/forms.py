"""Forms of tensor functions, and the checks that hold for all of them: shapes, dtypes, gradients, symmetries.

The parts of an objective differ in their inputs and outputs. Once these are written down axis by axis
("logits nk", "weight km"), one set of checks serves all: permuting the classes permutes every axis k.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.gradcheck import GradcheckError

from penultimate.checking.examination import Check, Examined, described, kind_of
from penultimate.checking.report import WrongError, require
from penultimate.userfile import first_line

SIZES = {"n": 7, "k": 5, "m": 4}
"""Sizes of the axes, all different, so that a wrong axis is noticed."""

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Form:
    """Inputs and output of a function, with a letter for each axis (n examples, k classes, m features).

    `invoke(function, tensors)` calls the function. `smooth` names the inputs by which it is differentiated.
    `needed` lists groups of inputs; the value must depend on at least one input of each group. `remark` is
    added to the message if the function raises.
    """

    inputs: Mapping[str, str]
    output: str
    invoke: Callable[[Callable[..., Any], Tensors], Any]
    smooth: tuple[str, ...]
    needed: tuple[tuple[str, ...], ...]
    remark: str = ""

    def draw(self, examples: int = SIZES["n"], dtype: torch.dtype = torch.float64) -> Tensors:
        """Return ordinary inputs.

        Weights are unit normal, logits twice that, features non-negative as after a ReLU, targets one-hot and
        soft in turn, and class counts unequal.
        """
        generator = torch.Generator().manual_seed(0)
        sizes = {**SIZES, "n": examples}
        drawn = {}
        for name, axes in self.inputs.items():
            values = torch.randn([sizes[axis] for axis in axes], generator=generator, dtype=torch.float64)
            if name == "logits":
                values = 2 * values
            elif name == "features":
                values = values.abs()
            elif name == "class_counts":
                values = 10.0 * torch.arange(1, sizes["k"] + 1, dtype=torch.float64)
            elif name == "targets":
                hard = torch.eye(SIZES["k"], dtype=torch.float64)[torch.arange(examples) % SIZES["k"]]
                values = torch.where(torch.arange(examples)[:, None] % 2 == 0, hard, values.softmax(-1))
            drawn[name] = values.to(dtype)
        return drawn

    def taken(self, tensors: Tensors, axis: str, index: Tensor) -> Tensors:
        """Return the inputs with entries of one axis selected, or reordered, wherever that axis occurs."""
        return {
            name: values.index_select(self.inputs[name].index(axis), index)
            if axis in self.inputs[name]
            else values
            for name, values in tensors.items()
        }

    def call(self, examined: Examined, tensors: Tensors, remark: str = "") -> Tensor:
        """Return the function's value on copies of the inputs."""
        copies = {name: values.clone() for name, values in tensors.items()}
        value: Tensor = examined.call(
            lambda: self.invoke(examined.function, copies), given=described(tensors) + remark
        )
        return value

    def gradients(self, examined: Examined, tensors: Tensors) -> tuple[Tensor, dict[str, Tensor | None]]:
        """Return the function's value, and the gradient of its sum by each smooth input (None if unused)."""
        leaves = {
            name: values.detach().requires_grad_() if name in self.smooth else values
            for name, values in tensors.items()
        }
        value = self.call(examined, leaves)
        require(
            value.requires_grad,
            f"the value of {examined.name} carries no gradient; something cuts it: .detach(), .item(),"
            " torch.no_grad, NumPy, or argmax.",
        )
        slopes = torch.autograd.grad(value.sum(), [leaves[name] for name in self.smooth], allow_unused=True)
        return value.detach(), dict(zip(self.smooth, slopes, strict=True))

    def checks(self) -> tuple[Check, ...]:
        """Return the checks of every function of this form."""
        return (
            Check("shape", self.ask_shape, essential=True),
            Check("dtype", self.ask_dtype, essential=True),
            Check("device", self.ask_device),
            Check("values", self.ask_values, essential=True),
            Check("inputs", self.ask_inputs, essential=True),
            Check("gradient", self.ask_gradient, essential=True),
            Check("slope", self.ask_slope),
            Check("classes", self.ask_classes),
        )

    def ask_shape(self, examined: Examined) -> str:
        for examples in (SIZES["n"], 1):
            value = self.call(examined, self.draw(examples, torch.float32), self.remark)
            axes = f"[{' '.join(self.output)}]"
            require(
                isinstance(value, Tensor),
                f"{examined.name} returns {kind_of(value)}; return a torch.Tensor {axes}.",
            )
            expected = [{**SIZES, "n": examples}[axis] for axis in self.output]
            shape = list(value.shape)
            require(
                shape == expected,
                f"{examined.name} returns [{' '.join(map(str, shape))}] for {examples} examples; return"
                f" {axes}, {expected} here.{self._hint(shape, examples)}",
            )
        return "returns one value per example, [n]" if self.output == "n" else "returns logits [n k]"

    def _hint(self, shape: list[int], examples: int) -> str:
        if self.output != "n":
            return " Transpose it: features @ weight.T." if shape == [SIZES["k"], examples] else ""
        if not shape and examples > 1:
            return (
                " Reduce nothing: leave out .mean() and .sum(), or sum over the classes alone: .sum(-1)."
                " A value of the weight alone is the same for every example: value.expand(n)."
            )
        if not shape:
            return " .squeeze() drops the axis of a single example too; write .squeeze(-1)."
        return " Sum over the classes, the last axis: .sum(-1)." if SIZES["k"] in shape else ""

    def ask_dtype(self, examined: Examined) -> str:
        first = next(iter(self.inputs))
        for dtype in (torch.float32, torch.float64):
            remark = f"; tensors that it creates must have the dtype of its {first}"
            value = self.call(examined, self.draw(dtype=dtype), remark)
            require(
                value.dtype is dtype,
                f"{examined.name} returns {value.dtype} for inputs of {dtype}; keep their dtype: create"
                f" tensors with {first}.new_tensor(...) or torch.zeros_like({first}), and cast nothing.",
            )
        return "float32 gives float32, float64 gives float64"

    def ask_device(self, examined: Examined) -> str:
        """Check that the device is that of the inputs; fake tensors, without values, stand for a GPU."""
        drawn, first = self.draw(dtype=torch.float32), next(iter(self.inputs))
        try:
            with FakeTensorMode(allow_non_fake_inputs=True):
                moved = {name: torch.empty(values.shape, device="cuda") for name, values in drawn.items()}
                on_cpu = self.invoke(examined.function, moved).device.type != "cuda"
        except (Exception, SystemExit) as error:
            # An attempt to read a value (.item(), a mask) fails too, but says nothing about a GPU; nor does
            # one to take a gradient, for which torch asks a real GPU (hasPrimaryContext).
            told = first_line(error)
            on_cpu = "device" in told and "PrimaryContext" not in told
        require(
            not on_cpu,
            f"{examined.name} creates a tensor on the CPU even when its {first} are on a GPU; name the"
            f" device: torch.arange(..., device={first}.device), or torch.zeros_like({first}).",
        )
        return "follows its inputs to another device"

    def ask_values(self, examined: Examined) -> str:
        tensors = self.draw()
        first, second = self.call(examined, tensors), self.call(examined, tensors)
        hint = " Is it the logarithm of a target that is 0? torch.xlogy(t, t) is 0 there."
        require(
            first.isfinite().all(),
            f"{examined.name} is {_worst(first)} on ordinary inputs.{hint if 'targets' in tensors else ''}",
        )
        require(
            torch.equal(first, second),
            f"{examined.name} gives different values when it is called again with the same inputs (by up to"
            f" {_difference(first, second)}); draw nothing at random and keep no state, so that a run can be"
            " repeated and resumed.",
        )
        return "finite on ordinary inputs, and the same every time"

    def ask_inputs(self, examined: Examined) -> str:
        tensors = self.draw()
        copies = {name: values.clone() for name, values in tensors.items()}
        self.invoke(examined.function, copies)
        for name, values in tensors.items():
            require(
                torch.equal(values, copies[name]),
                f"{examined.name} changes its {name} in place, but others read it later; replace +=, x[...] ="
                " and operations whose name ends in '_' with ones that create a new tensor.",
            )
        return "leaves its inputs as they are"

    def ask_gradient(self, examined: Examined) -> str:
        _, gradients = self.gradients(examined, self.draw())
        reached = [name for name, gradient in gradients.items() if gradient is not None]
        for group in self.needed:
            of_group = [gradients[name] for name in group if name in reached]
            require(
                of_group, f"{examined.name} does not depend on {' or '.join(group)}, or its gradient is cut."
            )
            require(
                any(gradient.any() for gradient in of_group if gradient is not None),
                f"the gradient of {examined.name} by {' and '.join(group)} is 0 everywhere: a step (round,"
                " sign, a comparison) passes nothing on.",
            )
        examined.notes["reached"] = reached
        return f"a gradient reaches {' and '.join(reached)}"

    def ask_slope(self, examined: Examined) -> str:
        tensors = self.draw()
        for name in examined.notes["reached"]:

            def value_at(values: Tensor, name: str = name) -> Tensor:
                return self.call(examined, {**tensors, name: values})

            try:
                torch.autograd.gradcheck(value_at, tensors[name].detach().requires_grad_())
            except GradcheckError as error:
                raise WrongError(
                    f"the gradient of {examined.name} by its {name} is not the slope of its value"
                    " (torch.autograd.gradcheck): part of it is detached or rounded, or its own backward is"
                    " wrong. A part that is detached on purpose shows up here too."
                ) from error
        return "its gradient is the slope of its value (torch.autograd.gradcheck, float64)"

    def ask_examples(self, examined: Examined) -> str:
        tensors = self.draw()
        whole = self.call(examined, tensors)
        for index in torch.arange(SIZES["n"])[:, None]:
            alone = self.call(examined, self.taken(tensors, "n", index), ": one example alone")
            require(
                _close(alone, whole[index]),
                f"the value of {examined.name} for an example depends on the others of its batch (by up to"
                f" {_difference(alone, whole[index])}); sum, normalise and compare along the last axis"
                " (dim=-1), not along the batch, and take no mean over it.",
            )
        return "treats each example alone"

    def ask_order(self, examined: Examined) -> str:
        """Check that a function that compares the examples of a batch ignores their order."""
        tensors, order = self.draw(), torch.arange(SIZES["n"]).flip(0)
        value = self.call(examined, tensors)
        reordered = self.call(examined, self.taken(tensors, "n", order))
        require(
            _close(reordered, value[order]),
            f"{examined.name} gives an example another value when the batch is reordered; an example's place"
            " in its batch means nothing.",
        )
        alone = self.call(examined, self.taken(tensors, "n", order[:1]), ": one example alone")
        if _close(alone, value[order[:1]]):
            return "treats each example alone"
        return "compares the examples of a batch, so that processes cannot share a training with it"

    def ask_classes(self, examined: Examined) -> str:
        tensors, order = self.draw(), torch.tensor([2, 0, 4, 1, 3])
        value = self.call(examined, tensors)
        reordered = self.call(examined, self.taken(tensors, "k", order))
        expected = value.index_select(self.output.index("k"), order) if "k" in self.output else value
        require(
            _close(reordered, expected),
            f"{examined.name} changes (by up to {_difference(reordered, expected)}) when the classes are"
            " reordered; a class has no number: do not use its index, and weight all classes alike.",
        )
        return "treats all classes alike"

    def ask_finite(self, examined: Examined, tensors: Tensors, where: str, hints: tuple[str, str]) -> None:
        """Check that value and gradient are finite on these inputs; `hints` holds advice for each of them."""
        value, gradients = self.gradients(examined, tensors)
        require(value.isfinite().all(), f"{examined.name} is {_worst(value)} {where}. {hints[0]}")
        for name, gradient in gradients.items():
            require(
                gradient is None or gradient.isfinite().all(),
                f"{examined.name} is finite {where}, but its gradient by {name} is"
                f" {_worst(value if gradient is None else gradient)}. {hints[1]}",
            )


def _close(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and torch.allclose(first, second, rtol=1e-6, atol=1e-8)


def _difference(first: Tensor, second: Tensor) -> str:
    return f"{float((first - second).abs().max()):.2g}" if first.shape == second.shape else "its shape"


def _worst(values: Tensor) -> str:
    """Return a word for the worst value that is not finite.

    >>> _worst(torch.tensor([1.0, float("inf")])), _worst(torch.tensor([float("nan"), float("inf")]))
    ('infinite', 'NaN')
    """
    return "NaN" if values.isnan().any() else "infinite"
