"""Tables of a user's own: a row for each image, with its path, its label and perhaps its split.

A column means what the place says, or what its name says in the lists below; the only ones that are told by
their cells are columns of 0 and 1 that mark one class in each row, and a label that no other column can be.
"""

from __future__ import annotations

import fnmatch
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
MARKS = {"1": 1, "true": 1, "0": 0, "false": 0, "-1": -1}
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


class Rows(NamedTuple):
    """What a table says of its images: paths from its folder, labels, splits (None: in none), groups ("")."""

    paths: list[str]
    labels: Sequence[Any]
    parts: list[str | None]
    groups: list[str]
    names: tuple[str, ...]


def tables(place: Place, base: Path, files: Mapping[Path, str]) -> tuple[dict[str, Listing], list[str]]:
    """Read tables, {file: split, or "" where its rows say it}, whose paths are below their folders."""
    notes: list[str] = []
    rows: dict[str, list[tuple[str, Any, str]]] = {}
    names: tuple[str, ...] = ()
    for file, part in files.items():
        table = Table(replace(place, path=file), part)
        read = table.rows()
        notes += table.notes
        names = names or read.names
        if read.names != names:
            raise RequestError(f"'{file}' has other columns of labels than the table before")
        below = file.parent.relative_to(base)
        for path, label, of, group in zip(read.paths, read.labels, read.parts, read.groups, strict=True):
            if of is not None:
                rows.setdefault(part or of, []).append(((below / path).as_posix(), label, group))
    expect_once(place.path, [path for its in rows.values() for path, _, _ in its])
    columns = {part: [label for _, label, _ in its] for part, its in rows.items()}
    labels: Mapping[str, np.ndarray] = {part: np.array(its) for part, its in columns.items()}
    if not place.labels:
        numbered = number_labels(place.path, columns, names)
        labels, names = numbered.of, numbered.names
        notes += numbered.notes
    listings = {}
    for number, (part, its) in enumerate(rows.items()):
        kept = np.arange(len(its)) if place.labels else np.flatnonzero(labels[part] >= 0)
        if len(kept):
            paths, groups = ([its[row][at] for row in kept] for at in (0, 2))
            said = groups if place.group else None
            listings[part] = listed(base, paths, labels[part][kept], names, number * SPAN, said)
    return listings, list(dict.fromkeys(notes))


