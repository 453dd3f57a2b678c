"""Tables of a user's own: a header, then lines of a path, a label and perhaps of a split."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from penultimate.data.labels import read_labels
from penultimate.data.listing import Listing
from penultimate.data.reading import SPAN, listed, text_of
from penultimate.data.split_names import SPLITS, part_of
from penultimate.data.walking import some
from penultimate.errors import DamagedFileError, RequestError, unknown

PATHS = ("path", "file", "filename", "file_name", "filepath", "image", "image_path", "img")
PLURAL = ("labels", "classes", "categories", "tags")
LABELS = ("label", "class", "class_name", "target", "category", "species", "y", *PLURAL, "tag")
PARTITIONS = ("split", "data_split", "dataset_split", "subset", "partition", "set", "fold")
NUMBERED = {"0": "train", "1": "validation", "2": "test"}
"""The splits that numbers stand for, as in CelebA and WILDS."""
UNCLEAR = ("valid", "dev", "eval")
"""Columns of true and false that may mean something else: "valid" may mark images that can be used."""
TRUTH = dict.fromkeys(("true", "1", "1.0", "yes", "t", "y"), True)
TRUTH |= dict.fromkeys(("false", "0", "0.0", "no", "f", "n", ""), False)
Row = tuple[int, str, str, tuple[str, ...]]
"""A line's number, its path, its label, and what it says of the split."""


def table(path: Path) -> tuple[dict[str, Listing], list[str]]:
    """Read a table whose paths are below its folder, or absolute."""
    text = text_of(path)
    head = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=head.count), restval="")
    columns = {(name or "").strip().lower(): name for name in reader.fieldnames or ()}
    image, label = (_column(path, columns, kinds) for kinds in (PATHS, LABELS))
    said: list[str] = []
    rows: list[Row] = []
    try:
        for row in reader:
            if not rows:
                first = {name: str(row[column] or "") for name, column in columns.items()}
                said = [
                    name for name in columns if name not in (image, label) and _may_say(name, first[name])
                ]
            where = str(row[columns[image]] or "").strip()
            if not where:
                raise RequestError(f"'{path}', line {reader.line_num}: a path is expected")
            if any(row.get(None, ())):
                raise RequestError(
                    f"'{path}', line {reader.line_num}: more values than columns; put what holds a delimiter"
                    " in quotes"
                )
            of_split = tuple(str(row[columns[name]] or "").strip() for name in said)
            named = str(row[columns[label]] or "").strip()
            rows.append((reader.line_num, where.replace("\\", "/"), named, of_split))
    except csv.Error as error:
        raise DamagedFileError(f"'{path}', line {reader.line_num}: {error}") from None
    if not rows:
        raise RequestError(f"'{path}' lists no images")
    _expect_once(path, [where for _, where, _, _ in rows])
    parts, notes = _parts(path, said, rows)
    found: dict[str, list[Row]] = {}
    for row_, part in zip(rows, parts, strict=True):
        if part is not None:
            found.setdefault(part, []).append(row_)
    values = {part: [named for _, _, named, _ in its] for part, its in found.items()}
    labels = read_labels(path, values, typed=False, plural=label in PLURAL)
    listings = {}
    for number, (part, its) in enumerate(found.items()):
        known = [
            (where, place)
            for (_, where, _, _), place in zip(its, labels.of[part].tolist(), strict=True)
            if place >= 0
        ]
        if known:
            listings[part] = listed(path.parent, known, labels.names, number * SPAN, str(path), anywhere=True)
    return listings, [*notes, *labels.notes]


def _column(path: Path, columns: Mapping[str, str], kinds: Sequence[str]) -> str:
    known = next((name for name in kinds if name in columns), None)
    if known is None:
        raise RequestError(
            f"'{path}' has the columns {', '.join(columns) or 'of no header'}; one called"
            f" {', '.join(kinds[:-1])} or {kinds[-1]} is expected"
        )
    return known


def _expect_once(path: Path, paths: Sequence[str]) -> None:
    """Refuse an image that is listed twice, under one path or two: it could be trained and tested on."""
    times = Counter(map(os.path.normpath, paths))
    twice = [where for where, count in times.items() if count > 1]
    if twice:
        raise RequestError(f"'{path}': {some(twice, 'image is', 'images are')} listed more than once")
    known: dict[tuple[int, int], str] = {}
    for where in times:
        try:
            found = (path.parent / where).stat()
        except (OSError, ValueError):
            continue  # what is not there is said to be missing
        first = known.setdefault((found.st_dev, found.st_ino), where)
        if first != where:
            raise RequestError(f"'{path}': '{first}' and '{where}' are one file, which is listed twice")


