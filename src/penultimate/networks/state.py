"""The learned state of a module: tensors of every kind, as bytes and as a file, and its extra states."""

from __future__ import annotations

import copy
import functools
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from penultimate.errors import RequestError

EXTRA = "_extra_state"
"""The entry that a module's `get_extra_state` leaves in a state dictionary; its value may be anything."""
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def kind_of(tensor: Tensor) -> str:
    """Return the name of a tensor's type of numbers.

    >>> kind_of(torch.zeros(1))
    'float32'
    """
    return str(tensor.dtype).removeprefix("torch.")


def is_unsized(value: object) -> bool:
    """Return whether a parameter has no size yet, as in a LazyLinear that has seen no images."""
    return isinstance(value, Tensor) and bool(is_lazy(value))


@functools.cache
def is_computable(kind: torch.dtype) -> bool:
    """Return whether torch converts numbers of a type to others; it does not where several share a byte.

    >>> is_computable(torch.float8_e4m3fn), is_computable(torch.float4_e2m1fn_x2), is_computable(torch.int4)
    (True, False, False)
    """
    try:
        torch.empty(1, dtype=kind).to(torch.complex64).isfinite()
    except (RuntimeError, TypeError):
        return False
    return True


def tensors_of_state(module: nn.Module) -> dict[str, Tensor]:
    """Return a module's parameters, buffers (non-persistent ones too) and tensors of extra states.

    Raises RequestError for a tensor without values, and for one that is not a plain array of numbers.
    """
    state = {name: value for name, value in module.state_dict().items() if isinstance(value, Tensor)}
    state |= dict(module.named_buffers(remove_duplicate=False))
    for name, value in state.items():
        why = ""
        if is_unsized(value):
            why = "has no size yet: run the network once on images where it is built"
        elif value.is_meta:
            why = "has a shape and no values: it is on the meta device"
        elif value.layout != torch.strided:
            why = f"is a sparse tensor ({value.layout}); keep it dense (to_dense())"
        elif value.is_quantized:
            why = "is quantised; give the network before it was quantised, or export it as ONNX"
        elif not is_computable(value.dtype):
            why = f"is {kind_of(value)}, with which torch does not compute; give the network in float32"
        if why:
            raise RequestError(f"the tensor '{name}' of {type(module).__name__} {why}")
    return {name: value.detach() for name, value in state.items()}


def others_of_state(module: nn.Module) -> dict[str, Any]:
    """Return the extra states of modules, that is, whatever a state dictionary holds besides tensors."""
    return {name: value for name, value in module.state_dict().items() if not isinstance(value, Tensor)}


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
    for name, value in others_of_state(module).items():
        yield name.encode()
        yield from _plain(value)


def packed(module: nn.Module) -> bytes:
    """Return the tensors of a module as a safetensors file; types unknown to it are stored as bytes."""
    tensors = {}
    for name, tensor in tensors_of_state(module).items():
        whole = tensor.cpu().resolve_conj().resolve_neg().contiguous().clone()
        tensors[name] = whole if _has_place(whole) else whole.reshape(-1).view(torch.uint8)
    return bytes(safetensors.torch.save(tensors))


def packed_others(module: nn.Module) -> bytes:
    """Return the extra states of a module, as torch.save writes them.

    The result is b"" if no extra state can be read safely.
    """
    others = {name: value for name, value in others_of_state(module).items() if name.endswith(EXTRA)}
    if not others:
        return b""
    file = io.BytesIO()
    try:
        torch.save(others, file)
        unpacked_others(file.getvalue())
    except Exception:  # a user's extra state can raise anything: it stays as it is built
        return b""
    return file.getvalue()


def unpacked_others(content: bytes) -> dict[str, Any]:
    """Return what `packed_others` wrote; nothing in it is executed."""
    others: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return others


def unpack(module: nn.Module, tensors: Mapping[str, Tensor], others: Mapping[str, Any]) -> None:
    """Load into a module what `packed` and `packed_others` wrote; raise KeyError if a tensor is missing."""
    state = {name: value for name, value in module.state_dict().items() if isinstance(value, Tensor)}
    own = state | dict(module.named_buffers(remove_duplicate=False))
    if not state.keys() <= tensors.keys():
        raise KeyError("the weights are of another network")
    values = {name: _typed(value, own.get(name)) for name, value in tensors.items()}
    restore(module, {**{name: value for name, value in values.items() if name in state}, **others})
    for name in values.keys() - state.keys():  # for non-persistent buffers
        owner, _, buffer = name.rpartition(".")
        module.get_submodule(owner)._buffers[buffer] = values[name].clone()


def restore(module: nn.Module, values: Mapping[str, Any]) -> None:
    """Load tensors and extra states under the module's own names; all others stay unchanged."""
    state = module.state_dict()  # with the version of each part, which files do not always hold
    state.update(values)
    for name in [name for name in state if name.endswith(EXTRA)]:
        owner = module.get_submodule(name.rpartition(".")[0])
        takes = type(owner).set_extra_state is not nn.Module.set_extra_state
        if name not in values or not takes:  # a module may return one and not accept it
            del state[name]
    module.load_state_dict(state, strict=False)


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
    single = copy.deepcopy(module)
    return single if in_single(single, images) else module


def _has_place(tensor: Tensor) -> bool:
    """Return whether safetensors can store the type of a tensor and read it back."""
    one = torch.zeros(1, dtype=tensor.dtype)
    try:
        found: Tensor = safetensors.torch.load(safetensors.torch.save({"one": one}))["one"]
        return found.dtype == tensor.dtype
    except (KeyError, ValueError, TypeError):
        return False


def _typed(value: Tensor, own: Tensor | None) -> Tensor:
    """Return a tensor that was stored as bytes, in the type of the module's own tensor."""
    if own is None or value.dtype != torch.uint8 or own.dtype == torch.uint8:
        return value
    return value.view(own.dtype).reshape(own.shape)


def _plain(value: Any) -> Iterator[bytes | memoryview]:
    """Yield an extra state as bytes: tensors unchanged, everything else as printed, without addresses."""
    if isinstance(value, Tensor):
        yield f"{value.dtype}{list(value.shape)}".encode()
        yield bytes_of(value.dequantize() if value.is_quantized else value)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield repr(key).encode()
            yield from _plain(each)
    elif isinstance(value, list | tuple):
        yield f"{len(value)}".encode()
        for each in value:
            yield from _plain(each)
    else:
        yield ADDRESS.sub("", repr(value)).encode()
