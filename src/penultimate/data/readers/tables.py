"""Tables of a user's own: a row for each image, with its path, its label and perhaps its split.

A column means what the place says, or what its name says in the lists below; the only ones that are told by
their cells are columns of 0 and 1 that mark one class in each row, and a label that no other column can be.
"""

from __future__ import annotations

import fnmatch
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penultimate.data.listing import Listing
from penultimate.data.readers.labels import number_labels
from penultimate.data.readers.lookup import ImagesBelow
from penultimate.data.readers.places import Place
from penultimate.data.readers.reading import SPAN, expect_once, listed
from penultimate.data.readers.split_names import SPLITS, part_of
from penultimate.data.readers.walking import is_image, some
from penultimate.errors import DamagedFileError, RequestError, counted, unknown

if TYPE_CHECKING:
    import pandas as pd

IMAGES = (
    *("path", "file", "filename", "file_name", "filepath", "filepaths", "file_path", "image", "image_path"),
    *("img", "img_path", "image_file", "image_filename", "image_name", "img_name", "image_id", "img_id"),
    *("image_index", "fname", "id", "id_code"),
)
"""Columns of images, in small letters with "_" for blanks; the first of them that a table has is read."""
PLURAL = ("labels", "classes", "categories", "tags")
LABELS = (
    *("label", *PLURAL, "class", "class_name", "classname", "label_name", "target", "category", "species"),
    *("breed", "diagnosis", "dx", "y", "tag", "class_id", "classid", "label_id", "category_id", "target_id"),
)
"""Columns of labels; of several that part the images alike the first is read."""
PARTITIONS = ("split", "data_split", "dataset_split", "subset", "partition")
"""Columns that say the split by their names: a cell that names none is an error."""
USAGES = ("part", "set", "data_set", "dataset", "usage", "phase")
"""Columns that say the split if each of their cells names one."""
FLAGS = {f"is_{name}": part for name, part in SPLITS.items()}
"""Columns of true and false that mark the images of a split."""
NUMBERED = {"0": "train", "1": "validation", "2": "test"}
"""The splits that numbers stand for, as in CelebA and WILDS."""
TRUTH = dict.fromkeys(("true", "1", "1.0", "yes"), True) | dict.fromkeys(("false", "0", "0.0", "no"), False)
MARKS = {"1": 1, "1.0": 1, "true": 1, "0": 0, "0.0": 0, "false": 0, "-1": -1, "-1.0": -1}
"""What a cell says of one of several labels: present, absent or uncertain."""


