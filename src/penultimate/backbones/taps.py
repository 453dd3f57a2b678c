"""Taps: layers chosen by name, and their outputs while a network runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from difflib import get_close_matches
from typing import Any

from jaxtyping import Shaped
from torch import Tensor, nn

from penultimate.errors import RequestError
from penultimate.metrics import UndefinedError
from penultimate.metrics.inputs import as_tensor

BLOCK = re.compile(
    r"(block\w{0,2}|bottle2?neck|basic|residual|mbconv|depthwiseseparableconv|xceptionmodule|fire|inception[a-e]?)$",
    re.I,
)
"""Class names of residual blocks and stages in torchvision, timm, transformers and this package."""
LAYER = re.compile(r"layer$", re.I)
"""Class names of transformer blocks, which count only for elements of a list."""
UNIT = re.compile(r"^(unit|basicconv2d|conv\w*norm\w*(act\w*)?|conv\w*bn\w*act\w*)$", re.I)
"""Modules of convolution, normalisation and non-linearity: the parts of a network without blocks."""
ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Hardswish, nn.Mish)
LISTS = (nn.ModuleList, nn.Sequential)
WRAPPERS = {"OptimizedModule": "_orig_mod", "DataParallel": "module", "DistributedDataParallel": "module"}
"""Compiled and replicated networks, and the attribute that holds the network inside."""
LISTED = 5
"""The number of names that an error suggests."""

Observer = Callable[[str, Tensor], None]


class UnobservableError(UndefinedError):
    """Raised if layers cannot be observed: none has a known name, or one runs twice or never."""


def taps(model: nn.Module, layers: str | Sequence[str] | None = None) -> dict[str, nn.Module]:
    """Return the layers of a model that match patterns: {dotted name: module}, in `named_modules` order.

    A pattern is a name in which `*` and `?` stand for any characters except dots, `**` for any characters,
    and `[0-3]` for one of several. The default is every residual block or stage, that is, the outermost
    modules whose class has such a name (in torchvision, timm and transformers too); their output follows
    their last non-linearity. For a network without blocks it is every convolutional unit or non-linearity.

    Raises RequestError for a pattern that matches nothing (with the nearest names), and if the default finds
    nothing.

    >>> from penultimate.backbones import build
    >>> net = build("glyphnet(width=4, features=32)")
    >>> list(taps(net))
    ['block1', 'block2', 'bottleneck1', 'bottleneck2']
    >>> list(taps(net, ["stem", "block?.second"]))
    ['stem', 'block1.second', 'block2.second']
    >>> taps(net, "blok1")
    Traceback (most recent call last):
    penultimate.errors.RequestError: no layer matches 'blok1'; the nearest names: block1, block2, ...

    Kornblith et al., 2021, figure 3: blocks "after the residual connection and subsequent nonlinearity".
    """
    modules = {name: module for name, module in model.named_modules() if name}
    if layers is None:
        return _default(modules, type(model).__name__)
    patterns = [layers] if isinstance(layers, str) else [*layers] if isinstance(layers, Iterable) else []
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise RequestError(f"layers are patterns of names, such as ['stem', 'block?']; got {layers!r}")
    chosen: set[str] = set()
    for pattern in patterns:
        expression = _expression(pattern)
        matches = {
            name
            for name, module in modules.items()
            if expression.fullmatch(name) and not isinstance(module, nn.ModuleList | nn.ModuleDict)
        }
        if not matches:
            close = get_close_matches(pattern, modules, n=LISTED, cutoff=0.5)
            outermost = [name for name in modules if "." not in name]
            kind = "the nearest names" if close else "the outermost layers"
            raise RequestError(f"no layer matches '{pattern}'; {kind}: {', '.join(close or outermost)}.")
        chosen |= matches
    return {name: module for name, module in modules.items() if name in chosen}


@contextmanager
def tapped(layers: Mapping[str, nn.Module], observe: Observer) -> Iterator[None]:
    """During one forward pass, call `observe(name, output)` with each layer's output as soon as it exists.

    The network continues with the same tensor and may overwrite it at once (an in-place ReLU), so copy it to
    keep it. For a tuple, `output` is the first tensor; for a `ModelOutput` of transformers, the last hidden
    state. The hooks are always removed afterwards.

    Raises RequestError if a layer runs twice or never, or does not return a tensor.

    >>> import torch
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True))
    >>> with tapped({"0": net[0], "1": net[1]}, lambda name, output: print(name, list(output.shape))):
    ...     _ = net(torch.zeros(5, 2))
    0 [5, 3]
    1 [5, 3]
    """
    seen: set[str] = set()

    def hook(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def fire(module: nn.Module, inputs: Any, output: Any) -> None:
            if name in seen:
                raise UnobservableError(
                    f"layer '{name}' ({type(module).__name__}) ran twice in one forward pass: it is reused,"
                    " so it is unclear which output is meant; tap the modules that contain its uses"
                )
            seen.add(name)
            observe(name, _tensor(name, output))

        return fire

    handles = []
    try:
        for name, module in layers.items():
            handles.append(module.register_forward_hook(hook(name)))
        yield
    finally:
        for handle in handles:
            handle.remove()
    silent = [name for name in layers if name not in seen]
    if silent:
        raise UnobservableError(
            f"no output of {', '.join(map(repr, silent))}: the forward pass does not call it as a module"
            " (a container, a compiled network, a branch not taken)"
        )


def unwrapped(network: Any) -> Any:
    """Return the network inside a compiled, DataParallel or DistributedDataParallel one; others unchanged.

    A compiled network may not call its layers as modules, and a replicated one runs them once per device.

    >>> unwrapped(nn.DataParallel(nn.Linear(2, 3)))
    Linear(in_features=2, out_features=3, bias=True)
    """
    while isinstance(network, nn.Module) and type(network).__name__ in WRAPPERS:
        network = network._modules[WRAPPERS[type(network).__name__]]
    return network


def flattened(output: Shaped[Tensor, "n ..."]) -> Shaped[Tensor, "n p"]:
    """Return an output as one row per example, in memory order: a view where possible.

    >>> import torch
    >>> x = torch.zeros(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    >>> flattened(x).data_ptr() == x.data_ptr(), flattened(x).shape
    (True, torch.Size([2, 48]))
    """
    order = sorted(range(1, output.ndim), key=output.stride, reverse=True)
    return output.permute(0, *order).reshape(len(output), -1)


def pooled(output: Shaped[Tensor, "n ..."]) -> Shaped[Tensor, "n c"]:
    """Return an output as one float32 number per example and channel: the mean over space or tokens.

    Channels are the second dimension of maps, or the last if only the other two have equal size (as in Swin);
    in tokens [n t c] they are last.

    >>> import torch
    >>> maps = torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]])
    >>> pooled(maps), pooled(maps.expand(1, 3, 2, 2).movedim(1, -1)), pooled(torch.ones(2, 7, 5)).shape
    (tensor([[4.]]), tensor([[4., 4., 4.]]), torch.Size([2, 5]))
    """
    if output.ndim < 3:
        return output.reshape(len(output), -1).float()
    if output.ndim == 3:
        return output.float().mean(1)
    channels_last = output.shape[1] == output.shape[2] != output.shape[-1]
    return output.float().mean((1, 2) if channels_last else tuple(range(2, output.ndim)))


def _default(modules: dict[str, nn.Module], model: str) -> dict[str, nn.Module]:
    for qualifies in (_is_block, _is_unit):
        outermost: dict[str, nn.Module] = {}
        for name, module in modules.items():
            nested = any(name.startswith(f"{outer}.") for outer in outermost)
            if not nested and qualifies(module, modules.get(name.rpartition(".")[0])):
                outermost[name] = module
        if outermost:
            return outermost
    raise UnobservableError(
        f"{model} has no module with the name of a block, a unit or a non-linearity; name the layers:"
        f" {', '.join(list(modules)[:LISTED]) or 'it has no named modules'}, ..."
    )


def _is_block(module: nn.Module, parent: nn.Module | None) -> bool:
    name = type(module).__name__
    if isinstance(module, LISTS) or not any(True for _ in module.children()):
        return False
    return bool(BLOCK.search(name) or (isinstance(parent, LISTS) and LAYER.search(name)))


def _is_unit(module: nn.Module, parent: nn.Module | None) -> bool:
    return isinstance(module, ACTIVATIONS) or bool(UNIT.match(type(module).__name__))


def _expression(pattern: str) -> re.Pattern[str]:
    wild = {"**": ".*", "*": r"[^.]*", "?": r"[^.]"}
    parts = re.split(r"(\*\*|\*|\?|\[[\w-]+\])", pattern)  # the odd parts are wild
    return re.compile(
        "".join(wild.get(part, part) if at % 2 else re.escape(part) for at, part in enumerate(parts))
    )


def _tensor(name: str, output: Any) -> Tensor:
    if isinstance(output, Mapping) or is_dataclass(output):
        output = getattr(output, "last_hidden_state", None)
    while isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, Tensor):
        raise RequestError(f"layer '{name}' gives a {type(output).__name__}, not a tensor")
    return as_tensor(output, f"the outputs of layer '{name}'")
