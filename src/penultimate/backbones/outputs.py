"""The outputs of networks: a tensor, or several in tuples, mappings and dataclasses, each with a name.

An entry has the name of a `layer`: "output" is the whole output, "output.pooler_output" an entry of a
mapping, "output.0" an entry of a tuple.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from torch import Tensor, nn

from penultimate.errors import RequestError

OUTPUT = "output"
"""The `layer` of a network whose own output is the features."""


def entries(output: Any, name: str = OUTPUT) -> dict[str, Tensor]:
    """Return the tensors of an output, by name.

    >>> import torch
    >>> list(entries((torch.ones(2, 3), {"loss": torch.ones(()), "boxes": None})))
    ['output.0', 'output.1.loss']
    """
    if isinstance(output, Tensor):
        return {name: output}
    found: dict[str, Tensor] = {}
    for key, value in _held(output).items():
        found |= entries(value, f"{name}.{key}")
    return found


def logits_first(named: Mapping[str, Tensor]) -> list[Tensor]:
    """Return the tensors of an output, with those called logits first."""
    return [named[name] for name in sorted(named, key=lambda name: not name.endswith(".logits"))]


def entry(output: Any, name: str) -> Tensor:
    """Return the tensor with this name, or raise a RequestError that lists the names there are."""
    found = entries(output)
    if name not in found:
        raise RequestError(f"there is no '{name}': the output is {described(output)}{_choice(found, '')}")
    return found[name]


def entry_of_features(output: Any) -> str:
    """Return the name of the only entry that is [n m], or an empty string if there is none or more than one.

    >>> import torch
    >>> entry_of_features({"last_hidden_state": torch.ones(2, 5, 3), "pooler_output": torch.ones(2, 3)})
    'output.pooler_output'
    """
    found = entries(output)
    flat = [name for name, each in found.items() if of_one_pixel(each).ndim == 2 and each.is_floating_point()]
    return OUTPUT if [*found] == [OUTPUT] else flat[0] if len(flat) == 1 else ""


def is_entry(module: nn.Module, layer: str) -> bool:
    """Return whether a layer's name is that of an entry of the module's own output."""
    return layer.partition(".")[0] == OUTPUT and layer not in dict(module.named_modules())


def of_one_pixel(values: Tensor) -> Tensor:
    """Return maps of one pixel flattened, and anything else unchanged."""
    return values.flatten(1) if values.ndim > 2 and values.shape[2:].numel() == 1 else values


def at_layer(module: nn.Module, name: str, layer: nn.Module) -> nn.Module:
    """Make the module return the output of a layer, and return it; maps of one pixel are flattened."""
    outputs: list[Tensor] = []

    def remember(part: nn.Module, inputs: Any, output: Any) -> None:
        outputs[:] = [output.clone() if isinstance(output, Tensor) else output]  # it may be overwritten

    def features(part: nn.Module, inputs: Any, output: Any) -> Any:
        if not outputs:
            raise RequestError(f"layer '{name}' takes no part in the forward pass of {type(module).__name__}")
        values = outputs.pop()
        return of_one_pixel(values) if isinstance(values, Tensor) else values

    layer.register_forward_hook(remember)
    module.register_forward_hook(features)
    return module


def at_entry(module: nn.Module, name: str) -> nn.Module:
    """Make the module return an entry of its output, and return it; maps of one pixel are flattened."""
    module.register_forward_hook(lambda part, inputs, output: of_one_pixel(entry(output, name)))
    return module


def described(output: Any) -> str:
    """Return a short description of a network's output.

    >>> import torch
    >>> described((torch.ones(2, 3), {"boxes": None}))
    'a tuple of [2, 3], a dict of boxes: None'
    """
    if isinstance(output, Tensor):
        return str(list(output.shape))
    held, kind = _held(output), type(output).__name__
    if isinstance(output, tuple | list):
        return f"a {kind} of {', '.join(map(described, output))}"
    if held:
        return f"a {kind} of {', '.join(f'{key}: {described(value)}' for key, value in held.items())}"
    return "None" if output is None else f"a {kind}"


def made_features(output: Any, say: str) -> str:
    """Return how to obtain features [n m] from another output, as a clause; `say` names a layer.

    >>> import torch
    >>> made_features(torch.ones(2, 5, 3), "layer='NAME'")
    '; give a module that returns net(x).mean(1), the average of its tokens, or net(x)[:, 0], the first one'
    """
    if not isinstance(output, Tensor):
        return _choice(entries(output), say)
    if output.ndim == 3:
        each = "the average of its tokens, or net(x)[:, 0], the first one"
        return f"; give a module that returns net(x).mean(1), {each}"
    if output.ndim != 4:
        return ""
    if output.shape[1] == output.shape[2] != output.shape[3]:  # channels are last
        return "; give a module that returns net(x).mean((1, 2)), the average over its positions"
    return "; nn.Sequential(net, nn.AdaptiveAvgPool2d(1)) averages over its positions"


def _choice(found: Mapping[str, Tensor], say: str) -> str:
    if not found:
        return ""
    if not say:
        return f"; it has {', '.join(found)}"
    return f"; name one of its entries: {' or '.join(say.replace('NAME', name) for name in found)}"


def _held(output: Any) -> dict[str, Any]:
    """Return the named contents of an output, or nothing if they have no names."""
    if isinstance(output, Mapping):
        return {str(key): value for key, value in output.items()}
    if isinstance(output, tuple | list):
        names = getattr(output, "_fields", range(len(output)))
        return {str(key): value for key, value in zip(names, output, strict=True)}
    plain = is_dataclass(output) or isinstance(getattr(output, "logits", None), Tensor)
    return dict(vars(output)) if plain and hasattr(output, "__dict__") else {}
