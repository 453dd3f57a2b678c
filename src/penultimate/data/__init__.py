"""Data: the embedded image world, its cards, batched transforms, image files, contact sheets.

A data set is a function of a draw; `generate` renders its splits into a folder, once, and `load_images`
reads them back, memory-mapped and checked.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penultimate.data.augmentation import Augmentation
from penultimate.data.catalog import CARDS, DatasetCard, card
from penultimate.registry import declare

if TYPE_CHECKING:
    from penultimate.data.generation import generate
    from penultimate.data.images import ChannelStatistics, ImageSet, load_images, save_images
    from penultimate.data.sheet import contact_sheet
    from penultimate.data.transforms import augment, normalise

for _card in CARDS.values():
    _module = "digits" if _card.name.startswith("digits") else "glyphs.world"
    declare(
        "dataset", _card.name, f"penultimate.data.{_module}:{_card.name}", f"{_card.title}: {_card.relation}"
    )

_LOCATIONS = {
    "ChannelStatistics": "penultimate.data.images",
    "ImageSet": "penultimate.data.images",
    "augment": "penultimate.data.transforms",
    "contact_sheet": "penultimate.data.sheet",
    "generate": "penultimate.data.generation",
    "load_images": "penultimate.data.images",
    "normalise": "penultimate.data.transforms",
    "save_images": "penultimate.data.images",
}

__all__ = [
    "CARDS",
    "Augmentation",
    "ChannelStatistics",
    "DatasetCard",
    "ImageSet",
    "augment",
    "card",
    "contact_sheet",
    "generate",
    "load_images",
    "normalise",
    "save_images",
]


def __getattr__(name: str) -> Any:
    if name in _LOCATIONS:
        return getattr(importlib.import_module(_LOCATIONS[name]), name)
    raise AttributeError(f"module 'penultimate.data' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
