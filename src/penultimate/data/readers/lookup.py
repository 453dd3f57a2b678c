"""The images below a table's folder, found by what its cells say of them: paths, stems or bare names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from penultimate.data.readers.reading import is_image, names_in
from penultimate.data.readers.split_names import part_of
from penultimate.data.readers.walking import JUNK, some
from penultimate.errors import RequestError


class ImagesBelow:
    """The images that there are below a table's folder; of several of a name, that of its split is meant."""

    def __init__(self, folder: Path, part: str) -> None:
        self.folder, self.part = folder, part
        self.known: dict[str, frozenset[str]] = {}
        self.by_stem: dict[str, dict[str, list[str]]] = {}
        self.anywhere: dict[str, list[str]] = {}

    def leads_to_files(self, cells: Sequence[str]) -> bool:
        """Return whether most cells lead to images; some may be missing."""
        try:
            paths = self.found([cell.replace("\\", "/") for cell in cells], [])
        except RequestError:
            return True  # to more than one: whoever reads it says so
        return 2 * sum(map(self._is_there, paths)) > len(paths)

    def found(self, cells: Sequence[str], notes: list[str]) -> list[str]:
        """Return the path that each cell stands for: with an ending where it has none, and, where none of the
        cells leads anywhere by its path, that of the only image of this name below the folder."""
        paths = [cell if self._is_there(cell) else self._with_ending(cell) for cell in cells]
        if any(map(self._is_there, paths)) or any("/" in cell for cell in cells):
            return paths
        if not self.anywhere:
            for path in self._below():
                name = path.rpartition("/")[2]
                for key in (name, name.rpartition(".")[0]):
                    self.anywhere.setdefault(key, []).append(path)
        for at, cell in enumerate(cells):
            its = self.anywhere.get(cell, [])
            its = [path for path in its if part_of(path.partition("/")[0]) == self.part != ""] or its
            if len(its) > 1:
                raise RequestError(
                    f"'{self.folder}': '{cell}' may be '{its[0]}' or '{its[1]}'; write the path from the"
                    " table's folder"
                )
            paths[at] = its[0] if its else paths[at]
        folders = sorted({path.rpartition("/")[0] for path in paths} - {""})
        if folders:
            notes.append(f"the images were found by their names, in {some(folders, 'folder', 'folders')}")
        return paths

    def _names(self, folder: str) -> frozenset[str]:
        if folder not in self.known:
            try:
                self.known[folder] = frozenset(names_in(self.folder / folder))
            except (OSError, ValueError):
                self.known[folder] = frozenset()
        return self.known[folder]

    def _is_there(self, cell: str) -> bool:
        folder, _, name = cell.rpartition("/")
        return is_image(name) and name in self._names(folder if folder or cell[:1] != "/" else "/")

    def _with_ending(self, cell: str) -> str:
        folder, slash, name = cell.rpartition("/")
        if is_image(name):
            return cell
        if folder not in self.by_stem:
            stems: dict[str, list[str]] = {}
            for each in filter(is_image, self._names(folder)):
                stems.setdefault(each.rpartition(".")[0], []).append(each)
            self.by_stem[folder] = stems
        its = sorted(self.by_stem[folder].get(name, []))
        if len(its) > 1:
            raise RequestError(f"'{self.folder}': '{cell}' may be '{its[0]}' or '{its[1]}'; write its ending")
        return f"{folder}{slash}{its[0]}" if its else cell

    def _below(self) -> Iterator[str]:
        for at, folders, names in os.walk(self.folder):
            folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in JUNK)
            for name in filter(is_image, names):
                yield (Path(at) / name).relative_to(self.folder).as_posix()
