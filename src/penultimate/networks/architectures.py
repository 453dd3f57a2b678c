"""Architectures from timm, torchvision and users' files, and how each of them expects its images."""

from __future__ import annotations

import functools
import importlib
import linecache
import logging
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from penultimate import userfile
from penultimate.data.disk.preparation import Preparation
from penultimate.data.images import ChannelStatistics
from penultimate.data.seeding import seeded
from penultimate.errors import RequestError, nearest, with_article
from penultimate.networks.sources import HUBS, PREPARING, Source
from penultimate.networks.weights import refusal

IMAGENET = ChannelStatistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
GREY = ChannelStatistics((0.449,), (0.226,))
"""The channel means of ImageNet, for a network with one channel that does not state its own."""
AS_USUAL = "what is usual for ImageNet"
USUAL = Preparation(256, 224, "bilinear", IMAGENET)
INCEPTIONS = ("googlenet", "inception_v3")
"""Networks of torchvision that, with trained weights, normalise their input themselves."""
SIZES = {"resize", "crop", "share", "interpolation", "squash"}
"""Settings that say how an image is resized; with one of them, no image processor does it."""
NEEDED = "networks of {} need it: pip install 'penultimate[models]'"
WHAT = "network file"


def options(source: Source, module: nn.Module | None = None) -> dict[str, Any]:
    """Return the arguments, besides its name, with which an architecture is made; weights change some.

    A network of transformers or open_clip that was made already says its own.
    """
    if source.kind in HUBS and module is not None:
        return dict(module.made_with)  # type: ignore[arg-type]
    chosen = {name: source.settings[name] for name in ("num_classes",) if name in source.settings}
    if source.kind == "torchvision" and source.name in INCEPTIONS:
        trained = "weights" in source.settings or source.settings.get("pretrained", True)
        chosen |= {"aux_logits": False, "init_weights": False, "transform_input": trained}
    return chosen


def hub_of(kind: str) -> Any:
    """Return the module that loads networks of transformers ("hf") or open_clip."""
    return importlib.import_module(f"penultimate.networks.{'hub' if kind == 'hf' else 'openclip'}")


def create(
    kind: str, name: str, made_with: Mapping[str, Any], seed: int = 0, kept: tuple[bytes, str] | None = None
) -> nn.Module:
    """Return the architecture with initial weights drawn from a seed; global generators are left untouched.

    `kept` holds the stored text of a Python file and its former path, at which it is executed.
    """
    if kind == "file":
        path, _, function = name.rpartition(":")
        return _of_file(path, function, seed, kept)
    if kind in HUBS:
        made: nn.Module = hub_of(kind).create(dict(made_with))
        return made
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return _of_library(kind, name, dict(made_with))


def download(source: Source) -> nn.Module:
    """Return the network with the weights that its library downloads, but without auxiliary heads."""
    heads = ("aux_logits", "init_weights")  # torchvision sets these itself when it loads weights
    chosen = {name: value for name, value in options(source).items() if name not in heads}
    module = _of_library(source.kind, source.name, chosen, source.weights_name or True)
    if "AuxLogits" in dict(module.named_children()):
        module.register_module("AuxLogits", None)
    return module


def preparation(source: Source, module: nn.Module) -> tuple[Preparation, str]:
    """Return how images are prepared for a network, and where this was found.

    The settings of the source come first, then what the library or the network itself states. A network from
    a user's file may have an attribute `preparation`, or timm's `pretrained_cfg`; otherwise it is given the
    usual preparation for ImageNet.
    """
    own = getattr(module, "preparation", None)
    if isinstance(own, Preparation):
        found, origin = own, "its attribute `preparation`"
    elif source.kind in HUBS:
        found, origin = hub_of(source.kind).preparation(source, module)
    elif source.kind == "torchvision":
        found, origin = _of_torchvision(source), "its weights at torchvision"
    elif isinstance(getattr(module, "pretrained_cfg", None), dict):
        found, origin = _of_timm(module), "its configuration at timm"
    else:
        first = next((layer for layer in module.modules() if isinstance(layer, nn.Conv2d)), None)
        grey = first is not None and first.in_channels == 1
        found = Preparation(USUAL.resize, USUAL.crop, "bilinear", GREY) if grey else USUAL
        origin = AS_USUAL
    return changed(found, source.settings), with_settings_named(origin, source.settings)


