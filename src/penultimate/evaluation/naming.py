"""The names of networks and data on the command line: NAME=WHAT, or the name of the file or folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from penultimate import registry
from penultimate.data.readers.entries import ENTRIES
from penultimate.data.readers.places import read_place
from penultimate.errors import RequestError, as_sentence, unknown
from penultimate.files import given_path, nearest_beside
from penultimate.networks.sources import (
    HUBS,
    KINDS,
    LIVE,
    OF_TRAINING,
    is_a_network,
    not_a_network,
    read_source,
    with_settings,
)

NAMED = re.compile(r"(?P<name>[^=:(/\\]+)=(?P<what>.+)", re.DOTALL)


def networks_named(models: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return networks by name, from the options of a command for each: (model, file of weights or "").

    A model is timm:NAME, torchvision:NAME, a Python file and the function in it that builds a module
    (my_net.py:build), or a folder of networks that were trained here; NAME=MODEL gives it a name.

    >>> networks_named([("timm:resnet50", ""), ("ours=timm:resnet50", "best.safetensors")])
    {'resnet50': 'timm:resnet50', 'ours': "timm:resnet50(weights='best.safetensors')"}
    """
    named: dict[str, str] = {}
    for model, weights in models:
        parts = NAMED.fullmatch(model)
        own, text = (parts["name"].strip(), parts["what"]) if parts else ("", model)
        for default, source in _sources(text, weights).items():
            name = own or default
            if name in named:
                raise RequestError(f"two networks are called '{name}'; name one: --model 'other={text}'")
            named[name] = source
    return named


def _sources(text: str, weights: str) -> dict[str, str]:
    """Return the default name and the source of a model, or of each network in a folder."""
    kind = text.partition(":")[0]
    if (kind in KINDS and kind != "folder") or ".py:" in text:
        source = with_settings(text, weights=weights) if weights else text
        read = read_source(source)
        name = Path(read.name.partition(".py:")[0]).name if ".py:" in read.name else read.name
        if read.kind in HUBS:  # "owner/name", "name/weights", or a folder
            is_folder = read.kind == "hf" or Path(read.name).expanduser().is_dir()
            name = Path(read.name).name if is_folder else read.name.replace("/", " ")
        further = Path(weights).stem if weights else "", read.settings.get("pooling", "")
        return {" ".join(filter(None, (name, *further))): source}
    path = given_path(text.removeprefix("folder:"), "--model", home=True)
    if weights:
        raise RequestError(f"--weights goes with a network of timm, torchvision or Python, not '{text}'")
    if (path / OF_TRAINING).is_file():
        return {_network_in(path): f"folder:{path}"}
    patterns = (f"{folder}{OF_TRAINING}" for folder in ("", "*/", "steps/train.*/"))
    inner = sorted(file.parent for pattern in patterns for file in path.glob(pattern))
    if not inner:
        raise RequestError(
            f"'{text}' is no network: write timm:NAME, torchvision:NAME, FILE.py:FUNCTION, or a folder of"
            f" networks that were trained here (kinds: {', '.join(kind for kind in KINDS if kind != LIVE)})"
            f"{not_a_network(text)}"
        )
    names = [_network_in(folder) for folder in inner]
    return {
        name if names.count(name) == 1 else f"{name} {folder.name[-4:]}": f"folder:{folder}"
        for name, folder in zip(names, inner, strict=True)
    }


def _network_in(folder: Path) -> str:
    """Return the name of a trained network in its folder's name: softmax-s0 in train.softmax-s0.0f3c..."""
    parts = folder.resolve().name.split(".")
    return parts[1] if len(parts) == 3 and parts[0] == "train" else folder.resolve().name


def outside_named(texts: Iterable[str], data: Mapping[str, str], root: str = "") -> dict[str, str]:
    """Return data outside by name with their places; the name of a task stands for its images."""
    tasks = {text: data[text] for text in texts if text in data}
    return tasks | data_named([text for text in texts if text not in data], root)


def data_named(texts: Iterable[str], root: str = "") -> dict[str, str]:
    """Return data by name with their places, from NAME=PLACE, a place, or a name (known or below `root`).

    A place is the user's own folder or file, or the location of a published data set under its name.

    >>> data_named(["pets=/data/pets", "digits"])
    {'pets': '/data/pets', 'digits': ''}
    """
    named: dict[str, str] = {}
    for text in texts:
        name, equals, where = (part.strip() for part in text.partition("="))
        if not equals or name.count("(") > name.count(")"):  # the "=" of a setting: t.csv(label='species')
            name, where = _place_named(text.strip(), root)
        if name in named:
            raise RequestError(f"two data sets are called '{name}'; name one of them otherwise: NAME=FOLDER")
        named[name] = where
    return named


def _place_named(text: str, root: str) -> tuple[str, str]:
    """Return the name and the place of data that are given by one of them."""
    if text in registry.names("dataset"):
        return text, ""
    if root and read_place(Path(root) / text).path.exists():
        return str(read_place(text).path), str(Path(root) / text)
    if root and text in ENTRIES:
        return text, root
    place = read_place(text).path.resolve()
    if place.exists():
        return place.name if place.is_dir() else place.stem, text
    if is_a_network(text):
        raise RequestError(f"'{text}' is a network, not data: networks are given by --model")
    there = f", nor below '{root}'" if root else "; --root FOLDER says where named data lie"
    before, hint = "", nearest_beside(read_place(text).path)
    if text in ENTRIES:
        before = f"Where the images of '{text}' lie is not said. "
    elif Path(text).name == text:
        before = f"{as_sentence(str(unknown('data set', text, (*registry.names('dataset'), *ENTRIES))))} "
        hint = "" if "Did you mean" in before else hint
    raise RequestError(f"{before}There is no folder '{text}'{there}.{hint} Your own: NAME=FOLDER.")
