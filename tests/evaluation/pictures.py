"""Folders of generated JPEGs: shapes on noise, of a class each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SHAPES = ("disc", "square", "ring")
COLOURS = ((200, 60, 60), (60, 80, 200), (70, 180, 80), (210, 190, 60))


def picture(shape: str, colour: tuple[int, int, int], random: np.random.Generator) -> Image.Image:
    """A shape of a colour somewhere on noise, 90 x 70."""
    image = Image.fromarray(random.integers(90, 160, (70, 90, 3), dtype=np.uint8))
    size, x, y = (int(random.integers(*ends)) for ends in ((12, 20), (22, 66), (22, 46)))
    pen, box = ImageDraw.Draw(image), (x - size, y - size, x + size, y + size)
    if shape == "ring":
        pen.ellipse(box, outline=colour, width=4)
    else:
        (pen.ellipse if shape == "disc" else pen.rectangle)(box, fill=colour)
    return image


def fill(folder: Path, count: int, kind: int, seed: int = 0) -> None:
    """That many images of the kind into a class's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng((seed, kind))
    for number in range(count):
        shape, colour = SHAPES[kind % len(SHAPES)], COLOURS[kind % len(COLOURS)]
        picture(shape, colour, random).save(folder / f"{number:03d}.jpg", quality=92)


def split_folders(root: Path, classes: Sequence[str], train: int, test: int) -> Path:
    """ROOT/train/CLASS and ROOT/test/CLASS."""
    for kind, name in enumerate(classes):
        fill(root / "train" / name, train, kind, 1)
        fill(root / "test" / name, test, kind, 2)
    return root


def class_folders(root: Path, classes: Sequence[str], count: int) -> Path:
    """ROOT/CLASS."""
    for kind, name in enumerate(classes):
        fill(root / name, count, kind, 3)
    return root
