"""The images below a table's folder, found by what its cells say of them: paths, stems or bare names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penultimate.data.readers.reading import names_in
from penultimate.data.readers.split_names import part_of
from penultimate.data.readers.walking import images_below, is_image, some
from penultimate.errors import RequestError


class ImagesBelow:
    """The images below a table's folder; of several of a name, that in the folder of its split is meant."""

    def __init__(self, folder: Path, part: str = "") -> None:
        self.folder, self.part = folder, part
        own = f"{folder.name}/"  # CheXpert's table begins each path with the name of the folder it lies in
        self.own = "" if (folder / own).exists() else own
        self.names: dict[str, set[str]] = {}
        self.stems: dict[str, dict[str, list[str]]] = {}

    def found(self, cells: Sequence[str], notes: list[str]) -> list[str]:
        """Return the path that each cell stands for.

        It gets an ending where it has none. Where no cell leads to a file from the table's folder, each
        stands for the only image of its name, in whatever folder below.
        """
        paths = [self._direct(cell) for cell in cells]
        if any(map(self.has, paths)) or any("/" in cell for cell in cells):
            return paths
        anywhere: dict[str, list[str]] = {}
        for path in images_below(self.folder):
            name = path.rpartition("/")[2]
            for key in {name, name.rpartition(".")[0]}:
                anywhere.setdefault(key, []).append(path)
        for at, cell in enumerate(cells):
            its = anywhere.get(cell, [])
            its = [path for path in its if self.part and part_of(path.partition("/")[0]) == self.part] or its
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

    def has(self, path: str) -> bool:
        """Return whether an image is at a path."""
        folder, _, name = path.rpartition("/")
        return is_image(name) and name in self._names(folder)

    def _names(self, folder: str) -> set[str]:
        if folder not in self.names:
            self.names[folder] = names_in(self.folder / folder)
        return self.names[folder]

    def _direct(self, cell: str) -> str:
        """Return a path with its ending; a first folder that is the table's own is left out of it."""
        cell = cell.removeprefix(self.own)
        folder, slash, name = cell.rpartition("/")
        if is_image(name):
            return cell
        if folder not in self.stems:
            self.stems[folder] = {}
            for each in filter(is_image, self._names(folder)):
                self.stems[folder].setdefault(each.rpartition(".")[0], []).append(each)
        its = sorted(self.stems[folder].get(name, []))
        if len(its) > 1:
            raise RequestError(f"'{self.folder}': '{cell}' may be '{its[0]}' or '{its[1]}'; write its ending")
        return f"{folder}{slash}{its[0]}" if its else cell
