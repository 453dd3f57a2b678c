"""Shared by the readers of image data sets: lists and tables, which images are there, listings of them."""

from __future__ import annotations

import csv
import os
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from penultimate.data.listing import Files, ImageSource, Listing
from penultimate.data.readers.entries import PublishedSet
from penultimate.data.readers.matlab import elements
from penultimate.errors import DamagedFileError, RequestError, nearest

ENDINGS = (
    *(".jpeg", ".jpg", ".jpe", ".jfif", ".png", ".apng", ".bmp", ".dib", ".webp", ".gif", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".tga", ".qoi", ".jp2", ".j2k", ".jpx"),
    *(".avif", ".heic", ".heif", ".hif", ".jxl"),
)
"""Files with other endings, and hidden ones ("._x.JPEG" is macOS's metadata of x.JPEG), are no images.

Whether the Pillow that is installed reads a format is seen when an image is read: what it does not read is
left out and named.
"""
MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32"}
MARKS |= {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""The encodings that byte order marks name."""
Rows = Sequence[tuple[str, int]]
"""Images by their path below a folder, with their labels."""
SPAN = 1 << 32
"""The ids of the k-th split count from k times this."""
T = TypeVar("T")


def listing_of(entry: PublishedSet, base: Path, split: str, rows: Rows, names: Sequence[str]) -> Listing:
    """Return the images of a split that are there; those listed that are not are named in `missing`."""
    first = list(entry.card.sizes).index(split) * SPAN
    return listed(base, rows, names, first, f"{entry.card.title}, {split}")


def listed(
    base: Path, rows: Rows, names: Sequence[str], first: int, what: str, anywhere: bool = False
) -> Listing:
    """Return a listing of files below a folder; unless they may lie `anywhere`,
    a path that leaves it is refused.
    """
    for path, label in rows:
        if not anywhere and (path.startswith("/") or ".." in path.split("/")):
            raise DamagedFileError(f"{what}: its list names '{path}', which lies outside '{base}'")
        if not 0 <= label < len(names):
            raise DamagedFileError(f"{what}: its list gives '{path}' the class {label + 1} of {len(names)}")
    kept = _present(base, [path for path, _ in rows])
    paths = tuple(path for (path, _), there in zip(rows, kept, strict=True) if there)
    missing = tuple(path for (path, _), there in zip(rows, kept, strict=True) if not there)
    labels = np.array([label for _, label in rows], np.int64)[kept]
    ids = (first + np.arange(len(rows)))[kept]
    return Listing(Files(base, paths), np.arange(len(paths)), labels, ids, tuple(names), missing)


def _present(base: Path, paths: Sequence[str]) -> np.ndarray:
    """Return which of the paths are there, each folder read once."""
    names: dict[str, set[str]] = {}
    there = np.zeros(len(paths), bool)
    for place, path in enumerate(paths):
        folder, _, name = path.rpartition("/")
        if folder not in names:
            try:
                names[folder] = set(names_in(base / folder))
            except (FileNotFoundError, NotADirectoryError):
                names[folder] = set()
        there[place] = name in names[folder]
    return there


def whole_listing(
    entry: PublishedSet,
    source: ImageSource,
    split: str,
    labels: np.ndarray,
    names: Sequence[str],
    places: np.ndarray | None = None,
) -> Listing:
    order = np.arange(len(labels))
    ids = list(entry.card.sizes).index(split) * SPAN + order
    return Listing(source, order if places is None else places, labels, ids, tuple(names))


def base_of(entry: PublishedSet, root: Path, holds: str) -> Path:
    """Return the data set's folder: in --root, or --root itself."""
    if (root / entry.folder).is_dir():
        return root / entry.folder
    if not root.is_dir():
        raise RequestError(
            f"'{root}' {'is a file' if root.exists() else 'does not exist'}; it is to hold {entry.card.title}"
        )
    if holds and not (root / holds).exists():
        raise not_there(entry, root, f"it holds neither a folder {entry.folder} nor what is in one ({holds})")
    return root


def what_goes_where(name: str) -> str:
    """Return how an error ends that is of the layout of a data set."""
    return (
        f" What goes where: penultimate data check {name} --root DIR. Images of your own go by another"
        f" name than '{name}'."
    )


def not_there(entry: PublishedSet, root: Path, why: str) -> RequestError:
    name = entry.card.name
    return RequestError(
        f"'{root}' is not {entry.card.title} as it is published: {why}.{what_goes_where(name)}"
    )


def first_of(*paths: Path) -> Path | None:
    return next((path for path in paths if path.exists()), None)


def visible(folder: Path) -> list[Path]:
    """Return what is in a folder, without hidden files; raises RequestError for a link that leads nowhere."""
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    broken = next((path for path in entries if path.is_symlink() and not path.exists()), None)
    if broken is not None:
        raise RequestError(f"'{broken}' is a link to '{broken.readlink()}', which is not there")
    return entries


def names_in(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def class_of(folder: Path) -> str:
    r"""Return what the class of a folder is called: bytes in its name that are no text are spelt, \xff.

    >>> class_of(Path(os.fsdecode(b"caf\xc3\xa9"))), class_of(Path(os.fsdecode(b"caf\xe9")))
    ('café', 'caf\\xe9')
    """
    return unicodedata.normalize("NFC", os.fsencode(folder.name).decode(errors="backslashreplace"))


def images_in(folder: Path) -> list[str]:
    return [name for name in names_in(folder) if is_image(name)]


def is_image(name: str) -> bool:
    """Return whether a file is an image by its name."""
    return not name.startswith(".") and name.lower().endswith(ENDINGS)


def lines_of(path: Path) -> list[str]:
    return [line.strip() for line in text_of(path).split("\n") if line.strip()]


def text_of(path: Path) -> str:
    """Return a text file in UTF-8, or in the encoding that its byte order mark names (Excel's is UTF-16).

    Raises RequestError where it is missing, or in another encoding; DamagedFileError where it is no text.
    """
    try:
        content = path.read_bytes()
        encoding = next((name for mark, name in MARKS.items() if content.startswith(mark)), "utf-8")
        text = content.decode(encoding)
    except FileNotFoundError:
        raise RequestError(f"'{path}' is missing; the data set is read by it") from None
    except UnicodeDecodeError as error:
        if encoding == "utf-8" and b"\0" not in content:
            raise RequestError(
                f"'{path}' is not in UTF-8 (byte {error.start:,} is 0x{content[error.start]:02x}): save it as"
                " UTF-8, which Excel calls 'CSV UTF-8'"
            ) from None
        raise DamagedFileError(f"'{path}' is no list of images: {error}") from None
    except OSError as error:
        raise DamagedFileError(f"'{path}' is no list of images: {error}") from None
    if "\0" in text:
        raise DamagedFileError(
            f"'{path}' is no list of images: it holds zero bytes, as UTF-16 without a byte order mark does;"
            " save it as UTF-8"
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def rows_of(path: Path, delimiter: str, *needed: str) -> list[dict[str, str]]:
    """Return the rows of a table; raises DamagedFileError for one without the columns needed."""
    lines = text_of(path).splitlines()
    rows = list(csv.DictReader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, restval=""))
    if rows and not set(needed) <= set(rows[0]):
        raise DamagedFileError(f"'{path}' has no columns {', '.join(needed)}")
    return rows


def places_of(names: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def label_of(name: str, places: Mapping[str, int], where: Path) -> int:
    if name not in places:
        raise DamagedFileError(
            f"'{where}': '{name}' is not one of the {len(places)} classes.{nearest(name, places)}"
        )
    return places[name]


def mat(path: Path, variable: str, element: Callable[[Any], T]) -> list[T]:
    """Return what `element` makes of each element of a variable of a MATLAB file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RequestError(
            f"'{path}' cannot be read ({error.strerror}); the data set is read by it"
        ) from None
    return elements(content, f"'{path}'", variable, element)
