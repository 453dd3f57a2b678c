"""Modules of this session as networks of a study, stored under a digest of their content.

The source of such a module is live:CLASS-DIGEST. The digest covers its weights and its outputs for two images
of noise, so a module with other weights or another forward pass is another network. Other processes do not
know these modules.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from penultimate.backbones.outputs import entries
from penultimate.backbones.passes import aside, plainly
from penultimate.backbones.taps import unwrapped
from penultimate.data.seeding import derived_generator
from penultimate.errors import RequestError, legible, shortened
from penultimate.files import digest_arrays, digest_bytes
from penultimate.networks.architectures import preparation
from penultimate.networks.model import Model
from penultimate.networks.sources import LIVE, Source
from penultimate.networks.state import copied, parts_to_digest, single_of, tensors_of_state
from penultimate.userfile import first_line

_KEPT: dict[str, nn.Module] = {}


def keep(name: str, module: object, settings: Mapping[str, Any]) -> str:
    """Keep a copy of a module, on the CPU and in evaluation mode; return its source.

    `settings` are the image settings for all networks; the settings of a `Model` take precedence. Raises
    RequestError for an object that is not a module, cannot be copied or refuses its images.
    """
    own: Mapping[str, Any] = {}
    if isinstance(module, Model):
        own = module.settings
        module, sized = module.module, own.keys() & {"crop", "share", "resize"}
        others = {each: value for each, value in settings.items() if not sized & {each, "resize"}}
        settings = {**others, **own}
    if not isinstance(module, nn.Module):
        raise RequestError(
            f"'{name}' comes from a source such as 'timm:resnet18', or is an nn.Module, not a"
            f" {type(module).__name__}"
        )
    state = hashlib.sha256()
    try:
        tensors_of_state(unwrapped(module))  # before it is copied, which may fail
        held = copied(unwrapped(module)).cpu().eval().requires_grad_(False)
        prepared, _ = preparation(Source(LIVE, name, dict(settings)), held)
        channels, side = len(prepared.statistics.mean), prepared.crop
        images = torch.randn(2, channels, side, side, generator=derived_generator("live"))
        found = [value.float().numpy() for value in _outputs(single_of(held, images), images)]
        for part in parts_to_digest(held):
            state.update(part)
    except RequestError:
        raise
    except Exception as error:  # a user's module can raise anything
        said = shortened(legible(first_line(error) or type(error).__name__), 300)
        raise RequestError(
            f"the module '{name}' cannot be copied and run on images like those of its preparation: {said}."
            " pu.Model(module, size=64) says 64 x 64 pixels; a Python file that builds it is given as"
            " 'FILE.py:build' with weights='FILE'"
        ) from error
    made = "\n".join((type(held).__qualname__, repr(prepared), state.hexdigest(), digest_arrays(*found)))
    digest = digest_bytes(made.encode())[:32]
    text = f"{type(held).__name__}-{digest}"
    _KEPT[text] = held
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


def _outputs(module: nn.Module, images: torch.Tensor) -> list[torch.Tensor]:
    """Return a module's outputs for images, computed on one thread because threads change the last bits.

    A module that draws random numbers draws the same ones each time.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with plainly(), aside(seed=0):
            return list(entries(module(images)).values())
    finally:
        torch.set_num_threads(threads)
