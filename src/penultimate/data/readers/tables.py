"""Tables of a user's own: a line for each image, with its path, its label and perhaps its split."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.data.listing import Listing
from penultimate.data.readers.columns import (
    LABELS,
    PATHS,
    PLURAL,
    UNCLEAR,
    expect_one_class,
    image_column,
    label_columns,
    parts_of,
    text_of_cell,
)
from penultimate.data.readers.groups import groups_in_column
from penultimate.data.readers.labels import read_labels
from penultimate.data.readers.lookup import ImagesBelow
from penultimate.data.readers.places import Place, is_table
from penultimate.data.readers.reading import SPAN, images_in, is_image, listed, text_of, visible
from penultimate.data.readers.several_labels import several_labels, with_several_labels
from penultimate.data.readers.split_names import expect_one_each, part_of, words_in_all
from penultimate.data.readers.walking import some
from penultimate.errors import DamagedFileError, RequestError

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet", "_classes.csv")
"""Tables that lie beside their images: Hugging Face's ImageFolder, and Roboflow's."""
OF_TABLES = frozenset(("label", "labels", "annotation", "annotations", "list", "metadata", "info", "df"))
"""Words that say nothing beside the name of a split in that of a table: "train_labels.csv"."""


@dataclass(frozen=True)
class ImageRow:
    """What a table says of an image: its path from the table's folder, its label, its split, its group."""

    where: str
    label: Any
    part: str | None
    group: str = ""


@dataclass(frozen=True)
class ColumnTable:
    """The cells of a table, by columns.

    columns    {name in small letters: cells}
    header     {name in small letters: name as it is written}
    lines      the number of each row's line
    typed      whether a cell that is text was meant as text, and not as a number
    """

    path: Path
    columns: Mapping[str, Sequence[Any]]
    header: Mapping[str, str]
    lines: Sequence[int]
    typed: bool = False


def table(place: Place) -> tuple[dict[str, Listing], list[str]]:
    """Read a table whose paths are below its folder, or absolute."""
    return _read(place, place.path.parent, {place.path: ""})


def metadata_in(folder: Path) -> dict[Path, str]:
    """Return the tables that lie beside the images of a folder, or of its folders of splits, and say their
    labels, each with its split."""
    named = {folder: ""} | {each: part for each in visible(folder) if (part := part_of(each.name))}
    found = {}
    for beside, part in named.items():
        for name in METADATA:
            file = beside / name
            if file.is_file() and (images_in(beside) or {"label", *LABELS} & read_table(file).columns.keys()):
                found[file] = part
    expect_one_each(folder, ((str(file.relative_to(folder)), part) for file, part in found.items()))
    return {file: part for file, part in found.items() if part} or found


def split_tables_in(folder: Path) -> dict[Path, str]:
    """Return the tables of a folder that are called like splits, that of the training images first;
    none without one of these.
    """
    files = [each for each in visible(folder) if is_table(each)]
    common = {*words_in_all(each.stem for each in files), *OF_TABLES}
    named = {each: part for each in files if (part := part_of(each.stem, common)) and _lists_images(each)}
    expect_one_each(folder, ((file.name, part) for file, part in named.items()))
    return dict(sorted(named.items(), key=lambda of: of[1] != "train")) if "train" in named.values() else {}


def _lists_images(file: Path) -> bool:
    """Return whether a table is one by its ending, or by its first line if it may be any text."""
    words = re.split(r"[\s,;|]+", text_of(file).partition("\n")[0]) if file.suffix.lower() == ".txt" else []
    return not words or any(is_image(word) or word.lower() in (*PATHS, *LABELS, "label") for word in words)


def metadata(place: Place, files: Mapping[Path, str]) -> tuple[dict[str, Listing], list[str]]:
    """Read the tables of a folder. Each table gives the labels of one split, or of all images."""
    found, notes = _read(place, place.path, files)
    told = some([file.relative_to(place.path).as_posix() for file in files], "table", "tables")
    hidden = sorted(
        file.relative_to(place.path).as_posix() for name in METADATA for file in place.path.glob(f".*/{name}")
    )
    if hidden:
        lying = some(hidden, "table", "tables")
        notes = [f"in a folder hidden by a dot before its name, and left out: {lying}", *notes]
    return found, [f"the labels are those of {told}", *notes]


