"""Folders of images, walked through: the images below a class folder, and what else lies there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from penultimate.data.readers.reading import is_image

JUNK = frozenset(
    (
        *("__MACOSX", "@eaDir", "$RECYCLE.BIN", "System Volume Information", "lost+found"),
        *(".ipynb_checkpoints", ".git", ".cache", ".thumbnails", ".Trash", ".Trashes", ".AppleDouble"),
        *(".Spotlight-V100", ".fseventsd", ".@__thumb", ".dvc", ".svn", ".hg", ".idea", ".vscode"),
    )
)
"""Folders that tools and systems leave beside people's own."""


def holds_images(folder: Path, hidden: bool = False) -> bool:
    """Return whether images lie in a folder or below it, `hidden` ones too where that is said;
    links may lead in circles.
    """
    waiting, been = [folder], set[str]()
    while waiting:
        at = waiting.pop()
        if (real := os.path.realpath(at)) in been:
            continue
        been.add(real)
        with os.scandir(at) as entries:
            for entry in entries:
                if (_is_hidden(entry) and not hidden) or entry.name.startswith("._") or entry.name in JUNK:
                    continue
                if _is_folder(entry):
                    waiting.append(Path(entry.path))
                elif is_image(entry.name.lstrip(".")):
                    return True
    return False


def _is_hidden(entry: os.DirEntry[str]) -> bool:
    return entry.name.startswith(".")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


class OtherContents:
    """What is in folders besides the images of their classes: counted, to be told."""

    def __init__(self, root: Path) -> None:
        self.root, self.real = root, root.resolve()
        self.outside: list[str] = []
        self.others: list[str] = []
        self.deeper: list[str] = []
        self.linked: list[str] = []
        self.nowhere: list[str] = []
        self.circles: list[str] = []
        self.hidden: set[str] = set()

    def see_outside(self, file: Path) -> None:
        """Note a file that lies in no class folder, if it is an image."""
        if is_image(file.name):
            self.outside.append(file.relative_to(self.root).as_posix())

    def look_for_hidden(self, folder: Path) -> None:
        """Note the hidden images of a folder, and the hidden folders in it that hold images; in its folders
        that hold no other images too.
        """
        with os.scandir(folder) as listed:
            entries = list(listed)
        self._note_hidden(folder.relative_to(self.root).as_posix(), entries)
        for entry in entries:
            within = entry.is_dir(follow_symlinks=False) and not _is_hidden(entry) and entry.name not in JUNK
            if within and not holds_images(Path(entry.path)):
                self.look_for_hidden(Path(entry.path))

    def _note_hidden(self, folder: str, entries: Sequence[os.DirEntry[str]]) -> None:
        for entry in entries:
            if not _is_hidden(entry) or entry.name.startswith("._") or entry.name in JUNK:
                continue
            try:
                within = Path(entry.path) if _is_folder(entry) else None
                is_told = holds_images(within, hidden=True) if within else is_image(entry.name.lstrip("."))
            except PermissionError:
                is_told = True  # it may hold images
            if is_told:
                self.hidden.add(entry.name if folder == "." else f"{folder}/{entry.name}")

    def images(self, folder: Path) -> list[str] | None:
        """Return the images in a folder and below it, by their paths below the root;
        None where it leads back.
        """
        name, above = folder.relative_to(self.root).as_posix(), (folder.parent.resolve(),)
        return sorted(self._below(name, above)) if self._is_new(name, above) else None

    def _is_new(self, name: str, above: tuple[Path, ...]) -> bool:
        """Return whether a folder is none of those in which it lies, nor holds one of them: a link may."""
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
            found = list(listed)
        self._note_hidden(folder, found)
        entries = sorted((e for e in found if not _is_hidden(e)), key=lambda e: e.name)
        for entry in entries:
            name = f"{folder}/{entry.name}"
            link = entry.is_symlink()
            if link and not Path(entry.path).exists():
                self.nowhere.append(name)
            elif entry.is_dir():
                if entry.name not in JUNK and self._is_new(name, above):
                    self.deeper.append(name)
                    yield from self._below(name, above)
            elif is_image(entry.name):
                if link and not Path(entry.path).resolve().is_relative_to(self.real):
                    self.linked.append(name)
                yield name
            else:
                self.others.append(name)

    def notes(self) -> list[str]:
        hidden = some(sorted(self.hidden), "entry", "entries")
        endings = Counter(PurePath(name).suffix.lower() or "no ending" for name in self.others)
        counts = ", ".join(f"{count:,} {ending}" for ending, count in endings.most_common())
        others = f"{some(self.others, 'file', 'files')}: {counts}"
        told = {
            f"in no class folder, and left out: {some(self.outside, 'image', 'images')}": self.outside,
            f"hidden by a dot before their names, and left out: {hidden}": self.hidden,
            f"no images by their names, and left out: {others}": self.others,
            f"the images in {some(self.deeper, 'folder', 'folders')} are of the class above": self.deeper,
            f"leading nowhere, and left out: {some(self.nowhere, 'link', 'links')}": self.nowhere,
            f"leading back, and left out: {some(self.circles, 'link', 'links')}": self.circles,
            f"outside of '{self.root}', by links: {some(self.linked, 'entry', 'entries')}": self.linked,
        }
        return [note for note, holds in told.items() if holds]


def some(names: Sequence[str], one: str, many: str) -> str:
    """Return how many, and the first three by name."""
    more = ", ..." if len(names) > 3 else ""
    return f"{len(names):,} {one if len(names) == 1 else many} ({', '.join(map(repr, names[:3]))}{more})"
