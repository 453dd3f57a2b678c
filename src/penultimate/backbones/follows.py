"""The layers on which an output depends, through operations that may follow a classifier.

No operation that mixes channels, or normalises by a number for each channel as batch normalisation does,
follows a classifier: its output is features.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from torch import Tensor

from penultimate.backbones.products import OPERANDS, Call, TracedTensor

SAME = (
    *("view", "_unsafe_view", "reshape", "_reshape_alias", "squeeze", "unsqueeze", "expand"),
    *("clone", "detach", "alias", "_to_copy", "contiguous", "lift_fresh"),
)
"""Operations after which an output of as many numbers consists of the same ones, in the same order."""
PASSED = (
    *(*SAME, "t", "transpose", "permute", "slice", "select", "dropout"),
    *("native_dropout", "positive", "masked_fill", "unbind", "split"),
)
"""Operations after which an output still consists of the same numbers."""
AVERAGING = ("mean", "avg_pool1d", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
STRONGEST = ("amax", "max", "max_pool2d_with_indices", "adaptive_max_pool2d")
INCREASING = ("sigmoid", "hardsigmoid", "log_sigmoid_forward", "softplus", "exp")
AFTER_SQUASHING = ("log", "clamp", "clamp_min", "clamp_max")
"""Operations on probabilities; applied to anything else, they change the numbers."""
REDUCING = (
    *(*PASSED, *AVERAGING, "linalg_vector_norm", "norm", "sum", "pow"),
    *("sqrt", "rsqrt", "clamp", "clamp_min", "clamp_max", "add", "mul", "div"),
    *(
        "reciprocal",
        "maximum",
        "square",
    ),
)
"""Operations from which a norm is computed."""


RECTIFYING = (
    *("relu", "hardtanh", "gelu", "silu", "elu", "leaky_relu", "hardswish", "mish", "_prelu_kernel"),
    "glu",
)
"""Operations whose output is not class scores, because nobody trains a classifier that ends in them."""
ARITHMETIC = ("add", "sub", "rsub", "mul", "div")


class TracedLayer(NamedTuple):
    """A layer on which an output depends: the factor, the operations between, and the logits if known."""

    call: Call
    factor: float
    through: tuple[str, ...]
    logits: Tensor | None


def parts_of(
    node: TracedTensor, ended: Collection[TracedTensor], factor: float = 1.0, through: tuple[str, ...] = ()
) -> list[TracedLayer]:
    """Return the layers on which an output depends, or none if it also depends on anything else."""
    if node in ended:
        return []
    if node.call is not None:
        return [TracedLayer(node.call, factor, through, None)]
    name, inputs = node.operation, node.inputs
    first = inputs[0] if inputs else None
    second = inputs[1] if len(inputs) > 1 else None

    def on(value: Any, times: float = 1.0, past: str = "") -> list[TracedLayer]:
        if not isinstance(value, TracedTensor):
            return []
        return parts_of(value, ended, factor * times, (*through, past) if past else through)

    if name == "copy":
        return on(second)
    if name in PASSED:
        same = isinstance(first, TracedTensor) and _numbers(first) == _numbers(node)
        return on(first) if same else []
    if name in ("add", "sub", "rsub"):
        alpha = inputs[2] if len(inputs) > 2 and isinstance(inputs[2], int | float) else 1
        signs = {"add": (1, alpha), "sub": (1, -alpha), "rsub": (-alpha, 1)}[name]
        sides = [(value, sign) for value, sign in zip((first, second), signs, strict=True)]
        found = [on(value, sign) for value, sign in sides if isinstance(value, TracedTensor)]
        return [part for parts in found for part in parts] if all(found) else []
    if name in ("mul", "div"):
        one, other = (first, second) if isinstance(first, TracedTensor) else (second, first)
        if isinstance(one, TracedTensor) and isinstance(other, TracedTensor):
            if name == "mul" and _numbers(one) < _numbers(other):
                one, other = other, one
            per_example = _numbers(other) == (node.shape[0] if node.shape else 1) < _numbers(node)
            return on(one, 1.0, "scaled") if per_example else []  # a number for each example, such as a norm
        if other is None or (name == "div" and one is second):
            return []
        number = float(other)
        return on(one, number if name == "mul" else 1 / number) if number else []
    if name in AFTER_SQUASHING:
        parts = on(first)
        return parts if all({"softmax", "increasing"} & {*part.through} for part in parts) else []
    if name == "pow":
        return on(first) if isinstance(first, TracedTensor) and first.operation == "_cdist_forward" else []
    if name == "neg":
        return on(first, -1.0)
    if name in ("mean", "sum") and (stacked := _stacked(first)):
        share = 1 / len(stacked) if name == "mean" else 1.0
        found = [on(value, share) for value in stacked]
        return [part for parts in found for part in parts] if all(found) else []
    if name in ("stack", "cat"):
        return _beside([on(value) for value in first]) if isinstance(first, list) else []
    if name in AVERAGING:
        return on(first, 1.0, "average")
    if name in STRONGEST:
        return on(first, 1.0, "strongest")
    if name == "relu":
        return on(first, 1.0, "relu")
    if name in ("_softmax", "_log_softmax", "tanh", *INCREASING):
        past = "softmax" if name.endswith("softmax") else "increasing"
        if name == "tanh":
            past = "tanh" if abs(factor) == 1 else "cap"
        parts = on(first, 1.0, past)
        kept = node.kept
        return [part._replace(logits=kept) if part.logits is None else part for part in parts]
    return []


def _beside(found: list[list[TracedLayer]]) -> list[TracedLayer]:
    """Return the one layer that several beside each other are, if they are given the same and end alike."""
    parts = [part for parts in found for part in parts]
    if not parts or any(len(parts) != 1 for parts in found):
        return []
    calls, (of, factor, through, _) = [part.call for part in parts], parts[0]
    names = [call.name for call in calls if call.name]
    operands = {features_of(call)[1] for call in calls}
    alike = all((part.factor, part.through) == (factor, through) for part in parts)
    twice = len({*names}) < len(names) or of.members
    if len(operands) > 1 or not alike or twice or not all(call.outputs for call in calls):
        return []
    outputs = sum(call.outputs for call in calls)
    plain = all(call.plain for call in calls)
    whole = Call(of.number, "", of.given, of.operand, outputs, of.convolves, plain, of.weight, tuple(calls))
    return [TracedLayer(whole, factor, through, None)]


def features_of(call: Call) -> tuple[Tensor | None, TracedTensor]:
    """Return the input features of a layer, and their node.

    If the weight is computed (normalised, as in a cosine classifier), a normalisation of the features counts
    as part of the layer.
    """
    node = call.operand
    while not (call.name or call.plain):
        first, second = (*node.inputs, None, None)[:2]
        if node.operation == "mul" and not isinstance(first, TracedTensor):
            first, second = second, first
        if not isinstance(first, TracedTensor):
            break
        if node.operation in ("div", "mul") and isinstance(second, TracedTensor):
            if node.kept is not None and _measures(second, first):
                return node.kept, _origin(first)
            break
        if node.operation not in PASSED and (node.operation not in ("div", "mul") or second is None):
            break
        node = first
    return call.given, _origin(call.operand)


def _origin(node: TracedTensor, through: Collection[str] = SAME) -> TracedTensor:
    """Return the first node that has the same numbers as another; in their order, unless told otherwise."""
    while node.operation in through and isinstance(before := node.inputs[0], TracedTensor):
        if _numbers(before) != _numbers(node):
            break
        node = before
    return node


def behind(node: TracedTensor, ended: Collection[TracedTensor]) -> list[Call] | None:
    """Return the layers on which an output depends in any way, only the nearest one along each path.

    Returns None if a non-linearity or a removed head is nearer. A number for each example does not count.
    """
    waiting, seen, calls = [node], {node}, list[Call]()
    while waiting:
        one = waiting.pop()
        if one in ended or one.operation in RECTIFYING:
            return None
        if (call := one.call or _squared(one)) is not None:
            calls.append(call)
            continue
        for parent in one.parents():
            each = parent.shape[:1] == node.shape[:1] and math.prod(parent.shape[1:]) == 1 < _numbers(one)
            if parent not in seen and not (each and one.operation in ARITHMETIC):
                seen.add(parent)
                waiting.append(parent)
    return calls


def _squared(node: TracedTensor) -> Call | None:
    """Return the layer whose output is multiplied with what it was given, as in a quadratic form."""
    places = OPERANDS.get(node.operation, ())
    found = [one for place in places if isinstance(one := node.inputs[place], TracedTensor)]
    sides = [_origin(one, PASSED) for one in found]
    for one, other in (sides, sides[::-1]) if len(sides) == 2 else ():
        if one.call is not None and _origin(one.call.operand, PASSED) is other:
            return one.call
    return None


def is_normalised(node: TracedTensor) -> bool:
    """Return whether a node was divided by its own norm, as embeddings are."""
    while node.operation in PASSED and isinstance(node.inputs[0], TracedTensor):
        node = node.inputs[0]
    one, other = (*node.inputs, None, None)[:2]
    if node.operation != "div" or not isinstance(one, TracedTensor) or not isinstance(other, TracedTensor):
        return False
    return one.operation != "pow" and _measures(other, one)  # normalised powers of probabilities


def depends(node: TracedTensor, on: Collection[Call]) -> bool:
    """Return whether a node was computed from the output of any of the given layers."""
    return any(one.call in on for one in _before(node) if one.call is not None)


def _measures(value: TracedTensor, of: TracedTensor) -> bool:
    """Return whether a value is a norm of a node, computed from it alone."""
    waiting, seen = [value], {of}
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        if node.operation not in REDUCING:
            return False
        seen.add(node)
        waiting += node.parents()
    return True


def _before(node: TracedTensor) -> Iterator[TracedTensor]:
    """Yield a node, and every node from which it was computed."""
    waiting, seen = [node], set()
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            yield one
            waiting += one.parents()


def _stacked(value: Any) -> list[Any]:
    """Return the tensors of a stack, if a value is one."""
    if not isinstance(value, TracedTensor) or value.operation not in ("stack", "cat") or not value.inputs:
        return []
    listed = value.inputs[0] if isinstance(value.inputs[0], list) else []
    shapes = {one.shape for one in listed if isinstance(one, TracedTensor)}
    return listed if len(shapes) == 1 and all(isinstance(one, TracedTensor) for one in listed) else []


def _numbers(node: TracedTensor) -> int:
    return math.prod(node.shape)