def _read(place: Place, base: Path, files: Mapping[Path, str]) -> tuple[dict[str, Listing], list[str]]:
    notes: list[str] = []
    found: dict[str, list[ImageRow]] = {}
    names: tuple[str, ...] = ()
    plural, typed = False, True
    first: Place | None = None
    for file, part in files.items():
        read = read_table(file)
        typed &= read.typed
        try:
            rows, meant = _rows(_as_before(place, first, read), read, part, notes)
        except RequestError as error:
            if first is None or {*first.label} <= read.columns.keys():
                raise
            raise RequestError(
                f"'{read.path}' lacks {some(first.label, 'column', 'columns')}, where '{first.path.name}' has"
                f" the labels. If its images have none, give '{first.path}' alone: what is tested on is drawn"
                " from its images"
            ) from error
        first = first or meant
        labels = meant.label
        plural |= labels[:1] != () and labels[0] in PLURAL
        if place.labels:
            columns_read = several_labels(meant, read.columns, read.header)[0]
            if names and names != tuple(read.header[name] for name in columns_read):
                raise RequestError(f"'{read.path}' has other columns of labels than the table before")
            names = tuple(read.header[name] for name in columns_read)
        if len(labels) > 1:
            names = (*names, *(read.header[name] for name in labels if read.header[name] not in names))
        below = file.parent.relative_to(base)
        for row in rows:
            where = row.where if below == Path() else str(below / row.where)
            if (of := part or row.part) is not None:
                found.setdefault(of, []).append(replace(row, where=where, part=of))
    _expect_once(place.path, base, [row.where for its in found.values() for row in its])
    if place.labels:
        rows_of = {part: [(row.where, row.label) for row in its] for part, its in found.items()}
        made = with_several_labels(place.path, base, rows_of, names)
        return _grouped(place, found, made), list(dict.fromkeys(notes))
    columns = {part: [row.label for row in its] for part, its in found.items()}
    labels_of = read_labels(place.path, columns, names, typed=typed, plural=plural)
    listings = {}
    for number, (part, its) in enumerate(found.items()):
        places = labels_of.of[part].tolist()
        known = [(row.where, label) for row, label in zip(its, places, strict=True) if label >= 0]
        found[part] = [row for row, label in zip(its, places, strict=True) if label >= 0]
        if known:
            start = number * SPAN
            listings[part] = listed(base, known, labels_of.names, start, str(place.path), anywhere=True)
    return _grouped(place, found, listings), [*dict.fromkeys(notes), *labels_of.notes]


def _grouped(
    place: Place, rows: Mapping[str, Sequence[ImageRow]], listings: Mapping[str, Listing]
) -> dict[str, Listing]:
    """Return the listings with the groups of their images, whose ids count the rows of each split."""
    if place.group == "":
        return dict(listings)
    return {
        part: replace(of, groups=np.array([row.group for row in rows[part]], str)[of.ids % SPAN])
        for part, of in listings.items()
    }


def _as_before(place: Place, first: Place | None, read: ColumnTable) -> Place:
    """Return a place with the columns that were read in the first of several tables, if it has them."""
    if first is None or not {first.image, *first.label} <= read.columns.keys():
        return place
    return replace(first, path=place.path)


def _rows(place: Place, read: ColumnTable, part: str, notes: list[str]) -> tuple[list[ImageRow], Place]:
    """Return the rows of a table that is of one split or of all (""), and the columns that were read."""
    there = ImagesBelow(read.path.parent, part)
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
    values: list[Any]
    group = place.group.strip().lower() if isinstance(place.group, str) else ""
    others = (image, *UNCLEAR, *of_splits, *([group] if group != "label" else []))
    labels = [] if place.labels else label_columns(place, read.columns, others, said)
    if place.labels:
        _, values = several_labels(place, read.columns, read.header)
    elif len(labels) > 1:
        marked = expect_one_class(place, read.columns, labels)
        values = [read.header[labels[at]] for at in marked]
    elif read.typed:
        values = list(read.columns[labels[0]])
    else:
        values = [text_of_cell(cell) for cell in read.columns[labels[0]]]
    other = next((of for of in parts if part and of not in ("", part)), part)
    if other != part:
        raise RequestError(
            f"'{read.path}' is the table of the {part} images by its name or its folder, and"
            f" {some(of_splits, 'column', 'columns')} of it say otherwise; take the column out, or give the"
            " table by itself"
        )
    notes += said
    paths = there.found(cells, notes)
    taken = (image, *labels, *([place.split] if place.split else []))
    groups = groups_in_column(place, read.columns, paths, taken, read.lines)
    rows = [ImageRow(*row) for row in zip(paths, values, parts, groups, strict=True)]
    return rows, replace(place, path=read.path, image=image, label=tuple(labels))


