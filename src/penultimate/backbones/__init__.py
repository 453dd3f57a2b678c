"""Backbones: networks from images to penultimate features, built by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penultimate.registry import declare

if TYPE_CHECKING:
    from penultimate.backbones.backbone import Backbone, build

declare(
    "backbone",
    "glyphnet",
    "penultimate.backbones.glyphnet:GlyphNet",
    "Small residual net for 24 x 24 images: three stages of 3 x 3 convolutions, two bottlenecks of 1 x 1.",
)
declare(
    "backbone",
    "glyphplain",
    "penultimate.backbones.glyphplain:GlyphPlain",
    "Small plain net for 24 x 24 images: seven convolutions, 3 x 3 and then 1 x 1, and no residual sum.",
)

__all__ = ["Backbone", "build"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("penultimate.backbones.backbone"), name)
    raise AttributeError(f"module 'penultimate.backbones' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
