"""A forward pass as a graph of operations, and which of them apply a linear layer to its input.

Operations are observed where PyTorch dispatches them. A layer is therefore seen whether it is called as a
module or as a function, also in a scripted network, and later writes into a tensor are seen too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary, WeakIdRef

from penultimate.objectives.heads import Head

FINAL = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, Head)
"""Layers in which a classifier may end."""
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
OPERANDS = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "linear": (0, 1),
    "addmm": (1, 2),
    "baddbmm": (1, 2),
    "mv": (0, 1),
    "_cdist_forward": (0, 1),
}
"""The positions of the two operands of every matrix product, and of distances to prototypes."""
PACKED = ("linear_dynamic", "linear_dynamic_fp16")
"""Products whose weight is packed (dynamic quantisation)."""
REDUCING = ("sum", "mean", "linalg_vector_norm", "norm")
SPREADING = ("expand", "mul", "sub")
"""Operations that combine features with all class vectors at once; summed over features, they are a layer."""
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
SQUASHING = ("_softmax", "_log_softmax", "sigmoid", "hardsigmoid", "log_sigmoid_forward", "softplus", "exp")
"""Operations whose inputs are kept if they are [n k], because they may be the logits."""


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
    computed, and `weight` is that tensor's name.
    """

    number: int
    name: str
    given: Tensor | None
    operand: TracedTensor
    outputs: int
    convolves: bool = False
    plain: bool = True
    weight: str = ""

    def is_of_vectors(self) -> bool:
        """Return whether the layer receives one vector for each example, not one for each position."""
        return not self.convolves and sum(size > 1 for size in self.operand.shape[1:]) <= 1


