"""Batches of images prepared as the settings of a `Model` specify."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from penultimate.backbones.taps import unwrapped
from penultimate.data.disk.preparation import Preparation
from penultimate.errors import RequestError
from penultimate.networks.architectures import preparation
from penultimate.networks.given import GivenNetwork
from penultimate.networks.model import Model
from penultimate.networks.sources import FEATURES, LIVE, Source

RESIZING = ("crop", "resize", "share", "squash", "interpolation")
"""Settings that concern the size of images."""


def preparer(model: Model) -> Callable[[Tensor], Tensor]:
    """Return a function that prepares a batch: bytes [n h w c] or [n c h w] like files, floats as set.

    >>> from torch import nn
    >>> prepare = preparer(Model(nn.Conv2d(3, 4, 3), size=2, mean=(0.5,) * 3, std=(0.5,) * 3))
    >>> prepare(torch.full((1, 3, 4, 4), 255, dtype=torch.uint8))[0, 0, 0]
    tensor([1., 1.])
    >>> prepare(torch.zeros(1, 3, 2, 2))[0, 0, 0]
    tensor([-1., -1.])
    """
    module, settings = unwrapped(model.module), model.settings
    if not settings.keys() - {*FEATURES}:
        return lambda batch: batch
    prepared, _ = preparation(Source(LIVE, "the module", dict(settings)), module)
    network = GivenNetwork(module, None, prepared, ())

    def prepare(batch: Tensor) -> Tensor:
        if batch.dtype == torch.uint8:
            first = batch.ndim == 4 and batch.shape[1] in (1, 3) and batch.shape[-1] not in (1, 3)
            return network.prepared(batch.permute(0, 2, 3, 1) if first else batch)
        if settings.keys() & {*RESIZING}:
            batch = _resized(batch, prepared)
        if settings.keys() & {"mean", "std"}:
            shape = (1, -1, 1, 1)
            mean, std = (
                torch.tensor(getattr(prepared.statistics, name)).to(batch).view(shape)
                for name in ("mean", "std")
            )
            batch = (batch - mean) / std
        return batch

    return prepare


def _resized(batch: Tensor, prepared: Preparation) -> Tensor:
    """Return floats [n c h w] resized and cropped in the middle; floats of the right size stay unchanged."""
    side, crop = prepared.resize, prepared.crop
    if batch.ndim != 4:
        raise RequestError(f"images whose size is said are [n c h w], not {list(batch.shape)}")
    height, width = batch.shape[2:]
    if (height, width) == (crop, crop):
        return batch
    share = side / min(height, width)
    to = (side, side) if prepared.squash else (round(height * share), round(width * share))
    smooth = {"bilinear": "bilinear", "bicubic": "bicubic", "nearest": "nearest"}.get(prepared.interpolation)
    if smooth is None:
        raise RequestError(f"interpolation='{prepared.interpolation}' is of images of bytes, not of floats")
    if smooth == "nearest":
        batch = F.interpolate(batch, to, mode=smooth)
    else:
        batch = F.interpolate(batch, to, mode=smooth, antialias=True)
    top, left = (to[0] - crop) // 2, (to[1] - crop) // 2
    if top < 0 or left < 0:
        raise RequestError(f"a crop of {crop} pixels is larger than the resized image, {to[0]} x {to[1]}")
    return batch[:, :, top : top + crop, left : left + crop]
