"""Read a user's tables, with one line per image: its path, its label and perhaps its split."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.data.listing import Listing
from penultimate.data.readers.columns import (
    LABELS,
    PLURAL,
    UNCLEAR,
    expect_one_class,
    image_column,
    label_columns,
    parts_of,
    text_of_cell,
)
from penultimate.data.readers.labels import read_labels
from penultimate.data.readers.places import Place
from penultimate.data.readers.reading import SPAN, images_in, is_image, listed, names_in, text_of, visible
from penultimate.data.readers.split_names import expect_one_each, part_of
from penultimate.data.readers.walking import JUNK, some
from penultimate.errors import DamagedFileError, RequestError

METADATA = ("metadata.csv", "metadata.jsonl", "_classes.csv")
"""The names of tables beside their images, as Hugging Face's ImageFolder and Roboflow write them."""


@dataclass(frozen=True)
class Row:
    """An image's row in a table: its path from the table's folder, its label and its split."""

    where: str
    label: Any
    part: str | None


@dataclass(frozen=True)
class Table:
    """The cells of a table, by column.

    columns    {name in lower case: cells}
    header     {name in lower case: name as written}
    lines      the line number of each row
    typed      whether text cells were meant as text and not as numbers
    """

    path: Path
    columns: Mapping[str, Sequence[Any]]
    header: Mapping[str, str]
    lines: Sequence[int]
    typed: bool = False


def table(place: Place) -> tuple[dict[str, Listing], list[str]]:
    """Read a table with absolute paths or paths from its folder."""
    return _read(place, place.path.parent, {place.path: ""})


def metadata_in(folder: Path) -> dict[Path, str]:
    """Return the label tables in a folder and in its split folders, each with its split."""
    named = {folder: ""} | {each: part for each in visible(folder) if (part := part_of(each.name))}
    found = {}
    for beside, part in named.items():
        for name in METADATA:
            file = beside / name
            if file.is_file() and (images_in(beside) or {"label", *LABELS} & read_table(file).columns.keys()):
                found[file] = part
    expect_one_each(folder, ((str(file.relative_to(folder)), part) for file, part in found.items()))
    return {file: part for file, part in found.items() if part} or found


def metadata(place: Place, files: Mapping[Path, str]) -> tuple[dict[str, Listing], list[str]]:
    """Read the tables of a folder, each with the labels of one split or of all images."""
    found, notes = _read(place, place.path, files)
    told = some([file.relative_to(place.path).as_posix() for file in files], "table", "tables")
    return found, [f"the labels are those of {told}", *notes]


def _read(place: Place, base: Path, files: Mapping[Path, str]) -> tuple[dict[str, Listing], list[str]]:
    notes: list[str] = []
    found: dict[str, list[Row]] = {}
    names: tuple[str, ...] = ()
    plural, typed = False, True
    for file, part in files.items():
        read = read_table(file)
        typed &= read.typed
        rows, labels = _rows(place, read, notes)
        plural |= labels[0] in PLURAL
        if len(labels) > 1:
            names = (*names, *(read.header[name] for name in labels if read.header[name] not in names))
        below = file.parent.relative_to(base)
        for row in rows:
            where = row.where if below == Path() else str(below / row.where)
            if (of := part or row.part) is not None:
                found.setdefault(of, []).append(Row(where, row.label, of))
    _expect_once(place.path, base, [row.where for its in found.values() for row in its])
    columns = {part: [row.label for row in its] for part, its in found.items()}
    labels_of = read_labels(place.path, columns, names, typed=typed, plural=plural)
    listings = {}
    for number, (part, its) in enumerate(found.items()):
        places = labels_of.of[part].tolist()
        known = [(row.where, label) for row, label in zip(its, places, strict=True) if label >= 0]
        if known:
            first = number * SPAN
            listings[part] = listed(base, known, labels_of.names, first, str(place.path), anywhere=True)
    return listings, [*dict.fromkeys(notes), *labels_of.notes]