def _expect_header(read: ColumnTable, image: str) -> None:
    first = [name for name in read.header.values() if is_image(name)]
    if first:
        raise RequestError(
            f"'{read.path}': its first line is that of an image, '{first[0]}'; a line with the names of the"
            " columns is expected above it, such as path,label"
        )


def read_table(path: Path) -> ColumnTable:
    """Read the cells of a table; raises RequestError or DamagedFileError, with the line, for what is none."""
    if path.suffix.lower() == ".parquet":
        return _of_parquet(path)
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
                    f"'{path}', line {reader.line_num}: more values than columns; put what holds a delimiter"
                    " in quotes"
                )
            rows.append([*cells[: len(names)], *[""] * (len(names) - len(cells))])
            lines.append(reader.line_num)
    except csv.Error as error:
        raise DamagedFileError(f"'{path}', line {reader.line_num}: {error}") from None
    columns = zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True)
    return ColumnTable(path, dict(columns), dict(zip(names, header, strict=True)), lines)


def _of_objects(path: Path, text: str) -> ColumnTable:
    """Return the cells of a file that holds an object of JSON in each line."""
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
            raise RequestError(f"'{path}', line {number}: an object, {{name: value}}, is expected")
        _expect_different(path, [name.strip().lower() for name in row])
        rows.append({name.strip().lower(): value for name, value in row.items()})
        header |= {name.strip().lower(): name.strip() for name in row}
        lines.append(number)
    return ColumnTable(
        path, {name: [row.get(name) for row in rows] for name in header}, header, lines, typed=True
    )


def _of_parquet(path: Path) -> ColumnTable:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise RequestError(
            f"'{path}' needs pyarrow: pip install 'penultimate[parquet]'; or write it as .csv"
        ) from None
    try:
        columns = {name.strip(): cells for name, cells in parquet.read_table(path).to_pydict().items()}
    except (arrow.ArrowException, OSError) as error:
        raise DamagedFileError(f"'{path}' cannot be read: {error}") from None
    _expect_different(path, [name.lower() for name in columns])
    pictures = [
        name for name, cells in columns.items() if any(isinstance(cell, (bytes, dict)) for cell in cells)
    ]
    if pictures:
        raise RequestError(
            f"'{path}' holds images themselves, in {some(pictures, 'column', 'columns')}; load it with"
            " datasets.load_dataset, and give what save_to_disk writes"
        )
    rows = max(map(len, columns.values()), default=0)
    header = {name.lower(): name for name in columns}
    cells = {name.lower(): its for name, its in columns.items()}
    return ColumnTable(path, cells, header, range(1, rows + 1), typed=True)


def _expect_different(path: Path, names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        raise RequestError(f"'{path}': {some(twice, 'column', 'columns')} of the same name")


def _expect_once(path: Path, base: Path, paths: Sequence[str]) -> None:
    """Refuse an image that is listed twice, under one path or two: it could be trained and tested on."""
    times = Counter(map(os.path.normpath, paths))
    twice = [where for where, count in times.items() if count > 1]
    if twice:
        raise RequestError(f"'{path}': {some(twice, 'image is', 'images are')} listed more than once")
    known: dict[tuple[int, int], str] = {}
    for where in times:
        try:
            found = (base / where).stat()
        except (OSError, ValueError):
            continue  # what is not there is said to be missing
        first = known.setdefault((found.st_dev, found.st_ino), where)
        if first != where:
            raise RequestError(f"'{path}': '{first}' and '{where}' are one file, which is listed twice")
