"""The end of a network: its penultimate features are what its final layer is given.

The final layer is found by running the network: it is the last linear layer (or convolution, or head of an
objective) whose output the network's own output is made of. What may lie between them is listed as `FORMS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias
from weakref import ref

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from penultimate.errors import RequestError
from penultimate.objectives.heads import Head

FINAL = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, Head)
"""What a classifier may end in."""
FORMS = {
    "logits": "the output is the layer's, averaged over its positions if there are several",
    "probabilities": "the output is a softmax or log softmax of that",
    "average": "the output is the average of several layers' (distilled transformers)",
    "sum": "the output is the sum of several layers'",
    "rectified": "the output is the average over the positions after a ReLU (SqueezeNet)",
    "assisted": "the output is the layer's plus half of the next one's maximum over positions (VOLO)",
}
Form: TypeAlias = Literal["logits", "probabilities", "average", "sum", "rectified", "assisted"]
ENTANGLED = ("rectified", "assisted")
"""Forms in which the logits are no function of the features alone."""
MOST_LAYERS = 4
"""More final layers than this have no network known to us."""
LISTED = 5
"""How many layers an error names."""


@dataclass(frozen=True)
class Final:
    """The final layers of a module, by name, and how its output is made of theirs.

    `shared`: several layers are given the same features, which then count once.
    """

    layers: tuple[str, ...]
    form: Form
    shared: bool = False


class Ending(NamedTuple):
    """The penultimate features [n ...] of a forward pass, and the logits [n k] if it has a final layer."""

    features: Tensor
    logits: Tensor | None
    final: Final | None = None


@dataclass
class _Call:
    """A candidate's forward pass: what it was given [n m] and what it gave [n k], averaged over positions."""

    name: str
    given: Tensor
    gave: Tensor
    group: int
    """The same for consecutive candidates that were given one tensor."""
    output: Callable[[], Tensor | None]
    address: int
    version: int

    def may_be(self, output: Tensor) -> bool:
        """Whether the network's output may be the layer's: not if something was written into it since.

        Of a copy without a negative value it is not known whether it is a ReLU's, and no logits.
        """
        own = self.output()
        if own is not None and own._version != self.version:
            return False
        return output.data_ptr() == self.address or bool((output < 0).any())


