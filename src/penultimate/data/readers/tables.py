"""Tables of a user's own: a row for each image, with its path, its label and perhaps its split.

A column means what the place says, or what its name says in the lists below; the only ones that are told by
their cells are columns of 0 and 1 that mark one class in each row, and a label that no other column can be.
"""

from __future__ import annotations

import fnmatch
import os
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penultimate.data.listing import Files, Listing
from penultimate.data.readers.found import Found, listings
from penultimate.data.readers.places import Place
from penultimate.data.readers.split_names import SPLITS, part_of
from penultimate.data.readers.walking import are_there, found_images, is_image, some
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
    if frame.map(lambda cell: isinstance(cell, dict | bytes)).any(axis=None):
        raise RequestError(f"'{path}' holds images themselves: give datasets:{path.parent} in its place")
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


def plain(name: str) -> str:
    """Return the name of a column in small letters, with "_" for blanks."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def tables(place: Place, base: Path, files: Mapping[Path, str]) -> tuple[dict[str, Listing], list[str]]:
    """Read tables, {file: split, or "" where its rows say it}, whose paths are below their folders."""
    import pandas as pd

    notes: list[str] = []
    frames = []
    names: dict[tuple[str, ...], Path] = {}
    for file, part in files.items():
        table = Table(replace(place, path=file), part)
        frame = table.rows()
        notes += table.notes
        if len({*names, table.names}) > 1:
            raise RequestError(f"'{file}' has other columns of labels than '{next(iter(names.values()))}'")
        names[table.names] = file
        below = file.parent.relative_to(base)
        frame["path"] = [(below / path).as_posix() for path in frame["path"]]
        frames.append(frame[frame["part"].notna()])
    rows = pd.concat(frames)
    places = rows["path"].map(os.path.normpath)
    if twice := [*places[places.duplicated()].unique()]:  # it could be trained and tested on
        raise RequestError(f"'{place.path}': {some(twice, 'image', 'images')} listed more than once")
    found = {
        part: Found(
            Files(base, tuple(its["path"])),
            np.array([*its["label"]], np.int64) if place.labels else [*its["label"]],
            [*its["group"]] if place.group else None,
            are_there(base, [*its["path"]]),
        )
        for part, its in rows.groupby("part", sort=False)
    }
    listed, further = listings(place.path, found, next(iter(names)))
    return listed, list(dict.fromkeys((*notes, *further)))


class Table:
    """The cells of a table, read as its place says and as the names of its columns say.

    `part` is the split that all its rows are of, "" where they say it. `names` are those of the classes or
    labels, () where the labels say them.
    """

    def __init__(self, place: Place, part: str = "") -> None:
        self.place, self.part, self.notes = place, part, list[str]()
        self.names: tuple[str, ...] = ()
        self.frame = read_table(place.path)
        self.text = self.frame.map(lambda cell: "" if cell is None else str(cell).strip())
        self.columns: dict[str, str] = {plain(name): name for name in self.frame.columns}
        if self.frame.empty:
            raise self._refused("it lists no images")
        if any(map(is_image, self.frame.columns)):
            raise self._refused(
                "its first line is that of an image; a line with the names of the columns is expected above"
                " it, such as path,label"
            )

    def rows(self) -> pd.DataFrame:
        """Return the path (from the table's folder), label, part ("": not said; None: in none) and group of
        each image; raises RequestError for what is not clear.
        """
        import pandas as pd

        image, paths = self.images()
        parts, of_splits = self._parts()
        group = self._said(self.place.group) if isinstance(self.place.group, str) else ""
        labels = self._labels([image, group, *of_splits])
        groups = [*self.text[group]] if group else [""] * len(paths)
        if group and "" in groups:
            raise self._refused(
                f"the column '{group}' says no group in row {groups.index('') + 1}; fill it in"
            )
        if isinstance(self.place.group, int):
            groups = groups_by_level(self.place, paths, "the table's folder")
        columns = {"path": paths, "label": labels, "part": parts, "group": groups}
        return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})

    def images(self) -> tuple[str, list[str]]:
        """Return the column of images, and their paths from the table's folder."""
        image = self._said(self.place.image) or self._first(IMAGES)
        if not image:
            raise self._unclear("image", "names the images", [*self.frame.columns])
        cells = [*self.text[image]]
        if "" in cells:
            raise self._refused(f"row {cells.index('') + 1}: a path is expected in '{image}'")
        return image, found_images(self.place.path.parent, cells, self.part)

    def _lower(self, name: str) -> list[str]:
        return [text.lower().removesuffix(".0") for text in self.text[name]]

    def _refused(self, why: str) -> RequestError:
        return RequestError(f"'{self.place.path}': {why}")

    def _said(self, name: str) -> str:
        """Return a column that is said, "" for none; raises RequestError, with the nearest, for another."""
        if name and plain(name) not in self.columns:
            raise unknown(f"column of '{self.place.path}'", name, self.columns.values())
        return self.columns[plain(name)] if name else ""

    def _first(self, names: Sequence[str]) -> str:
        return next((self.columns[name] for name in names if name in self.columns), "")

    def _unclear(self, setting: str, what: str, candidates: Sequence[str]) -> RequestError:
        may_be = f"; it may be {' or '.join(map(repr, candidates[:6]))}" if candidates else ""
        said = self.place.with_setting(setting, (*candidates, "COLUMN")[0])
        return self._refused(f"which column {what} is not clear{may_be}. Say it: {said}")

    def _labels(self, others: Sequence[str]) -> Sequence[Any]:
        """Return the label of each row."""
        if self.place.labels:
            return self._several()
        said = [self._said(name) for name in self.place.label]
        free = [name for name in self.frame.columns if name not in others]
        label = said[0] if len(said) == 1 else "" if said else self._usual_label(free)
        if label:
            return [*self.frame[label]]
        marks = said or [name for name in free if {*map(MARKS.get, self._lower(name))} <= {0, 1}]
        marked = np.array([[MARKS.get(cell) == 1 for cell in self._lower(name)] for name in marks])
        if len(marks) > 1 and (marked.sum(0) == 1).all():
            self.names = tuple(marks)
            told = some(marks, "column", "columns")
            self.notes.append(f"the class of an image is the one that its row marks: {told}")
            return [marks[at] for at in marked.argmax(0)]
        if said:
            row = int(np.flatnonzero(marked.sum(0) != 1)[0])
            raise self._refused(
                f"label={self.place.label!r} are columns of 0 and 1 that mark one class for each image; row"
                f" {row + 1} marks {marked[:, row].sum()}. Several labels for an image:"
                f" {self.place.with_setting('labels', self.place.label)}"
            )
        if len(free) == 1 and 2 <= self.text[free[0]].nunique() <= len(self.frame) / 2:
            self.notes.append(f"the labels are those of the column '{free[0]}'")
            return [*self.frame[free[0]]]
        raise self._unclear("label", "holds the labels", free)

    def _usual_label(self, free: Sequence[str]) -> str:
        """Return the column that its name says to be the label, "" for none."""
        named = [self.columns[name] for name in LABELS if self.columns.get(name) in free]
        if not named:
            return ""
        if plain(named[0]) in PLURAL and self.text[named[0]].str.contains(",").any():
            raise self._refused(
                f"a cell of '{named[0]}' holds several labels. Give columns of 0 and 1,"
                f" {self.place.with_setting('labels', ('A', 'B'))}, or say that each cell is a class:"
                f" {self.place.with_setting('label', named[0])}"
            )
        for other in named[1:] if plain(named[0]) not in LABELS[:2] else ():
            both = self.text[[named[0], other]]
            if {*both.nunique()} != {len(both.drop_duplicates())}:  # they group the images differently
                raise self._unclear("label", "holds the labels", [named[0], other])
        return named[0]

    def _several(self) -> list[list[int]]:
        """Return the marks 1, 0 or -1 of each row in the columns that are said as labels."""
        names: list[str] = []
        for asked in self.place.labels:
            matching = [self.columns[name] for name in fnmatch.filter(self.columns, plain(asked))]
            names += [name for name in matching or [self._said(asked)] if name not in names]
        if len(names) < 2:
            said = self.place.with_setting("label", names[0])
            raise self._refused(f"labels=... are two columns or more; of one alone say {said}")
        self.names = tuple(names)
        columns = [[MARKS.get(cell) for cell in self._lower(name)] for name in names]
        for name, marks in zip(names, columns, strict=True):
            if None in marks:
                row = marks.index(None)
                raise self._refused(
                    "labels=... are columns of 1 (present), 0 (absent) and -1 (uncertain); row"
                    f" {row + 1} of '{name}' holds {self.text[name][row]!r}"
                )
        marks_of_rows: list[list[int]] = np.array(columns).T.tolist()
        return marks_of_rows

    def _parts(self) -> tuple[list[str | None], list[str]]:
        """Return the split of each row ("": nothing says it; None: in none), and the columns that say it."""
        if self.place.test and not self.place.split:
            raise self._refused(f"test={self.place.test!r} goes with split='COLUMN', whose cells they are")
        parts: list[str | None] = [self.part] * len(self.frame)
        if self.place.split is None or self.part:
            return parts, []
        asked = (*PARTITIONS, *USAGES) if not self.place.split else ()
        used = [self._said(self.place.split)] if self.place.split else []
        used = (
            used or [self.columns[name] for name in asked if name in self.columns and self._is_used(name)][:1]
        )
        flags = [self.columns[name] for name in FLAGS if name in self.columns]
        folds = [self.columns[name] for name in ("fold", "folds", "cv") if name in self.columns]
        if used:
            parts = self._as_named(used[0])
        elif flags:
            used, parts = flags, self._as_flagged(flags)
        elif folds:
            self.notes.append(f"the column '{folds[0]}' is not used; {self._how(folds[0])}")
        if used:
            self.notes.append(f"the splits are those of {some(used, 'column', 'columns')}")
        if None in parts:
            count = f"{parts.count(None):,} of {len(parts):,} images"
            self.notes.append(f"of no split, and left out: {count}")
        return parts, [*used, *folds]

    def _how(self, name: str) -> str:
        said = f"split={name!r}, test={max(self.text[name])!r}"
        return f'"{self.place.path}({said})" tests on the images of one of its values'

    def _is_used(self, plain_name: str) -> bool:
        """Return whether each cell of a column names a split; one called "split" must."""
        name = self.columns[plain_name]
        wrong = [cell for cell, part in _meant(self._lower(name)).items() if not part]
        if wrong and plain_name in PARTITIONS:
            error = unknown(f"split in the column '{name}' of '{self.place.path}'", wrong[0], SPLITS)
            raise RequestError(
                f"{error} To leave out what names no split: {self.place.with_setting('split', name)};"
                f" {self._how(name)}"
            )
        return not wrong

    def _as_named(self, name: str) -> list[str | None]:
        """Return the split that each cell of a column names, or that is said of it."""
        cells = self._lower(name)
        if self.place.test:
            tested = {value.strip().lower() for value in self.place.test}
            if lacking := sorted(tested - {*cells}):
                raise unknown(
                    f"value of '{name}' in '{self.place.path}'", lacking[0], sorted({*cells} - {""})
                )
            return ["test" if cell in tested else "train" if cell else None for cell in cells]
        meant = _meant(cells)
        if not any(meant.values()):
            raise self._refused(f"no cell of '{name}' names a split; {self._how(name)}")
        return [meant[cell] or None for cell in cells]

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
                    parts[row] = FLAGS[plain(name)]
        return parts


def _meant(cells: Sequence[str]) -> dict[str, str]:
    """Return the split that each different cell names, "" for none, or numbers, if 0 is the most usual."""
    counts = Counter(cells)
    if counts.keys() <= NUMBERED.keys() and counts["0"] == max(counts.values()):
        return {cell: NUMBERED[cell] for cell in counts}
    return {cell: part_of(cell) for cell in counts}


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
