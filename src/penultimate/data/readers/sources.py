"""Images that are not files of their own: members of tar archives, CIFAR's batches, arrays, Arrow tables."""

from __future__ import annotations

import lzma
import os
import pickle
import struct
import tarfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from penultimate.data.readers.places import Place
from penultimate.data.readers.unpacking import tar_members
from penultimate.errors import DamagedFileError, RequestError, unknown
from penultimate.memory import memory

UNREADABLE = (
    *(OSError, ValueError, EOFError, KeyError, MemoryError, OverflowError, RuntimeError),
    *(SyntaxError, SystemError, struct.error, tokenize.TokenError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
"""What numpy raises for a file that is no array, or not all of one; RuntimeError is zipfile's word for a
password, and for a compression that it does not know."""


@dataclass(frozen=True)
class Members:
    """A `Source`: files in a tar archive that is not compressed, read where they lie; nothing is unpacked."""

    archive: Path
    names: tuple[str, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, place: int) -> bytes:
        try:
            with self.archive.open("rb", buffering=0) as file:
                content = os.pread(file.fileno(), self.sizes[place], self.offsets[place])
        except OSError as error:
            raise DamagedFileError(f"'{self.archive}' cannot be read ({error.strerror})") from None
        if len(content) != self.sizes[place]:
            raise DamagedFileError(f"'{self.archive}' ends within '{self.names[place]}'")
        return content

    def name(self, place: int) -> str:
        return self.names[place]

    @property
    def files(self) -> Sequence[Path]:
        return (self.archive,)


def members(archive: Path) -> Members:
    """Return the files of a tar archive, and of the tar archives in it, by name; nothing is written.

    Raises DamagedFileError for what is no tar archive, is cut short, or holds a link or a file with holes: an
    archive of images does not.
    """
    try:
        with archive.open("rb") as file:
            found = sorted(_regular(archive, file, 0, ""))
    except tarfile.TarError as error:
        raise DamagedFileError(f"'{archive}' is not a whole tar archive: {error}") from None
    end = archive.stat().st_size
    cut = next((name for name, offset, size in found if offset + size > end), None)
    if cut is not None:
        raise DamagedFileError(f"'{archive}' ends within '{cut}'; get it again")
    return Members(archive, *(tuple(row[column] for row in found) for column in range(3)))  # type: ignore[arg-type]


def _regular(archive: Path, file: IO[bytes], start: int, below: str) -> Iterator[tuple[str, int, int]]:
    for tar, member in tar_members(file):
        if member.isdir():
            continue
        if not member.isreg() or member.issparse():
            raise DamagedFileError(f"'{archive}' holds '{member.name}', which is not an ordinary file")
        content = tar.extractfile(member) if member.name.endswith(".tar") and not below else None
        if content is not None:
            prefix = f"{member.name.removesuffix('.tar')}/"
            yield from _regular(archive, content, member.offset_data, prefix)
        else:
            yield below + member.name, start + member.offset_data, member.size


class _Pixels:
    """Pixels that are read when the first is asked for, in each process again."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: self.__dict__[field.name] for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True)
class Batches(_Pixels):
    """A `Source`: the pickled batches of CIFAR-10 and CIFAR-100, one after another."""

    files: tuple[Path, ...]

    @cached_property
    def contents(self) -> list[dict[str, Any]]:
        return [unpickled(path) for path in self.files]

    @cached_property
    def pixels(self) -> np.ndarray:
        rows = [self._rows(path, content) for path, content in zip(self.files, self.contents, strict=True)]
        return np.concatenate(rows).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)

    def labels(self, key: str) -> np.ndarray:
        """Return the labels of all batches; raises DamagedFileError for a batch without as many as images."""
        found = []
        for path, content in zip(self.files, self.contents, strict=True):
            try:
                labels = np.asarray(content.get(key, ()), np.int64)
            except (ValueError, TypeError, OverflowError) as error:
                raise DamagedFileError(f"'{path}' has {key} that are no numbers: {error}") from None
            if labels.shape != (len(self._rows(path, content)),):
                raise DamagedFileError(f"'{path}' has {labels.size} {key} for its images, not one for each")
            found.append(labels)
        return np.concatenate(found)

    def _rows(self, path: Path, content: dict[str, Any]) -> np.ndarray:
        rows: Any = content.get("data")
        if not isinstance(rows, np.ndarray) or rows.dtype != np.uint8 or rows.shape[1:] != (3072,):
            raise DamagedFileError(f"'{path}' holds no images of 3,072 bytes; it is not a batch of CIFAR's")
        return np.asarray(rows)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, place: int) -> np.ndarray:
        return np.asarray(self.pixels[place])

    def name(self, place: int) -> str:
        for path, content in zip(self.files, self.contents, strict=True):
            if place < len(content["data"]):
                return f"{path.name}[{place}]"
            place -= len(content["data"])
        raise IndexError(place)


ALLOWED = {("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")}
ALLOWED |= {("numpy._core.multiarray", "_reconstruct"), ("_codecs", "encode")}


class _Unpickler(pickle.Unpickler):
    """Arrays, lists and text; a pickle that asks for anything else is refused before it gets it."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no array needs")
        return super().find_class(module, name)


def unpickled(path: Path) -> dict[str, Any]:
    """Return a pickled dictionary of arrays, lists and text: nothing in the file can run.

    Raises DamagedFileError for anything else.
    """
    try:
        with path.open("rb") as file:
            content = _Unpickler(file, encoding="latin1").load()
    except FileNotFoundError:
        raise
    except (pickle.UnpicklingError, *UNREADABLE, TypeError, AttributeError, IndexError) as error:
        raise DamagedFileError(f"'{path}' is not one of CIFAR's files: {error}") from None
    if not isinstance(content, dict):
        raise DamagedFileError(f"'{path}' is not one of CIFAR's files: it holds no dictionary")
    return content


@dataclass(frozen=True)
class Array(_Pixels):
    """A `Source`: an array of images in an npy file (read where it lies) or, by its name, in an npz file."""

    file: Path
    member: str = ""

    @cached_property
    def pixels(self) -> np.ndarray:
        images = read_array(self.file, self.member)
        if images.dtype != np.uint8 or images.ndim not in (3, 4) or images.shape[3:] not in ((), (1,), (3,)):
            raise RequestError(
                f"'{self.name_of}' is {images.dtype} {list(images.shape)}; images are uint8 [n h w],"
                " [n h w 1] or [n h w 3], with levels from 0 to 255"
            )
        return images

    @property
    def name_of(self) -> str:
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
        return f"{self.name_of}[{place}]"


def read_array(path: Path, member: str = "") -> np.ndarray:
    """Return an array from an npy file, memory-mapped, or from an npz file; no pickle in it is opened.

    Raises DamagedFileError, or RequestError for a compressed array that does not fit into free memory.
    """
    try:
        if not member:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            assert isinstance(array, np.ndarray)
            return array
        with zipfile.ZipFile(path) as packed:
            size = packed.getinfo(f"{member}.npy").file_size
        if size > memory().free:
            raise RequestError(
                f"'{path}': '{member}' has {size / 1e9:.3g} GB unpacked, and would be held in memory; save"
                f" it as {member}.npy, which is read where it lies"
            )
        with np.load(path, allow_pickle=False) as arrays:
            array = arrays[member]
            return np.asarray(array)
    except RequestError:
        raise
    except (*UNREADABLE, AssertionError) as error:
        raise DamagedFileError(f"'{path}' is not a whole array of numbers: {error}") from None


@dataclass(frozen=True)
class Arrow:
    """A `Source`: the image column of a Hugging Face data set that `save_to_disk` wrote."""

    folder: Path
    column: str

    @cached_property
    def encoded(self) -> Any:
        return arrow(self.folder).data.column(self.column)

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "column": self.column}

    def __len__(self) -> int:
        return len(self.encoded)

    def __getitem__(self, place: int) -> bytes | Path:
        image = self.encoded[place].as_py()
        if image is None or (image["bytes"] is None and not image["path"]):
            raise DamagedFileError(f"'{self.name(place)}' is empty")
        return Path(image["path"]) if image["bytes"] is None else bytes(image["bytes"])

    def name(self, place: int) -> str:
        return f"{self.folder.name}[{place}]"

    @property
    def files(self) -> Sequence[Path]:
        return sorted(self.folder.glob("*.arrow"))


