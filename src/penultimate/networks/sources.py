"""Where a network that was not trained here comes from.

timm:resnet18                               with the weights that timm downloads for it
timm:resnet18(pretrained=False, seed=1)     with initial weights
torchvision:resnet18(weights='w.pth')       with the weights from a file (a checkpoint or safetensors)
timm:vit_tiny_patch16_224(weights='dino.pth', part='teacher')   from a file of several networks
timm:vit_tiny_patch16_224(pooling='patches:mean')   features that are the mean of its patches' tokens
my_net.py:build(head='classifier.6')        the name of the final layer, where it is not found
my_net.py:build(layer='neck')               the layer whose output is the features
torchvision:resnet50(weights='IMAGENET1K_V1')   with those that torchvision downloads under this name
my_net.py:build(weights='w.safetensors')    what a function of a Python file returns, with weights
hf:facebook/dinov2-small                    a network of transformers, from Hugging Face's hub
hf:FOLDER                                   what save_pretrained wrote
open_clip:ViT-B-32/laion2b_s34b_b79k        the tower of images of a network of open_clip, and its weights
open_clip:FOLDER                            a folder with an open_clip_config.json
onnx:net.onnx                               an ONNX file: features only
folder:runs/steps/train.softmax-s0...       a network that was trained here earlier

A Python file runs where it lies: it may read files beside it and import modules beside it, at each start of a
study and in each of its steps. Its text is kept, so that it may be moved if it needs nothing beside it.

The network determines how images are prepared, and settings override it: crop=64, share=0.9, mean=(0.5,) ...
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate import registry
from penultimate.errors import DamagedFileError, RequestError, unknown
from penultimate.files import digest_file, given_path, nearest_beside, read_sealed
from penultimate.objectives.presets import resolve
from penultimate.specs import parse
from penultimate.store import META, SCHEMA

LIVE = "live"
"""The kind of a module of this session (see `networks.building`)."""
OF_TRAINING = "network.json"
"""The file that marks the folder of a network that was trained here."""
GIVEN = "given.json"
"""The file that distinguishes a given network's folder from a trained network's folder."""
PREPARING: Mapping[str, type] = {
    "resize": int,
    "crop": int,
    "share": float,
    "interpolation": str,
    "squash": bool,
    "mean": tuple,
    "std": tuple,
}
"""Settings that override the network's own `Preparation`: its fields, and the crop's share of the image."""
FEATURES: Mapping[str, type] = {"layer": str, "head": str, "pooling": str}
"""Settings that say which features a network gives; one of them at a time."""
POOLINGS = ("cls", "mean", "cls+mean", "patches:mean")
"""How tokens become features (see `backbones.tokens`)."""
BUILDING: Mapping[str, type] = {"weights": str, "ema": bool, "part": str, "seed": int, **FEATURES}
NAMED: Mapping[str, type] = {"pretrained": bool, "num_classes": int}
SETTINGS: Mapping[str, Mapping[str, type]] = {
    "timm": {**NAMED, **BUILDING, **PREPARING},
    "torchvision": {**NAMED, **BUILDING, **PREPARING},
    "hf": {"pretrained": bool, **BUILDING, **PREPARING},
    "open_clip": {"pretrained": bool, **BUILDING, **PREPARING},
    "onnx": {"head": str, **PREPARING},
    LIVE: {**FEATURES, **PREPARING},
    "folder": {},
    "file": {**BUILDING, **PREPARING},
}
HUBS = ("hf", "open_clip")
"""The kinds whose names may be folders of configuration and weights."""
KINDS = tuple(SETTINGS)[:-1]
"""The kinds that are written before a colon; a Python file is written as FILE.py:FUNCTION."""
IN_FILE = re.compile(r"(?P<name>.+\.py:\w+)\s*(?P<listed>\(.*\))?", re.DOTALL)
ONNX = re.compile(r"(?P<name>.+\.onnx)\s*(?P<listed>\(.*\))?", re.DOTALL)
OF_FOLDER = (".json", ".safetensors", ".bin", ".pt", ".pth")
"""The endings of the files that a folder of a network's configuration and weights is identified by."""
WEIGHTS_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
"""The pattern of torchvision's names for weights that it downloads, such as IMAGENET1K_V2."""


