"""Networks of open_clip: `open_clip:NAME/WEIGHTS`, or `open_clip:FOLDER` with an open_clip_config.json.

The network is the tower that sees images, and its features are the embedding that it gives of an image,
behind its projection and not normalised.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.errors import RequestError, nearest
from penultimate.files import canonical_json, digest_bytes
from penultimate.networks.architectures import square
from penultimate.networks.sources import Source
from penultimate.networks.weights import refusal

CONFIG = "open_clip_config.json"
NO_TEXTS = {"context_length": 4, "vocab_size": 8, "width": 8, "heads": 1, "layers": 1}
"""A tower of texts that is made beside that of images, and not used."""
VISION = ("embed_dim", "vision_cfg", "quick_gelu")
"""The parts of a configuration that the tower of images is made of."""


def library() -> Any:
    """Return open_clip; raise RequestError if it is not installed."""
    try:
        import open_clip
    except ImportError:
        raise RequestError("networks of open_clip need it: pip install 'penultimate[open_clip]'") from None
    return open_clip


def expect(source: Source) -> None:
    """Raise RequestError if the library, an architecture, its weights or a folder are not there."""
    open_clip = library()
    if folder(source) is not None:
        return
    name, _, tag = source.name.partition("/")
    if name not in open_clip.list_models():
        raise RequestError(
            f"open_clip has no network '{name}', and there is no folder '{source.name}'."
            f"{nearest(name, open_clip.list_models())}"
        )
    known = open_clip.list_pretrained_tags_by_model(name)
    if source.settings.get("pretrained", True) and source.weights is None and tag not in known:
        raise RequestError(
            f"open_clip:{name} needs the name of its weights, open_clip:{name}/WEIGHTS: it has"
            f" {', '.join(known) or 'none'}; pretrained=False draws them"
        )


def folder(source: Source) -> Path | None:
    """Return the folder that a source names, or None."""
    path = Path(source.name).expanduser()
    if path.is_dir() and not (path / CONFIG).is_file():
        raise RequestError(f"'{path}' holds no {CONFIG}, as open_clip writes it")
    if not path.is_dir() and source.name.startswith(("/", ".", "~")):
        raise RequestError(f"open_clip:{source.name}: there is no folder '{path}'")
    return path if path.is_dir() else None


def load(source: Source) -> nn.Module:
    """Return the tower of images of a source, with its weights or with initial weights."""
    open_clip = library()
    expect(source)
    own, (name, _, tag) = folder(source), source.name.partition("/")
    wanted = source.settings.get("pretrained", True) and source.weights is None
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(source.settings.get("seed", 0))
        try:
            if own is not None:
                known = json.loads((own / CONFIG).read_text(encoding="utf-8"))["model_cfg"]
                whole = open_clip.create_model(
                    f"local-dir:{own}", load_weights=wanted, require_pretrained=wanted
                )
            else:
                known = open_clip.get_model_config(name)
                whole = open_clip.create_model(name, pretrained=tag or None, load_weights=wanted)
        except Exception as error:  # a library's loader can raise anything
            raise refusal(error, f"open_clip:{source.name}") from None
    tower: nn.Module = whole.visual
    tower.made_with = {"config": {key: known[key] for key in VISION if key in known}}  # type: ignore[assignment]
    tower.transform_of_library = open_clip.get_model_preprocess_cfg(whole)
    return tower


def create(made_with: dict[str, Any]) -> nn.Module:
    """Return the tower of images of a stored configuration, with initial weights."""
    open_clip = library()
    known = {**made_with["config"], "text_cfg": NO_TEXTS}
    name = f"penultimate-{digest_bytes(canonical_json(known).encode())[:12]}"
    with tempfile.TemporaryDirectory() as beside:
        file = Path(beside) / f"{name}.json"
        file.write_text(json.dumps(known), encoding="utf-8")
        open_clip.add_model_config(file)
        tower: nn.Module = open_clip.create_model(name, load_weights=False).visual
    return tower


def preparation(source: Source, module: nn.Module) -> tuple[Preparation, str]:
    """Return how open_clip prepares images for a tower that `load` has returned."""
    config: Any = module.transform_of_library
    statistics = ChannelStatistics(tuple(config["mean"]), tuple(config["std"]))
    who = f"open_clip:{source.name}"
    found = square(who, config["size"], config["interpolation"], statistics, config["resize_mode"], 1.0)
    return found, "its configuration at open_clip"
