"""Real handwriting: the 1,797 digits in scikit-learn, upsampled; a draw chooses the training images."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int64, UInt8

from penultimate.data.catalog import DatasetCard, card
from penultimate.data.images import ImageSet
from penultimate.data.seeding import derived_generator
from penultimate.errors import PenultimateError

SIZE = 24
INK = 16
CLASSES = tuple(str(digit) for digit in range(10))


def read_digits() -> tuple[UInt8[np.ndarray, "1797 8 8"], Int64[np.ndarray, " 1797"]]:
    """Return the images (ink 0 to 16) and labels, read from scikit-learn's file;
    importing it would take seconds.

    >>> images, labels = read_digits()
    >>> images.shape, labels[:3].tolist()
    ((1797, 8, 8), [0, 1, 2])
    """
    spec = importlib.util.find_spec("sklearn")
    path = Path(spec.origin or "").parent / "datasets" / "data" / "digits.csv.gz" if spec else None
    if path is None or not path.is_file():
        raise PenultimateError(
            "the handwritten digits are read from scikit-learn, and"
            f" {path or 'scikit-learn'} is not there; is it installed completely?"
        )
    table = np.loadtxt(path, delimiter=",", dtype=np.int64)
    return table[:, :-1].reshape(-1, 8, 8).astype(np.uint8), table[:, -1]


def enlarge(images: UInt8[np.ndarray, "n 8 8"]) -> UInt8[np.ndarray, "n 24 24 3"]:
    """8 x 8 ink to 24 x 24 RGB: bicubic, white on black."""
    ink = torch.from_numpy(images).to(torch.float32)[:, None] / INK
    large = F.interpolate(ink, (SIZE, SIZE), mode="bicubic", align_corners=False)
    pixels = (large * 255).round().clamp(0, 255).to(torch.uint8)
    rgb: np.ndarray = pixels.permute(0, 2, 3, 1).expand(-1, -1, -1, 3).contiguous().numpy()
    return rgb


@dataclass(frozen=True)
class HandwrittenDigits:
    """Called with a draw, it yields (split, images): the card's number of training images of each class,
    chosen by the draw, and test images from the rest. An image's id is its row in scikit-learn's table."""

    name: str

    @property
    def card(self) -> DatasetCard:
        return card(self.name)

    def __call__(self, draw: int) -> Iterator[tuple[str, ImageSet]]:
        images, labels = read_digits()
        sizes = self.card.sizes
        order = [
            rows[torch.randperm(len(rows), generator=derived_generator(self.name, draw, digit)).numpy()]
            for digit in range(10)
            for rows in [np.flatnonzero(labels == digit)]
        ]
        train = sizes["train"] // 10
        # All the rest, or the number per class that a small variant's card says.
        test = None if sum(sizes.values()) == len(labels) else train + sizes["test"] // 10
        chosen = {"train": [rows[:train] for rows in order], "test": [rows[train:test] for rows in order]}
        for split, rows in chosen.items():
            ids = np.sort(np.concatenate(rows))
            yield split, ImageSet(enlarge(images[ids]), labels[ids], ids, CLASSES)


digits = HandwrittenDigits("digits")
digits_smoke = HandwrittenDigits("digits_smoke")
