"""Images in memory and on disk: uint8 arrays with labels and ids, every file with its sha256.

FOLDER/manifest.json            name, draw, class names, splits; sha256 of each file, one digest of all
FOLDER/SPLIT.images.npy         uint8 [n h w c], read back memory-mapped
FOLDER/SPLIT.labels.npy         int64 [n], or [n l] where an image has several
FOLDER/SPLIT.ids.npy            int64 [n], unique in the data set: they identify images in feature banks
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from penultimate.errors import DamagedFileError, RequestError, unknown
from penultimate.files import (
    FULL,
    atomic_write,
    canonical_json,
    digest_arrays,
    digest_bytes,
    digest_file,
    given_path,
)

MANIFEST = "manifest.json"
SCHEMA = 1
BLOCK = 4096
"""Images that are counted at once."""
ARRAYS = ("images", "labels", "ids")

Manifest = dict[str, Any]
Transform: TypeAlias = Callable[[Tensor], Tensor]


@runtime_checkable
class Images(Protocol):
    """Labelled images, wherever they are stored: what feature extraction and the layer instruments need.

    labels        int64 [n], class numbers; or [n l], one column each: 1 present, 0 absent, -1 uncertain
    ids           int64 [n], which identify images in feature banks
    class_names   a name for each class, or for each label
    """

    @property
    def labels(self) -> np.ndarray: ...
    @property
    def ids(self) -> np.ndarray: ...
    @property
    def class_names(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...
    @property
    def digest(self) -> str:
        """sha256 of the content: equal for equal images."""

    def batches(
        self, size: int, order: np.ndarray | None = None, transform: Transform | None = None
    ) -> Iterator[tuple[Tensor, np.ndarray]]:
        """Transformed batches with their positions, in the given order or, without one, as stored."""

    def subset(self, indices: Sequence[int] | slice | np.ndarray) -> Images:
        """Return the images at these positions."""


@dataclass(frozen=True)
class ImageSet:
    """`Images` in memory: uint8 [n h w c], labels int64 [n] or [n l], unique ids int64 [n].

    Labels [n] are class numbers 0..k-1. Labels [n l] say of every image which of l labels it has: 1 present,
    0 absent, -1 uncertain; `class_names` then names the labels. What an uncertain label counts as is decided
    where it is used.

    Types and shapes are checked here, with messages for people, and so are absent from the annotations.

    Raises RequestError if an array has the wrong type or shape, a label lies outside 0..k-1 (or is none of
    1, 0 and -1), or an id occurs twice.

    >>> pixels = np.zeros((2, 24, 24, 3), np.uint8)
    >>> ImageSet(pixels, np.array([0, 2]), np.arange(2), ("a", "b"))
    Traceback (most recent call last):
    penultimate.errors.RequestError: label 2 (image 1) is out of range: 2 classes have the labels 0 to 1
    """

    images: np.ndarray
    labels: np.ndarray
    ids: np.ndarray
    class_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.images.dtype != np.uint8 or self.images.ndim != 4:
            raise RequestError(
                f"images are uint8 [n h w c]; these are {self.images.dtype} {list(self.images.shape)}"
            )
        several = self.labels.ndim == 2
        shapes = {"labels": (len(self), self.num_classes)[: 1 + several], "ids": (len(self),)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.dtype != np.int64 or array.shape != shape:
                raise RequestError(
                    f"{name} are int64 {list(shape)}; these are {array.dtype} {list(array.shape)}"
                )
        least, most = (-1, 1) if several else (0, self.num_classes - 1)
        for place in np.argwhere((self.labels < least) | (self.labels > most))[:1].tolist():
            found = f"label {self.labels[tuple(place)]} (image {place[0]}) is out of range"
            if several:
                raise RequestError(f"{found}: labels are 1 (present), 0 (absent) or -1 (uncertain)")
            raise RequestError(f"{found}: {self.num_classes} classes have the labels 0 to {most}")
        values, counts = np.unique(self.ids, return_counts=True)
        if (counts > 1).any():
            raise RequestError(f"ids must be unique; {values[counts > 1][0]} occurs more than once")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def num_classes(self) -> int:
        return len(self.class_names)

    @property
    def digest(self) -> str:
        """sha256 of pixels, labels and ids."""
        return digest_arrays(self.images, self.labels, self.ids)

    def batches(
        self, size: int, order: np.ndarray | None = None, transform: Transform | None = None
    ) -> Iterator[tuple[Tensor, np.ndarray]]:
        """Batches uint8 [n h w c], or transformed, with the positions of their images.

        >>> images = ImageSet(np.zeros((3, 2, 2, 3), np.uint8), np.zeros(3, int), np.arange(3), ("a",))
        >>> [(list(batch.shape), places.tolist()) for batch, places in images.batches(2)]
        [([2, 2, 2, 3], [0, 1]), ([1, 2, 2, 3], [2])]
        """
        places = np.arange(len(self)) if order is None else order
        for start in range(0, len(places), size):
            chosen = places[start : start + size]
            pixels = self.images[start : start + size] if order is None else self.images[chosen]
            batch = torch.from_numpy(pixels)
            yield batch if transform is None else transform(batch), chosen

    def tensors(self) -> tuple[Tensor, Tensor]:
        """Return the images as float32 [n c h w] from 0 to 1 and their labels, for a TensorDataset.

        >>> images = ImageSet(np.full((3, 2, 2, 1), 255, np.uint8), np.zeros(3, int), np.arange(3), ("a",))
        >>> [list(tensor.shape) for tensor in images.tensors()], images.tensors()[0].max()
        ([[3, 1, 2, 2], [3]], tensor(1.))
        """
        pixels = torch.from_numpy(np.ascontiguousarray(self.images.transpose(0, 3, 1, 2)))
        return pixels.float() / 255, torch.from_numpy(np.array(self.labels))

    def subset(self, indices: Sequence[int] | slice | np.ndarray) -> ImageSet:
        """Return the images at these positions (a slice, positions or a mask), with their labels and ids."""
        return ImageSet(self.images[indices], self.labels[indices], self.ids[indices], self.class_names)


def one_class_each(images: Images, use: str) -> np.ndarray:
    """Return the class numbers [n] of images for a use that takes one class each;
    raises RequestError for others.

    >>> several = ImageSet(np.zeros((2, 4, 4, 3), np.uint8), np.eye(2, dtype=int), np.arange(2), ("a", "b"))
    >>> one_class_each(several, "a network is trained on")
    Traceback (most recent call last):
    penultimate.errors.RequestError: a network is trained on images of one class each; these have 2 labels ...
    """
    if images.labels.ndim != 1:
        raise RequestError(f"{use} images of one class each; these have {images.labels.shape[1]} labels each")
    return images.labels


@dataclass(frozen=True)
class ChannelStatistics:
    """Mean and standard deviation (population) of each colour channel, in units of the full range 0..1.

    >>> ChannelStatistics.of(np.array([[[[0, 255]]], [[[255, 255]]]], np.uint8))
    ChannelStatistics(mean=(0.5, 1.0), std=(0.5, 0.0))
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", tuple(map(float, self.mean)))
        object.__setattr__(self, "std", tuple(map(float, self.std)))
        if len(self.mean) != len(self.std):
            raise RequestError(f"{len(self.mean)} channel means, but {len(self.std)} standard deviations")

    @classmethod
    def of(cls, images: UInt8[np.ndarray, "n h w c"]) -> ChannelStatistics:
        """Measured on uint8 images, exactly: from the histogram of each channel."""
        values = np.arange(256) / 255
        means, deviations = [], []
        for channel in range(images.shape[-1]):
            blocks = (images[at : at + BLOCK, ..., channel] for at in range(0, len(images), BLOCK))
            counts = np.sum([np.bincount(block.reshape(-1), minlength=256) for block in blocks], axis=0)
            share = counts / counts.sum()
            mean = float(share @ values)
            means.append(mean)
            deviations.append(float(np.sqrt(share @ (values - mean) ** 2)))
        return cls(tuple(means), tuple(deviations))


