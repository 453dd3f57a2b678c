"""Weights from a file, loaded into a network; nothing in the file is executed.

A file is a checkpoint of torch.save, read with `weights_only`, or safetensors. In a checkpoint the weights
lie under one key, or at the top; the prefixes of `PREFIXES` before the names of the tensors are removed.
"""

from __future__ import annotations

import argparse
import pickletools
import re
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from penultimate.errors import RequestError, legible, shortened
from penultimate.userfile import first_line

PREFIXES = ("module.", "_orig_mod.", "model.")
"""What distributing, compiling and wrapping a network put before the names of its tensors."""
KEYS = ("state_dict", "model_state_dict", "model", "net", "network", "weights", "params")
"""The usual keys of a network's weights in a checkpoint."""
AVERAGED = re.compile(r"(?:^|_)(?:ema|swa|averaged?)(?:_|$)", re.IGNORECASE)
"""The keys that trainers give to averaged weights: model_ema, state_dict_ema."""
COUNTERS = ("n_averaged", "num_batches_tracked")
"""Entries that count steps, which have no influence on a network's output."""
EXTRA = "_extra_state"
"""The entry that a module's `get_extra_state` leaves in a state dictionary."""
LISTED = 4
"""The largest number of names in an error message."""


def read_weights(path: Path, ema: bool = False, part: str = "") -> dict[str, Tensor]:
    """Return the tensors of a safetensors file or a checkpoint, by name.

    `part` is the key of a checkpoint under which they lie, and `ema` stands for the key of averaged weights;
    by default it is one of KEYS, or the only key with tensors.

    Raises RequestError if the file cannot be read, has no such weights, or is a pickle that would run code.
    """
    content = _content(path)
    if not isinstance(content, Mapping):
        raise RequestError(f"'{path}' does not hold weights but a {type(content).__name__}")
    found = {str(key): value for key, value in content.items() if _tensors(value)}
    if ema:
        averaged = [key for key in found if AVERAGED.search(key)]
        if len(averaged) != 1:
            raise RequestError(f"'{path}' holds no averaged weights under one key; {_held(content)}")
        part = averaged[0]
    if part:
        below = {
            name.removeprefix(f"{part}."): value
            for name, value in _tensors(content).items()
            if name.startswith(f"{part}.")
        }
        if part not in found and not below:
            raise RequestError(f"'{path}' holds no weights under part='{part}'; {_held(content)}")
        return _tensors(found[part]) if part in found else below
    if own := _tensors(content):
        return own
    plain = [key for key in found if not AVERAGED.search(key)]
    usual = [key for key in KEYS if key in plain] or plain
    if len(usual) == 1 or (usual and usual[0] in KEYS):
        return _tensors(found[usual[0]])
    if found:
        named = ", ".join(f"part='{legible(key)}'" for key in found)
        raise RequestError(f"'{path}' holds weights under several keys; say which: {named}")
    raise RequestError(f"'{path}' holds no weights by name; {_held(content)}")


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> str:
    """Load tensors into a module; return which were left out, as a clause or an empty string.

    Tensors without the prefix that all of the network's have, those of a switched-off part (the auxiliary
    heads of GoogLeNet), and counters are left out.

    Raises RequestError with the tensors that are missing, left over, or of another shape, and for values
    that are not finite.
    """
    own = {name: value for name, value in module.state_dict().items() if isinstance(value, Tensor)}
    needed = [name for name in own if not name.endswith((*COUNTERS, EXTRA))]
    named, outside = _without_prefixes(tensors, needed)
    taken = {name: value for name, value in named.items() if name in own and not name.endswith(EXTRA)}
    extra = [
        name
        for name in named
        if name not in own and not name.endswith((*COUNTERS, EXTRA)) and not _is_off(module, name)
    ]
    missing = [name for name in needed if name not in taken]
    shapes = [name for name in taken if name in needed and taken[name].shape != own[name].shape]
    if missing or extra or shapes:
        raise RequestError(_misfit(module, path, own, taken, missing, extra, shapes))
    for name in needed:
        value = taken[name]
        if own[name].is_floating_point() and not value.is_floating_point():
            raise RequestError(
                f"'{path}': '{name}' is {value.dtype}: save quantised weights as floating-point numbers"
            )
        if not value.isfinite().all() and own[name].isfinite().all():
            raise RequestError(f"'{path}': '{name}' holds values that are not finite; the training diverged?")
    state = module.state_dict()  # with the version of each part, which files do not always hold
    state.update(taken)
    module.load_state_dict(state)
    off = [name for name in named if name not in own and not name.endswith((*COUNTERS, EXTRA))]
    left_out = [legible(name) for name in (*outside, *off)]
    return f"of '{path.name}', {listed(left_out)} {'was' if len(left_out) == 1 else 'were'} left out" * bool(
        left_out
    )


def listed(names: Iterable[str]) -> str:
    """Return the first few names, joined for a message."""
    names = list(names)
    return f"{', '.join(names[:LISTED])}{', ...' if len(names) > LISTED else ''}"


