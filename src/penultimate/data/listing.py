"""What a data set holds, in order, before anything is decoded: where each image lies, its label, its id."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import DIGITS, canonical_json, digest_arrays, digest_file

if TYPE_CHECKING:
    from PIL import Image

Encoded: TypeAlias = Path | bytes | np.ndarray
"""An image that is not decoded yet: a file, the bytes of one, or its pixels, uint8 [h w] or [h w 3]."""


BLOCK = 4096
"""Images that are dealt with at once where there may be a million."""


class ImageSource(Protocol):
    """Where images lie: files, members of an archive, rows of an array.

    It can be pickled, holds no open file when it is, and opens what it needs when an image is asked for.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, place: int) -> Encoded:
        """Return the image at this place; raises DamagedFileError where it cannot be read."""

    def name(self, place: int) -> str:
        """Return what it is called within the data set, "train/n01440764/x.JPEG":
        the same on every machine.
        """

    @property
    def files(self) -> Iterable[Path]:
        """The files that the images lie in: while none of them changes, no image does."""


@dataclass(frozen=True)
class Files:
    """A `ImageSource`: image files below a folder, by their paths in it (with forward slashes)."""

    root: Path
    paths: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, place: int) -> Path:
        return self.root / self.paths[place]

    def name(self, place: int) -> str:
        return self.paths[place]

    @property
    def files(self) -> Iterator[Path]:
        return (self.root / path for path in self.paths)


@dataclass(frozen=True)
class Chain:
    """A `ImageSource`: one after another."""

    first: ImageSource
    second: ImageSource

    def __len__(self) -> int:
        return len(self.first) + len(self.second)

    def __getitem__(self, place: int) -> Encoded:
        count = len(self.first)
        return self.first[place] if place < count else self.second[place - count]

    def name(self, place: int) -> str:
        count = len(self.first)
        return self.first.name(place) if place < count else self.second.name(place - count)

    @property
    def files(self) -> Iterator[Path]:
        return chain(self.first.files, self.second.files)


@dataclass(frozen=True)
class Listing:
    """Images in order, with labels, ids and the names of their classes; nothing is decoded.

    source        where they lie: `source[places[i]]` is image i as a file, as bytes or as pixels
    places        int64 [n], in the source
    labels        int64 [n], or [n l] where an image has several
    ids           int64 [n], unique in the data set: the test images of a split share none with its training
    class_names   of every class, whether the split holds images of it or not
    missing       the names of images that the data set lists but that are not there
    cropped       whether the images were published as networks see them: they are not cropped a second time
    groups        text [n], the group of each image, such as its patient; None if nothing says it
    """

    source: ImageSource
    places: np.ndarray
    labels: np.ndarray
    ids: np.ndarray
    class_names: tuple[str, ...]
    missing: tuple[str, ...] = ()
    cropped: bool = False
    groups: np.ndarray | None = None

    def __post_init__(self) -> None:
        columns = (self.places, self.ids, self.ids if self.groups is None else self.groups)
        if any(column.shape != self.labels.shape[:1] for column in columns):
            raise RequestError(f"places, ids and groups are one for each of {len(self.labels)} images")

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, index: int) -> Encoded:
        """Image `index`, not decoded: a file, the bytes of one, or its pixels."""
        return self.source[int(self.places[index])]

    def __getitem__(self, index: int) -> Image.Image:
        """Return image `index` decoded, upright and in RGB; raises DamagedFileError if it cannot be read."""
        return self.colours(index)[0]

    def colours(self, index: int, upright: bool = True) -> tuple[Image.Image, list[str]]:
        """Return image `index`, and remarks, as `read_colours` gives them, wherever it lies."""
        from PIL import Image

        from penultimate.data.decoding import read_colours

        encoded = self.image(index)
        if isinstance(encoded, np.ndarray):
            return Image.fromarray(encoded).convert("RGB"), []
        if isinstance(encoded, bytes):
            return read_colours(Path(self.name(index)), upright, encoded)
        return read_colours(encoded, upright)

    def name(self, index: int) -> str:
        """Return what image `index` is called, in messages and in pictures of mistakes."""
        return self.source.name(int(self.places[index]))

    @property
    def names(self) -> list[str]:
        """The names of all images."""
        return [*map(self.source.name, self.places.tolist())]

    @cached_property
    def digest(self) -> str:
        """sha256 of the names and bytes of the images, their labels, ids and class names, in their order."""
        names = ["\0".join(self.names), list(self.class_names), *(["cropped"] if self.cropped else [])]
        state = hashlib.sha256(canonical_json(names).encode())
        with ThreadPoolExecutor() as pool:  # a block at a time: `map` holds a future for each of its images
            blocks = (range(at, min(at + BLOCK, len(self))) for at in range(0, len(self), BLOCK))
            digests = b"".join(digest for block in blocks for digest in pool.map(self.digest_of, block))
        of_images = np.frombuffer(digests, np.uint8).reshape(len(self), DIGITS // 2)
        state.update(digest_arrays(of_images, self.labels, self.ids).encode())
        return state.hexdigest()

    def subset(self, indices: Sequence[int] | slice | np.ndarray) -> Listing:
        """Return the images at these positions (a slice, positions or a mask), with their labels and ids."""
        return replace(
            self,
            places=self.places[indices],
            labels=self.labels[indices],
            ids=self.ids[indices],
            missing=(),
            groups=None if self.groups is None else self.groups[indices],
        )

    def digest_of(self, index: int) -> bytes:
        """Return the sha256 of one image's bytes; raises DamagedFileError where it cannot be read."""
        image = self.image(index)
        if isinstance(image, bytes):
            return hashlib.sha256(image).digest()
        try:
            return bytes.fromhex(digest_file(image) if isinstance(image, Path) else digest_arrays(image))
        except OSError as error:
            raise DamagedFileError(f"'{image}' cannot be read ({error.strerror})") from None