def with_settings_named(origin: str, settings: Mapping[str, Any]) -> str:
    """Return the origin of a preparation together with the settings of the source that override it.

    >>> with_settings_named("its weights", {"crop": 160, "seed": 1})
    'its weights; crop=160 as told'
    """
    named = ", ".join(f"{name}={value}" for name, value in settings.items() if name in PREPARING)
    return f"{origin}; {named} as told" if named else origin


def changed(found: Preparation, settings: Mapping[str, Any]) -> Preparation:
    """Return a preparation with the settings of a source; a changed crop alone also scales the resizing."""
    crop = settings.get("crop", found.crop)
    mean, std = (settings.get(name, getattr(found.statistics, name)) for name in ("mean", "std"))
    share = settings.get("share")
    interpolation = settings.get("interpolation", found.interpolation)
    known = ("nearest", "bilinear", "bicubic", "lanczos")
    numbers = all(isinstance(value, int | float) and math.isfinite(value) for value in (*mean, *std))
    if not isinstance(crop, int) or crop < 1:
        raise RequestError(f"crop is a number of pixels, 1 or more, not {crop!r}")
    if len(mean) != len(std) or len(mean) not in (1, 3) or not numbers or min(std) <= 0:
        raise RequestError(
            "expected a mean and a std for each channel of the network (1 or 3), finite numbers, and std is"
            f" positive; got {mean} and {std}"
        )
    if share is not None and (not 0 < share <= 1 or "resize" in settings):
        raise RequestError(
            "share is the fraction of the resized image that the crop takes, above 0 to 1, and goes without"
            f" resize; got share={share}"
        )
    if interpolation not in known:
        raise RequestError(
            f"interpolation is {', '.join(known)}, not '{interpolation}'.{nearest(interpolation, known)}"
        )
    as_before = round(found.resize * crop / found.crop) if share is None else math.floor(crop / share)
    return Preparation(
        settings.get("resize", as_before),
        crop,
        interpolation,
        ChannelStatistics(tuple(mean), tuple(std)),
        settings.get("squash", found.squash),
        "" if settings.keys() & SIZES else found.processor,
    )


def square(
    who: str, size: Any, interpolation: Any, statistics: ChannelStatistics, mode: str, share: float
) -> Preparation:
    """Return the preparation of a library that crops the middle square, or squashes; else RequestError.

    `size` is the crop's height and width, and `share` the crop's fraction of the resized image.
    """
    height, width = (size, size) if isinstance(size, int) else size[-2:]
    if height != width or mode not in ("center", "shortest", "squash"):
        raise RequestError(
            f"{who} wants images of {height} x {width} pixels, cropped by '{mode}'; only square centre crops"
            " and squashed images are supported"
        )
    return Preparation(math.floor(height / share), height, interpolation, statistics, mode == "squash")


def expect_known(kind: str, name: str) -> None:
    """Raise RequestError with the nearest name if timm or torchvision does not have a network."""
    try:
        if not _has(kind, name):
            raise RequestError(f"{kind} has no network '{name}'.{nearest(name, _names(kind))}")
    except ImportError:
        raise RequestError(NEEDED.format(kind)) from None


def _has(kind: str, name: str) -> bool:
    """Return whether a library has an architecture; timm also knows former names, and refuses tags."""
    if kind != "timm":
        return name in _names(kind)
    from timm.models import get_pretrained_cfg, is_model, parse_model_name

    try:
        place, _ = parse_model_name(name)  # "hf-hub:owner/name"
        if not place:
            get_pretrained_cfg(name)
    except (RuntimeError, ValueError):  # "resnet18.TAG" with an unknown tag, or a malformed place
        return False
    return bool(place or is_model(name))