def without_prefixes(name: str) -> str:
    """Return the name of a tensor without the PREFIXES that it begins with.

    >>> without_prefixes("module.model.fc.weight")
    'fc.weight'
    """
    while any(name.startswith(prefix) for prefix in PREFIXES):
        name = name.partition(".")[2]
    return name


def _content(path: Path) -> Any:
    if not path.is_file():
        what = "is a folder; name the file in it" if path.is_dir() else "is not a file"
        raise RequestError(f"'{path}' does not hold weights: it {what}")
    if not path.stat().st_size:
        raise RequestError(f"'{path}' does not hold weights: it is empty")
    with path.open("rb") as file:
        is_pickle = file.read(2) in (b"PK", b"\x80\x02", b"\x80\x04")
    try:
        if not is_pickle:
            return safetensors.torch.load_file(path)
        with (
            path.open("rb") as file,  # given a path, torch also looks at its suffix
            warnings.catch_warnings(),
            torch.serialization.safe_globals([argparse.Namespace]),
        ):
            warnings.simplefilter("ignore")
            return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # a reader can raise anything on malformed bytes
        raise RequestError(f"'{path}' does not hold weights: {_reason(error, path)}") from None


def _reason(error: Exception, path: Path) -> str:
    said = shortened(legible(first_line(error) or type(error).__name__), 200)
    if "eights only" in str(error) or "weights_only" in str(error):
        held = _import_in(path)
        return (
            f"it is a pickle that holds more than tensors and plain values{f' ({held})' if held else ''};"
            " nothing in it was run. Save torch.save(model.state_dict(), FILE), or safetensors"
        )
    if not isinstance(error, safetensors.SafetensorError):
        return f"it is cut short or damaged ({said}); copy it again"
    return f"it is neither a checkpoint of torch.save(model.state_dict(), FILE) nor safetensors ({said})"


def _import_in(path: Path) -> str:
    """Return the first import that a pickle asks for besides torch's own; nothing in it is run."""
    texts: list[str] = []
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                name = next(each for each in archive.namelist() if each.endswith("data.pkl"))
                start = archive.read(name)
        else:
            start = path.read_bytes()[: 10**6]
        for operation, argument, _ in pickletools.genops(start):
            texts += [argument] if isinstance(argument, str) else []
            named = argument if operation.name in ("GLOBAL", "INST") else None
            named = ".".join(texts[-2:]) if operation.name == "STACK_GLOBAL" else named
            if named and not named.startswith(("torch", "collections")):
                return legible(named).replace(" ", ".")
    except Exception:  # what this parser does not understand is left unnamed
        return ""
    return ""


def _tensors(content: Any) -> dict[str, Tensor]:
    if not isinstance(content, Mapping):
        return {}
    return {str(key): value for key, value in content.items() if isinstance(value, Tensor)}


def _without_prefixes(
    tensors: Mapping[str, Tensor], needed: Iterable[str]
) -> tuple[dict[str, Tensor], list[str]]:
    """Return the tensors by names without prefixes, and the names of those that lacked them."""
    if all(name in tensors for name in needed):
        return dict(tensors), []
    inside = {without_prefixes(name): value for name, value in tensors.items() if name.startswith(PREFIXES)}
    if not inside or not all(name in inside for name in needed):
        return {without_prefixes(name): value for name, value in tensors.items()}, []
    return inside, [name for name in tensors if not name.startswith(PREFIXES)]


def _is_off(module: nn.Module, name: str) -> bool:
    """Return whether a tensor belongs to a part that the network omits."""
    part = name.partition(".")[0]
    return hasattr(module, part) and getattr(module, part) is None


def _held(content: Mapping[Any, Any]) -> str:
    return f"it holds {listed(map(legible, content)) or 'nothing'}"


def _misfit(
    module: nn.Module,
    path: Path,
    own: Mapping[str, Tensor],
    taken: Mapping[str, Tensor],
    missing: list[str],
    extra: list[str],
    shapes: list[str],
) -> str:
    """Return the message for weights of another network: what differs, and the likeliest remedy."""
    differ = [f"{name} is {list(taken[name].shape)}, not {list(own[name].shape)}" for name in shapes]
    parts = [
        f"{len(names)} {'is' if len(names) == 1 else 'are'} {what} ({listed(map(legible, names))})"
        for names, what in ((missing, "missing"), (differ, "of another shape"), (extra, "left over"))
        if names
    ]
    fitting = len(taken) - len(shapes)
    text = f"'{path}' does not hold weights of this network ({type(module).__name__}): {', '.join(parts)}"
    rows = {int(taken[name].shape[0]) for name in shapes if taken[name].ndim}
    if not missing and not extra and len(rows) == 1 and len(shapes) <= 4:
        classes = rows.pop()
        return f"{text}; a final layer for {classes} classes? num_classes={classes} makes one"
    return text if fitting else f"{text}; is it of another architecture?"
