"""The learned state of a module as a file and as digests, and its type of numbers."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.outputs import entries
from penultimate.backbones.passes import plainly
from penultimate.data.seeding import seeded
from penultimate.errors import RequestError

ADDRESS = re.compile(r"0x[0-9a-f]+")
SKETCHED = 8
"""The number of output values by which later processes, perhaps on other machines, know a network again."""


def tensors_of_state(module: nn.Module) -> dict[str, Tensor]:
    """Return a module's parameters and buffers, non-persistent ones too.

    Raises RequestError for a tensor that is not a plain array of numbers.
    """
    state = {name: value for name, value in module.state_dict().items() if isinstance(value, Tensor)}
    state |= dict(module.named_buffers(remove_duplicate=False))
    for name, value in state.items():
        if value.is_meta or value.layout != torch.strided or value.is_quantized:
            raise RequestError(
                f"the tensor '{name}' of {type(module).__name__} is not a dense array of numbers (it is on"
                " the meta device, sparse or quantised)"
            )
    return {name: value.detach() for name, value in state.items()}


def digest_of_modules(
    modules: Iterable[nn.Module], text: str = "", others: Mapping[str, Any] | None = None
) -> str:
    """Return the sha256 of printed architectures, of their state and of other tensors."""
    modules, digest = list(modules), hashlib.sha256(text.encode())
    digest.update(ADDRESS.sub("", "\n".join(map(repr, modules))).encode())
    states = [{**dict(module.named_buffers()), **module.state_dict()} for module in modules]
    for state in (others or {}, *states):
        for name, value in state.items():
            if isinstance(value, Tensor):
                digest.update(f"{name}{value.dtype}{list(value.shape)}".encode())
                whole = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
                digest.update(whole.reshape(-1).view(torch.uint8).numpy().data)
            else:  # an extra state
                digest.update(ADDRESS.sub("", f"{name}{value!r}").encode())
    return digest.hexdigest()


def likeness(module: nn.Module, images: Tensor, text: str = "") -> dict[str, Any]:
    """Return what identifies a network: digests of its `weights` and its `outputs`, and a `sketch` of these.

    The digests are only comparable on one kind of machine, the sketch on others too. The outputs are those
    for images of noise, computed on one thread, because threads change the last bits; a network that draws
    random numbers draws the same ones each time. Raises whatever the module raises for the images.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with seeded(0), plainly(device_of(module)):
            outputs = entries(module.eval()(images.to(device_of(module)).clone()))
    finally:
        torch.set_num_threads(threads)
    flat = torch.cat(
        [torch.zeros(0), *(value.detach().cpu().float().flatten() for value in outputs.values())]
    )
    places = torch.linspace(0, max(0, len(flat) - 1), min(SKETCHED, len(flat))).long()
    return {
        "weights": digest_of_modules([module], f"{type(module).__qualname__}\n{text}"),
        "outputs": hashlib.sha256(flat.numpy().tobytes()).hexdigest(),
        "sketch": flat[places].nan_to_num(0, 0, 0).tolist(),
    }


def alike(one: list[float], other: list[float]) -> bool:
    """Return whether two sketches belong to the same network, up to rounding."""
    scale = max(map(abs, [*one, *other]), default=0.0)
    return len(one) == len(other) and all(abs(a - b) <= 1e-3 * scale for a, b in zip(one, other, strict=True))


def packed(module: nn.Module) -> bytes:
    """Return the tensors of a module as a safetensors file."""
    tensors = {name: value.cpu().contiguous().clone() for name, value in tensors_of_state(module).items()}
    return bytes(safetensors.torch.save(tensors))


def unpack(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load what `packed` wrote into a module; raise KeyError if a tensor is missing."""
    state = module.state_dict()
    lacking = [name for name, value in state.items() if isinstance(value, Tensor) and name not in tensors]
    if lacking:
        raise KeyError(f"the weights are of another network: '{lacking[0]}' is missing")
    others = tensors.keys() - state.keys()  # non-persistent buffers
    state.update({name: value for name, value in tensors.items() if name not in others})
    module.load_state_dict(state)
    for name in others:
        owner, _, buffer = name.rpartition(".")
        module.get_submodule(owner)._buffers[buffer] = tensors[name].clone()


def in_single(module: nn.Module, images: Tensor) -> str:
    """Convert a module that refuses float32 images, because its weights have another type, to float32.

    Returns what was changed, as a clause, or an empty string if nothing was.
    """
    kinds = other_kinds(module)
    if not kinds:
        return ""
    try:
        with torch.no_grad():
            module(images)
    except Exception:  # a user's module can raise anything; a later run reports its error
        module.float()
        return f"its weights were {' and '.join(kinds)} and were converted to float32 for the computation"
    return ""


def other_kinds(module: nn.Module) -> list[str]:
    """Return the floating-point types of a module, unless all are float32."""
    found = {value.dtype for value in module.state_dict().values() if isinstance(value, Tensor)}
    kinds = sorted(str(kind).removeprefix("torch.") for kind in found if kind.is_floating_point)
    return [] if kinds == ["float32"] else kinds


def copied(module: nn.Module) -> nn.Module:
    """Return a copy of a module; tensors that the last forward pass computed (weight_norm) are detached.

    PyTorch copies no tensor that a gradient runs through, and the old form of weight_norm keeps one.
    """
    computed = {
        id(value): value.detach()
        for part in module.modules()
        for value in vars(part).values()
        if isinstance(value, Tensor) and not value.is_leaf
    }
    return copy.deepcopy(module, computed)
