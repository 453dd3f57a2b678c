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
"""The kind of a module of this session (see `networks.live`)."""
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
        return _read(text, "file", in_file["name"], in_file["listed"])
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
        return _read(text, kind, file["name"], file["listed"])
    name, bracket, listed = rest.partition("(")  # names of weights contain dots: resnet18.a1_in1k
    return _read(text, kind, name.strip(), bracket + listed)


def _read(text: str, kind: str, name: str, listed: str | None) -> Source:
    settings = parse(f"{kind}{listed}").arguments if listed else {}
    known = SETTINGS[kind]
    for setting, value in settings.items():
        if setting not in known:
            raise unknown(f"setting of '{text}'", setting, known)
        if type(value) is not known[setting]:
            raise RequestError(f"'{text}': {setting} is of type {known[setting].__name__}, not {value!r}")
    source = Source(kind, name, settings)
    expect_one_kind_of_features(text, settings)
    for setting, what in {"ema": "the averaged weights of", "part": "one of the networks in"}.items():
        if settings.get(setting) and source.weights is None:
            raise RequestError(
                f"'{text}': {setting}={settings[setting]!r} takes {what} a file, weights='FILE'"
            )
    if "num_classes" in settings:
        least, drawn = int(kind == "torchvision"), settings.get("pretrained", True) and not source.weights
        if settings["num_classes"] < least or (drawn and settings["num_classes"]):
            raise RequestError(
                f"'{text}': num_classes is {least} or more, and goes with weights='FILE' or pretrained=False:"
                " a final layer of another size has no downloaded weights"
            )
    return source


def expect_one_kind_of_features(text: str, settings: Mapping[str, Any]) -> None:
    """Raise RequestError for an unknown pooling, and for two settings that both say what the features are."""
    how = settings.get("pooling")
    if how is not None and how not in POOLINGS:
        raise unknown(f"pooling of '{text}'", how, POOLINGS)
    said = [name for name in FEATURES if settings.get(name) is not None]
    if len(said) > 1:
        raise RequestError(f"'{text}': {' and '.join(said)} both say what the features are; say one of them")


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
    card = given_path(source.name, f"what '{text}' names") / OF_TRAINING
    try:
        return resolve(json.loads(card.read_text("utf-8"))["objective"]).projector is not None
    except (OSError, ValueError, LookupError, TypeError, RequestError):
        return False


def fingerprint(text: str) -> dict[str, str]:
    """Return the sha256 of every file that a source reads, by name, as part of the network's identity.

    Raises RequestError if a file is missing or lacks the function, and DamagedFileError if a file of a
    training was changed.
    """
    source = read_source(text)
    if source.kind == "folder":
        folder = given_path(source.name, f"what '{text}' names")
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
    files = [] if source.weights is None else [source.weights]
    if source.kind in HUBS and (own := Path(source.name).expanduser()).is_dir():
        files += sorted(path for path in own.iterdir() if path.suffix in OF_FOLDER and path.is_file())
    if source.kind == "file":
        files.append(Path(source.name.rpartition(":")[0]))
    if source.kind == "onnx":
        files.append(Path(source.name))
    for path in files:
        if not given_path(path, f"what '{text}' names").is_file():
            what = "weights" if path == source.weights else "a network"
            raise RequestError(f"there is no file of {what} at '{path}'.{nearest_beside(path)}")
    digests = {path.name: digest_file(path) for path in files}
    if source.kind == "onnx":
        from penultimate.networks.onnx import files_beside

        digests |= {path.name: digest_file(path) for path in files_beside(Path(source.name))}
    return digests


def _written(folder: Path) -> dict[str, str]:
    """Return the sha256 of each file as recorded in its step's meta.json, if the folder belongs to a step."""
    step = folder.parent if folder.name.startswith("epoch-") else folder
    if not (step / META).is_file():
        return {}
    files = read_sealed(step / META, SCHEMA, mend="train it again")["files"]
    return {
        (step / name).name: facts["sha256"] for name, facts in files.items() if (step / name).parent == folder
    }
