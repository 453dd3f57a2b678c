"""Folders of image files as they come: a few colours and shapes, and every kind of file that is hard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from penultimate.data.listing import Files, Listing


def photograph(seed: int, width: int = 90, height: int = 70) -> Image.Image:
    """Blots on several scales, as photographs have them."""
    generator = np.random.default_rng(seed)
    total = np.zeros((height, width, 3))
    for scale, weight in ((30, 0.5), (9, 0.3), (2, 0.2)):
        coarse = generator.integers(0, 256, (height // scale + 2, width // scale + 2, 3), np.uint8)
        resized = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        total += weight * np.asarray(resized)
    return Image.fromarray(total.clip(0, 255).astype(np.uint8))


def folder_of(root: Path, images: int = 12, classes: int = 3) -> Listing:
    """JPEGs of several sizes, written below `root`, in as many classes."""
    root.mkdir(parents=True, exist_ok=True)
    names = tuple(f"{i:03}.jpg" for i in range(images))
    for i, name in enumerate(names):
        photograph(i, 60 + 17 * (i % 5), 50 + 23 * (i % 4)).save(root / name, quality=90)
    return listing_of(root, names, np.arange(images) % classes)


def listing_of(root: Path, names: tuple[str, ...], labels: np.ndarray) -> Listing:
    """The files as a listing."""
    places = np.arange(len(names))
    classes = tuple(f"class {k}" for k in range(int(labels.max()) + 1))
    return Listing(Files(root, names), places, labels.astype(np.int64), 100 + places, classes)


def hard_files(root: Path) -> tuple[str, ...]:
    """CMYK, 16 bits, a palette, an animation, a rotation in EXIF, grey, alpha: all of them readable."""
    root.mkdir(parents=True, exist_ok=True)
    image = photograph(1)
    image.convert("CMYK").save(root / "cmyk.jpg")
    deep = np.asarray(image.convert("L")).astype(np.uint16) * 257
    Image.fromarray(deep).save(root / "deep.png")
    image.convert("P").save(root / "palette.png")
    image.save(root / "animated.gif", save_all=True, append_images=[photograph(2)])
    exif = Image.Exif()
    exif[0x0112] = 6
    image.save(root / "turned.jpg", exif=exif)
    image.convert("L").save(root / "grey.jpg")
    image.convert("RGBA").save(root / "alpha.png")
    return ("cmyk.jpg", "deep.png", "palette.png", "animated.gif", "turned.jpg", "grey.jpg", "alpha.png")
