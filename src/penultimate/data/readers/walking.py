"""Folders and the images in them, each folder read once by `os.scandir`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

ENDINGS = (
    *(".jpeg", ".jpg", ".jpe", ".jfif", ".png", ".apng", ".bmp", ".dib", ".webp", ".gif", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".tga", ".qoi", ".jp2", ".j2k", ".jpx"),
    *(".avif", ".heic", ".heif", ".hif", ".jxl"),
)
"""The endings of images. A file in a format that the installed Pillow cannot read is left out and named."""
JUNK = frozenset(("__MACOSX", "@eaDir", "$RECYCLE.BIN", "System Volume Information", "lost+found"))
"""Folders that systems leave beside people's own; hidden ones are ignored too."""


def is_image(name: str) -> bool:
    """Return whether a file is an image by its name."""
    return not name.startswith(".") and name.lower().endswith(ENDINGS)


def entries_of(folder: Path | str) -> list[os.DirEntry[str]]:
    """Return what is visible in a folder, by name."""
    with os.scandir(folder) as entries:
        return sorted(
            (entry for entry in entries if entry.name[0] != "." and entry.name not in JUNK),
            key=lambda entry: entry.name,
        )


def images_in(folder: Path) -> list[str]:
    """Return the names of the images that lie directly in a folder."""
    return [entry.name for entry in entries_of(folder) if is_image(entry.name)]


def images_below(folder: Path | str, others: Counter[str] | None = None) -> list[str]:
    """Return the images in a folder and below it by their paths in it, sorted folder by folder.

    `others` counts the other files by their endings. A link to a folder above is not followed.
    """
    return list(_below(str(folder), "", others if others is not None else Counter()))


def _below(folder: str, prefix: str, others: Counter[str]) -> Iterator[str]:
    for entry in entries_of(folder):
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            if not _leads_up(entry):
                yield from _below(entry.path, f"{name}/", others)
        elif is_image(name.rpartition("/")[2]):
            yield name
        else:
            others[PurePath(name).suffix.lower() or "no ending"] += 1


def folders_with_images(folder: Path) -> list[Path]:
    """Return the folders in a folder that hold images, in themselves or below."""
    return [Path(entry.path) for entry in entries_of(folder) if entry.is_dir() and holds_images(entry)]


def holds_images(folder: os.DirEntry[str] | Path) -> bool:
    """Return whether images lie in a folder or below it."""
    if isinstance(folder, os.DirEntry) and _leads_up(folder):
        return False
    entries = entries_of(os.fspath(folder))
    if any(is_image(entry.name) and not entry.is_dir() for entry in entries):
        return True
    return any(entry.is_dir() and holds_images(entry) for entry in entries)


def _leads_up(entry: os.DirEntry[str]) -> bool:
    above = Path(entry.path).parent.resolve()
    return entry.is_symlink() and above.is_relative_to(Path(entry.path).resolve())


def some(names: Sequence[str], one: str, many: str) -> str:
    """Return how many, and the first three by name."""
    more = ", ..." if len(names) > 3 else ""
    return f"{len(names):,} {one if len(names) == 1 else many} ({', '.join(map(repr, names[:3]))}{more})"
