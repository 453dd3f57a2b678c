"""Where a network that was not trained here comes from: timm, torchvision, or the folder of a past training.

timm:resnet18                             with the weights that timm downloads for it
timm:resnet18(pretrained=False, seed=1)   with initial weights
torchvision:resnet18(weights='w.pth')     with the weights from a file (torch.save or safetensors)
folder:runs/steps/train.softmax-s0...     a network that was trained here earlier
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.errors import DamagedFileError, RequestError, unknown
from penultimate.files import digest_file, read_sealed
from penultimate.registry import parse
from penultimate.store import META, SCHEMA

KINDS = ("timm", "torchvision", "folder")
GIVEN = "given.json"
"""The file that distinguishes a given network's folder from a trained one's."""
SETTINGS = {"pretrained": bool, "weights": str, "seed": int}


@dataclass(frozen=True)
class Source:
    """Where a given network comes from, read from its text.

    >>> read_source("timm:resnet18(pretrained=False)")
    Source(kind='timm', name='resnet18', settings={'pretrained': False})
    """

    kind: str
    name: str
    settings: dict[str, Any]


def read_source(text: str) -> Source:
    """The source that a text names; raises RequestError if nothing can be loaded from it."""
    kind, colon, rest = text.partition(":")
    if not colon or not rest:
        raise RequestError(
            f"'{text}' names no network; write KIND:NAME, such as timm:resnet18, torchvision:resnet50 or"
            " folder:PATH"
        )
    if kind not in KINDS:
        raise unknown("kind of given network", kind, KINDS)
    if kind == "folder":
        return Source(kind, rest, {})
    name, bracket, listed = rest.partition("(")  # the names of weights have dots: resnet18.a1_in1k
    settings = parse(f"{kind}({listed}").arguments if bracket else {}
    for setting, value in settings.items():
        if setting not in SETTINGS:
            raise unknown(f"setting of '{text}'", setting, SETTINGS)
        if type(value) is not SETTINGS[setting]:
            raise RequestError(f"'{text}': {setting} is of type {SETTINGS[setting].__name__}, not {value!r}")
    return Source(kind, name.strip(), settings)


def fingerprint(text: str) -> dict[str, str]:
    """sha256 of every file that a source is read from, by name: part of the network's identity.

    Raises RequestError where there is none, DamagedFileError where a training left other files there.
    """
    source = read_source(text)
    if source.kind == "folder":
        folder = Path(source.name)
        files = sorted(path for path in folder.glob("network.*") if path.is_file())
        if not files:
            raise RequestError(
                f"there is no network in '{folder}'; a folder that a training left is expected"
            )
        digests = {path.name: digest_file(path) for path in files}
        written = _written(folder)
        changed = [name for name in digests if digests[name] != written.get(name, digests[name])]
        if changed:
            raise DamagedFileError(f"'{folder / changed[0]}' is not what was written (its sha256 differs)")
        return digests
    weights = source.settings.get("weights")
    if weights is None:
        return {}
    if not Path(weights).is_file():
        raise RequestError(f"there is no file of weights at '{weights}'")
    return {Path(weights).name: digest_file(Path(weights))}


def _written(folder: Path) -> dict[str, str]:
    """sha256 of the files of a folder as the meta.json of their step says, if they lie in that of a step."""
    step = folder.parent if folder.name.startswith("epoch-") else folder
    if not (step / META).is_file():
        return {}
    files = read_sealed(step / META, SCHEMA, mend="train it anew")["files"]
    return {
        (step / name).name: facts["sha256"] for name, facts in files.items() if (step / name).parent == folder
    }
