"""Data: the embedded image world, its cards, batched transforms, image files, contact sheets.

A data set is a function of a draw; `generate` renders its splits into a folder once, and `load_images` reads
them back, memory-mapped and verified.
"""

from penultimate.data.augmentation.settings import Augmentation
from penultimate.data.catalog import CARDS, DatasetCard, card
from penultimate.lazy import attributes
from penultimate.registry import declare

__all__ = ["CARDS", "Augmentation", "DatasetCard", "card"]

for _card in CARDS.values():
    _stem = _card.name.partition("_")[0]
    _module = _stem if _stem in ("digits", "findings") else "world"
    declare(
        "dataset",
        _card.name,
        f"penultimate.data.world.{_module}:{_card.name}",
        f"{_card.title}: {_card.relation}",
    )

__getattr__, __dir__ = attributes(
    __name__,
    {
        "world.generation": "generate",
        "images": "ChannelStatistics ImageSet Images load_images save_images",
        "world.sheet": "contact_sheet",
        "augmentation.transforms": "augment mixup normalise",
    },
)
