"""Folders and the images in them, each folder read once by `os.scandir`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from penultimate.data.readers.split_names import part_of
from penultimate.errors import DamagedFileError, RequestError

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


def folders_in(folder: Path | str) -> list[Path]:
    """Return the visible folders in a folder, without links to a folder above it."""
    return [Path(entry.path) for entry in entries_of(folder) if entry.is_dir() and not _leads_up(entry)]


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
        if entry.is_dir():
            if not _leads_up(entry):
                yield from _below(entry.path, f"{prefix}{entry.name}/", others)
        elif is_image(entry.name):
            yield f"{prefix}{entry.name}"
        else:
            others[PurePath(entry.name).suffix.lower() or "no ending"] += 1


def holds_images(folder: Path) -> bool:
    """Return whether images lie in a folder or below it."""
    return next(_below(str(folder), "", Counter()), None) is not None


def folders_with_images(folder: Path) -> list[Path]:
    """Return the folders in a folder that hold images, in themselves or below."""
    return [each for each in folders_in(folder) if holds_images(each)]


def _leads_up(entry: os.DirEntry[str]) -> bool:
    above = Path(entry.path).parent
    return entry.is_symlink() and above.resolve().is_relative_to(Path(entry.path).resolve())


def names_in(folder: Path) -> set[str]:
    """Return the names in a folder; none where there is no such folder."""
    try:
        return {entry.name for entry in os.scandir(folder)}
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return set()


def are_there(base: Path, paths: Sequence[str]) -> list[bool]:
    """Return which of the paths below a folder are there, each folder read once."""
    names: dict[str, set[str]] = {}
    there = []
    for folder, _, name in (path.rpartition("/") for path in paths):
        if folder not in names:
            names[folder] = names_in(base / folder)
        there.append(name in names[folder])
    return there


def found_images(base: Path, cells: Sequence[str], part: str = "") -> list[str]:
    """Return the path below a folder that each cell of a table stands for: a path, with its ending or not.

    Where no cell leads to a file so, each stands for the only image of its name in whatever folder below; of
    several, for that in the folder of the table's split. Raises RequestError where two files may be meant.
    """
    own = f"{base.name}/"  # CheXpert's table begins each path with the name of the folder it lies in
    own = "" if (base / own).exists() else own
    cells = [cell.replace("\\", "/").removeprefix(own) for cell in cells]
    images = {
        folder: _by_name(f"{folder}{'/' if folder else ''}{name}" for name in names_in(base / folder))
        for folder in dict.fromkeys(cell.rpartition("/")[0] for cell in cells)
    }
    direct = [images[folder].get(name, []) for folder, _, name in (cell.rpartition("/") for cell in cells)]
    if not any(direct) and not any("/" in cell for cell in cells):
        anywhere = _by_name(images_below(base))
        direct = [anywhere.get(cell, []) for cell in cells]
        direct = [
            [path for path in its if part and part_of(path.partition("/")[0]) == part] or its
            for its in direct
        ]
    for cell, its in zip(cells, direct, strict=True):
        if len(its) > 1:
            raise RequestError(
                f"'{base}': '{cell}' may be '{its[0]}' or '{its[1]}'; write the whole path from this folder"
            )
    return [its[0] if its else cell for cell, its in zip(cells, direct, strict=True)]


def _by_name(paths: Sequence[str] | Iterator[str]) -> dict[str, list[str]]:
    """Return the images by their names, with and without their endings."""
    found: dict[str, list[str]] = {}
    for path in sorted(filter(lambda path: is_image(path.rpartition("/")[2]), paths)):
        name = path.rpartition("/")[2]
        for key in {name, name.rpartition(".")[0]}:
            found.setdefault(key, []).append(path)
    return found


def lines_of(path: Path) -> list[str]:
    """Return the lines of a text file that are not empty; raises RequestError where it cannot be read."""
    try:
        return [line.strip() for line in path.read_text("utf-8-sig").split("\n") if line.strip()]
    except FileNotFoundError:
        raise RequestError(f"'{path}' is missing; the data set is read by it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedFileError(f"'{path}' is no list of images: {error}") from None


def first_of(*paths: Path) -> Path | None:
    """Return the first of some paths that exists."""
    return next((path for path in paths if path.exists()), None)


def some(names: Sequence[str], one: str, many: str) -> str:
    """Return how many, and the first three by name."""
    more = ", ..." if len(names) > 3 else ""
    return f"{len(names):,} {one if len(names) == 1 else many} ({', '.join(map(repr, names[:3]))}{more})"
