"""Weights from a file, loaded into a network; nothing in the file is executed.

A file is a checkpoint of torch.save, read with `weights_only`, or safetensors. In a checkpoint the weights
lie under one key, or at the top; the prefixes of `PREFIXES` before the names of the tensors are removed.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from penultimate.backbones.passes import message_of
from penultimate.errors import RequestError, legible

PREFIXES = ("module.", "_orig_mod.", "model.")
"""What distributing, compiling and wrapping a network put before the names of its tensors."""
KEYS = ("state_dict", "model_state_dict", "model", "net", "network", "weights", "params")
"""The usual keys of a network's weights in a checkpoint."""
AVERAGED = re.compile(r"(?:^|_)(?:ema|swa|averaged?)(?:_|$)", re.IGNORECASE)
"""The keys that trainers give to averaged weights: model_ema, state_dict_ema."""
UNNEEDED = ("n_averaged", "num_batches_tracked", "_extra_state")
"""Endings of entries that have no influence on a network's output."""
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
    groups = {str(key): tensors for key, value in content.items() if (tensors := _tensors(value))}
    averaged = [key for key in groups if AVERAGED.search(key)]
    plain = [key for key in groups if key not in averaged]
    own = _tensors(content)
    if part and part not in groups:
        start = f"{part}."
        groups[part] = {name.removeprefix(start): own[name] for name in own if name.startswith(start)}
    chosen = [part] if part else averaged if ema else [key for key in KEYS if key in plain][:1] or plain
    if own and not ema and not part:
        return own
    if len(chosen) == 1 and groups[chosen[0]]:
        return groups[chosen[0]]
    if len(chosen) > 1:
        named = ", ".join(f"part='{legible(key)}'" for key in groups)
        raise RequestError(f"'{path}' holds weights under several keys; say which: {named}")
    where = f" under part='{part}'" if part else " that are averaged" if ema else " by name"
    raise RequestError(
        f"'{path}' holds no weights{where}; it holds {listed(map(legible, content)) or 'nothing'}"
    )


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> str:
    """Load tensors into a module; return which were left out, as a clause or an empty string.

    Tensors without the prefix that all of the network's have, those of a switched-off part (the auxiliary
    heads of GoogLeNet), and counters are left out.

    Raises RequestError with the tensors that are missing, left over, or of another shape, and for values
    that are not finite.
    """
    own = {name: value for name, value in module.state_dict().items() if isinstance(value, Tensor)}
    needed = [name for name in own if not name.endswith(UNNEEDED)]
    named, left_out = dict(tensors), list[str]()
    if not all(name in tensors for name in needed):
        named = {
            without_prefixes(name): value for name, value in tensors.items() if name.startswith(PREFIXES)
        }
        left_out = [name for name in tensors if not name.startswith(PREFIXES)]
        if not named or not all(name in named for name in needed):  # nothing fits: say so of all names
            named = {without_prefixes(name): value for name, value in tensors.items()}
            left_out = []
    others = [name for name in named if name not in own and not name.endswith(UNNEEDED)]
    off = [name for name in others if getattr(module, name.partition(".")[0], module) is None]
    taken = {name: value for name, value in named.items() if name in needed}
    _expect_fitting(module, path, own, taken, needed, [name for name in others if name not in off])
    for name, value in taken.items():
        if own[name].is_floating_point() and not value.is_floating_point():
            raise RequestError(
                f"'{path}': '{name}' is {value.dtype}: save quantised weights as floating-point numbers"
            )
        if not value.isfinite().all() and own[name].isfinite().all():
            raise RequestError(f"'{path}': '{name}' holds values that are not finite; the training diverged?")
    state = module.state_dict()
    state.update(
        {name: value for name, value in named.items() if name in own and value.shape == own[name].shape}
    )
    module.load_state_dict(state)
    names = [legible(name) for name in (*left_out, *off)]
    if not names:
        return ""
    return f"of '{path.name}', {listed(names)} {'was' if len(names) == 1 else 'were'} left out"


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


def refusal(error: Exception, what: str) -> RequestError:
    """Return the error of a library as ours, with a hint where a hub or a server could not be reached."""
    kinds = " ".join(type(each).__name__ for each in (error, error.__cause__, error.__context__))
    offline = isinstance(error, OSError) or re.search("Connect|Timeout|URLError|Offline", kinds)
    hint = (
        "; offline, HF_HUB_OFFLINE=1 takes what was downloaded before, weights='FILE' a file, and"
        " pretrained=False draws the weights"
    )
    return RequestError(f"{what} cannot be loaded: {message_of(error)}{hint if offline else ''}")


def _content(path: Path) -> Any:
    if not path.is_file() or not path.stat().st_size:
        what = (
            "is a folder; name the file in it"
            if path.is_dir()
            else "is empty"
            if path.exists()
            else "is missing"
        )
        raise RequestError(f"'{path}' does not hold weights: it {what}")
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
        message = message_of(error)
        reason = f"it is cut short or damaged ({message}); copy it again"
        if "eights only" in str(error) or "weights_only" in str(error):
            needs = re.search(r"(?:GLOBAL|global:?) (?:GLOBAL )?([\w.]+)", str(error))
            held = f" ({needs[1]})" if needs else ""
            reason = (
                f"it is a pickle that holds more than tensors and plain values{held}; nothing in it was run."
                " Save torch.save(model.state_dict(), FILE), or safetensors"
            )
        elif isinstance(error, safetensors.SafetensorError):
            expected = "a checkpoint of torch.save(model.state_dict(), FILE)"
            reason = f"it is neither {expected} nor safetensors ({message})"
        raise RequestError(f"'{path}' does not hold weights: {reason}") from None


def _tensors(content: Any) -> dict[str, Tensor]:
    if not isinstance(content, Mapping):
        return {}
    return {str(key): value for key, value in content.items() if isinstance(value, Tensor)}


def _expect_fitting(
    module: nn.Module,
    path: Path,
    own: Mapping[str, Tensor],
    taken: Mapping[str, Tensor],
    needed: list[str],
    extra: list[str],
) -> None:
    """Raise RequestError for weights of another network: it says what differs, and the likeliest remedy."""
    missing = [name for name in needed if name not in taken]
    shapes = [name for name in taken if taken[name].shape != own[name].shape]
    if not (missing or extra or shapes):
        return
    differ = [f"{name} is {list(taken[name].shape)}, not {list(own[name].shape)}" for name in shapes]
    parts = [
        f"{len(names)} {'is' if len(names) == 1 else 'are'} {what} ({listed(map(legible, names))})"
        for names, what in ((missing, "missing"), (differ, "of another shape"), (extra, "left over"))
        if names
    ]
    text = f"'{path}' does not hold weights of this network ({type(module).__name__}): {', '.join(parts)}"
    rows = {int(taken[name].shape[0]) for name in shapes if taken[name].ndim}
    if not missing and not extra and len(rows) == 1 and len(shapes) <= 4:
        classes = rows.pop()
        raise RequestError(f"{text}; a final layer for {classes} classes? num_classes={classes} makes one")
    raise RequestError(text if len(taken) > len(shapes) else f"{text}; is it of another architecture?")
