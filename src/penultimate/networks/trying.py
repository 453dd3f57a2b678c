"""Networks from elsewhere, tried on images of noise: what they refuse, and where their tokens are."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from penultimate.backbones.backbone import device_of
from penultimate.backbones.passes import plainly
from penultimate.backbones.tokens import Pooling, token_pooling
from penultimate.data.disk.preparation import Preparation
from penultimate.errors import RequestError, legible, shortened
from penultimate.networks.built import noise
from penultimate.networks.sources import LIVE, Source
from penultimate.userfile import first_line

REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, AssertionError)
"""Errors that a forward pass may raise for input that it was not made for."""


def run(text: str, module: nn.Module, images: Tensor) -> Any:
    """Return what a module gives for images; raise RequestError with what it says if it refuses them."""
    try:
        with plainly(device_of(module)):
            return module(images.to(device_of(module)).clone())  # the network may overwrite it
    except RequestError:
        raise
    except REFUSALS as error:
        said = shortened(legible(first_line(error)), 300)
        told = "crop=64 for 64 x 64 pixels, mean=(0.5,), std=(0.25,) for one channel"
        if text.startswith(f"{LIVE}:"):
            told = "pu.Model(module, size=64) for 64 x 64 pixels, mean=(0.5,), std=(0.25,) for one channel"
        raise RequestError(
            f"'{text}' refuses images {list(images.shape)}: {said}. What it wants can be said: {told}"
        ) from None


def pooling_of(text: str, source: Source, module: nn.Module, prepared: Preparation) -> Pooling | None:
    """Return how a source has tokens pooled, or None; raise RequestError for a network without tokens."""
    how = source.settings.get("pooling")
    if how is None:
        return None
    images = noise(prepared).to(device_of(module))
    run(text, module, images)  # says which images it wants
    try:
        with plainly(device_of(module)):
            return token_pooling(module, images, how)
    except RequestError as error:
        raise RequestError(f"'{text}': {error}") from None
