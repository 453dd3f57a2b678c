"""Taps: layers chosen by name, and what comes out of them while a network runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from difflib import get_close_matches
from typing import Any

from jaxtyping import Shaped
from torch import Tensor, nn

from penultimate.errors import RequestError

BLOCK = re.compile(
    r"(block\w{0,2}|bottle2?neck|basic|residual|mbconv|depthwiseseparableconv|xceptionmodule|fire|inception[a-e]?)$",
    re.I,
)
"""Classes of residual blocks and stages, as torchvision, timm, transformers and this package call them."""
LAYER = re.compile(r"layer$", re.I)
"""Blocks of transformers, where they are the elements of a list; elsewhere the word says nothing."""
UNIT = re.compile(r"^(unit|basicconv2d|conv\w*norm\w*(act\w*)?|conv\w*bn\w*act\w*)$", re.I)
"""Convolution, normalisation and non-linearity in one: what a network without blocks consists of."""
ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Hardswish, nn.Mish)
LISTS = (nn.ModuleList, nn.Sequential)
LISTED = 5
"""Names that an error suggests."""

Observer = Callable[[str, Tensor], None]


def taps(model: nn.Module, layers: str | Sequence[str] | None = None) -> dict[str, nn.Module]:
    """The layers of a model that patterns name: {dotted name: module}, in the order of `named_modules`.

    A pattern is a name in which `*` and `?` stand for all characters but dots, `**` for all characters,
    `[0-3]` for one of several. By default: every residual block or stage, which are the outermost modules
    whose class is called so (torchvision's, timm's and transformers' too), as they give it, after their last
    non-linearity. Of a network without blocks: every convolutional unit or non-linearity.

    Raises RequestError for a pattern that matches nothing (with the nearest names), and where the default
    finds nothing.

    >>> from penultimate.backbones import build
    >>> net = build("glyphnet(width=4, features=32)")
    >>> list(taps(net))
    ['block1', 'block2', 'bottleneck1', 'bottleneck2']
    >>> list(taps(net, ["stem", "block?.second"]))
    ['stem', 'block1.second', 'block2.second']
    >>> taps(net, "blok1")
    Traceback (most recent call last):
    penultimate.errors.RequestError: no layer matches 'blok1'; the nearest names: block1, block2, ...

    Kornblith et al., 2021, figure 2: "the output of every residual block after its ReLU".
    """
    modules = {name: module for name, module in model.named_modules() if name}
    if layers is None:
        return _default(modules, type(model).__name__)
    patterns = [layers] if isinstance(layers, str) else list(layers)
    if not patterns:
        raise RequestError("no layers: give patterns of names, or None for every residual block")
    chosen: set[str] = set()
    for pattern in patterns:
        expression = _expression(pattern)
        found = {
            name
            for name, module in modules.items()
            if expression.fullmatch(name) and not isinstance(module, nn.ModuleList | nn.ModuleDict)
        }
        if not found:
            raise RequestError(_nothing(pattern, modules))
        chosen |= found
    return {name: module for name, module in modules.items() if name in chosen}


@contextmanager
def tapped(layers: Mapping[str, nn.Module], observe: Observer) -> Iterator[None]:
    """While it lasts, `observe(name, output)` is called with what comes out of each layer, as it comes out.

    For one forward pass. The output is what the network goes on with, which may overwrite it at once (an
    in-place ReLU): who wants to keep it copies it. Of a tuple it is the first tensor, of a `ModelOutput` of
    transformers the last hidden state. Hooks are gone afterwards, whatever happens.

    Raises RequestError where a layer runs twice or never, or gives no tensor.

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
                raise RequestError(
                    f"layer '{name}' ({type(module).__name__}) ran twice in one forward pass: it is reused,"
                    " and which of its outputs is meant is open; tap the modules that contain its uses"
                )
            seen.add(name)
            observe(name, _tensor(name, output))

        return fire

    handles = [module.register_forward_hook(hook(name)) for name, module in layers.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
    silent = [name for name in layers if name not in seen]
    if silent:
        raise RequestError(
            f"no output of {', '.join(map(repr, silent))}: the forward pass does not call it as a module"
            " (a container, a compiled network, a branch not taken)"
        )


def flattened(output: Shaped[Tensor, "n ..."]) -> Shaped[Tensor, "n p"]:
    """An output as one row an example, in the order of memory: a view where one is possible.

    >>> import torch
    >>> x = torch.zeros(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    >>> flattened(x).data_ptr() == x.data_ptr(), flattened(x).shape
    (True, torch.Size([2, 48]))
    """
    order = sorted(range(1, output.ndim), key=output.stride, reverse=True)
    return output.permute(0, *order).reshape(len(output), -1)


def _default(modules: dict[str, nn.Module], model: str) -> dict[str, nn.Module]:
    for chosen in (_is_block, _is_unit):
        found: dict[str, nn.Module] = {}
        for name, module in modules.items():
            inside = any(name.startswith(f"{outer}.") for outer in found)
            if not inside and chosen(module, _parent(name, modules)):
                found[name] = module
        if found:
            return found
    raise RequestError(
        f"{model} has no module that is called a block, a unit or a non-linearity; name the layers:"
        f" {', '.join(list(modules)[:LISTED]) or 'it has no named modules'}, ..."
    )


def _is_block(module: nn.Module, parent: nn.Module | None) -> bool:
    name = type(module).__name__
    if isinstance(module, LISTS) or not any(True for _ in module.children()):
        return False
    return bool(BLOCK.search(name) or (isinstance(parent, LISTS) and LAYER.search(name)))


def _is_unit(module: nn.Module, parent: nn.Module | None) -> bool:
    return isinstance(module, ACTIVATIONS) or bool(UNIT.match(type(module).__name__))


def _parent(name: str, modules: dict[str, nn.Module]) -> nn.Module | None:
    return modules.get(name.rpartition(".")[0])


def _expression(pattern: str) -> re.Pattern[str]:
    wild = {"**": ".*", "*": r"[^.]*", "?": r"[^.]"}
    parts = re.split(r"(\*\*|\*|\?|\[[^\]]+\])", pattern)
    return re.compile(
        "".join(wild.get(part, part if part.startswith("[") else re.escape(part)) for part in parts)
    )


def _nothing(pattern: str, modules: dict[str, nn.Module]) -> str:
    close = get_close_matches(pattern, modules, n=LISTED, cutoff=0.5)
    outermost = [name for name in modules if "." not in name]
    hint = (
        f"the nearest names: {', '.join(close)}" if close else f"the outermost layers: {', '.join(outermost)}"
    )
    return f"no layer matches '{pattern}'; {hint}."


def _tensor(name: str, output: Any) -> Tensor:
    if isinstance(output, Mapping) or is_dataclass(output):
        output = getattr(output, "last_hidden_state", None)
    while isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, Tensor):
        raise RequestError(f"layer '{name}' gives a {type(output).__name__}, not a tensor")
    return output
