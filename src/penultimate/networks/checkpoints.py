"""Files of weights, read into tensors by name; nothing in a file is executed.

A pickle may hold tensors, plain values and an argparse.Namespace.
"""

from __future__ import annotations

import argparse
import pickletools
import re
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from penultimate.errors import RequestError, legible, shortened
from penultimate.networks import filekinds
from penultimate.networks.state import EXTRA
from penultimate.userfile import first_line

WITHIN = " / "
"""The separator between the name of a dictionary in a checkpoint and the names of the tensors inside it."""
AVERAGED = re.compile(r"(?:^|_)(?:ema|swa|averaged?|averaging)(?:_|$)", re.IGNORECASE)
"""Names that trainers give to averaged weights: model_ema, state_dict_ema, averaged_model."""
FORBIDDEN = re.compile(r"(?:GLOBAL|global|class|function)\s+'?([\w.]+)")
CUT = re.compile(
    "EOF|truncated|unpack requires|ran out of input|central directory|incomplete|failed reading|corrupted"
    "|deserializing header|index out of range",
    re.IGNORECASE,
)
"""Error messages of readers when the end of a file is missing."""
UNKNOWN = re.compile(r"unknown variant `(\w+)`|Dtype not understood: (\w+)")
"""Error messages of the reader of safetensors for a type of numbers that it does not know."""
LOOKED_AT = 10**6
"""The number of bytes of a pickle that are searched for code it would run."""
WEIGHTS = (".pth", ".pt", ".ckpt", ".bin", ".safetensors", ".tar")
LISTED = 4
"""The largest number of names in an error message."""


def read_weights(path: Path, ema: bool = False, part: str = "") -> dict[str, Any]:
    """Return the tensors (and extra states) of a safetensors file or a checkpoint, by name.

    If several dictionaries in the file hold tensors, each name begins with the name of its dictionary
    (`WITHIN`). `ema` selects the averaged weights only, and `part` the weights under a name such as teacher;
    that prefix is then dropped.

    Raises RequestError if the file cannot be read, has no such weights, or holds more than tensors and plain
    values (nothing in it is executed).
    """
    content = _content(path)
    if not isinstance(content, Mapping):
        raise RequestError(f"'{path}' does not hold weights but a {type(content).__name__}")
    values = dict(_values(content))
    if not any(isinstance(value, Tensor) for value in values.values()):
        raise RequestError(f"'{path}' holds no weights by name; {_held(content)}")
    if ema:
        values = _below(values, lambda parts: is_averaged(parts[-1]))
        if not values:
            raise RequestError(
                f"'{path}' holds no averaged weights (model_ema, ema_state_dict, ...); {_held(content)}"
            )
    elif all(is_averaged(name.rpartition(WITHIN)[0]) for name in values):
        raise RequestError(
            f"'{path}' holds no weights but averaged ones; {_held(content)}. Averaged weights are taken"
            " by ema=True"
        )
    if part:
        wanted = [each for each in re.split(rf"\.|{WITHIN}", part) if each]
        values = _below(values, lambda parts: parts[-len(wanted) :] == wanted)
        if not values:
            raise RequestError(f"'{path}' holds no weights under part='{part}'; {_held(content)}")
    outer = {name.rpartition(WITHIN)[0] for name in values}
    if len(outer) == 1:
        return {name.rpartition(WITHIN)[2]: value for name, value in values.items()}
    return values


def boundaries(name: str) -> list[tuple[int, int]]:
    """Return where each part of a tensor's name ends, and where the next part begins.

    >>> boundaries("ema / block.weight")
    [(3, 6), (11, 12)]
    """
    return [found.span() for found in re.finditer(rf"\.|{WITHIN}", name)]


def is_averaged(name: str) -> bool:
    """Return whether a part of a name indicates averaged weights.

    >>> is_averaged("model_ema.module."), is_averaged("schema.")
    (True, False)
    """
    return any(AVERAGED.search(part) for part in re.split(rf"\.|{WITHIN}", name))


def listed(names: Sequence[str]) -> str:
    """Return the first few names, joined for an error message."""
    return f"{', '.join(names[:LISTED])}{', ...' if len(names) > LISTED else ''}"


