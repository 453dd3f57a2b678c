"""Images of a user's own that lie in arrays: an npz file, or a folder of npy files."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.data.listing import Listing
from penultimate.data.readers.found import Found, listings
from penultimate.data.readers.split_names import SPLITS
from penultimate.data.readers.walking import some
from penultimate.errors import DamagedFileError, RequestError

PAIRS = (("images", "labels"), ("{}_images", "{}_labels"), ("x_{}", "y_{}"), ("{}_x", "{}_y"))
"""The names of images and labels, with the name of a split in the place of {}."""


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
        with np.load(path, allow_pickle=False) as arrays:
            return np.asarray(arrays[member])
    except MemoryError:
        raise RequestError(
            f"'{path}': '{member}' does not fit into memory; save it as {member}.npy, which is not unpacked"
        ) from None
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise DamagedFileError(f"'{path}' is not a whole array of numbers: {error}") from None


def arrays(path: Path) -> tuple[dict[str, Listing], list[str]]:
    """Read images and labels: images, labels; train_images, train_labels, ...; x_train, y_train, ... .

    An array `class_names` names the classes.
    """
    packed = path.suffix.lower() == ".npz"
    try:
        files = (
            dict.fromkeys((name.removesuffix(".npy") for name in zipfile.ZipFile(path).namelist()), path)
            if packed
            else {each.stem: each for each in sorted(path.glob("[!.]*.npy"))}
        )
    except (zipfile.BadZipFile, OSError) as error:
        raise DamagedFileError(f"'{path}' is not a whole npz file: {error}") from None
    pairs = {
        part: (images.format(word), labels.format(word))
        for images, labels in PAIRS
        for word, part in (SPLITS.items() if "{}" in images else {"": ""}.items())
        if images.format(word) in files and labels.format(word) in files
    }
    if not pairs:
        raise RequestError(
            f"'{path}' holds {', '.join(files) or 'nothing'}; expected are images and labels, or"
            " train_images, train_labels, test_images, test_labels, or x_train, y_train, x_test, y_test"
        )
    found = {}
    for part, (images, name) in pairs.items():
        source = Array(files[images], images if packed else "")
        labels = read_array(files[name], name if packed else "")
        labels = labels[:, 0] if labels.shape[1:] == (1,) else labels
        if labels.shape != (len(source),):
            raise RequestError(
                f"'{path}': {name} is {list(labels.shape)}; a whole number or a name is expected for each of"
                f" {len(source):,} {images}"
            )
        found[part] = Found(source, labels.tolist())
    names = (
        read_array(files["class_names"], "class_names" if packed else "").ravel().tolist()
        if "class_names" in files
        else ()
    )
    made, notes = listings(path, found, names)
    paired = {"class_names", *(name for pair in pairs.values() for name in pair)}
    others = [name for name in files if name not in paired]
    if others:
        notes = [f"left out, in no pair of images and labels: {some(others, 'array', 'arrays')}", *notes]
    return made, notes
