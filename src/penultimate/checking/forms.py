"""Forms of tensor functions, and the checks that hold for all of them: shapes, dtypes, gradients, symmetries.

A loss, a head and a penalty differ in their inputs and outputs. Once these are written down axis by axis
("logits nk", "weight km"), one set of checks serves all three: permuting the classes permutes every axis k,
for example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.gradcheck import GradcheckError

from penultimate.checking.examination import Examined, described
from penultimate.checking.report import WrongError, kind_of
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
        if not value.requires_grad:
            raise WrongError(
                f"the value of {examined.name} carries no gradient; something cuts it: .detach(), .item(),"
                " torch.no_grad, NumPy, or argmax."
            )
        slopes = torch.autograd.grad(value.sum(), [leaves[name] for name in self.smooth], allow_unused=True)
        return value.detach(), dict(zip(self.smooth, slopes, strict=True))

    def ask_shape(self, examined: Examined) -> str:
        for examples in (SIZES["n"], 1):
            value = self.call(examined, self.draw(examples, torch.float32), self.remark)
            expected = [{**SIZES, "n": examples}[axis] for axis in self.output]
            if not isinstance(value, Tensor):
                raise WrongError(
                    f"{examined.name} returns {kind_of(value)}; return a torch.Tensor {self._axes()}."
                )
            if list(value.shape) != expected:
                raise WrongError(f"{examined.name} {self._advice(examined, list(value.shape), examples)}")
        return "returns one value per example, [n]" if self.output == "n" else "returns logits [n k]"

    def ask_dtype(self, examined: Examined) -> str:
        for dtype in (torch.float32, torch.float64):
            first = next(iter(self.inputs))
            value = self.call(
                examined,
                self.draw(dtype=dtype),
                f"; tensors that it creates must have the dtype of its {first}",
            )
            if value.dtype is not dtype:
                raise WrongError(
                    f"{examined.name} returns {value.dtype} for inputs of {dtype}; keep their dtype: create"
                    f" tensors with {first}.new_tensor(...) or torch.zeros_like({first}), and cast nothing."
                )
        return "float32 gives float32, float64 gives float64"

    def ask_device(self, examined: Examined) -> str:
        """Check that the device is that of the inputs; fake tensors, without values, stand for a GPU."""
        drawn = self.draw(dtype=torch.float32)
        try:
            with FakeTensorMode(allow_non_fake_inputs=True):
                moved = {name: torch.empty(values.shape, device="cuda") for name, values in drawn.items()}
                device = self.invoke(examined.function, moved).device.type
        except (Exception, SystemExit) as error:
            # An attempt to read a value (.item(), a mask) fails too, but says nothing about a GPU; nor does
            # one to take a gradient, for which torch asks a real GPU (hasPrimaryContext).
            said = first_line(error)
            device = "cpu" if "device" in said and "PrimaryContext" not in said else "cuda"
        if device != "cuda":
            first = next(iter(self.inputs))
            raise WrongError(
                f"{examined.name} creates a tensor on the CPU even when its {first} are on a GPU; name the"
                f" device: torch.arange(..., device={first}.device), torch.zeros_like({first}),"
                f" {first}.new_tensor(...)."
            )
        return "follows its inputs to another device"

    def ask_values(self, examined: Examined) -> str:
        tensors = self.draw()
        first, second = self.call(examined, tensors), self.call(examined, tensors)
        if not first.isfinite().all():
            hint = " Is it the logarithm of a target that is 0? torch.xlogy(t, t) is 0 there."
            hint = hint if "targets" in tensors else ""
            raise WrongError(f"{examined.name} is {_worst(first)} on ordinary inputs.{hint}")
        if not torch.equal(first, second):
            raise WrongError(
                f"{examined.name} gives different values when it is called again with the same inputs"
                f" (by up to {_difference(first, second)}); draw nothing at random and keep no state, so that"
                " a run can be repeated and resumed."
            )
        return "finite on ordinary inputs, and the same every time"

    def ask_inputs(self, examined: Examined) -> str:
        tensors = self.draw()
        copies = {name: values.clone() for name, values in tensors.items()}
        self.invoke(examined.function, copies)
        for name, values in tensors.items():
            if not torch.equal(values, copies[name]):
                raise WrongError(
                    f"{examined.name} changes its {name} in place, but others read it later; replace +=,"
                    " x[...] = and operations whose name ends in '_' with ones that create a new tensor."
                )
        return "leaves its inputs as they are"

    def ask_gradient(self, examined: Examined) -> str:
        tensors = self.draw()
        _, gradients = self.gradients(examined, tensors)
        for group in self.needed:
            if all(gradients[name] is None for name in group):
                raise WrongError(
                    f"{examined.name} does not depend on {' or '.join(group)}, or its gradient is cut."
                )
            if not any(gradients[name] is not None and gradients[name].any() for name in group):  # type: ignore[union-attr]
                raise WrongError(
                    f"the gradient of {examined.name} by {' and '.join(group)} is 0 everywhere: a step"
                    " (round, sign, a comparison) passes nothing on."
                )
        reached = [name for name, gradient in gradients.items() if gradient is not None]
        examined.notes["reached"] = reached
        unused = [name for name in self.smooth if name not in reached]
        remark = f", but not {' and '.join(unused)}" if unused else ""
        return f"a gradient reaches {' and '.join(reached)}{remark}"

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
        for example in range(SIZES["n"]):
            index = torch.tensor([example])
            alone = self.call(examined, self.taken(tensors, "n", index), ": one example alone")
            if not _close(alone, whole[index]):
                raise WrongError(
                    f"the value of {examined.name} for an example depends on the others of its batch (by up"
                    f" to {_difference(alone, whole[index])}); sum, normalise and compare along the last axis"
                    " (dim=-1), not along the batch, and take no mean over it."
                )
        return "treats each example alone"

    def ask_classes(self, examined: Examined) -> str:
        tensors = self.draw()
        order = torch.tensor([2, 0, 4, 1, 3])
        value = self.call(examined, tensors)
        reordered = self.call(examined, self.taken(tensors, "k", order))
        expected = value.index_select(self.output.index("k"), order) if "k" in self.output else value
        if not _close(reordered, expected):
            raise WrongError(
                f"{examined.name} changes (by up to {_difference(reordered, expected)}) when the classes are"
                " reordered; a class has no number: do not use its index, and weight all classes alike."
            )
        return "treats all classes alike"

    def ask_finite(self, examined: Examined, tensors: Tensors, where: str, hints: tuple[str, str]) -> None:
        """Check that value and gradient are finite on these inputs; `hints` holds advice for each of them."""
        value, gradients = self.gradients(examined, tensors)
        if not value.isfinite().all():
            raise WrongError(f"{examined.name} is {_worst(value)} {where}. {hints[0]}")
        for name, gradient in gradients.items():
            if gradient is not None and not gradient.isfinite().all():
                raise WrongError(
                    f"{examined.name} is finite {where}, but its gradient by {name} is {_worst(gradient)}."
                    f" {hints[1]}"
                )

    def _axes(self) -> str:
        return f"[{' '.join(self.output)}]"

    def _advice(self, examined: Examined, shape: list[int], examples: int) -> str:
        n, k, m = examples, SIZES["k"], SIZES["m"]
        actual = f"[{' '.join(map(str, shape))}]"
        expected = f"{self._axes()}, [{' '.join(str({'n': n, 'k': k}[axis]) for axis in self.output)}] here"
        if self.output == "n":
            if not shape and n > 1:
                remedy = "Leave out .mean() or .sum(), or sum over the classes alone: .sum(-1)."
                if examined.entry.kind == "penalty":
                    remedy = "A penalty on the weight alone is the same for all: value.expand(len(logits))."
                return (
                    "returns one number for the whole batch; reduce nothing: return one value per example,"
                    f" [n]. {remedy}"
                )
            if not shape:
                return (
                    "returns [] for a single example, because .squeeze() drops that axis too; write"
                    " .squeeze(-1)."
                )
            advice = {
                (n, k): f"returns {actual}, a value per example and class; sum over the classes: .sum(-1).",
                (k,): f"returns {actual}, a value per class; sum over the classes, the last axis: .sum(-1).",
                (n, 1): f"returns {actual}; drop the last axis: .squeeze(-1).",
            }
        else:
            advice = {
                (k, n): f"returns {actual}, [k n]; transpose it: features @ weight.T.",
                (
                    n,
                    m,
                ): f"returns {actual}, [n m]: features; return logits, features @ weight.T for instance.",
            }
        return advice.get(tuple(shape), f"returns {actual} for {n} examples; return {expected}.")


def _close(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and torch.allclose(first, second, rtol=1e-6, atol=1e-8)


def _difference(first: Tensor, second: Tensor) -> str:
    return f"{float((first - second).abs().max()):.2g}"


def _worst(values: Tensor) -> str:
    """Return a word for the worst value that is not finite.

    >>> _worst(torch.tensor([1.0, float("inf")])), _worst(torch.tensor([float("nan"), float("inf")]))
    ('infinite', 'NaN')
    """
    return "NaN" if values.isnan().any() else "infinite"