@functools.cache
def _names(kind: str) -> frozenset[str]:
    if kind == "timm":
        import timm

        return frozenset(timm.list_models())
    from torchvision import models

    return frozenset(models.list_models(module=models))


def _of_library(kind: str, name: str, made_with: dict[str, Any], weights: str | bool = False) -> nn.Module:
    """Return the architecture as its library makes it.

    `weights` is a name that torchvision gives to weights, or True for the default ones.
    """
    expect_known(kind, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about how torchvision draws initial weights
            if kind == "timm":
                import timm

                logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # the caller reports the outcome
                module: nn.Module = timm.create_model(name, pretrained=bool(weights), **made_with)
                return module
            from torchvision import models

            module = models.get_model(
                name, weights="DEFAULT" if weights is True else weights or None, **made_with
            )
            return module
    except Exception as error:  # a download can raise whatever its connection raises
        what = f"the weights '{weights}' of" if isinstance(weights, str) else "the weights of" * weights
        raise refusal(error, f"{what} {kind}:{name}".strip()) from None


def _of_file(name: str, function: str, seed: int, kept: tuple[bytes, str] | None) -> nn.Module:
    """Return what a function in a Python file returns; raise RequestError if it is not a module.

    The file runs in its own folder, so that it can import modules and read files that lie beside it.
    """
    path = Path(name).absolute() if kept is None else Path(kept[1])
    text = userfile.read(WHAT, name, path) if kept is None else kept[0]
    gone = "" if path.exists() else f". It lay at '{path}', and what it reads beside it is to be there still"
    lines = text.decode(errors="replace").splitlines(keepends=True)
    linecache.cache[str(path)] = len(text), None, lines, str(path)  # for readers of source code
    executed = userfile.executed(WHAT, name, path, text)
    with seeded(seed), userfile.beside(path.parent), executed as module:
        build = vars(module).get(function)
        if not callable(build):
            functions = [key for key, value in vars(module).items() if callable(value)]
            raise RequestError(f"'{name}' defines no function '{function}'.{nearest(function, functions)}")
        try:
            built = build()
        except (Exception, SystemExit) as error:
            where, message = userfile.line_of(error, path), userfile.in_words(error, WHAT, path)
            raise RequestError(f"the {WHAT} '{name}'{where}: {function}() fails: {message}{gone}") from error
    if not isinstance(built, nn.Module):
        raise RequestError(
            f"'{name}:{function}' returns {with_article(type(built).__name__)}, not an nn.Module"
        )
    return built


def _of_timm(module: nn.Module) -> Preparation:
    try:
        from timm.data import resolve_model_data_config
    except ImportError:
        raise RequestError(NEEDED.format("timm")) from None
    config = resolve_model_data_config(module)
    interpolation = "bilinear" if config["interpolation"] == "random" else config["interpolation"]
    statistics = ChannelStatistics(tuple(config["mean"]), tuple(config["std"]))
    who, size = type(module).__name__, config["input_size"]
    return square(who, size, interpolation, statistics, config["crop_mode"], config["crop_pct"])


def _of_torchvision(source: Source) -> Preparation:
    """Return the transform of the weights with the given name, of those in this file, or the default ones."""
    from torchvision import models

    known = list(models.get_model_weights(source.name))
    if not known:
        return USUAL
    file = source.weights.name if source.weights else ""
    usual = models.get_model_weights(source.name).DEFAULT
    chosen = (one for one in known if one.name == source.weights_name or Path(one.url).name == file)
    preset = next(chosen, usual).transforms()
    if not hasattr(preset, "crop_size"):
        raise RequestError(f"torchvision:{source.name} does not classify images")
    (resize,), (crop,) = preset.resize_size, preset.crop_size
    statistics = ChannelStatistics(tuple(preset.mean), tuple(preset.std))
    return Preparation(resize, crop, preset.interpolation.value, statistics)