def prepare_folder(folder: Path) -> None:
    """Make the folder; raises RequestError if a file is in the way or nothing can be written."""
    given_path(folder, "a folder of images")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(folder / ".writable", b"")
        (folder / ".writable").unlink()
    except OSError as error:
        if error.errno in FULL:
            raise
        below = isinstance(error, FileExistsError | NotADirectoryError)
        why = "it is, or lies below, a file" if below else error.strerror or str(error)
        raise RequestError(
            f"images cannot be written to '{folder}': {why}; give a folder that you own, with space left"
        ) from None


def _manifest_digest(manifest: Manifest) -> str:
    """Return one sha256 for a data set, over its files' digests and all that its manifest says of the images.

    The versions of the packages that made them are not part of it.
    """
    content = {key: value for key, value in manifest.items() if key not in ("digest", "made_with")}
    return digest_bytes(canonical_json(content).encode())


def save_images(folder: Path | str, split: str, images: ImageSet, **about: Any) -> Manifest:
    """Write one split and enter it in the folder's manifest (with `about`: name, draw, ...).

    Raises RequestError for a folder that cannot be used or already holds splits with other classes.
    """
    folder = Path(folder)
    prepare_folder(folder)
    if (folder / MANIFEST).exists():
        manifest = read_manifest(folder)
    else:
        manifest = {"schema": SCHEMA, "class_names": list(images.class_names), "splits": {}, "files": {}}
    if manifest["class_names"] != list(images.class_names):
        raise RequestError(
            f"'{folder}' holds {len(manifest['class_names'])} classes,"
            f" split '{split}' has {images.num_classes} or names them differently; use another folder"
        )
    (folder / split).parent.mkdir(exist_ok=True)  # ImageNet-C's splits are called "fog/3"
    for kind in ARRAYS:
        path = folder / f"{split}.{kind}.npy"
        path.unlink(missing_ok=True)  # whoever has it mapped keeps it
        np.save(path, getattr(images, kind))
        manifest["files"][path.relative_to(folder).as_posix()] = {
            "sha256": digest_file(path),
            "bytes": path.stat().st_size,
        }
    manifest["splits"][split] = {"images": len(images), "shape": list(images.images.shape[1:])}
    manifest |= about
    manifest["digest"] = _manifest_digest(manifest)
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    atomic_write(folder / MANIFEST, text.encode("utf-8", "backslashreplace"))
    return manifest


