"""Batches of images prepared as the settings of a `Model` specify."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from penultimate.backbones.taps import unwrapped
from penultimate.networks.given import GivenNetwork
from penultimate.networks.model import Model
from penultimate.networks.sources import FEATURES


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
    prepared = model.preparation_of(module)
    network = GivenNetwork(module, None, prepared, ())

    def prepare(batch: Tensor) -> Tensor:
        if batch.dtype == torch.uint8:
            return network.prepared(with_channels_last(batch))
        if settings.keys() & {"mean", "std"}:
            both = (prepared.statistics.mean, prepared.statistics.std)
            mean, std = (torch.tensor(numbers).to(batch).view(1, -1, 1, 1) for numbers in both)
            return (batch - mean) / std
        return batch

    return prepare


def with_channels_last(images: Tensor) -> Tensor:
    """Return images of bytes as [n h w c], also if they come as [n c h w]."""
    first = images.ndim == 4 and images.shape[1] in (1, 3) and images.shape[-1] not in (1, 3)
    return images.permute(0, 2, 3, 1) if first else images
