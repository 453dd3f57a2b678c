"""Rendering all splits of a data set into a folder, under one manifest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from penultimate import registry
from penultimate.data.catalog import card
from penultimate.data.images import MANIFEST, ImageSet, Manifest, prepare_folder, read_manifest, save_images
from penultimate.errors import DamagedFileError, RequestError

MAKERS = ("torch", "pillow", "matplotlib", "numpy")


def _clear(folder: Path, name: str, draw: int) -> None:
    """Make room for a data set: an older or damaged copy of it is removed, a different one is refused."""
    prepare_folder(folder)
    if not (folder / MANIFEST).exists():
        return
    with contextlib.suppress(DamagedFileError):
        old = read_manifest(folder)
        if (old.get("name"), old.get("draw")) != (name, draw):
            raise RequestError(
                f"'{folder}' already holds {old.get('name')} (draw {old.get('draw')}); give {name}"
                f" (draw {draw}) a folder of its own"
            )
    (folder / MANIFEST).unlink()


def _check(name: str, split: str, images: ImageSet) -> None:
    expected = card(name)
    size = expected.sizes.get(split)
    if size is None:
        raise RequestError(
            f"data set '{name}' made a split '{split}'; its card has {', '.join(expected.splits)}"
        )
    if (len(images), images.num_classes) != (size, expected.classes):
        raise RequestError(
            f"data set '{name}', split '{split}': its card says {size} images of {expected.classes} classes,"
            f" but {len(images)} of {images.num_classes} were made"
        )


def generate(
    name: str, draw: int, folder: Path | str, progress: Callable[[dict[str, Any]], None] | None = None
) -> Manifest:
    """Render every split of a data set and return the manifest written beside the images.

    The images are a function of (name, draw). `progress` is called after each split with {"dataset", "draw",
    "split", "images", "of"}: images so far, of how many. A data set is any callable under
    `@register.dataset` that takes a draw and returns (split, ImageSet) pairs or a mapping of them.

    Raises RequestError for an unknown name (with the nearest), a draw that is not a whole number from 0 up, a
    folder that cannot be used or holds something else, and a data set that does not match its card.

    >>> import tempfile
    >>> generate("digits_smoke", 0, tempfile.mkdtemp())["splits"]["train"]
    {'images': 50, 'shape': [24, 24, 3]}
    """
    described, folder = card(name), Path(folder)
    if isinstance(draw, bool) or not isinstance(draw, int) or draw < 0:
        raise RequestError(f"a draw is a whole number from 0 up, not {draw!r}")
    _clear(folder, name, draw)
    made = registry.entry("dataset", name).resolve()(draw)
    about = {"name": name, "draw": draw, "made_with": {package: version(package) for package in MAKERS}}
    manifest: Manifest = {"splits": {}}
    done = 0
    for split, images in made.items() if isinstance(made, Mapping) else made:
        _check(name, split, images)
        manifest = save_images(folder, split, images, **about)
        done += len(images)
        if progress is not None:
            progress({"dataset": name, "draw": draw, "split": split, "images": done, "of": described.images})
    missing = [split for split in described.splits if split not in manifest["splits"]]
    if missing:
        raise RequestError(f"data set '{name}' made no {', '.join(missing)}, which its card promises")
    return manifest
