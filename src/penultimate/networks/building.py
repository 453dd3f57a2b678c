"""Networks with their weights, and what distinguishes one that a user's code builds from any other.

A Python file may read checkpoints, configurations and modules beside it, so its text alone does not identify
the network; it is digested after it is built (`state.likeness`). A module of this session is kept under such
a digest, as live:CLASS-DIGEST; other processes do not know it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.passes import message_of
from penultimate.backbones.taps import unwrapped
from penultimate.data.disk.preparation import Preparation
from penultimate.errors import PenultimateError, RequestError
from penultimate.files import digest_bytes
from penultimate.networks.architectures import create, download, hub_of, options, preparation
from penultimate.networks.model import Model
from penultimate.networks.sources import HUBS, LIVE, Source, read_source
from penultimate.networks.state import (
    alike,
    copied,
    in_single,
    likeness,
    other_kinds,
    tensors_of_state,
    unpack,
)
from penultimate.networks.weights import load_weights, read_weights

_KEPT: dict[str, nn.Module] = {}


def noise(prepared: Preparation, count: int = 2) -> Tensor:
    """Return a few images of noise on which a network is tried."""
    generator = torch.Generator().manual_seed(0)
    channels = len(prepared.statistics.mean)
    return torch.randn(count, channels, prepared.crop, prepared.crop, generator=generator)


def obtain(source: Source) -> tuple[nn.Module, str]:
    """Return the network with the weights of its source, in evaluation mode, and what was left out."""
    library = source.kind in ("timm", "torchvision")
    if library and source.weights is None and source.settings.get("pretrained", True):
        return download(source).eval(), ""
    if source.kind == LIVE:
        return kept(source.name), ""
    if source.kind in HUBS:
        module = hub_of(source.kind).load(source)
    else:
        module = create(source.kind, source.name, options(source), source.settings.get("seed", 0))
    left_out = ""
    if source.weights is not None:
        ema, part = (source.settings.get(name, "") for name in ("ema", "part"))
        left_out = load_weights(module, read_weights(source.weights, bool(ema), part), source.weights)
    return module.eval(), left_out


def keep(name: str, module: object, settings: Mapping[str, Any]) -> str:
    """Keep a copy of a module, on the CPU and in evaluation mode; return its source.

    `settings` are the image settings for all networks; the settings of a `Model` take precedence. Raises
    RequestError for an object that is not a module, cannot be copied or refuses its images.
    """
    own: Mapping[str, Any] = module.settings if isinstance(module, Model) else {}
    given = module.module if isinstance(module, Model) else module
    if own.keys() & {"crop", "share", "resize"}:
        settings = {each: value for each, value in settings.items() if each not in own and each != "resize"}
    if not isinstance(given, nn.Module):
        raise RequestError(
            f"'{name}' comes from a source such as 'timm:resnet18', or is an nn.Module, not a"
            f" {type(given).__name__}"
        )
    try:
        tensors_of_state(unwrapped(given))  # before it is copied, which may fail
        made = copied(unwrapped(given)).cpu().eval().requires_grad_(False)
        prepared, _ = preparation(Source(LIVE, name, {**settings, **own}), made)
        images, single = noise(prepared), copied(made) if other_kinds(made) else made
        in_single(single, images)
        known = likeness(single, images, f"{prepared}{other_kinds(made)}")
    except RequestError:
        raise
    except Exception as error:  # a user's module can raise anything
        raise RequestError(
            f"the module '{name}' cannot be copied and run on images like those of its preparation:"
            f" {message_of(error)}. pu.Model(module, size=64) says 64 x 64 pixels; a Python file that builds"
            " it is given as 'FILE.py:build' with weights='FILE'"
        ) from error
    text = f"{type(made).__name__}-{digest_bytes((known['weights'] + known['outputs']).encode())[:32]}"
    _KEPT[text] = made
    listed = ", ".join(f"{setting}={value!r}" for setting, value in own.items())
    return f"{LIVE}:{text}({listed})" if listed else f"{LIVE}:{text}"


def kept(name: str) -> nn.Module:
    """Return a copy of a kept module; raise RequestError if this process has kept none under the name."""
    if name not in _KEPT:
        raise RequestError(
            f"'{name}' is a module of the Python session that evaluated it, and unknown to this one: evaluate"
            " it there again, or give a Python file that builds it, 'FILE.py:build', with weights='FILE'"
        )
    return copy.deepcopy(_KEPT[name])


def what_is_built(text: str) -> dict[str, Any]:
    """Return the likeness of what a source builds now, or {"unbuilt": why}; its own step reports why."""
    source = read_source(text)
    try:
        module, _ = obtain(source)
        return _likeness(module, preparation(source, module)[0])
    except PenultimateError as error:
        return {"unbuilt": str(error)}


def expect_as_built(
    text: str, source: Source, module: nn.Module, prepared: Preparation, built: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return where a Python file lies and the sketch of what it builds, so that other processes can build it.

    Raises RequestError if the network differs from `built`, which is part of the study's identity.
    """
    known = _likeness(module, prepared)
    if built is not None and "unbuilt" in built:
        raise RequestError(
            f"'{text}' could not be built when the study began, and now it can: start the study again. It"
            f" said: {built['unbuilt']}"
        )
    if built is not None and not _is_same(built, known):
        if not _is_same(_likeness(obtain(source)[0], prepared), known):
            raise RequestError(
                f"'{text}' builds another network each time that it is called, so that no result could be"
                " found again; have what it draws follow from a seed (torch, NumPy and random are seeded for"
                " it), or load its weights from a file"
            )
        raise RequestError(f"what '{text}' builds was changed since the study began; start it again")
    return {"where": str(source.file.absolute()), "sketch": known["sketch"]}


def restore_as_built(
    card: Mapping[str, Any], module: nn.Module, prepared: Preparation, tensors: Mapping[str, Tensor]
) -> None:
    """Load the kept weights into what a Python file builds now; raise RequestError if it differs."""
    try:
        unpack(module, tensors)
        changed = not alike(card["sketch"], _likeness(module, prepared)["sketch"])
    except (KeyError, RuntimeError, AttributeError):  # its tensors have other names or shapes
        changed = True
    if changed:
        raise RequestError(
            f"what '{card['name']}' builds was changed since its network was stored; start the study again"
        )


def _likeness(module: nn.Module, prepared: Preparation) -> dict[str, Any]:
    """Return the likeness of a module; of one that refuses its images, its weights: its step says why."""
    images = noise(prepared).to(device_of(module))
    in_single(module, images)
    try:
        return likeness(module, images, repr(prepared))
    except (Exception, SystemExit):  # a user's module can raise anything
        return {"weights": "", "outputs": "", "sketch": []}


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(one["weights"] == other["weights"] and alike(one["sketch"], other["sketch"]))