def arrow(folder: Path) -> Any:
    """Return a split that `save_to_disk` wrote; raises RequestError without the extra, DamagedFileError."""
    try:
        import datasets
        import pyarrow
    except ImportError:
        raise RequestError(
            f"'{folder}' is a Hugging Face data set; to read it: pip install 'penultimate[datasets]'"
        ) from None
    try:
        return datasets.load_from_disk(str(folder))
    except (*UNREADABLE, pyarrow.ArrowException, TypeError) as error:
        raise DamagedFileError(f"'{folder}' is not a whole data set of save_to_disk: {error}") from None


def image_column(table: Any, place: Place) -> str:
    """Return the column of images; raise RequestError if there is none, or if several compete."""
    from datasets import Image

    columns = [str(name) for name, feature in table.features.items() if isinstance(feature, Image)]
    if place.image and place.image not in columns:
        raise unknown(f"column of images in '{place.path}'", place.image, columns)
    if len(columns) > 1 and not place.image:
        raise RequestError(
            f"'{place.path}' has the columns of images {', '.join(columns)}; say which one is to be read:"
            f" {place.with_setting('image', columns[0])}"
        )
    if not columns:
        raise RequestError(
            f"'{place.path}' has the columns {', '.join(table.features)}, and none of them holds images; in"
            " Hugging Face's datasets: cast_column(COLUMN, datasets.Image())"
        )
    return place.image or columns[0]


def label_column(table: Any, place: Place) -> str:
    """Return the column that is said, "label", or the only one of class labels."""
    from datasets import ClassLabel

    said = "".join(place.label)
    if said or "label" in table.features:
        if said and said not in table.features:
            raise unknown(f"column of '{place.path}'", said, table.features)
        return said or "label"
    columns = [str(name) for name, feature in table.features.items() if isinstance(feature, ClassLabel)]
    if len(columns) != 1:
        known = columns or [*table.features]
        raise RequestError(
            f"'{place.path}': which column holds the labels is not clear; it may be"
            f" {' or '.join(map(repr, known))}. Say it: {place.with_setting('label', known[0])}"
        )
    return columns[0]