def read_table(path: Path, rows: int | None = None) -> pd.DataFrame:
    """Return the cells of a table as text, None for empty ones, or its first rows alone.

    Of JSON and Parquet the values are what they are. Raises DamagedFileError with the words of pandas.
    """
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of a row with more cells than columns
            if path.suffix.lower() == ".parquet":
                frame = pd.read_parquet(path)
            elif path.suffix.lower() in (".jsonl", ".ndjson"):
                frame = pd.read_json(path, lines=True, dtype=False, nrows=rows)
            else:
                frame = _read_text(path, rows)
    except ImportError:
        raise RequestError(f"'{path}' needs pyarrow: pip install 'penultimate[parquet]'") from None
    except (ValueError, OSError, pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise DamagedFileError(f"'{path}' cannot be read as a table: {error}") from None
    frame.columns = [str(name).strip() for name in frame.columns]
    frame = frame.loc[:, [not name.startswith("Unnamed: ") for name in frame.columns]]
    pictures = [name for name in frame if frame[name].map(lambda cell: isinstance(cell, dict | bytes)).any()]
    if pictures:
        raise RequestError(
            f"'{path}' holds images themselves, in {some(pictures, 'column', 'columns')}: give"
            f" datasets:{path.parent} in its place"
        )
    cells: pd.DataFrame = frame.astype(object).where(frame.notna(), None)
    return cells


def _read_text(path: Path, rows: int | None) -> pd.DataFrame:
    import pandas as pd

    with path.open("rb") as content:
        encoding = "utf-16" if content.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    with path.open(encoding=encoding) as file:
        head = file.readline()
    delimiter = max(",;\t|", key=head.count)
    return pd.read_csv(
        path,
        sep=delimiter if delimiter in head else r"\s+",
        encoding=encoding,
        dtype=str,
        index_col=False,
        skipinitialspace=True,
        nrows=rows,
    )


@dataclass(frozen=True)
class _Rows:
    """What a table says of its images: paths from its folder, labels, splits (None: in none), groups."""

    paths: list[str]
    labels: Sequence[Any]
    parts: list[str | None]
    groups: list[str] | None
    names: tuple[str, ...] = ()


def tables(place: Place, base: Path, files: Mapping[Path, str]) -> tuple[dict[str, Listing], list[str]]:
    """Read tables, {file: split, or "" where its rows say it}, whose paths are below their folders."""
    notes: list[str] = []
    rows: dict[str, list[tuple[str, Any, str]]] = {}
    names: tuple[str, ...] = ()
    for file, part in files.items():
        read = rows_of(replace(place, path=file), part, notes)
        names = names or read.names
        if read.names != names:
            raise RequestError(f"'{file}' has other columns of labels than the table before")
        below = file.parent.relative_to(base).as_posix()
        prefix = "" if below == "." else f"{below}/"
        for path, label, of, group in zip(
            read.paths, read.labels, read.parts, read.groups or [""] * len(read.paths), strict=True
        ):
            if of is not None:
                where = path if path.startswith("/") else f"{prefix}{path}"
                rows.setdefault(part or of, []).append((where, label, group))
    expect_once(place.path, [path for its in rows.values() for path, _, _ in its])
    columns = {part: [label for _, label, _ in its] for part, its in rows.items()}
    if place.labels:
        labels = {part: np.array(its, np.int64) for part, its in columns.items()}
    else:
        numbered = number_labels(place.path, columns, names)
        labels, names = dict(numbered.of), numbered.names
        notes += numbered.notes
    listings = {}
    for number, (part, its) in enumerate(rows.items()):
        kept = labels[part] >= 0 if not place.labels else np.ones(len(its), bool)
        known = [row for row, there in zip(its, kept, strict=True) if there]
        if known:
            paths, _, groups = zip(*known, strict=True)
            said = None if place.group == "" else groups
            listings[part] = listed(base, paths, labels[part][kept], names, number * SPAN, said)
    return listings, list(dict.fromkeys(notes))


def rows_of(place: Place, part: str, notes: list[str], most: int | None = None) -> _Rows:
    """Return what the table at a place says of its images (at `most` the first rows of it), which are of a
    split or of all ("").
    """
    frame = read_table(place.path, most)
    if frame.empty:
        raise RequestError(f"'{place.path}' lists no images")
    if any(map(is_image, frame.columns)):
        raise RequestError(
            f"'{place.path}': its first line is that of an image; a line with the names of the columns is"
            " expected above it, such as path,label"
        )
    columns = {_plain(name): name for name in frame.columns}
    image = column_named(place, columns, place.image) if place.image else ""
    image = image or next((columns[name] for name in IMAGES if name in columns), "")
    if not image:
        raise RequestError(
            f"'{place.path}' has the columns {', '.join(frame.columns)}; which one names the images? Say it:"
            f" {place.with_setting('image', frame.columns[0])}"
        )
    cells = [text_of_cell(cell).replace("\\", "/") for cell in frame[image]]
    if "" in cells:
        raise RequestError(f"'{place.path}', row {cells.index('') + 1}: a path is expected in '{image}'")
    parts, of_splits = _parts(place, frame, columns, part, notes)
    group = column_named(place, columns, place.group) if place.group and isinstance(place.group, str) else ""
    names, labels = _labels(place, frame, columns, [image, group, *of_splits], notes)
    paths = ImagesBelow(place.path.parent, part).found(cells, notes)
    return _Rows(paths, labels, parts, _groups(place, frame, group, paths), names)


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def text_of_cell(cell: Any) -> str:
    """Return a cell as text without blanks at its ends; "" for none."""
    return "" if cell is None else str(cell).strip()


def column_named(place: Place, columns: Mapping[str, str], name: str) -> str:
    """Return a column that is said; raises RequestError, with the nearest, where there is none."""
    if _plain(name) not in columns:
        raise unknown(f"column of '{place.path}'", name, columns.values())
    return columns[_plain(name)]


def _labels(
    place: Place, frame: pd.DataFrame, columns: Mapping[str, str], others: Sequence[str], notes: list[str]
) -> tuple[tuple[str, ...], Sequence[Any]]:
    """Return the names of the classes ((): as the labels say) and the label of each row."""
    if place.labels:
        return _several(place, frame, columns)
    said = [column_named(place, columns, name) for name in place.label]
    free = [name for name in frame.columns if name not in others]
    label = said[0] if len(said) == 1 else ""
    if not said:
        named = [columns[name] for name in LABELS if name in columns and columns[name] in free]
        named = named[:1] if named and _plain(named[0]) in ("label", "labels") else named
        if differing := [name for name in named[1:] if not _part_alike(frame, named[0], name)]:
            raise _ask_for_label(place, [named[0], *differing])
        label = named[0] if named else ""
    if label:
        values = list(frame[label])
        if not said and _plain(label) in PLURAL and any("," in text_of_cell(value) for value in values):
            raise RequestError(
                f"'{place.path}': a cell of '{label}' holds several labels. Give columns of 0 and 1,"
                f" {place.with_setting('labels', ('A', 'B'))}, or say that each cell is a class:"
                f" {place.with_setting('label', label)}"
            )
        return (), values
    marks = said or [name for name in free if {*map(_mark, frame[name])} <= {0, 1}]
    marked = np.array([[_mark(cell) == 1 for cell in frame[name]] for name in marks])
    if len(marks) > 1 and (marked.sum(0) == 1).all():
        notes.append(
            f"the class of an image is the one that its row marks: {some(marks, 'column', 'columns')}"
        )
        return tuple(marks), [marks[at] for at in marked.argmax(0)]
    if said:
        row = int(np.flatnonzero(marked.sum(0) != 1)[0])
        raise RequestError(
            f"'{place.path}': label={place.label!r} are columns of 0 and 1 that mark one class for each"
            f" image; row {row + 1} marks {marked[:, row].sum()}. Several labels for an image:"
            f" {place.with_setting('labels', place.label)}"
        )
    if len(free) == 1 and 2 <= frame[free[0]].astype(str).nunique() <= len(frame) / 2:
        notes.append(f"the labels are those of the column '{free[0]}'")
        return (), list(frame[free[0]])
    raise _ask_for_label(place, free)


def _mark(cell: Any) -> int | None:
    return MARKS.get(text_of_cell(cell).lower())


def _part_alike(frame: pd.DataFrame, one: str, other: str) -> bool:
    pairs = frame[[one, other]].astype(str).drop_duplicates()
    counts = {len(pairs), frame[one].astype(str).nunique(), frame[other].astype(str).nunique()}
    return len(counts) == 1


def _ask_for_label(place: Place, candidates: Sequence[str]) -> RequestError:
    may_be = f"; it may be {' or '.join(map(repr, candidates[:6]))}" if candidates else ""
    example = candidates[0] if candidates else "COLUMN"
    return RequestError(
        f"'{place.path}': which column holds the labels is not clear{may_be}. Say it:"
        f" {place.with_setting('label', example)}"
    )


def _several(
    place: Place, frame: pd.DataFrame, columns: Mapping[str, str]
) -> tuple[tuple[str, ...], list[list[int]]]:
    """Return the columns that are said as labels, and the marks 1, 0 or -1 of each row."""
    names: list[str] = []
    for asked in place.labels:
        found = [columns[name] for name in fnmatch.filter(columns, _plain(asked))]
        names += [name for name in found or [column_named(place, columns, asked)] if name not in names]
    if len(names) < 2:
        raise RequestError(
            f"'{place.path}': labels=... are two columns or more; of one alone say"
            f" {place.with_setting('label', names[0])}"
        )
    rows = []
    for row, cells in enumerate(zip(*(frame[name] for name in names), strict=True), 1):
        marks = [_mark(cell) for cell in cells]
        if None in marks:
            at = marks.index(None)
            raise RequestError(
                f"'{place.path}': labels=... are columns of 1 (present), 0 (absent) and -1 (uncertain);"
                f" row {row} of '{names[at]}' holds {text_of_cell(cells[at])!r}"
            )
        rows.append([mark for mark in marks if mark is not None])
    return tuple(names), rows


def _groups(place: Place, frame: pd.DataFrame, column: str, paths: Sequence[str]) -> list[str] | None:
    """Return the group of each row, by a column or by a level of the folders; None if none is said."""
    if place.group == "":
        return None
    if isinstance(place.group, int):
        return groups_by_level(place, paths, "the table's folder")
    groups = [text_of_cell(cell) for cell in frame[column]]
    if "" in groups:
        raise RequestError(
            f"'{place.path}': the column '{column}' says no group in row {groups.index('') + 1}; fill it in,"
            " or give an image that stands alone a group of its own"
        )
    return groups


def groups_by_level(place: Place, paths: Sequence[str], above: str) -> list[str]:
    """Return the group of each path: its folders down to the level that the place names.

    >>> groups_by_level(Place(Path("scans"), group=1), ["p1/a.png", "p1/left/b.png"], "the class")
    ['p1', 'p1']
    """
    level = place.group
    if not isinstance(level, int):
        raise RequestError(
            f"'{place.path}' holds folders, and no column '{level}'. Of folders, a group is a level:"
            f" group=1 stands for the first folder below {above}"
        )
    if short := [path for path in paths if path.count("/") < level]:
        raise RequestError(
            f"'{place.path}': {some(short, 'image', 'images')} with less than {counted(level, 'folder')}"
            f" below {above}, so that group={level} says no group"
        )
    return ["/".join(path.split("/")[:level]) for path in paths]


def _parts(
    place: Place, frame: pd.DataFrame, columns: Mapping[str, str], part: str, notes: list[str]
) -> tuple[list[str | None], list[str]]:
    """Return the split of each row ("": nothing says it; None: in none), and the columns that say it."""
    if place.test and not place.split:
        raise RequestError(
            f"'{place.path}': test={place.test!r} goes with split='COLUMN', whose cells they are"
        )
    if place.split is None or part:
        return [""] * len(frame), []
    folds = [name for plain, name in columns.items() if plain in ("fold", "folds", "cv")]
    if place.split:
        name = column_named(place, columns, place.split)
        parts = _as_said(place, name, frame[name])
        found = [name]
    else:
        named = (columns[name] for name in (*PARTITIONS, *USAGES) if name in columns)
        read = ((name, _as_named(place, name, frame[name])) for name in named)
        name, parts = next((each for each in read if each[1]), ("", []))
        found = [name] if name else [name for plain, name in columns.items() if plain in FLAGS]
        parts = parts or (_as_flagged(place, frame, found) if found else [])
    if found:
        notes.append(f"the splits are those of {some(found, 'column', 'columns')}")
        if left := parts.count(None):
            notes.append(f"of no split, and left out: {left:,} of {len(parts):,} images")
    elif folds:
        notes.append(f"the column '{folds[0]}' is not used; {_how(place, folds[0], frame[folds[0]])}")
    return parts or [""] * len(frame), [*found, *folds]


def _how(place: Place, name: str, cells: Sequence[Any]) -> str:
    last = max(map(text_of_cell, cells))
    return f'"{place.path}(split={name!r}, test={last!r})" tests on the images of one of its values'


def _as_said(place: Place, name: str, cells: Sequence[Any]) -> list[str | None]:
    texts = [text_of_cell(cell).lower().removesuffix(".0") for cell in cells]
    if place.test:
        tested = {value.strip().lower() for value in place.test}
        if lacking := sorted(tested - {*texts}):
            raise unknown(f"value of '{name}' in '{place.path}'", lacking[0], sorted({*texts} - {""}))
        return ["test" if text in tested else "train" if text else None for text in texts]
    parts = [_meant(text, texts) or None for text in texts]
    if not any(parts):
        raise RequestError(f"'{place.path}': no cell of '{name}' names a split; {_how(place, name, texts)}")
    return parts


def _as_named(place: Place, name: str, cells: Sequence[Any]) -> list[str | None]:
    """Return the splits that a column names or numbers; [] if it is not sure to say the split."""
    texts = [text_of_cell(cell).lower().removesuffix(".0") for cell in cells]
    if {*texts} <= NUMBERED.keys() and texts.count("0") < max(map(texts.count, {*texts})):
        raise RequestError(
            f"'{place.path}': the column '{name}' numbers the splits, but 0, which is training elsewhere, is"
            f" not the largest; {_how(place, name, texts)}"
        )
    meant = {text: _meant(text, texts) for text in {*texts}}
    if all(meant.values()):
        return [meant[text] for text in texts]
    if _plain(name) in USAGES:
        return []
    wrong = next(text for text in texts if not meant[text])
    raise RequestError(
        f"{unknown(f'split in the column {name!r} of {str(place.path)!r}', wrong, SPLITS)} To leave out what"
        f" names no split: {place.with_setting('split', name)}; {_how(place, name, texts)}"
    )


def _meant(text: str, texts: Sequence[str]) -> str:
    return NUMBERED.get(text, "") if {*texts} <= NUMBERED.keys() else part_of(text)


def _as_flagged(place: Place, frame: pd.DataFrame, names: Sequence[str]) -> list[str | None]:
    """Return the splits that columns of true and false mark; an unmarked row is in the one they lack."""
    marked = {FLAGS[_plain(name)] for name in names}
    rest = next((part for part in ("train", "test") if part not in marked), None)
    parts: list[str | None] = [rest] * len(frame)
    for name in names:
        for row, cell in enumerate(frame[name]):
            if (truth := TRUTH.get(text_of_cell(cell).lower())) is None:
                raise RequestError(
                    f"'{place.path}', row {row + 1}: {name} is true or false, not '{text_of_cell(cell)}'"
                )
            if truth and parts[row] not in (rest, FLAGS[_plain(name)]):
                raise RequestError(f"'{place.path}', row {row + 1}: the image is in two splits")
            parts[row] = FLAGS[_plain(name)] if truth else parts[row]
    return parts