def ending(module: nn.Module, run: Callable[[], Any], among: Collection[str] = ()) -> Ending | None:
    """How a forward pass of a module ends; `run` makes it and returns its output. None without a tensor.

    Where the output [n k] is that of a final layer in one of the FORMS, it is the logits (of probabilities,
    the layer's output is), and what the layer was given are the features, averaged over positions; those of
    several layers stand side by side. Any other output is the features itself: so of a network whose final
    layer was cut off (`has_classifier`), and of a lone layer. Of a tuple or mapping it is the first tensor of
    a final layer.

    `among` names the layers that an earlier batch was found to end in: it costs less, and what they give is
    then known to be logits, whatever their signs.

    >>> net = nn.Sequential(nn.Flatten(), nn.ReLU(), nn.Linear(6, 2))
    >>> images = torch.ones(5, 2, 3)
    >>> found = ending(net, lambda: net(images))
    >>> found.features.shape, found.logits.shape, found.final.layers
    (torch.Size([5, 6]), torch.Size([5, 2]), ('2',))
    >>> ending(net[:2], lambda: net[:2](images)).logits is None
    True
    """
    calls: list[_Call] = []
    last: list[Tensor] = []  # what the last candidate was given, and what it gave

    def remember(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def fire(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            if inputs and isinstance(inputs[0], Tensor) and isinstance(output, Tensor):
                given, gave = _given(layer, inputs[0], output), _gave(layer, output)
                if given is not None:
                    again = bool(last) and last[0] is inputs[0]
                    group = calls[-1].group if again else len(calls)
                    address, version = output.data_ptr(), output._version
                    calls.append(_Call(name, given, gave, group, ref(output), address, version))
                    last[:] = [inputs[0], output]

        return fire

    named = module.named_modules() if has_classifier(module) else ()
    layers = {name: layer for name, layer in named if name and isinstance(layer, FINAL)}
    chosen = {name: layer for name, layer in layers.items() if not among or name in among}
    handles = [layer.register_forward_hook(remember(name)) for name, layer in chosen.items()]
    try:
        with torch.inference_mode(False):  # where tensors do not say whether they were overwritten
            output = run()
    finally:
        for handle in handles:
            handle.remove()
    for tensor in tensors_of(output):
        found = _found(tensor, calls, last, known=bool(among))
        if found is not None:
            return found
    if not isinstance(output, Tensor):
        output = getattr(output, "logits", None)
    return Ending(output, None) if isinstance(output, Tensor) else None


def has_classifier(module: nn.Module) -> bool:
    """Whether a module may end in one: not if it says, as timm's do, that it has no classes, nor a layer.

    What is before a final layer that was cut off may end as one does: SqueezeNet's ends in a ReLU.
    """
    classes: Any = getattr(module, "num_classes", None)
    layer: Any = getattr(module, "get_classifier", None)
    says_none = isinstance(classes, int) and classes == 0 and callable(layer)
    return not says_none or isinstance(layer(), FINAL)


def cut(module: nn.Module, final: Final) -> nn.Module:
    """The module, made to return its penultimate features; all its layers stay, with their names."""
    given: dict[str, Tensor] = {}

    def remember(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def fire(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
            values = _given(layer, inputs[0], output)
            assert values is not None
            given[name] = values

        return fire

    def features(module: nn.Module, inputs: Any, output: Any) -> Tensor:
        parts = [given.pop(name) for name in final.layers]
        return _side_by_side(parts, final.shared)

    for name in final.layers:
        module.get_submodule(name).register_forward_hook(remember(name))
    module.register_forward_hook(features)
    return module


def classifier(module: nn.Module, final: Final) -> nn.Module | None:
    """The layer that takes the features to the logits, or what is equal to it; None if it is ENTANGLED."""
    layers = [module.get_submodule(name) for name in final.layers]
    if final.form in ENTANGLED:
        return None
    if len(layers) == 1 and not isinstance(layers[0], _CONVOLUTIONS):
        return layers[0]
    share = 1 / len(layers) if final.form == "average" else 1.0
    weights = [share * layer.weight.detach().flatten(1) for layer in layers]  # type: ignore[operator]
    biases = [share * layer.bias.detach() for layer in layers if isinstance(layer.bias, Tensor)]
    weight = torch.stack(weights).sum(0) if final.shared else torch.cat(weights, 1)
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bool(biases))
    linear.weight = nn.Parameter(weight, requires_grad=False)
    if biases:
        linear.bias = nn.Parameter(torch.stack(biases).sum(0), requires_grad=False)
    return linear


def at_layer(module: nn.Module, name: str, layer: nn.Module) -> nn.Module:
    """The module, made to return the output of one of its layers; maps of one pixel are flattened."""
    outputs: list[Tensor] = []

    def remember(part: nn.Module, inputs: Any, output: Any) -> None:
        outputs[:] = [output]

    def features(part: nn.Module, inputs: Any, output: Any) -> Any:
        if not outputs:
            raise RequestError(f"layer '{name}' takes no part in the forward pass of {type(module).__name__}")
        values = outputs.pop()
        one_pixel = isinstance(values, Tensor) and values.ndim > 2 and values.shape[2:].numel() == 1
        return values.flatten(1) if one_pixel else values

    layer.register_forward_hook(remember)
    module.register_forward_hook(features)
    return module


def not_found(module: nn.Module, output: Any) -> RequestError:
    """The error for a network whose final layer is not known: what it gave, which layers were looked at."""
    looked = [name for name, layer in module.named_modules() if name and isinstance(layer, FINAL)]
    names = ", ".join(
        f"'{name}' ({type(module.get_submodule(name)).__name__})" for name in looked[: -LISTED - 1 : -1]
    )
    more = f" and {len(looked) - LISTED} before them" if len(looked) > LISTED else ""
    return RequestError(
        f"the final layer of {type(module).__name__} was not found: its output ({described(output)}) is made"
        f" of none of its layers in a way that is known; looked at from the end: {names or 'no layer'}{more}."
        " Name the layer whose output are the features: layer='NAME', or layer='output' for its own"
    )


def described(output: Any) -> str:
    """What a network returned, in a few words.

    >>> described((torch.ones(2, 3), {"boxes": None}))
    'a tuple of [2, 3], a dict of boxes: None'
    """
    if isinstance(output, Tensor):
        return str(list(output.shape))
    if isinstance(output, Mapping):
        return f"a dict of {', '.join(f'{key}: {described(value)}' for key, value in output.items())}"
    if isinstance(output, tuple | list):
        return f"a {type(output).__name__} of {', '.join(map(described, output))}"
    return "None" if output is None else f"a {type(output).__name__}"


_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def _given(layer: nn.Module, values: Tensor, output: Tensor) -> Tensor | None:
    """The input of a candidate as features [n m]; None if it cannot be the final layer of a classifier."""
    if values.ndim < 2 or len(values) != len(output) or not values.is_floating_point():
        return None
    if not isinstance(layer, _CONVOLUTIONS):
        return values if values.ndim == 2 else values.flatten(1, -2).mean(1)
    if layer.groups > 1 or values.ndim == len(layer.kernel_size) + 1:  # or an image without a batch
        return None
    if values.shape[2:].numel() == 1:
        return values.flatten(1) if output.shape[2:].numel() == 1 and set(layer.kernel_size) == {1} else None
    if set(layer.kernel_size) == {1} and output.shape[2:] == values.shape[2:]:
        return values.flatten(2).mean(2)
    whole = layer.kernel_size == tuple(values.shape[2:]) and output.shape[2:].numel() == 1
    return values.flatten(1) if whole and not any(layer.padding) else None


def _gave(layer: nn.Module, output: Tensor) -> Tensor:
    """The output of a candidate [n k], safe from what is written into it later."""
    if output.ndim == 2:
        return output.clone()
    return output.flatten(2).mean(2) if isinstance(layer, _CONVOLUTIONS) else output.flatten(1, -2).mean(1)


def _found(output: Tensor, calls: list[_Call], last: list[Tensor], known: bool) -> Ending | None:
    """How an output [n k] is made of the candidates' outputs; None if in no known way."""
    output = output.flatten(1) if output.ndim > 2 and output.shape[2:].numel() == 1 else output
    if output.ndim != 2 or not output.is_floating_point():
        return None
    fitting = [call for call in reversed(calls) if call.gave.shape == output.shape]
    for call in fitting:
        if (known or call.may_be(output)) and _equal(call.gave, output):
            return Ending(call.given, output, Final((call.name,), "logits"))
    for call in fitting:
        if _equal(call.gave.log_softmax(1), output) or _equal(call.gave.softmax(1), output):
            return Ending(call.given, call.gave, Final((call.name,), "probabilities"))
    for several in _combinations(fitting):
        together = torch.stack([call.gave for call in several])
        joined: dict[Form, Tensor] = {"average": together.mean(0), "sum": together.sum(0)}
        for form, values in joined.items():
            if _equal(values, output):
                shared = len({call.group for call in several}) == 1
                final = Final(tuple(call.name for call in several), form, shared)
                return Ending(_side_by_side([call.given for call in several], shared), output, final)
    if last and last[1].ndim > 2:
        rectified = F.relu(last[1]).flatten(2).mean(2)
        if rectified.shape == output.shape and _equal(rectified, output):
            return Ending(calls[-1].given, output, Final((calls[-1].name,), "rectified"))
        strongest = last[1].flatten(1, -2).amax(1) / 2
        for call in fitting:
            if strongest.shape == output.shape and _equal(call.gave + strongest, output):
                return Ending(call.given, output, Final((call.name,), "assisted"))
    return None


def _combinations(fitting: list[_Call]) -> Iterator[list[_Call]]:
    """The last two different layers, the last three, ..., in the order of their names in the network."""
    distinct: dict[str, _Call] = {}
    for call in fitting:
        distinct.setdefault(call.name, call)
    calls = list(distinct.values())[:MOST_LAYERS]
    for count in range(2, len(calls) + 1):
        yield calls[:count][::-1]


def _equal(values: Tensor, output: Tensor) -> bool:
    """Whether two outputs differ by no more than rounding: an average's terms may come in another order."""
    coarse = 1e-5 if output.dtype in (torch.float32, torch.float64) else 1e-2
    scale = float(output.detach().nan_to_num(0, 0, 0).abs().max()) if output.numel() else 0.0
    return torch.allclose(values.to(output.dtype), output, rtol=coarse, atol=coarse * scale, equal_nan=True)


def _side_by_side(parts: list[Tensor], shared: bool) -> Tensor:
    return parts[0] if shared or len(parts) == 1 else torch.cat(parts, 1)


def tensors_of(output: Any) -> Iterator[Tensor]:
    """The tensors of an output, those called logits first."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Mapping):
        for _, value in sorted(output.items(), key=lambda item: item[0] != "logits"):
            yield from tensors_of(value)
    elif isinstance(output, tuple | list):
        for value in output:
            yield from tensors_of(value)
    elif isinstance(getattr(output, "logits", None), Tensor):
        yield output.logits
