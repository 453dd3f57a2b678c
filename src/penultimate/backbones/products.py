"""The nodes of a forward pass, and which operations apply a linear layer to what they are given."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor, nn

from penultimate.objectives.heads import Head
from penultimate.objectives.objective import Objective

FINAL = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, Head)
"""Layers in which a classifier may end, besides an objective with a projector, which is one layer."""
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
OPERANDS = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "linear": (0, 1),
    "addmm": (1, 2),
    "baddbmm": (1, 2),
    "mv": (0, 1),
    "addmv": (1, 2),
    "_cdist_forward": (0, 1),
}
"""The positions of the two operands of every matrix product, and of distances to prototypes."""
OF_ONE = ("mv", "addmv")
"""Those with one vector, whose output has a number for each example."""
PACKED = ("linear_dynamic", "linear_dynamic_fp16")
"""Products whose weight is packed (dynamic quantisation)."""
REDUCING = ("sum", "mean", "linalg_vector_norm", "norm")
SPREADING = ("expand", "mul", "sub")
"""Operations that combine features with class vectors, all at once or one; summed over features, a layer."""
ELEMENTWISE = (
    "mul",
    "sub",
    "add",
    "div",
    "abs",
    "pow",
    "square",
    "neg",
    "clone",
    "view",
    "unsqueeze",
    "expand",
)
"""Operations that may stand between SPREADING and REDUCING."""


@dataclass(eq=False)
class TracedTensor:
    """A tensor that depends on the network's input, with the operation and the inputs it came from.

    `inputs` are the operation's arguments, with a TracedTensor in place of each tensor that depends on the
    input. Of the other tensors, single numbers are kept and the rest are None.
    """

    operation: str
    shape: tuple[int, ...]
    inputs: tuple[Any, ...] = ()
    call: Call | None = None
    kept: Tensor | None = None
    """The input of an operation that is SQUASHING or SPREADING, or that may be a division by a norm."""
    stamp: int = 0

    def parents(self) -> Iterator[TracedTensor]:
        """Yield the nodes among the arguments, also those inside lists."""
        for value in self.inputs:
            for one in value if isinstance(value, list | tuple) else (value,):
                if isinstance(one, TracedTensor):
                    yield one


@dataclass(eq=False)
class Call:
    """A linear layer with an input [n m] that depends on the network's input, and `outputs` output numbers.

    `given` is the input averaged over positions, or None if it was not requested. `name` is "" for a layer
    that is not a module of FINAL; `plain` says that its weight is one of the network's own tensors and not
    computed, and `weight` is that tensor's name. `members` are the layers that are this one side by side.
    """

    number: int
    name: str
    given: Tensor | None
    operand: TracedTensor
    outputs: int
    convolves: bool = False
    plain: bool = True
    weight: str = ""
    members: tuple[Call, ...] = ()
    positions: int = 1
    """The number of vectors of each example that it is given."""

    def is_of_vectors(self) -> bool:
        """Return whether the layer receives one vector for each example, not one for each position."""
        return not self.convolves and self.positions <= 1


class Product(NamedTuple):
    """A linear layer that is a function: of what, and its weight, if that is not `packed`.

    `given` returns its input as features, `width` numbers for each example. If the function cannot be the
    network's last layer, `outputs` is 0.
    """

    operand: TracedTensor
    outputs: int
    width: int
    given: Callable[[], Tensor]
    weight: Tensor | None = None
    convolves: bool = False
    packed: bool = False
    first: bool = True


def is_layer(module: nn.Module) -> bool:
    """Return whether a module is a layer in which a classifier may end.

    An objective with a projector is one, so that the features are what it is given, before the projector.
    """
    return isinstance(module, FINAL) or (isinstance(module, Objective) and module.projector is not None)


def product(
    name: str, arguments: tuple[Any, ...], inputs: tuple[Any, ...], output: Tensor, examples: int
) -> Product | None:
    """Return the linear layer that an operation applies to what depends on the input, if it does."""
    if name in ("convolution", "_convolution"):
        return _convolution(arguments, inputs, output)
    if name in REDUCING and isinstance(inputs[0], TracedTensor):
        return _reduction(arguments, inputs[0], output, examples)
    if name == "_trilinear":  # of features with themselves, mostly
        operand = next((one for one in inputs[:3] if isinstance(one, TracedTensor)), None)
        weight = next((of for of, one in zip(arguments[:3], inputs[:3], strict=True) if one is None), None)
        return _unknown(operand, arguments[0], weight) if operand is not None else None
    if name in PACKED:
        values, operand, weight, first = arguments[0], inputs[0], None, True
    elif name in OPERANDS:
        one, other = OPERANDS[name]
        first = isinstance(inputs[one], TracedTensor)
        if first == isinstance(inputs[other], TracedTensor):
            return None
        data = one if first else other
        values, operand = arguments[data], inputs[data]
        weight = arguments[other if first else one]
    else:
        return None
    if not isinstance(operand, TracedTensor):
        return None
    if values.ndim == 1:  # of one example, as in a loop over a batch
        return _unknown(operand, values, weight)
    if not first and name != "_cdist_forward":
        values = values.transpose(-1, -2)
    width = values.shape[-1]
    rows = values.numel() // width if width else 0
    if not rows or rows % examples or (output.ndim < 2 and name not in OF_ONE):
        return None
    outputs = 1 if name in OF_ONE else output.shape[-1] if first else output.shape[-2]

    def given() -> Tensor:
        features: Tensor = values.reshape(examples, -1, width).mean(1)
        return features

    return Product(operand, outputs, width, given, weight, packed=name in PACKED, first=first)


def _unknown(operand: TracedTensor, values: Tensor, weight: Tensor | None) -> Product:
    return Product(operand, 0, values.shape[-1], values.clone, weight)


def _convolution(arguments: tuple[Any, ...], inputs: tuple[Any, ...], output: Tensor) -> Product | None:
    values, weight, operand = arguments[0], arguments[1], inputs[0]
    if not isinstance(operand, TracedTensor) or isinstance(inputs[1], TracedTensor) or arguments[6]:
        return None
    if not _convolves_to_classes(values, weight, output, arguments[8], any(arguments[4])):
        return None
    kernel = weight.shape[2:]
    width = values.shape[1] if set(kernel) == {1} else values.shape[1:].numel()

    def given() -> Tensor:
        return _over_map(values, kernel).clone()

    return Product(operand, weight.shape[0], width, given, weight, convolves=True)


def _reduction(arguments: tuple[Any, ...], of: TracedTensor, output: Tensor, examples: int) -> Product | None:
    """Return the layer of class vectors that were combined with features, and are now summed over these."""
    spread = _spread(of)
    if spread is None or spread.kept is None or output.ndim > 2 or examples not in output.shape:
        return None
    kept, summed = spread.kept, arguments[1] if len(arguments) > 1 else None
    over_examples = isinstance(summed, list | tuple) and {0, -len(of.shape)} & {*summed}
    if kept.numel() * output.numel() != math.prod(of.shape) * examples or (output.ndim < 2 and over_examples):
        return None
    operand = next(one for one in spread.inputs if isinstance(one, TracedTensor))
    features = kept.reshape(examples, -1)
    return Product(operand, output.numel() // examples, features.shape[1], lambda: features)


def may_be_final(layer: nn.Module, values: Tensor, output: Tensor) -> bool:
    """Return whether an input [n ...] of a layer may be the input of a classifier's final layer."""
    if values.ndim < 2 or output.ndim < 2 or len(values) != len(output) or not values.is_floating_point():
        return False
    if not isinstance(layer, CONVOLUTIONS):
        return True
    padded = any(layer.padding) if not isinstance(layer.padding, str) else layer.padding != "valid"
    return _convolves_to_classes(values, layer.weight, output, layer.groups, padded)


