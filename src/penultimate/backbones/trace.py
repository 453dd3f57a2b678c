"""A forward pass as a graph of operations, and which of them apply a linear layer to its input.

Operations are observed where PyTorch dispatches them. A layer is therefore seen whether it is called as a
module or as a function, also in a scripted network, and later writes into a tensor are seen too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary, WeakIdRef

from penultimate.backbones.products import (
    CONVOLUTIONS,
    SPREADING,
    Call,
    TracedTensor,
    averaged,
    may_be_final,
    product,
)

SQUASHING = ("_softmax", "_log_softmax", "sigmoid", "hardsigmoid", "log_sigmoid_forward", "softplus", "exp")
"""Operations whose inputs are kept if they are [n k], because they may be the logits."""
OF_SHAPES = (
    *("new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided"),
    *("zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like"),
)
"""Operations on whose output the numbers of their inputs have no bearing."""


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
    _copies: dict[tuple[TracedTensor, int, bool], Tensor] = field(default_factory=dict)
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
        count, writer = self._written.get(storage(tensor), (0, None))
        if writer is not None and (node is None or count > node.stamp):
            before = () if node is None else (node,)
            return TracedTensor("written", tuple(tensor.shape), (*before, writer))
        return node

    def enter(self, name: str) -> None:
        """Record that a layer that may be final begins."""
        self._open.append(name)

    def leave(self, name: str, layer: nn.Module, given: Any, gave: Any) -> None:
        """Record that a layer that may be final has ended: its output belongs to one call."""
        self._open.pop()
        if not isinstance(given, Tensor) or not isinstance(gave, Tensor):
            return
        operand, number = self.of(given), self._next()
        if operand is not None and given.ndim == 1:  # of one example, as in a loop over a batch
            call = Call(number, name, None, operand, 0)
            self._register(gave, TracedTensor("layer", tuple(gave.shape), (operand,), call))
        if operand is None or not may_be_final(layer, given, gave):
            return
        values = averaged(layer, given).clone() if self._wants(number) else None
        outputs = gave.shape[1] if isinstance(layer, CONVOLUTIONS) else gave.shape[-1]
        positions = given.numel() // (given.shape[-1] * len(given)) if given.numel() else 0
        convolves = isinstance(layer, CONVOLUTIONS)
        call = Call(number, name, values, operand, outputs, convolves, positions=positions)
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
        if name in OF_SHAPES or not any(_nodes_in(value) for value in inputs):
            for tensor in _tensors(output) if not written else ():
                self._written.pop(storage(tensor), None)
            return
        call = self._call(name, arguments, inputs, output)
        fresh = not written and not any(one.alias_info for one in schema.returns)
        for tensor in written:
            count = self._written.get(storage(tensor), (0, None))[0] + 1
            self._written[storage(tensor)] = count, TracedTensor(name, tuple(tensor.shape), inputs)
        for tensor in (*_tensors(output), *written):
            self._register(tensor, TracedTensor(name, tuple(tensor.shape), inputs, call, kept), fresh)

    def _register(self, tensor: Tensor, node: TracedTensor, fresh: bool = False) -> None:
        if fresh:
            self._written.pop(storage(tensor), None)
        node.stamp = self._written.get(storage(tensor), (0, None))[0]
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

        If the operation combines features with class vectors, return a copy of the features.
        """
        if name in SPREADING and len(inputs) > 1:
            place = 0 if isinstance(inputs[0], TracedTensor) else 1
            node, other = inputs[place], arguments[1 - place]
            shape = arguments[1] if name == "expand" else getattr(other, "shape", ())
            if isinstance(node, TracedTensor) and not isinstance(inputs[1 - place], TracedTensor):
                features: Tensor = arguments[place]
                wide = np.broadcast_shapes(tuple(features.shape), tuple(max(size, 1) for size in shape))
                spreads = math.prod(wide) > features.numel()
                of_one = name != "expand" and features.ndim == 2 and math.prod(shape) > 1
                if (spreads or of_one) and len(features) == self._examples:
                    flat = features.flatten(1)
                    return self._copy(node, flat.shape[1], True, flat.clone)
        first = arguments[0] if arguments else None
        if not isinstance(first, Tensor) or first.ndim != 2 or not isinstance(inputs[0], TracedTensor):
            return None
        normalises = name in ("div", "mul") and len(inputs) > 1 and isinstance(inputs[1], TracedTensor)
        return first.clone() if name in SQUASHING or normalises else None

    def _call(
        self, name: str, arguments: tuple[Any, ...], inputs: tuple[Any, ...], output: Any
    ) -> Call | None:
        """Return the call of a layer that is not such a module, if an operation is one."""
        if self._open or not isinstance(output, Tensor) or not self._examples:
            return None
        found = product(name, arguments, inputs, output, self._examples)
        if found is None:
            return None
        number, operand = self._next(), found.operand
        own = self.own.get(storage(found.weight), "") if found.weight is not None else ""
        wanted = self._wants(number)
        given = self._copy(operand, found.width, found.first, found.given) if wanted else None
        plain = found.packed or bool(own)
        positions = math.prod(operand.shape) // max(found.width * self._examples, 1)
        outputs, convolves = found.outputs, found.convolves
        return Call(number, "", given, operand, outputs, convolves, plain, own, positions=positions)

    def _copy(self, node: TracedTensor, width: int, first: bool, made: Callable[[], Tensor]) -> Tensor:
        """Return a copy of features, which layers of one class each share."""
        if (node, width, first) not in self._copies:
            self._copies[node, width, first] = made()
        return self._copies[node, width, first]


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


def storages(module: nn.Module) -> dict[int, str]:
    """Return the names of a module's parameters and buffers by their storages."""
    return {storage(each): name for name, each in (*module.named_buffers(), *module.named_parameters())}


@cache
def _consists_of_others(function: Any) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(function.name(), "CompositeImplicitAutograd"))


@cache
def _called(function: Any) -> str:
    """Return the name of an operation, or of its variant that does not overwrite its input."""
    name = str(function._schema.name).partition("::")[2]
    return name if name.startswith("_") else name.rstrip("_")


def storage(tensor: Tensor) -> int:
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
