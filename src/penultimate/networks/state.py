"""The learned state of a module as bytes, as a file and as a digest, and its type of numbers."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from penultimate.errors import RequestError


def tensors_of_state(module: nn.Module) -> dict[str, Tensor]:
    """Return a module's parameters and buffers, non-persistent ones too.

    Raises RequestError for a tensor without values, and for one that is not a plain array of numbers.
    """
    state = {name: value for name, value in module.state_dict().items() if isinstance(value, Tensor)}
    state |= dict(module.named_buffers(remove_duplicate=False))
    for name, value in state.items():
        why = ""
        if is_lazy(value):
            why = "has no size yet: run the network once on images where it is built"
        elif value.is_meta:
            why = "has a shape and no values: it is on the meta device"
        elif value.layout != torch.strided or value.is_quantized:
            why = "is sparse or quantised; give the network with dense floating-point weights"
        if why:
            raise RequestError(f"the tensor '{name}' of {type(module).__name__} {why}")
    return {name: value.detach() for name, value in state.items()}


def bytes_of(tensor: Tensor) -> memoryview:
    """Return the bytes of a tensor of any type, including types that NumPy does not have.

    >>> len(bytes_of(torch.zeros(3, dtype=torch.bfloat16)))
    6
    """
    whole = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return whole.reshape(-1).view(torch.uint8).numpy().data


def parts_to_digest(module: nn.Module) -> Iterator[bytes | memoryview]:
    """Yield what distinguishes one module's state from another's: names, types, shapes and contents."""
    for name, tensor in tensors_of_state(module).items():
        yield f"{name}{tensor.dtype}{list(tensor.shape)}".encode()
        yield bytes_of(tensor)


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


def other_kinds(module: nn.Module) -> list[str]:
    """Return the floating-point types of a module, unless all are float32."""
    found = {value.dtype for value in module.state_dict().values() if isinstance(value, Tensor)}
    kinds = sorted(str(kind).removeprefix("torch.") for kind in found if kind.is_floating_point)
    return [] if kinds == ["float32"] else kinds


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


def single_of(module: nn.Module, images: Tensor) -> nn.Module:
    """Return the module, or a float32 copy if it must be computed in float32."""
    if not other_kinds(module):
        return module
    single = copied(module)
    return single if in_single(single, images) else module


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
