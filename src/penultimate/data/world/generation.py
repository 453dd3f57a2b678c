"""Rendering all splits of a data set into a folder, under one manifest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from penultimate import registry
from penultimate.checks import is_whole
from penultimate.data.catalog import DatasetCard, card
from penultimate.data.fewer import of_fewer
from penultimate.data.images import MANIFEST, ImageSet, Manifest, prepare_folder, read_manifest, save_images
from penultimate.errors import DamagedFileError, RequestError
from penultimate.plugins import in_child

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


def splits_of(name: str, draw: int, classes: int = 0) -> Iterator[tuple[str, ImageSet]]:
    """Yield the splits that a data set makes, each held against its card and against the splits before it.

    Raises RequestError for what makes no splits, for a split that is not as the card says, names other
    classes or lacks one, and for an image of one split that stands in another too: what is tested on is not
    trained on.
    """
    described = of_fewer(card(name), classes)
    made = registry.entry("dataset", name).resolve()(draw, **({"classes": classes} if classes else {}))
    form = "return {split: ImageSet}, or yield pairs (split, ImageSet)"
    if not isinstance(made, Iterable):
        raise RequestError(f"data set '{name}' returns {type(made).__name__}; {form}")
    before: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    for pair in made.items() if isinstance(made, Mapping) else made:
        match pair:
            case (str() as split, ImageSet() as images):
                _check(described, split, images, before)
                before[split] = images.class_names, images.ids
                yield split, images
            case _:
                raise RequestError(f"data set '{name}' makes {type(pair).__name__}; {form}")
    if missing := [split for split in described.splits if split not in before]:
        raise RequestError(f"data set '{name}' makes no {', '.join(missing)}, which its card promises")


def digests_of(name: str, draw: int) -> dict[str, str]:
    """Return a digest of each split that a data set makes now; {} where it fails: its own step tells why."""
    try:
        return in_child(_digests, name, draw)
    except RequestError:
        return {}


def _digests(name: str, draw: int) -> dict[str, str]:
    return {split: images.digest for split, images in splits_of(name, draw)}


def _check(
    described: DatasetCard,
    split: str,
    images: ImageSet,
    before: Mapping[str, tuple[tuple[str, ...], np.ndarray]],
) -> None:
    where = f"data set '{described.name}', split '{split}'"
    promised = described.sizes.get(split)
    if promised is None or split in before:
        raise RequestError(
            f"{where}: its card names no such split, or it is made twice; it has"
            f" {', '.join(described.splits)}"
        )
    if (len(images), images.num_classes) != (promised, described.classes):
        raise RequestError(
            f"{where}: its card says {promised} images of {described.classes} classes; {len(images)} of"
            f" {images.num_classes} were made"
        )
    several = images.labels.ndim == 2
    if several != described.has_several_labels:
        forms = ("a class each", "several labels each")
        raise RequestError(
            f"{where}: its card says accuracy='{described.accuracy}', for images with"
            f" {forms[described.has_several_labels]}; these have {forms[several]}"
        )
    if several and any("=" in name or "," in name for name in images.class_names):
        raise RequestError(f"{where}: a label's name may hold neither '=' nor ','; rename it")
    absent = [] if several else sorted(set(range(described.classes)) - set(images.labels.tolist()))
    if absent:
        raise RequestError(f"{where}: no image of the class '{images.class_names[absent[0]]}'")
    for other, (class_names, ids) in before.items():
        if images.class_names != class_names:
            raise RequestError(f"{where} names its classes differently from '{other}'")
        shared = np.intersect1d(images.ids, ids)
        if shared.size:
            raise RequestError(
                f"{where}: the id {shared[0]} is in '{other}' too ({len(shared)} of {len(images)} do); ids"
                " are unique across the splits, and show that no test image is trained on"
            )


def _unplanned(name: str, split: str, planned: Mapping[str, str]) -> str:
    if not planned:
        return f"data set '{name}' could not be made when the study began, and now it can; start it again"
    return (
        f"data set '{name}' makes other images of its split '{split}' than when the study began. If what it"
        " reads was changed meanwhile, start the study again; else it makes other images each time, and no"
        " result could be found again: have all that it draws follow from its argument `draw`"
    )


def generate(
    name: str,
    draw: int,
    folder: Path | str,
    progress: Callable[[dict[str, Any]], None] | None = None,
    planned: Mapping[str, str] | None = None,
    classes: int = 0,
) -> Manifest:
    """Render every split of a data set and return the manifest written beside the images.

    The images are a function of (name, draw). `progress` is called after each split with {"dataset", "draw",
    "split", "images", "of"}: images so far, of how many. A data set is any callable under
    `@register.dataset` that takes a draw and returns (split, ImageSet) pairs or a mapping of them. `planned`
    are the digests (`digests_of`) that its splits are to have. `classes` are fewer classes of a pretraining
    set of the embedded world, with as many images in all (`data.fewer`); 0: its own.

    Raises RequestError for an unknown name (with the nearest), a draw that is not a whole number from 0 up, a
    folder that cannot be used or holds something else, and a data set that does not match its card or shares
    images between its splits, or is not as planned.

    >>> import tempfile
    >>> generate("digits_smoke", 0, tempfile.mkdtemp())["splits"]["train"]
    {'images': 50, 'shape': [24, 24, 3]}
    """
    described, folder = of_fewer(card(name), classes), Path(folder)
    if not is_whole(draw, 0):
        raise RequestError(f"a draw is a whole number from 0 up, not {draw!r}")
    _clear(folder, name, draw)
    about = {"name": name, "draw": draw, "made_with": {package: version(package) for package in MAKERS}}
    manifest: Manifest = {"splits": {}}
    done = 0
    for split, images in splits_of(name, draw, classes):
        if planned is not None and images.digest != planned.get(split):
            raise RequestError(_unplanned(name, split, planned))
        manifest = save_images(folder, split, images, **about)
        done += len(images)
        if progress is not None:
            progress({"dataset": name, "draw": draw, "split": split, "images": done, "of": described.images})
    return manifest