@dataclass(frozen=True)
class Source:
    """The origin of a given network, read from its text; the `name` of a Python file is FILE.py:FUNCTION.

    >>> read_source("timm:resnet18(pretrained=False)")
    Source(kind='timm', name='resnet18', settings={'pretrained': False})
    >>> read_source("nets/mine.py:build(weights='best.pth')").name
    'nets/mine.py:build'
    """

    kind: str
    name: str
    settings: dict[str, Any]

    @property
    def weights(self) -> Path | None:
        """The file with its weights; None if it has none, or if torchvision has weights of this name."""
        text = self.settings.get("weights")
        return None if text is None or self.weights_name else Path(text)

    @property
    def weights_name(self) -> str:
        """The name under which torchvision has the weights, or an empty string."""
        text = str(self.settings.get("weights", ""))
        named = self.kind == "torchvision" and WEIGHTS_NAME.fullmatch(text)
        return text if named and not Path(text).is_file() else ""

    @property
    def file(self) -> Path:
        """The Python file, of a network that a function in it builds."""
        return Path(self.name.rpartition(":")[0])


def not_a_network(text: str) -> str:
    """Return the nearest fix for a text that names no network: it names data, or lacks its library.

    >>> not_a_network("resnet18"), not_a_network("digits").split(";")[0]
    (". Did you mean 'timm:resnet18'?", ". 'digits' is a data set")
    >>> not_a_network("net.py")
    '; of a Python file, name the function: net.py:build'
    """
    if text.endswith(".py"):
        return f"; of a Python file, name the function: {text}:build"
    what = "a folder" if Path(text).is_dir() else "a data set" if text in registry.names("dataset") else ""
    if what:
        return f". '{text}' is {what}; data are given by --data, or as the second argument"
    return f". Did you mean 'timm:{text}'?" if re.fullmatch(r"[a-z][a-z0-9_.]*", text) else ""


def is_a_network(text: str) -> bool:
    """Return whether a text begins as a network does that a library or a file holds.

    >>> is_a_network("timm:resnet18"), is_a_network("my_net.py:build"), is_a_network("pets")
    (True, True, False)
    """
    kind, colon, rest = text.partition(":")
    return bool(colon and rest) and (kind in KINDS or IN_FILE.fullmatch(text) is not None)


def read_source(text: str) -> Source:
    """Return the source that a text names; raise RequestError if nothing can be loaded from it."""
    kind, colon, rest = text.partition(":")
    if kind not in KINDS and (in_file := IN_FILE.fullmatch(text)):
        return _source(text, "file", in_file["name"], in_file["listed"])
    if not colon or not rest:
        raise RequestError(
            f"'{text}' names no network; write KIND:NAME, such as timm:resnet18, torchvision:resnet50,"
            f" onnx:net.onnx, folder:PATH, or FILE.py:FUNCTION{not_a_network(text)}"
        )
    if kind not in KINDS:
        raise unknown("kind of given network", kind, (*KINDS, "FILE.py"))
    if kind == "folder":
        return Source(kind, rest, {})
    if kind == "onnx":
        file = ONNX.fullmatch(rest)
        if file is None:
            raise RequestError(f"'{text}': the name of an ONNX file ends in .onnx")
        return _source(text, kind, file["name"], file["listed"])
    name, bracket, listed = rest.partition("(")  # names of weights contain dots: resnet18.a1_in1k
    return _source(text, kind, name.strip(), bracket + listed)