def _may_say(name: str, value: str) -> bool:
    """Return whether a column may say the split, by its name or by its first value."""
    return name in (*PARTITIONS, *UNCLEAR) or bool(_flagged(name) or part_of(value))


def _flagged(name: str) -> str:
    """Return the split whose images a column marks with true, or "": "is_valid" marks validation images."""
    bare = re.sub(r"^(is[_ -]?|(in|for)[_ -])", "", name)
    return "" if name in UNCLEAR else part_of(bare)


def _parts(path: Path, said: Sequence[str], rows: Sequence[Row]) -> tuple[list[str | None], list[str]]:
    """Return the split of each row ("" where nothing says it, None where it is in none), and notes."""
    values = {name: {of_split[at].lower() for _, _, _, of_split in rows} for at, name in enumerate(said)}
    notes = []
    by_values = [
        name
        for name in said
        if name not in PARTITIONS and len({part_of(value) for value in values[name]} - {""}) > 1
        if all(map(part_of, values[name]))
    ]
    for name in (*PARTITIONS, *by_values):
        if name not in values:
            continue
        if name == "fold" and all(value.isdecimal() for value in values[name]):
            notes.append(f"the column '{name}' numbers parts for cross-validation, and is not used")
            continue
        return _named(path, name, said.index(name), values[name], rows, notes)
    flags = {}
    for at, name in enumerate(said):
        part = _flagged(name)
        if name in UNCLEAR and len(values[name]) == 2 and TRUTH.keys() >= values[name]:
            notes.append(f"the column '{name}' is not used; call it 'is_{name}' if it says what is tested on")
        if not part:
            continue
        odd = next(((line, of[at]) for line, _, _, of in rows if of[at].lower() not in TRUTH), None)
        if odd is None:
            flags[at] = part
        elif name.startswith("is"):
            raise RequestError(f"'{path}', line {odd[0]}: {name} is '{odd[1]}'; true or false is expected")
    if not flags:
        return [""] * len(rows), notes
    return _marked(path, {at: (said[at], part) for at, part in flags.items()}, rows, notes)


def _named(
    path: Path, name: str, at: int, values: Iterable[str], rows: Sequence[Row], notes: list[str]
) -> tuple[list[str | None], list[str]]:
    """Return the splits that a column names, or numbers."""
    plain = {value: value.removesuffix(".0") for value in values}
    if NUMBERED.keys() >= {*plain.values()}:
        meant = {value: NUMBERED[number] for value, number in plain.items()}
        told = ", ".join(f"{number} for {part}" for number, part in NUMBERED.items())
        notes.append(f"the numbers in the column '{name}' stand for splits: {told}")
    else:
        meant = {value: part_of(value) for value in plain}
    for line, _, _, of_split in rows:
        if not meant[of_split[at].lower()]:
            raise unknown(f"split in line {line} of '{path}'", of_split[at], SPLITS)
    return [meant[of_split[at].lower()] for _, _, _, of_split in rows], notes


def _marked(
    path: Path, flags: Mapping[int, tuple[str, str]], rows: Sequence[Row], notes: list[str]
) -> tuple[list[str | None], list[str]]:
    """Return the splits that columns of true and false mark; what none of them marks is what they lack."""
    marked = {part for _, part in flags.values()}
    rest = next((part for part in ("train", "test") if part not in marked), None)
    parts: list[str | None] = []
    for line, where, _, of_split in rows:
        its = [(name, part) for at, (name, part) in flags.items() if TRUTH[of_split[at].lower()]]
        if len({part for _, part in its}) > 1:
            names = " and ".join(name for name, _ in its)
            raise RequestError(f"'{path}', line {line}: '{where}' is of two splits, by {names}")
        parts.append(its[0][1] if its else rest)
    columns = " and ".join(f"'{name}'" for name, _ in flags.values())
    notes.append(f"the splits are those of the column{'s' if len(flags) > 1 else ''} {columns}")
    if None in parts:
        notes.append(f"of no split, and left out: {parts.count(None):,} of {len(parts):,} images")
    return parts, notes