def _content(path: Path) -> Any:
    """Return the content of a file, whose kind is found from its bytes and not from its name."""
    try:
        if path.is_dir():
            inside = sorted(each.name for each in path.iterdir() if each.suffix in WEIGHTS)
            those = f"; it has {listed([legible(name) for name in inside])}" if inside else ""
            raise _no_weights(path, f"it is a folder: name the file in it{those}")
        if not stat.S_ISREG(path.stat().st_mode):
            raise _no_weights(path, "it is not a regular file")
        head = filekinds.head_of(path)
    except OSError as error:
        raise _no_weights(path, error.strerror or type(error).__name__) from None
    zipped = filekinds.described(path, head) if head.startswith(filekinds.ZIP) else ""
    if zipped or not (filekinds.is_safetensors(head) or filekinds.is_checkpoint(head)):
        neither = f"it is neither a checkpoint nor safetensors; {filekinds.IN_PYTORCH}"
        raise _no_weights(path, zipped or filekinds.described(path, head) or neither)
    try:
        if filekinds.is_safetensors(head):
            return safetensors.torch.load_file(path)
        with (
            path.open("rb") as file,  # given a path, torch also looks at its suffix
            warnings.catch_warnings(),
            torch.serialization.safe_globals([argparse.Namespace]),
        ):
            warnings.simplefilter("ignore")  # these concern the internals of tensors
            return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # an unpickler can raise anything on malformed bytes
        raise _no_weights(path, _reason_of(error, path)) from None


def _no_weights(path: Path, why: str) -> RequestError:
    return RequestError(f"'{path}' does not hold weights: {why}")


def _reason_of(error: Exception, path: Path) -> str:
    """Return why an unpickler, a zip file or a header failed; code is reported by its name only."""
    text = str(error)
    refused = "weights_only" in text or "Weights only" in text
    found = FORBIDDEN.search(text)
    held = found[1] if found else _would_run(path) if refused else ""
    if held:
        return (
            f"it is a pickle that holds more than tensors and plain values ({held}); nothing in it was run."
            " Save torch.save(model.state_dict(), FILE), or safetensors"
        )
    if unknown := UNKNOWN.search(text):
        return (
            f"its numbers are of a type that is not read ({unknown[1] or unknown[2]}); save them as float32"
        )
    if CUT.search(text) or isinstance(error, EOFError):
        return f"it is cut short or damaged; {filekinds.AGAIN}"
    if refused:
        return f"it is a pickle, but not one that torch.save wrote; {filekinds.IN_PYTORCH}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return shortened(legible(first_line(error) or type(error).__name__), 300)


def _would_run(path: Path) -> str:
    """Return the first import that a pickle asks for, or an empty string. Nothing in it is run."""
    with path.open("rb") as file:
        start = file.read(LOOKED_AT)
    texts: list[str] = []
    try:
        for operation, argument, _ in pickletools.genops(start):
            if operation.name in ("GLOBAL", "INST"):
                return legible(argument).replace(" ", ".")
            if operation.name == "STACK_GLOBAL":
                return legible(".".join(texts[-2:]))
            if isinstance(argument, str):
                texts.append(argument)
    except Exception:  # the bytes may be hostile: what this parser does not understand is left unnamed
        return ""
    return ""


def _values(content: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the tensors and extra states of nested dictionaries, visiting each dictionary once."""
    waiting: list[tuple[str, Mapping[Any, Any]]] = [("", content)]
    seen = {id(content)}
    while waiting:
        path, mapping = waiting.pop(0)
        for key, value in mapping.items():
            if not isinstance(key, str):
                continue
            if isinstance(value, Tensor) or key.rpartition(".")[2] == EXTRA:
                yield f"{path}{key}", value
            elif isinstance(value, Mapping) and id(value) not in seen:
                seen.add(id(value))
                waiting.append((f"{path}{key}{WITHIN}", value))


def _below(values: Mapping[str, Any], wanted: Callable[[list[str]], bool]) -> dict[str, Any]:
    """Return the values below a wanted part of their names, each under the rest of its name."""
    found = {}
    for name, value in values.items():
        for end, start in boundaries(name):
            if wanted(re.split(rf"\.|{WITHIN}", name[:end])):
                found[name[start:]] = value
                break
    return found


def _held(content: Mapping[Any, Any]) -> str:
    names = [legible(key) for key in content]
    return f"it holds {', '.join(names[: 2 * LISTED]) or 'nothing'}{', ...' if names[2 * LISTED :] else ''}"