def _source(text: str, kind: str, name: str, listed: str | None) -> Source:
    settings = parse(f"{kind}{listed}").arguments if listed else {}
    check_settings(text, kind, settings)
    source = Source(kind, name, settings)
    for setting in ("ema", "part"):
        if settings.get(setting) and source.weights is None:
            raise RequestError(f"'{text}': {setting}={settings[setting]!r} goes with weights='FILE'")
    if "num_classes" in settings:
        least, drawn = int(kind == "torchvision"), settings.get("pretrained", True) and not source.weights
        if settings["num_classes"] < least or (drawn and settings["num_classes"]):
            raise RequestError(
                f"'{text}': num_classes is {least} or more, and goes with weights='FILE' or pretrained=False:"
                " a final layer of another size has no downloaded weights"
            )
    return source


def check_settings(text: str, kind: str, settings: Mapping[str, Any]) -> None:
    """Raise RequestError for settings that a kind does not have, and for two that name the features."""
    known = SETTINGS[kind]
    for setting, value in settings.items():
        if setting not in known:
            raise unknown(f"setting of '{text}'", setting, known)
        if type(value) is not known[setting]:
            raise RequestError(f"'{text}': {setting} is of type {known[setting].__name__}, not {value!r}")
    how = settings.get("pooling")
    if how is not None and how not in POOLINGS:
        raise unknown(f"pooling of '{text}'", how, POOLINGS)
    named = [name for name in FEATURES if settings.get(name) is not None]
    if len(named) > 1:
        raise RequestError(f"'{text}': {' and '.join(named)} both say what the features are; say one of them")


def with_settings(text: str, **settings: Any) -> str:
    """Return a source with further settings.

    >>> with_settings("timm:resnet18(seed=1)", crop=96)
    'timm:resnet18(seed=1, crop=96)'
    """
    listed = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    if not text.endswith(")") or not listed:
        return f"{text}({listed})" if listed else text
    return f"{text[:-1]}{'' if text.endswith('()') else ', '}{listed})"


def has_projector(text: str) -> bool:
    """Return whether a source is a folder of a network that was trained here with a projector.

    What cannot be read or resolved is named once the network is loaded.
    """
    source = read_source(text)
    if source.kind != "folder":
        return False
    card = Path(source.name) / OF_TRAINING
    try:
        return resolve(json.loads(card.read_text("utf-8"))["objective"]).projector is not None
    except (OSError, ValueError, LookupError, TypeError, RequestError):
        return False


def fingerprint(text: str) -> dict[str, str]:
    """Return the sha256 of every file that a source reads, by name, as part of the network's identity.

    Raises RequestError if a file is missing, and DamagedFileError if a file of a training was changed.
    """
    source = read_source(text)
    if source.kind == "folder":
        return _fingerprint_of_training(Path(source.name))
    files = [] if source.weights is None else [source.weights]
    if source.kind in HUBS and (own := Path(source.name).expanduser()).is_dir():
        files += sorted(path for path in own.iterdir() if path.suffix in OF_FOLDER and path.is_file())
    files += [source.file] * (source.kind == "file") + [Path(source.name)] * (source.kind == "onnx")
    for path in files:
        if not given_path(path, f"what '{text}' names").is_file():
            what = "weights" if path == source.weights else "a network"
            raise RequestError(f"there is no file of {what} at '{path}'.{nearest_beside(path)}")
    if source.kind == "onnx":
        from penultimate.networks.onnx import files_beside

        files += files_beside(Path(source.name))
    return {path.name: digest_file(path) for path in files}


def _fingerprint_of_training(folder: Path) -> dict[str, str]:
    digests = {path.name: digest_file(path) for path in sorted(folder.glob("network.*")) if path.is_file()}
    if not digests:
        raise RequestError(f"there is no network in '{folder}'; a folder that a training left is expected")
    step = folder.parent if folder.name.startswith("epoch-") else folder
    if (step / META).is_file():
        for name, facts in read_sealed(step / META, SCHEMA, mend="train it again")["files"].items():
            path = step / name
            if path.parent == folder and digests.get(path.name, facts["sha256"]) != facts["sha256"]:
                raise DamagedFileError(f"'{path}' is not what was written (its sha256 differs)")
    return digests
