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
    for key, value in _parts(output).items():
        found |= entries(value, f"{name}.{key}")
    return found


def logits_first(named: Mapping[str, Tensor]) -> list[Tensor]:
    """Return the tensors of an output, with those called logits first."""
    return [named[name] for name in sorted(named, key=lambda name: not name.endswith(".logits"))]


def entry_of_features(output: Any) -> str:
    """Return the name of the only entry that is [n m], or an empty string if there is none or more than one.

    >>> import torch
    >>> entry_of_features({"last_hidden_state": torch.ones(2, 5, 3), "pooler_output": torch.ones(2, 3)})
    'output.pooler_output'
    """
    found = entries(output)
    flat = [name for name, each in found.items() if of_one_pixel(each).ndim == 2 and each.is_floating_point()]
    return OUTPUT if [*found] == [OUTPUT] else flat[0] if len(flat) == 1 else ""


def entry(output: Any, name: str = OUTPUT) -> Tensor:
    """Return the tensor of an output with a name; "output" also stands for the only one that is [n m].

    Maps of one pixel are flattened. Raise RequestError, which names the entries, if there is no such tensor.
    """
    found = entries(output)
    name = name if name in found else entry_of_features(output) if name == OUTPUT else ""
    if not name:
        raise RequestError(f"features are one tensor [n m]; the output is {described_with_advice(output)}")
    return of_one_pixel(found[name])


def is_entry(module: nn.Module, layer: str) -> bool:
    """Return whether a layer's name is that of an entry of the module's own output."""
    return layer.partition(".")[0] == OUTPUT and layer not in dict(module.named_modules())


def of_one_pixel(values: Tensor) -> Tensor:
    """Return maps of one pixel flattened, and anything else unchanged."""
    return values.flatten(1) if values.ndim > 2 and values.shape[2:].numel() == 1 else values


def described(output: Any) -> str:
    """Return a short description of a network's output.

    >>> import torch
    >>> described((torch.ones(2, 3), {"boxes": None}))
    'a tuple of [2, 3], a dict of boxes: None'
    """
    if isinstance(output, Tensor):
        return str(list(output.shape))
    parts, kind = _parts(output), type(output).__name__
    if isinstance(output, tuple | list):
        return f"a {kind} of {', '.join(map(described, output))}"
    if parts:
        return f"a {kind} of {', '.join(f'{key}: {described(value)}' for key, value in parts.items())}"
    return "None" if output is None else f"a {kind}"


def described_with_advice(output: Any) -> str:
    """Return the description of an output that is not features [n m], and how features are made of it.

    >>> import torch
    >>> described_with_advice(torch.ones(2, 5, 3))
    '[2, 5, 3]; give a module that returns net(x).mean(1), the average of its tokens'
    """
    advice = ""
    if isinstance(output, Tensor) and output.ndim == 3:
        advice = "; give a module that returns net(x).mean(1), the average of its tokens"
    elif isinstance(output, Tensor) and output.ndim == 4:
        advice = "; nn.Sequential(net, nn.AdaptiveAvgPool2d(1)) averages over its positions"
    elif found := entries(output):
        names = " or ".join(f"layer='{name}'" for name in found)
        advice = f"; name one of its entries: {names}"
    return described(output) + advice


def _parts(output: Any) -> dict[str, Any]:
    """Return the named contents of an output, or nothing if they have no names."""
    if isinstance(output, Mapping):
        return {str(key): value for key, value in output.items()}
    if isinstance(output, tuple | list):
        names = getattr(output, "_fields", range(len(output)))
        return {str(key): value for key, value in zip(names, output, strict=True)}
    plain = is_dataclass(output) or isinstance(getattr(output, "logits", None), Tensor)
    return dict(vars(output)) if plain and hasattr(output, "__dict__") else {}
