"""Weights from files: what trainers wrap around them is taken off, and what does not fit is named.

Nothing in a file is executed: a pickle may hold tensors, plain values and an argparse.Namespace.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from penultimate.errors import RequestError, legible, shortened
from penultimate.userfile import first_line

WRAPPERS = ("state_dict", "model", "model_state_dict", "net", "network", "module", "params", "weights")
AVERAGED = ("model_ema", "state_dict_ema", "ema_state_dict", "model_ema_state_dict", "ema", "ema_model")
PREFIXES = ("module.", "_orig_mod.", "model.", "net.", "network.", "ema_model.")
COUNTERS = ("n_averaged", "num_batches_tracked")
"""Entries that count steps: they have no influence on what a network gives."""
FORBIDDEN = re.compile(r"(?:GLOBAL|global|class|function)\s+'?([\w.]+)")
LISTED = 4
"""How many tensors an error names."""


def read_weights(path: Path, ema: bool = False) -> dict[str, Tensor]:
    """The tensors of a safetensors file or a checkpoint by name, out of their wrappers; `ema`: averaged ones.

    Raises RequestError if the file cannot be read, holds more than tensors and plain values (of which nothing
    is executed), or no such weights.
    """
    try:
        if path.suffix == ".safetensors":
            content: Any = safetensors.torch.load_file(path)
        else:
            with torch.serialization.safe_globals([argparse.Namespace]):
                content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # an unpickler raises whatever the bytes make of it
        raise RequestError(f"'{path}' does not hold weights: {_said(error)}") from None
    if not isinstance(content, Mapping):
        raise RequestError(f"'{path}' does not hold weights but a {type(content).__name__}")
    if ema:
        averaged = next((key for key in AVERAGED if isinstance(content.get(key), Mapping)), None)
        if averaged is None:
            raise RequestError(
                f"'{path}' holds no averaged weights ({', '.join(AVERAGED)}); {_held(content)}"
            )
        content = content[averaged]
    while (
        wrapper := next((key for key in WRAPPERS if isinstance(content.get(key), Mapping)), None)
    ) is not None:
        content = content[wrapper]
    tensors = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    if not tensors:
        hint = " Averaged weights are taken by ema=True." if any(key in content for key in AVERAGED) else ""
        raise RequestError(f"'{path}' holds no weights by name; {_held(content)}.{hint}")
    return tensors


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Load tensors into a module; raises RequestError with what is missing, left over or of another shape."""
    own = module.state_dict()
    tensors = _matching(tensors, own)
    off = {name for name in tensors if _switched_off(module, name)}
    tensors = {name: value for name, value in tensors.items() if name not in off}
    missing = [name for name in own if name not in tensors and not name.endswith(COUNTERS)]
    extra = [name for name in tensors if name not in own and not name.endswith(COUNTERS)]
    shapes = [name for name in own if name in tensors and own[name].shape != tensors[name].shape]
    if missing or extra or shapes:
        raise RequestError(_misfit(module, path, own, tensors, missing, extra, shapes))
    restore(module, {name: value for name, value in tensors.items() if name in own})
    for name, value in module.state_dict().items():
        if value.is_floating_point() and not value.isfinite().all():
            raise RequestError(f"'{path}': '{name}' holds values that are not finite; the training diverged?")


def restore(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load tensors under the module's own names; those that are not given stay as they are."""
    state = module.state_dict()  # with the versions of its parts, which files do not always hold
    state.update(tensors)
    module.load_state_dict(state)


def _said(error: Exception) -> str:
    """What an unpickler, a zip file or a header says; of what would be code to run, its name."""
    text = str(error)
    found = FORBIDDEN.search(text)
    if "weights_only" in text or "Weights only" in text:
        held = f" ({found[1]})" if found else ""
        return (
            f"it is a pickle that holds more than tensors and plain values{held}; nothing in it was run. Save"
            " torch.save(model.state_dict(), FILE), or safetensors"
        )
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return shortened(legible(first_line(error) or type(error).__name__), 300)


def _held(content: Mapping[Any, Any]) -> str:
    names = [legible(key) for key in content]
    return f"it holds {', '.join(names[: 2 * LISTED])}{', ...' if len(names) > 2 * LISTED else ''}"


def _matching(tensors: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under the names of the network: without what wrappers put before them."""
    found = {name: value for name, value in tensors.items() if name != "n_averaged"}
    while not any(name in own for name in found):
        prefix = next(
            (prefix for prefix in PREFIXES if found and all(n.startswith(prefix) for n in found)), None
        )
        if prefix is None:
            break
        found = {name.removeprefix(prefix): value for name, value in found.items()}
    return {name if name in own else name.replace("_orig_mod.", ""): value for name, value in found.items()}


def _switched_off(module: nn.Module, name: str) -> bool:
    """Whether a tensor is of a part that the network does without (auxiliary heads of GoogLeNet)."""
    part = name.partition(".")[0]
    return hasattr(module, part) and getattr(module, part) is None


def _first(names: Sequence[str]) -> str:
    return f"{', '.join(names[:LISTED])}{', ...' if len(names) > LISTED else ''}"


def _misfit(
    module: nn.Module,
    path: Path,
    own: Mapping[str, Tensor],
    tensors: Mapping[str, Tensor],
    missing: list[str],
    extra: list[str],
    shapes: list[str],
) -> str:
    differ = [f"{name} is {list(tensors[name].shape)}, not {list(own[name].shape)}" for name in shapes]
    fitting = sum(name in tensors and tensors[name].shape == value.shape for name, value in own.items())
    total = fitting + len(missing) + len(shapes)
    parts = [f"of its {total} tensors {fitting or 'none'} {'fit' if fitting > 1 else 'fits'}"]
    if fitting == total:
        parts = [f"all {total} of its tensors fit"]
    parts += [
        f"{before}{len(names)}{more} {'is' if len(names) == 1 else 'are'} {what} ({_first(names)})"
        for before, names, more, what in (
            ("", missing, "", "missing"),
            ("", differ, "", "of another shape"),
            ("and ", extra, " more", "there that it does not have"),
        )
        if names
    ]
    text = f"'{path}' does not hold weights of this network ({type(module).__name__}): {', '.join(parts)}"
    rows = {int(tensors[name].shape[0]) for name in shapes if tensors[name].ndim and own[name].ndim}
    if not missing and not extra and len(rows) == 1 and len(shapes) <= 4:
        classes = rows.pop()
        if all(tensors[name].shape[1:] == own[name].shape[1:] for name in shapes):
            return (
                f"{text}; a final layer for {classes} classes? num_classes={classes} makes one, as in"
                f" timm:NAME(num_classes={classes})"
            )
    return text if 2 * fitting >= total else f"{text}; is it of another architecture?"