def _rows(place: Place, read: Table, notes: list[str]) -> tuple[list[Row], list[str]]:
    """Return the rows of a table and its label columns."""
    there = _There(read.path.parent)
    image = image_column(place, read.columns, there.leads_to_files)
    _expect_header(read, image)
    if not read.lines:
        raise RequestError(f"'{read.path}' lists no images")
    cells = [text_of_cell(cell).replace("\\", "/") for cell in read.columns[image]]
    empty = next((line for line, cell in zip(read.lines, cells, strict=True) if not cell), None)
    if empty is not None:
        raise RequestError(f"'{read.path}', line {empty}: a path is expected")
    said: list[str] = []
    parts, of_splits = parts_of(place, read.columns, image, read.lines, said)
    labels = label_columns(place, read.columns, (image, *UNCLEAR, *of_splits), said)
    if len(labels) > 1:
        marked = expect_one_class(place, read.columns, labels)
        values: list[Any] = [read.header[labels[at]] for at in marked]
    elif read.typed:
        values = list(read.columns[labels[0]])
    else:
        values = [text_of_cell(cell) for cell in read.columns[labels[0]]]
    notes += said
    paths = there.found(cells, notes)
    return [Row(*row) for row in zip(paths, values, parts, strict=True)], labels


def _expect_header(read: Table, image: str) -> None:
    first = [name for name in read.header.values() if is_image(name)]
    if first:
        raise RequestError(
            f"'{read.path}': its first line describes an image, '{first[0]}'; expected a line with the names"
            " of the columns above it, such as path,label"
        )


class _There:
    """The images below a table's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, frozenset[str]] = {}
        self.by_stem: dict[str, dict[str, list[str]]] = {}
        self.anywhere: dict[str, list[str]] = {}

    def leads_to_files(self, cells: Sequence[str]) -> bool:
        """Return whether most cells lead to images; some may be missing."""
        try:
            paths = self.found([cell.replace("\\", "/") for cell in cells], [])
        except RequestError:
            return True  # to more than one, which raises when it is read
        return 2 * sum(map(self._is_there, paths)) > len(paths)

    def found(self, cells: Sequence[str], notes: list[str]) -> list[str]:
        """Return the path for each cell, with a missing ending added.

        If no cell is a path that exists, each cell stands for the only image of its name below the folder.
        """
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


def read_table(path: Path) -> Table:
    """Read the cells of a table; raises RequestError or DamagedFileError, with the line, if that fails."""
    text = text_of(path)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return _of_objects(path, text)
    lines: list[int] = []
    head = text.partition("\n")[0]
    delimiter = max(",;\t|", key=head.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter if delimiter in head else " ")
    try:
        header = [name.strip() for name in next(reader, [])]
        names = [name.lower() for name in header]
        _expect_different(path, names)
        rows = []
        for cells in reader:
            if not cells:
                continue
            if len(cells) > len(names) and any(cells[len(names) :]):
                raise RequestError(
                    f"'{path}', line {reader.line_num}: more values than columns; quote values that"
                    " hold a delimiter"
                )
            rows.append([*cells[: len(names)], *[""] * (len(names) - len(cells))])
            lines.append(reader.line_num)
    except csv.Error as error:
        raise DamagedFileError(f"'{path}', line {reader.line_num}: {error}") from None
    columns = zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True)
    return Table(path, dict(columns), dict(zip(names, header, strict=True)), lines)


def _of_objects(path: Path, text: str) -> Table:
    """Return the cells of a file with one JSON object per line."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    header: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise DamagedFileError(f"'{path}', line {number}: {error}") from None
        if not isinstance(row, dict):
            raise RequestError(f"'{path}', line {number}: expected an object, {{name: value}}")
        _expect_different(path, [name.strip().lower() for name in row])
        rows.append({name.strip().lower(): value for name, value in row.items()})
        header |= {name.strip().lower(): name.strip() for name in row}
        lines.append(number)
    return Table(path, {name: [row.get(name) for row in rows] for name in header}, header, lines, typed=True)


def _expect_different(path: Path, names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        raise RequestError(f"'{path}': {some(twice, 'column', 'columns')} of the same name")


def _expect_once(path: Path, base: Path, paths: Sequence[str]) -> None:
    """Refuse an image that is listed twice, by one path or two, because it could leak from training to
    test."""
    times = Counter(map(os.path.normpath, paths))
    twice = [where for where, count in times.items() if count > 1]
    if twice:
        raise RequestError(f"'{path}': {some(twice, 'image is', 'images are')} listed more than once")
    known: dict[tuple[int, int], str] = {}
    for where in times:
        try:
            found = (base / where).stat()
        except (OSError, ValueError):
            continue  # absent images are reported as missing
        first = known.setdefault((found.st_dev, found.st_ino), where)
        if first != where:
            raise RequestError(f"'{path}': '{first}' and '{where}' are the same file, listed twice")
