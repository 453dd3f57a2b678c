"""A module with its settings: which layer gives its features, and how it expects its images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from penultimate.data.disk.preparation import Preparation
from penultimate.errors import RequestError
from penultimate.networks.architectures import GREY, USUAL, changed, preparation
from penultimate.networks.sources import LIVE, SETTINGS, Source, check_settings


@dataclass(frozen=True, init=False, eq=False)
class Model:
    """A module with the same settings as a named network: `pu.Model(net, layer="neck", size=64)`.

    `layer` names the layer whose output is the features ("output": the module's own output), and `head` the
    final layer, whose input they are; `pooling` says how the tokens of a vision transformer become features
    ("cls", "mean", "cls+mean", "patches:mean"; see `backbones.tokens`). `size` is the side of its images in
    pixels (`crop` is the same), `mean` and `std` are subtracted and divided by, channel by channel; `resize`,
    `share`, `interpolation` and `squash` say how an image becomes that large.

    `pu.evaluate`, `pu.extract`, `pu.profile_layers` and `pu.compare_networks` take it wherever they take a
    module; the module itself is used, as it is then. `pu.extract` prepares batches of bytes as `pu.evaluate`
    prepares images; batches of floats (numbers from 0 to 1) keep their size, and only `mean` and `std` are
    applied where they are given here.

    Raises RequestError for an object that is not a module, and for settings that are unknown or mistyped.

    >>> from torch import nn
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 3))
    >>> import penultimate as pu, torch
    >>> batches = [(torch.rand(4, 3, 2, 2), torch.tensor([0, 1, 0, 1]))]
    >>> pu.extract(pu.Model(net, layer="1", mean=(0.5,) * 3, std=(0.2,) * 3), batches).features.shape
    (4, 5)
    """

    module: nn.Module
    settings: Mapping[str, Any]

    def __init__(self, module: nn.Module, **settings: Any) -> None:
        if not isinstance(module, nn.Module):
            raise RequestError(f"a Model is made of an nn.Module, not of a {type(module).__name__}")
        if {"size", "crop"} <= settings.keys():
            raise RequestError("size and crop are the same, the side of an image in pixels: say one of them")
        named = {"crop" if name == "size" else name: value for name, value in settings.items()}
        found = {name: _in_type(name, value) for name, value in named.items() if value is not None}
        check_settings("a Model", LIVE, found)
        grey = len(found.get("mean", found.get("std", (0, 0, 0)))) == 1
        changed(Preparation(256, 224, "bilinear", GREY) if grey else USUAL, found)  # refuses the impossible
        object.__setattr__(self, "module", module)
        object.__setattr__(self, "settings", found)

    def preparation_of(self, module: nn.Module) -> Preparation:
        """Return how images are prepared for the module, or for a copy of it, with these settings."""
        return preparation(Source(LIVE, "the module", dict(self.settings)), module)[0]

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"Model({type(self.module).__name__}(...){settings})"


def _in_type(name: str, value: Any) -> Any:
    """Return a setting in the type of a source's; a list or an array of numbers becomes a tuple."""
    kind = SETTINGS[LIVE].get(name)
    if kind is tuple:
        try:
            return tuple(float(number) for number in np.asarray(value, dtype=float).ravel())
        except (TypeError, ValueError):
            raise RequestError(f"{name} is a number for each channel, not {value!r}") from None
    value = value.item() if isinstance(value, np.generic) else value
    if name == "crop" and type(value) is float:
        raise RequestError(f"crop is a number of pixels, not {value}; a share is said as share={value}")
    return float(value) if kind is float and type(value) is int else value
