"""One node of the autograd graph for a whole network of units: in a small network, bookkeeping is a cost.

A tape runs the units on batch-innermost tensors in inference mode and records what the backward pass needs;
to autograd it is one function of the images and all parameters. The arithmetic is that of `torch.nn` under
autocast: products in the dtype of the images with float32 accumulation, moments and normalisation in float32,
gradients in the dtype of the parameters (and everything in float64 for a float64 network).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from penultimate.backbones import batch_innermost


@runtime_checkable
class TapedUnit(Protocol):
    """What a tape runs: relu(normalisation(convolution(x)) + residual), the ReLU only if `activate`."""

    convolution: nn.Conv2d
    normalisation: nn.BatchNorm2d
    activate: bool


@dataclass(eq=False, slots=True)
class Recorded:
    """An activation on a tape in memory order and, in the backward pass, its gradient."""

    tape: Tape  # a weak reference: see Tape.steps
    value: Float[Tensor, "c h w n"]
    gradient: Tensor | None = None

    def receive(self, gradient: Tensor) -> None:
        self.gradient = gradient if self.gradient is None else self.gradient.add_(gradient)


class Tape:
    """The units that ran, in order; `backward` runs their gradients in reverse order."""

    def __init__(self, images: Float[Tensor, "c h w n"]) -> None:
        # Steps are passed the tape, and activations refer to it weakly: without a cycle all of them are freed
        # with the graph rather than by the garbage collector.
        self.start = Recorded(weakref.proxy(self), images)
        self.steps: list[Callable[[Tape], None]] = []
        self.gradients: dict[Tensor, Tensor] = {}

    def run(self, unit: TapedUnit, x: Recorded, residual: Recorded | None) -> Recorded:
        """Forward in training mode: with the batch's moments, which also update the running moments."""
        convolution, normalisation, activate = unit.convolution, unit.normalisation, unit.activate
        kernel, gain, shift = convolution.weight, normalisation.weight, normalisation.bias
        geometry = convolution.kernel_size[0], convolution.stride[0], int(convolution.padding[0])
        c, height, _, n = shape = x.value.shape
        matrix = batch_innermost.kernel_matrix(kernel).to(x.value.dtype)
        columns = batch_innermost.columns(x.value, *geometry)
        product = torch.mm(matrix, columns)
        o, count = product.shape
        # Groups of one channel over one "image" that is the whole batch make group norm batch norm.
        flat, groups = (1, o, count), (1, o, count, o)
        y, mean, inverse = torch.native_group_norm(
            product.view(flat), gain, shift, *groups, normalisation.eps
        )
        y = y.view(o, batch_innermost.output_side(height, *geometry), -1, n)
        if residual is not None:
            y.add_(residual.value)
        if activate:
            y.relu_()
        if normalisation.momentum != 0:
            _move_running_moments(normalisation, mean.view(o), inverse.view(o), count)
        result = Recorded(x.tape, y)

        def backward(tape: Tape) -> None:
            g, result.gradient = result.gradient, None
            assert g is not None, "a unit's result was not used"
            if activate:
                g = torch.ops.aten.threshold_backward(g, y, 0)
            to_product, to_gain, to_shift = torch.ops.aten.native_group_norm_backward(
                g.view(flat), product.view(flat), mean, inverse, gain, *groups, [True, True, True]
            )
            to_kernel = torch.mm(to_product.view(o, count), columns.t()).view(o, *kernel.shape[2:], c)
            tape.gradients[kernel] = to_kernel.permute(0, 3, 1, 2)
            tape.gradients[gain], tape.gradients[shift] = to_gain, to_shift
            if residual is not None:
                residual.receive(g)
            if x is not tape.start:
                x.receive(batch_innermost.input_gradient(to_product.view(y.shape), matrix, shape, *geometry))

        self.steps.append(backward)
        return result

    def backward(self) -> None:
        for step in reversed(self.steps):
            step(self)


def _move_running_moments(
    normalisation: nn.BatchNorm2d, mean: Float[Tensor, " c"], inverse: Float[Tensor, " c"], count: int
) -> None:
    # As in BatchNorm2d: unbiased variance; a momentum of None means the plain average over all batches.
    batches = normalisation.num_batches_tracked
    assert batches is not None
    assert normalisation.running_mean is not None
    assert normalisation.running_var is not None
    batches += 1
    share = 1 / int(batches) if normalisation.momentum is None else normalisation.momentum
    variance = (inverse.pow(-2) - normalisation.eps) * (count / (count - 1))
    normalisation.running_mean.lerp_(mean, share)
    normalisation.running_var.lerp_(variance, share)


def record(
    body: Callable[[Recorded], Recorded], images: Float[Tensor, "n c h w"], parameters: Sequence[Tensor]
) -> Float[Tensor, "n m"]:
    """The mean over space of body(images), in float32 or wider; differentiable (once) by `parameters`."""
    result: Tensor = _Recording.apply(body, images, *parameters)
    return result


class _Recording(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, body: Callable[[Recorded], Recorded], images: Tensor, *parameters: Tensor
    ) -> Tensor:
        with torch.inference_mode():
            tape = Tape(batch_innermost.to_batch_innermost(images))
            end = body(tape.start)
        ctx.tape, ctx.end, ctx.parameters = tape, end, parameters
        c, _, _, n = end.value.shape
        wide = end.value.to(torch.promote_types(end.value.dtype, torch.float32))
        return wide.view(c, -1, n).mean(1).t()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        shape, dtype = ctx.end.value.shape, ctx.end.value.dtype
        pixels = shape[1] * shape[2]
        with torch.inference_mode():
            share = (upstream[0].t() / pixels).to(dtype)
            ctx.end.gradient = torch.cat([share] * pixels, dim=1).view(shape)
            ctx.tape.backward()
        gradients, ctx.tape.gradients = ctx.tape.gradients, {}
        return None, None, *(gradients[p].to(p.dtype, copy=True) for p in ctx.parameters)
