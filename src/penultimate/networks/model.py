"""A module with its settings: which layer gives its features, and how it expects its images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from penultimate.data.disk.preparation import Preparation
from penultimate.errors import RequestError, unknown
from penultimate.networks.architectures import GREY, USUAL, changed
from penultimate.networks.sources import LIVE, SETTINGS, expect_one_kind_of_features


@dataclass(frozen=True, init=False, eq=False)
class Model:
    """A module with the same settings as a named network: `pu.Model(net, layer="neck", size=64)`.

    `layer` names the layer whose output is the features ("output": the module's own output); `pooling` says
    how the tokens of a vision transformer become features ("cls", "mean", "cls+mean", "patches:mean"; see
    `backbones.tokens`). `size` is the side of its images in pixels (`crop` is the same), `mean` and `std` are
    subtracted and divided by, channel by channel; `resize`, `share`, `interpolation` and `squash` say how an
    image becomes that large.

    `pu.evaluate`, `pu.extract`, `pu.profile_layers` and `pu.compare_networks` take it wherever they take a
    module. `pu.extract` prepares batches of bytes as `pu.evaluate` prepares images; of batches of floats
    (numbers from 0 to 1), only the settings given here are applied.

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
            what = "a Model around a Model" if isinstance(module, Model) else f"a {type(module).__name__}"
            raise RequestError(f"a Model is made of an nn.Module, not of {what}")
        if {"size", "crop"} <= settings.keys():
            raise RequestError("size and crop are the same, the side of an image in pixels: say one of them")
        known = SETTINGS[LIVE]
        found = {}
        for name, value in settings.items():
            if name != "size" and name not in known:
                raise unknown("setting of a Model", name, ("size", *known))
            if value is not None:
                found["crop" if name == "size" else name] = _of_type(name, value, known.get(name, int))
        expect_one_kind_of_features("a Model", found)
        numbers = next((found[name] for name in ("mean", "std") if name in found), (0.0,) * 3)
        grey = Preparation(USUAL.resize, USUAL.crop, USUAL.interpolation, GREY)
        changed(grey if len(numbers) == 1 else USUAL, found)  # refuses impossible settings
        object.__setattr__(self, "module", module)
        object.__setattr__(self, "settings", found)

    @property
    def layer(self) -> str | None:
        """The layer whose output is the features, or an empty string."""
        return self.settings.get("layer")

    def __repr__(self) -> str:
        said = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"Model({type(self.module).__name__}(...){said})"


def _of_type(name: str, value: Any, kind: type) -> Any:
    """Return the value of a setting in the setting's type; a list or an array of numbers becomes a tuple."""
    if kind is tuple:
        listed = [value] if isinstance(value, int | float) else value
        try:
            return tuple(float(number) for number in np.asarray(listed, dtype=float).ravel())
        except (TypeError, ValueError):
            raise RequestError(f"{name} is a number for each channel, not {value!r}") from None
    if isinstance(value, np.generic):
        value = value.item()
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        hint = (
            "; the share of the resized image that is cut out is said as share=0.9" if name == "crop" else ""
        )
        raise RequestError(f"{name} of a Model is of type {kind.__name__}, not {value!r}{hint}")
    return value