@dataclass(eq=False)
class Trace:
    """The known facts of a module's forward pass; `of` gives the node of a tensor.

    `wanted` holds the numbers of the calls whose features are kept; None keeps all.
    """

    own: Mapping[int, str] = field(default_factory=dict)
    """The names of the module's parameters and buffers, by storage."""
    wanted: Collection[int] | None = None
    ended: set[TracedTensor] = field(default_factory=set)
    """The input nodes of a removed head (an Identity in its place)."""
    started: bool = False
    _examples: int = 0
    _calls: int = 0
    _open: list[str] = field(default_factory=list)
    _nodes: Any = field(default_factory=lambda: WeakIdKeyDictionary(ref_type=WeakIdRef))
    _written: dict[int, tuple[int, TracedTensor]] = field(default_factory=dict)
    """For each storage, how often it was written to, and which node wrote last."""

    def start(self, values: Any) -> None:
        """Record the tensors among a module's arguments as the input."""
        self.started = True
        for tensor in _tensors(values):
            self._examples = self._examples or (len(tensor) if tensor.ndim else 0)
            self._register(tensor, TracedTensor("input", tuple(tensor.shape)))

    def of(self, tensor: Tensor) -> TracedTensor | None:
        """Return the node of a tensor, or None if no dependence on the input was observed."""
        node: TracedTensor | None = self._nodes.get(tensor)
        count, writer = self._written.get(_storage(tensor), (0, None))
        if writer is not None and (node is None or count > node.stamp):
            before = () if node is None else (node,)
            return TracedTensor("written", tuple(tensor.shape), (*before, writer))
        return node

    def enter(self, name: str) -> None:
        """Record that a module of FINAL begins."""
        self._open.append(name)

    def leave(self, name: str, layer: nn.Module, given: Any, gave: Any) -> None:
        """Record that a module of FINAL has ended: its output belongs to one call."""
        self._open.pop()
        if not isinstance(given, Tensor) or not isinstance(gave, Tensor):
            return
        operand, number = self.of(given), self._next()
        if operand is None or not may_be_final(layer, given, gave):
            return
        values = averaged(layer, given).clone() if self._wants(number) else None
        outputs = gave.shape[1] if isinstance(layer, CONVOLUTIONS) else gave.shape[-1]
        call = Call(number, name, values, operand, outputs, isinstance(layer, CONVOLUTIONS))
        self._register(gave, TracedTensor("layer", tuple(gave.shape), (operand,), call))

    def note(
        self, function: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], Tensor | None]:
        """Return the inputs of an operation before it runs, and a copy of what it may overwrite or squash."""
        inputs = tuple(map(self._seen, (*arguments, *options.values())))
        return inputs, self._kept(_called(function), arguments, inputs)

    def ran(
        self,
        function: Any,
        arguments: tuple[Any, ...],
        options: Mapping[str, Any],
        noted: tuple[tuple[Any, ...], Tensor | None],
        output: Any,
    ) -> None:
        """Register the output of an operation whose inputs were noted."""
        inputs, kept = noted
        schema, name = function._schema, _called(function)
        written = [
            value
            for argument, value in zip(schema.arguments, arguments, strict=False)
            if argument.is_write and isinstance(value, Tensor)
        ]
        written += [value for key, value in options.items() if key == "out" and isinstance(value, Tensor)]
        if not any(_nodes_in(value) for value in inputs):
            for tensor in _tensors(output) if not written else ():
                self._written.pop(_storage(tensor), None)
            return
        call = self._call(name, arguments, inputs, output)
        fresh = not written and not any(one.alias_info for one in schema.returns)
        for tensor in written:
            count = self._written.get(_storage(tensor), (0, None))[0] + 1
            self._written[_storage(tensor)] = count, TracedTensor(name, tuple(tensor.shape), inputs)
        for tensor in (*_tensors(output), *written):
            self._register(tensor, TracedTensor(name, tuple(tensor.shape), inputs, call, kept), fresh)

    def _register(self, tensor: Tensor, node: TracedTensor, fresh: bool = False) -> None:
        if fresh:
            self._written.pop(_storage(tensor), None)
        node.stamp = self._written.get(_storage(tensor), (0, None))[0]
        self._nodes[tensor] = node

    def _seen(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            node = self.of(value)
            return node if node is not None else value.detach() if value.numel() == 1 else None
        return [self._seen(one) for one in value] if isinstance(value, list | tuple) else value

    def _next(self) -> int:
        self._calls += 1
        return self._calls

    def _wants(self, number: int) -> bool:
        return self.wanted is None or number in self.wanted

    def _kept(self, name: str, arguments: tuple[Any, ...], inputs: tuple[Any, ...]) -> Tensor | None:
        """Return a copy of the first input, if it is [n k] and the operation is SQUASHING or may normalise.

        If the operation is SPREADING, return a copy of the input that is spread.
        """
        if name in SPREADING and len(inputs) > 1:
            place = 0 if isinstance(inputs[0], TracedTensor) else 1
            other = arguments[1 - place]
            shape = arguments[1] if name == "expand" else getattr(other, "shape", ())
            if isinstance(inputs[place], TracedTensor) and not isinstance(inputs[1 - place], TracedTensor):
                spread: Tensor = arguments[place]
                wide = np.broadcast_shapes(tuple(spread.shape), tuple(max(size, 1) for size in shape))
                if math.prod(wide) > spread.numel() and len(spread) == self._examples:
                    return spread.clone()
        first = arguments[0] if arguments else None
        if not isinstance(first, Tensor) or first.ndim != 2 or not isinstance(inputs[0], TracedTensor):
            return None
        normalises = name in ("div", "mul") and len(inputs) > 1 and isinstance(inputs[1], TracedTensor)
        return first.clone() if name in SQUASHING or normalises else None

    def _call(
        self, name: str, arguments: tuple[Any, ...], inputs: tuple[Any, ...], output: Any
    ) -> Call | None:
        """Return the call of a layer that is not a module of FINAL, if an operation is one."""
        if self._open or not isinstance(output, Tensor) or not self._examples:
            return None
        if name in ("convolution", "_convolution"):
            values, weight, operand = arguments[0], arguments[1], inputs[0]
            if not isinstance(operand, TracedTensor) or isinstance(inputs[1], TracedTensor):
                return None
            number, groups, padding = self._next(), arguments[8], arguments[4]
            if arguments[6] or not _convolves_to_classes(values, weight, output, groups, any(padding)):
                return None
            kept = _over_map(values, weight.shape[2:]).clone() if self._wants(number) else None
            own = self.own.get(_storage(weight), "")
            return Call(number, "", kept, operand, weight.shape[0], True, bool(own), own)
        if name in REDUCING and output.ndim == 2 and isinstance(inputs[0], TracedTensor):
            spread = _spread(inputs[0])
            if spread is None or spread.kept is None:
                return None
            if spread.kept.numel() * output.numel() != math.prod(inputs[0].shape) * self._examples:
                return None
            operand = next(one for one in spread.inputs if isinstance(one, TracedTensor))
            given = spread.kept.reshape(len(output), -1)
            return Call(self._next(), "", given, operand, output.shape[1], plain=False)
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
            if not first and name != "_cdist_forward":
                values = values.transpose(-1, -2)
        else:
            return None
        width = values.shape[-1] if values.ndim > 1 else 0
        rows = values.numel() // width if width else 0
        if not isinstance(operand, TracedTensor) or not rows or rows % self._examples:
            return None
        if output.ndim < 2 and name != "mv":
            return None
        number = self._next()
        outputs = 1 if name == "mv" else output.shape[-1] if first else output.shape[-2]
        kept = values.reshape(self._examples, -1, width).mean(1) if self._wants(number) else None
        own = self.own.get(_storage(weight), "") if weight is not None else ""
        return Call(number, "", kept, operand, outputs, plain=weight is None or bool(own), weight=own)


class Observing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Report operations to a trace while the context is active."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.trace = trace

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: tuple[Any, ...] = (), options: Any = None
    ) -> Any:
        options = options or {}
        if _consists_of_others(function):
            with self:
                output = function.decompose(*arguments, **options)
            if output is not NotImplemented:
                return output
        if not self.trace.started:
            return function(*arguments, **options)
        noted = self.trace.note(function, arguments, options)
        output = function(*arguments, **options)
        self.trace.ran(function, arguments, options, noted, output)
        return output


def may_be_final(layer: nn.Module, values: Tensor, output: Tensor) -> bool:
    """Return whether an input [n ...] of a layer may be the input of a classifier's final layer."""
    if values.ndim < 2 or output.ndim < 2 or len(values) != len(output) or not values.is_floating_point():
        return False
    if not isinstance(layer, CONVOLUTIONS):
        return True
    padded = any(layer.padding) if not isinstance(layer.padding, str) else layer.padding != "valid"
    return _convolves_to_classes(values, layer.weight, output, layer.groups, padded)


def storages(module: nn.Module) -> dict[int, str]:
    """Return the names of a module's parameters and buffers by their storages."""
    return {_storage(each): name for name, each in (*module.named_buffers(), *module.named_parameters())}


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


@cache
def _consists_of_others(function: Any) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(function.name(), "CompositeImplicitAutograd"))


@cache
def _called(function: Any) -> str:
    """Return the name of an operation, or of its variant that does not overwrite its input."""
    name = str(function._schema.name).partition("::")[2]
    return name if name.startswith("_") else name.rstrip("_")


def _storage(tensor: Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except RuntimeError:  # a sparse tensor has none
        return 0


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _tensors(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)


def _nodes_in(value: Any) -> bool:
    return isinstance(value, TracedTensor) or (isinstance(value, list) and any(map(_nodes_in, value)))