def averaged(layer: nn.Module, values: Tensor) -> Tensor:
    """Return the input of a layer that may be final, as features [n m]."""
    if isinstance(layer, CONVOLUTIONS):
        return _over_map(values, layer.kernel_size)
    return values if values.ndim == 2 else values.flatten(1, -2).mean(1)


def _convolves_to_classes(values: Tensor, weight: Tensor, output: Tensor, groups: int, padded: bool) -> bool:
    """Return whether a convolution is a linear layer at each position, or one over the whole map."""
    kernel = tuple(weight.shape[2:])
    if groups > 1 or values.ndim != weight.ndim or not values.is_floating_point():  # or without a batch
        return False
    if set(kernel) == {1} and output.shape[2:] == values.shape[2:]:
        return True
    return kernel == tuple(values.shape[2:]) and output.shape[2:].numel() == 1 and not padded


def _spread(node: TracedTensor) -> TracedTensor | None:
    """Return the operation that spread the one vector from which a node was computed elementwise."""
    found, waiting, seen, size = None, [node], {node}, math.prod(node.shape)
    while waiting:
        one = waiting.pop()
        if one.operation in SPREADING and one.kept is not None:
            if found not in (None, one):
                return None
            found = one
        elif one.operation not in ELEMENTWISE:
            return None
        else:
            for parent in one.parents():  # smaller ones are norms
                if math.prod(parent.shape) == size and parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
    return found


def _over_map(values: Tensor, kernel: Sequence[int]) -> Tensor:
    """Return the input of a convolution as features [n m]: averaged over positions, or the whole map."""
    return values.flatten(2).mean(2) if set(kernel) == {1} else values.flatten(1)