def plain(name: str) -> str:
    """Return the name of a column in small letters, with "_" for blanks."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


class Table:
    """The cells of a table, read as its place says and as the names of its columns say.

    `part` is the split that all its rows are of, "" where they say it, `most` how many rows are read.
    """

    def __init__(self, place: Place, part: str = "", most: int | None = None) -> None:
        self.place, self.part, self.notes = place, part, list[str]()
        self.frame = read_table(place.path, most)
        self.columns: dict[str, str] = {plain(name): name for name in self.frame.columns}
        if self.frame.empty:
            raise self._refused("it lists no images")
        if any(map(is_image, self.frame.columns)):
            raise self._refused(
                "its first line is that of an image; a line with the names of the columns is expected above"
                " it, such as path,label"
            )

    def rows(self) -> Rows:
        """Return what it says of its images; raises RequestError for what is not clear."""
        image, paths = self.images()
        parts, of_splits = self._parts()
        group = self._said(self.place.group) if isinstance(self.place.group, str) else ""
        names, labels = self._labels([image, group, *of_splits])
        groups = self.texts(group) if group else [""] * len(paths)
        if group and "" in groups:
            raise self._refused(
                f"the column '{group}' says no group in row {groups.index('') + 1}; fill it in, or give an"
                " image that stands alone a group of its own"
            )
        if isinstance(self.place.group, int):
            groups = groups_by_level(self.place, paths, "the table's folder")
        return Rows(paths, labels, parts, groups, names)

    def images(self) -> tuple[str, list[str]]:
        """Return the column of images, and their paths from the table's folder."""
        image = self._said(self.place.image) or self._first(IMAGES)
        if not image:
            raise self._ask("image", "names the images", [*self.frame.columns])
        cells = [cell.replace("\\", "/") for cell in self.texts(image)]
        if "" in cells:
            raise self._refused(f"row {cells.index('') + 1}: a path is expected in '{image}'")
        return image, ImagesBelow(self.place.path.parent, self.part).found(cells, self.notes)

    def texts(self, name: str) -> list[str]:
        """Return the cells of a column as text."""
        return [_text(cell) for cell in self.frame[name]]

    def _lower(self, name: str) -> list[str]:
        return [text.lower().removesuffix(".0") for text in self.texts(name)]

    def _refused(self, why: str) -> RequestError:
        return RequestError(f"'{self.place.path}': {why}")

    def _said(self, name: str) -> str:
        """Return a column that is said, "" for none; raises RequestError, with the nearest, for another."""
        if name and plain(name) not in self.columns:
            raise unknown(f"column of '{self.place.path}'", name, self.columns.values())
        return self.columns[plain(name)] if name else ""

    def _first(self, names: Sequence[str]) -> str:
        return next((self.columns[name] for name in names if name in self.columns), "")

    def _ask(self, setting: str, what: str, candidates: Sequence[str]) -> RequestError:
        may_be = f"; it may be {' or '.join(map(repr, candidates[:6]))}" if candidates else ""
        said = self.place.with_setting(setting, (*candidates, "COLUMN")[0])
        return self._refused(f"which column {what} is not clear{may_be}. Say it: {said}")

    def _labels(self, others: Sequence[str]) -> tuple[tuple[str, ...], Sequence[Any]]:
        """Return the names of the classes ((): as the labels say) and the label of each row."""
        if self.place.labels:
            return self._several()
        said = [self._said(name) for name in self.place.label]
        free = [name for name in self.frame.columns if name not in others]
        label = said[0] if len(said) == 1 else "" if said else self._usual_label(free)
        marks = said or [name for name in free if {*map(MARKS.get, self._lower(name))} <= {0, 1}]
        marked = np.array([[MARKS.get(cell) == 1 for cell in self._lower(name)] for name in marks])
        if not label and len(marks) > 1 and (marked.sum(0) == 1).all():
            told = some(marks, "column", "columns")
            self.notes.append(f"the class of an image is the one that its row marks: {told}")
            return tuple(marks), [marks[at] for at in marked.argmax(0)]
        if len(said) > 1:
            row = int(np.flatnonzero(marked.sum(0) != 1)[0])
            raise self._refused(
                f"label={self.place.label!r} are columns of 0 and 1 that mark one class for each image; row"
                f" {row + 1} marks {marked[:, row].sum()}. Several labels for an image:"
                f" {self.place.with_setting('labels', self.place.label)}"
            )
        if not label and len(free) == 1 and 2 <= len({*self.texts(free[0])}) <= len(self.frame) / 2:
            label = free[0]
            self.notes.append(f"the labels are those of the column '{label}'")
        if not label:
            raise self._ask("label", "holds the labels", free)
        return (), list(self.frame[label])

    def _usual_label(self, free: Sequence[str]) -> str:
        """Return the column that its name says to be the label, "" for none."""
        named: list[str] = [self.columns[name] for name in LABELS if self.columns.get(name) in free]
        if not named:
            return ""
        texts = self.texts(named[0])
        if plain(named[0]) in PLURAL and any("," in text for text in texts):
            raise self._refused(
                f"a cell of '{named[0]}' holds several labels. Give columns of 0 and 1,"
                f" {self.place.with_setting('labels', ('A', 'B'))}, or say that each cell is a class:"
                f" {self.place.with_setting('label', named[0])}"
            )
        for other in named[1:] if plain(named[0]) not in LABELS[:2] else ():
            others = self.texts(other)
            if not len({*zip(texts, others, strict=True)}) == len({*texts}) == len({*others}):
                raise self._ask("label", "holds the labels", [named[0], other])
        return named[0]

    def _several(self) -> tuple[tuple[str, ...], list[list[int]]]:
        """Return the columns that are said as labels, and the marks 1, 0 or -1 of each row."""
        names: list[str] = []
        for asked in self.place.labels:
            found = [self.columns[name] for name in fnmatch.filter(self.columns, plain(asked))]
            names += [name for name in found or [self._said(asked)] if name not in names]
        if len(names) < 2:
            said = self.place.with_setting("label", names[0])
            raise self._refused(f"labels=... are two columns or more; of one alone say {said}")
        columns = []
        for name in names:
            marks = [MARKS.get(cell) for cell in self._lower(name)]
            if None in marks:
                raise self._refused(
                    "labels=... are columns of 1 (present), 0 (absent) and -1 (uncertain); row"
                    f" {marks.index(None) + 1} of '{name}' holds {self.texts(name)[marks.index(None)]!r}"
                )
            columns.append(marks)
        return tuple(names), np.array(columns).T.tolist()

    def _parts(self) -> tuple[list[str | None], list[str]]:
        """Return the split of each row ("": nothing says it; None: in none), and the columns that say it."""
        if self.place.test and not self.place.split:
            raise self._refused(f"test={self.place.test!r} goes with split='COLUMN', whose cells they are")
        unsaid: list[str | None] = [""] * len(self.frame)
        if self.place.split is None or self.part:
            return unsaid, []
        if self.place.split:
            found = [self._said(self.place.split)]
            parts = self._as_said(found[0])
        else:
            named = (self.columns[name] for name in (*PARTITIONS, *USAGES) if name in self.columns)
            read = ((name, self._as_named(name)) for name in named)
            name, parts = next((each for each in read if each[1]), ("", []))
            found = [name] if name else [self.columns[name] for name in FLAGS if name in self.columns]
            parts = parts or (self._as_flagged(found) if found else [])
        folds = [self.columns[name] for name in ("fold", "folds", "cv") if name in self.columns]
        if found:
            self.notes.append(f"the splits are those of {some(found, 'column', 'columns')}")
            if left := parts.count(None):
                self.notes.append(f"of no split, and left out: {left:,} of {len(parts):,} images")
        elif folds:
            self.notes.append(f"the column '{folds[0]}' is not used; {self._how(folds[0])}")
        return parts or unsaid, [*found, *folds]

    def _how(self, name: str) -> str:
        said = f"split={name!r}, test={max(self.texts(name))!r}"
        return f'"{self.place.path}({said})" tests on the images of one of its values'

    def _as_said(self, name: str) -> list[str | None]:
        cells = self._lower(name)
        if self.place.test:
            tested = {value.strip().lower() for value in self.place.test}
            if lacking := sorted(tested - {*cells}):
                raise unknown(
                    f"value of '{name}' in '{self.place.path}'", lacking[0], sorted({*cells} - {""})
                )
            return ["test" if cell in tested else "train" if cell else None for cell in cells]
        meant = _meant({*cells})
        if not any(meant.values()):
            raise self._refused(f"no cell of '{name}' names a split; {self._how(name)}")
        return [meant[cell] or None for cell in cells]

    def _as_named(self, name: str) -> list[str | None]:
        """Return the splits that a column names or numbers; [] if it is not sure to say the split."""
        cells = self._lower(name)
        meant = _meant({*cells})
        if {*cells} <= NUMBERED.keys() and cells.count("0") < max(map(cells.count, meant)):
            raise self._refused(
                f"the column '{name}' numbers the splits, but 0, which is training elsewhere, is not the"
                f" largest; {self._how(name)}"
            )
        if all(meant.values()):
            return [meant[cell] for cell in cells]
        if plain(name) in USAGES:
            return []
        wrong = next(cell for cell in cells if not meant[cell])
        error = unknown(f"split in the column '{name}' of '{self.place.path}'", wrong, SPLITS)
        raise RequestError(
            f"{error} To leave out what names no split: {self.place.with_setting('split', name)};"
            f" {self._how(name)}"
        )

    def _as_flagged(self, names: Sequence[str]) -> list[str | None]:
        """Return the splits that columns of true and false mark; an unmarked row is in the one they lack."""
        marked = {FLAGS[plain(name)] for name in names}
        rest = next((part for part in ("train", "test") if part not in marked), None)
        parts: list[str | None] = [rest] * len(self.frame)
        for name in names:
            for row, cell in enumerate(self._lower(name)):
                if cell not in TRUTH:
                    raise self._refused(f"row {row + 1}: {name} is true or false, not '{cell}'")
                if TRUTH[cell]:
                    if parts[row] not in (rest, FLAGS[plain(name)]):
                        raise self._refused(f"row {row + 1}: the image is in two splits")
                    parts[row] = FLAGS[plain(name)]
        return parts


def _meant(cells: set[str]) -> dict[str, str]:
    """Return the split that each different cell names or numbers, "" for none."""
    if cells <= NUMBERED.keys():
        return {cell: NUMBERED[cell] for cell in cells}
    return {cell: part_of(cell) for cell in cells}


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