def read_manifest(folder: Path | str) -> Manifest:
    """Return the manifest of a data folder; raises if it is missing or damaged."""
    path = Path(folder) / MANIFEST
    try:
        manifest: Manifest = json.loads(path.read_bytes().decode())
        intact = manifest["schema"] == SCHEMA and manifest["digest"] == _manifest_digest(manifest)
    except FileNotFoundError:
        raise RequestError(
            f"'{folder}' holds no {MANIFEST} and thus no images; make them by"
            " penultimate.data.generate(name, draw, folder)"
        ) from None
    except NotADirectoryError:
        raise RequestError(f"'{folder}' is a file; a data folder is expected") from None
    except OSError as error:
        raise RequestError(f"'{path}' cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        intact = False
    if not intact:
        raise DamagedFileError(f"'{path}' is damaged: its content does not agree with its own digest")
    return manifest


def _read(folder: Path, name: str, facts: dict[str, Any], mmap: bool) -> np.ndarray:
    path = folder / name
    try:
        digest, size = digest_file(path), path.stat().st_size
    except OSError as error:
        raise DamagedFileError(
            f"'{path}' cannot be read ({error.strerror or error}); delete the folder and generate it again"
        ) from None
    if digest != facts["sha256"]:
        raise DamagedFileError(
            f"'{path}' is not what was written: sha256 {facts['sha256'][:12]}... was recorded,"
            f" {digest[:12]}... is found ({size} of {facts['bytes']} bytes);"
            " delete the folder and generate it again"
        )
    array: np.ndarray = np.load(path, mmap_mode="c" if mmap else None, allow_pickle=False)
    return array


def load_images(folder: Path | str, split: str, mmap: bool = True) -> ImageSet:
    """Return one split, checked against its digests; with `mmap` its pixels stay on disk until they are
    accessed.

    The mapping is copy-on-write: tensors can share it, and writing to them never changes the file.

    Raises RequestError for a folder without images or an unknown split, DamagedFileError (which file, what
    was expected, what is there) if a file is missing or differs from what was written.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    if split not in manifest["splits"]:
        raise unknown(f"split of '{folder}'", split, manifest["splits"])
    images, labels, ids = (
        _read(folder, name, manifest["files"][name], mmap and kind == "images")
        for kind in ARRAYS
        for name in [f"{split}.{kind}.npy"]
    )
    return ImageSet(images, labels, ids, tuple(manifest["class_names"]))
