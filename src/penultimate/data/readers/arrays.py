"""Images of a user's own that lie in arrays: an npz file, or a folder of npy files."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.data.listing import ImageSource, Listing
from penultimate.data.readers.labels import Labels, number_labels
from penultimate.data.readers.reading import SPAN
from penultimate.data.readers.split_names import SPLITS
from penultimate.data.readers.walking import some
from penultimate.errors import DamagedFileError, RequestError
from penultimate.memory import memory

PAIRS = (("images", "labels"), ("{}_images", "{}_labels"), ("x_{}", "y_{}"), ("{}_x", "{}_y"))
"""The names of images and labels, with the name of a split in the place of {}."""
GENERATED = ("{}.images", "{}.labels")
"""Those that `penultimate.data.generate` writes."""


@dataclass(frozen=True)
class Array:
    """A `ImageSource`: an array of images in an npy file (read where it lies), or by its name in an npz."""

    file: Path
    member: str = ""

    @cached_property
    def pixels(self) -> np.ndarray:
        images = read_array(self.file, self.member)
        if images.dtype != np.uint8 or images.ndim not in (3, 4) or images.shape[3:] not in ((), (1,), (3,)):
            raise RequestError(
                f"'{self._called}' is {images.dtype} {list(images.shape)}; images are uint8 [n h w],"
                " [n h w 1] or [n h w 3], with levels from 0 to 255"
            )
        return images

    def __getstate__(self) -> dict[str, Any]:  # each process reads the pixels again
        return {"file": self.file, "member": self.member}

    @property
    def _called(self) -> str:
        return f"{self.file.name}:{self.member}" if self.member else self.file.name

    @property
    def files(self) -> Sequence[Path]:
        return (self.file,)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, place: int) -> np.ndarray:
        image = np.asarray(self.pixels[place])
        return image[..., 0] if image.shape[2:] == (1,) else image

    def name(self, place: int) -> str:
        return f"{self._called}[{place}]"


def read_array(path: Path, member: str = "") -> np.ndarray:
    """Return an array from an npy file, memory-mapped, or from an npz file; no pickle in it is opened.

    Raises DamagedFileError, or RequestError for a compressed array that does not fit into free memory.
    """
    try:
        if not member:
            return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
        with zipfile.ZipFile(path) as packed:
            size = packed.getinfo(f"{member}.npy").file_size
        if size > memory().free:
            raise RequestError(
                f"'{path}': '{member}' has {size / 1e9:.3g} GB unpacked, and would be held in memory; save"
                f" it as {member}.npy, which is read where it lies"
            )
        with np.load(path, allow_pickle=False) as arrays:
            return np.asarray(arrays[member])
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise DamagedFileError(f"'{path}' is not a whole array of numbers: {error}") from None


def names_in_archive(path: Path) -> list[str]:
    """Return the names of the arrays in an npz file; raises DamagedFileError for any other file."""
    try:
        with zipfile.ZipFile(path) as packed:
            return [name.removesuffix(".npy") for name in packed.namelist()]
    except (zipfile.BadZipFile, OSError) as error:
        raise DamagedFileError(f"'{path}' is not a whole npz file: {error}") from None


def arrays(path: Path) -> tuple[dict[str, Listing], list[str]]:
    """Read images and labels: images, labels; train_images, train_labels, ...; x_train, y_train, ... .

    An array `class_names`, or the manifest of `penultimate.data.generate`, names the classes.
    """
    packed = path.suffix.lower() == ".npz"
    files = (
        dict.fromkeys(names_in_archive(path), path)
        if packed
        else {each.stem: each for each in sorted(path.glob("*.npy")) if each.name[0] != "."}
    )
    pairs = {
        part: (images.format(word), labels.format(word))
        for images, labels in (*PAIRS, GENERATED)
        for word, part in (SPLITS.items() if "{}" in images else {"": ""}.items())
        if images.format(word) in files and labels.format(word) in files
    }
    if not pairs:
        raise RequestError(
            f"'{path}' holds {', '.join(files) or 'nothing'}; expected are images and labels, or"
            " train_images, train_labels, test_images, test_labels, or x_train, y_train, x_test, y_test"
        )
    columns = {}
    sources: dict[str, ImageSource] = {}
    for part, (images, labels) in pairs.items():
        sources[part] = Array(files[images], images if packed else "")
        columns[part] = _column(path, labels, read_array(files[labels], labels if packed else ""))
        if len(sources[part]) != len(columns[part]):
            raise RequestError(f"'{path}': {len(sources[part])} {images}, but {len(columns[part])} {labels}")
    names = (
        read_array(files["class_names"], "class_names" if packed else "").ravel().tolist()
        if "class_names" in files
        else _generated_names(path)
    )
    numbered = number_labels(path, columns, names)
    paired = {"class_names", *(name for pair in pairs.values() for name in pair)}
    left = [name for name in files if name not in paired and not name.endswith(".ids")]
    told = [f"in no pair of images and labels, and left out: {some(left, 'array', 'arrays')}"] if left else []
    return listings(sources, numbered), [*told, *numbered.notes]


def _column(path: Path, name: str, labels: np.ndarray) -> list[Any]:
    labels = labels[:, 0] if labels.shape[1:] == (1,) else labels
    if labels.ndim != 1 or labels.dtype.kind not in "biufUS" or not labels.size:
        raise RequestError(
            f"'{path}': {name} is {labels.dtype} {list(labels.shape)}; a whole number or a name for each"
            " image is expected"
        )
    found: list[Any] = labels.tolist()
    return found


def _generated_names(folder: Path) -> list[str]:
    """Return the names of the classes in a folder that `penultimate.data.generate` wrote; [] in any other."""
    try:
        return [*map(str, json.loads((folder / "manifest.json").read_text("utf-8"))["class_names"])]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def listings(sources: Mapping[str, ImageSource], labels: Labels) -> dict[str, Listing]:
    """Return the listing of each split, without the images that have no label."""
    parts = {}
    for number, (part, source) in enumerate(sources.items()):
        places = np.flatnonzero(labels.of[part] >= 0)
        if len(places):
            ids = number * SPAN + places
            parts[part] = Listing(source, places, labels.of[part][places], ids, labels.names)
    return parts
