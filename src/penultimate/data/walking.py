"""Folders of images, walked through: the images below a class folder, and what else lies there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from penultimate.data.reading import is_image


class Seen:
    """What is in folders besides the images of their classes: counted, to be told."""

    def __init__(self, root: Path) -> None:
        self.root, self.real = root, root.resolve()
        self.outside: list[str] = []
        self.others: list[str] = []
        self.deeper: list[str] = []
        self.linked: list[str] = []
        self.nowhere: list[str] = []
        self.circles: list[str] = []

    def images(self, folder: Path) -> list[str] | None:
        """The images in a folder and below it, by their paths below the root; None where it leads back."""
        name, above = folder.relative_to(self.root).as_posix(), (folder.parent.resolve(),)
        return sorted(self._below(name, above)) if self._is_new(name, above) else None

    def _is_new(self, name: str, above: tuple[Path, ...]) -> bool:
        """Whether a folder is none of those in which it lies, nor holds one of them: a link may."""
        real = (self.root / name).resolve()
        if any(each.is_relative_to(real) for each in above):
            self.circles.append(name)
            return False
        if (self.root / name).is_symlink() and not real.is_relative_to(self.real):
            self.linked.append(name)
        return True

    def _below(self, folder: str, above: tuple[Path, ...]) -> Iterator[str]:
        above = (*above, (self.root / folder).resolve())
        with os.scandir(self.root / folder) as listed:
            entries = sorted((e for e in listed if not e.name.startswith(".")), key=lambda e: e.name)
        for entry in entries:
            name = f"{folder}/{entry.name}"
            link = entry.is_symlink()
            if link and not Path(entry.path).exists():
                self.nowhere.append(name)
            elif entry.is_dir():
                if self._is_new(name, above):
                    self.deeper.append(name)
                    yield from self._below(name, above)
            elif is_image(entry.name):
                if link and not Path(entry.path).resolve().is_relative_to(self.real):
                    self.linked.append(name)
                yield name
            else:
                self.others.append(name)

    def notes(self) -> list[str]:
        told = {
            f"in no class folder, and left out: {some(self.outside, 'image', 'images')}": self.outside,
            f"no images by their names, and left out: {some(self.others, 'file', 'files')}": self.others,
            f"of the class above them: the images in {some(self.deeper, 'folder', 'folders')}": self.deeper,
            f"leading nowhere, and left out: {some(self.nowhere, 'link', 'links')}": self.nowhere,
            f"leading back, and left out: {some(self.circles, 'link', 'links')}": self.circles,
            f"outside of '{self.root}', by links: {some(self.linked, 'entry', 'entries')}": self.linked,
        }
        return [note for note, holds in told.items() if holds]


def some(names: Sequence[str], one: str, many: str) -> str:
    """How many, and the first three by name."""
    more = ", ..." if len(names) > 3 else ""
    return f"{len(names):,} {one if len(names) == 1 else many} ({', '.join(map(repr, names[:3]))}{more})"
