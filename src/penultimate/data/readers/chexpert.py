"""CheXpert's chest radiographs, as Stanford gives them out to those who register.

    ROOT/train.csv, ROOT/valid.csv                      a row an image: its path, view and 14 observations
    ROOT/train/patient00001/study1/view1_frontal.jpg    and so on

An observation is 1.0 (present), 0.0 (absent), -1.0 (uncertain) or blank: not mentioned, which is absent here,
as in Kornblith et al. (2021). Splits are theirs: "validation" is the official one, of 234 images; "test" are
22,431 images of the training set, and "train" the others. Which these are the paper does not say: ours are
of patients drawn once and for all, and no patient is in two splits.

`penultimate data check chexpert --root DIR` looks at it, and --data chexpert=DIR evaluates networks on it. A
study with other labels or views reads it by a plug-in:

    from penultimate import register
    from penultimate.data.readers.chexpert import Chexpert

    SOURCE = Chexpert("/data/CheXpert-v1.0-small", side=64)

    @register.dataset
    def chexpert(draw):
        return SOURCE(draw)

    chexpert.card, chexpert.fingerprint = SOURCE.card, SOURCE.fingerprint
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from penultimate.checks import is_whole
from penultimate.data.catalog import DatasetCard
from penultimate.data.decoding import middle_square, read_colours
from penultimate.data.images import ImageSet
from penultimate.data.listing import Files, Listing
from penultimate.data.readers.entries import PublishedSet, entry
from penultimate.data.seeding import derived_generator
from penultimate.errors import DamagedFileError, RequestError, nearest, unknown
from penultimate.files import canonical_json, digest_bytes, digest_file

COMPETITION = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion")
"""The five pathologies of CheXpert's competition, and of the paper's Table D.1."""
OBSERVATIONS = (
    *("No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema"),
    *("Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other"),
    *("Fracture", "Support Devices"),
)
PATH, VIEW = "Path", "Frontal/Lateral"
COLUMNS = (PATH, "Sex", "Age", VIEW, "AP/PA", *OBSERVATIONS)
VALUES = {"1.0": 1, "1": 1, "0.0": 0, "0": 0, "-1.0": -1, "-1": -1, "": 0}
VIEWS = {"all": ("Frontal", "Lateral"), "frontal": ("Frontal",), "lateral": ("Lateral",)}
TABLES = {"train": "train.csv", "valid": "valid.csv"}
FOLDERS = ("CheXpert-v1.0", "CheXpert-v1.0-small")
EXAMPLE = "train/patient00001/study1/view1_frontal.jpg"
PLACE = re.compile(r"(?:CheXpert[^/\\\0]*/)?((train|valid)/(patient\d+)/study\d+/view\d+_\w+\.(?:jpe?g|png))")
"""A path as the tables have it: the folder's name, then what lies in it."""
HELD_OUT = 22_431
OFFICIAL = {"train": 223_414, "valid": 234}
SPLITS = ("train", "test", "validation")


@dataclass(frozen=True)
class _Table:
    """The rows of one of the two tables, of the views that are read: places, patients, and labels [n l]."""

    paths: tuple[str, ...]
    patients: tuple[str, ...]
    labels: np.ndarray


@dataclass(frozen=True)
class Chexpert:
    """CheXpert in a folder: the `listing` of a split, or, called with a draw, the splits as `ImageSet`s.

    root      CheXpert-v1.0 or CheXpert-v1.0-small, or the folder that holds it
    labels    which of the 14 observations are the labels
    views     "all", "frontal" or "lateral" images; the paper's 234 official ones are all
    held_out  how many images of the training set are the split "test", of patients drawn once; None: the
              paper's share of however many there are
    side      of the images of a call: the shorter side is resized to it, and the middle square cut out. They
              are held in memory, 150 kB each at 224: all of CheXpert at that size is read by its listings

    Raises RequestError for a folder without tables, tables without an image of these views, fewer images than
    are to be held out, and an image that is a link out of the folder; DamagedFileError for tables that are
    not as published: columns that are missing or unknown, a row of another form, a path that leads elsewhere,
    an image that is listed twice, a patient in both tables.
    """

    root: Path | str
    labels: Sequence[str] = COMPETITION
    views: Literal["all", "frontal", "lateral"] = "all"
    held_out: int | None = HELD_OUT
    side: int = 224

    def __post_init__(self) -> None:
        if isinstance(self.labels, str) or not self.labels or len(set(self.labels)) < len(self.labels):
            raise RequestError(f"labels are names of observations, each once, not {self.labels!r}")
        for name in self.labels:
            if name not in OBSERVATIONS:
                raise unknown("observation of CheXpert", name, OBSERVATIONS)
        if self.views not in VIEWS:
            raise unknown("views of CheXpert", self.views, VIEWS)
        for what in ("held_out", "side"):
            value = getattr(self, what)
            if what == "held_out" and value is None:
                continue
            if not is_whole(value, 1):
                raise RequestError(f"{what} is a whole number from 1 up, not {value!r}")
        object.__setattr__(self, "labels", tuple(self.labels))

    @cached_property
    def folder(self) -> Path:
        """The folder in which the tables lie."""
        given = Path(self.root).expanduser()
        found = (given, *(given / name for name in FOLDERS))
        folder = next((each for each in found if (each / TABLES["train"]).is_file()), None)
        if folder is None:
            raise RequestError(
                f"'{given}' holds no {TABLES['train']}: give the folder {' or '.join(FOLDERS)}, in which"
                f" {TABLES['train']}, {TABLES['valid']} and {EXAMPLE} lie"
            )
        return folder

    @cached_property
    def _tables(self) -> Mapping[str, _Table]:
        tables = {part: self._read(part) for part in TABLES}
        shared = set(tables["train"].patients) & set(tables["valid"].patients)
        if shared:
            raise DamagedFileError(
                f"'{self.folder}': {min(shared)} is in {TABLES['train']} and in {TABLES['valid']}"
                f" ({len(shared)} patients are); what is tested on may not be trained on"
            )
        return tables

    def _read(self, part: str) -> _Table:
        file = self.folder / TABLES[part]
        paths: dict[str, int] = {}
        patients, labels = [], []
        try:
            with file.open(encoding="utf-8-sig", newline="") as lines:
                rows = csv.reader(lines)
                header = next(rows, [])
                places = self._places(file, header)
                for row in rows:
                    where = f"'{file}', line {rows.line_num}"
                    if len(row) != len(header):
                        raise DamagedFileError(f"{where}: {len(row)} values for {len(header)} columns")
                    named = {name: row[place].strip() for name, place in places.items()}
                    path, patient = self._place(where, part, named[PATH])
                    if paths.setdefault(path, rows.line_num) != rows.line_num:
                        raise DamagedFileError(f"{where}: '{path}' stands on line {paths[path]} already")
                    if named[VIEW] not in VIEWS["all"]:
                        raise DamagedFileError(f"{where}: {VIEW} is Frontal or Lateral, not '{named[VIEW]}'")
                    if named[VIEW] not in VIEWS[self.views]:
                        del paths[path]
                        continue
                    patients.append(patient)
                    labels.append([self._value(where, name, named[name]) for name in self.labels])
        except FileNotFoundError:
            listed = " and ".join(TABLES.values())
            raise RequestError(f"'{file}' is not there: CheXpert has {listed}") from None
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise DamagedFileError(f"'{file}' cannot be read as a table: {error}") from None
        if not labels:
            raise RequestError(f"'{file}' lists no image of the views '{self.views}'")
        return _Table(tuple(paths), tuple(patients), np.array(labels, np.int64))

    def _places(self, file: Path, header: list[str]) -> dict[str, int]:
        names, needed = [name.strip() for name in header], (PATH, VIEW, *self.labels)
        for name in needed:
            if name not in names:
                hint = nearest(name, set(names) - set(COLUMNS))
                raise DamagedFileError(f"'{file}' has no column '{name}'.{hint}")
        for name in names:
            if name not in COLUMNS:
                raise DamagedFileError(
                    f"'{file}' has the column '{name}', which CheXpert does not have.{nearest(name, COLUMNS)}"
                )
            if names.count(name) > 1:
                raise DamagedFileError(f"'{file}' has the column '{name}' twice")
        return {name: names.index(name) for name in needed}

    def _place(self, where: str, part: str, text: str) -> tuple[str, str]:
        found = PLACE.fullmatch(text)
        if found is None or found[2] != part:
            raise DamagedFileError(
                f"{where}: '{text}' is no path to an image of CheXpert's folder '{part}', such as"
                f" {FOLDERS[1]}/{EXAMPLE.replace('train', part)}; nothing else is read"
            )
        return found[1], found[3]

    def _value(self, where: str, name: str, text: str) -> int:
        if text not in VALUES:
            raise DamagedFileError(f"{where}: {name} is 1.0, 0.0, -1.0 or blank, not '{text}'")
        return VALUES[text]

    @cached_property
    def _rows(self) -> Mapping[str, tuple[str, np.ndarray]]:
        """Of each split its table and its rows there."""
        train = self._tables["train"]
        tested = self._held_out(train.patients)
        return {
            "train": ("train", np.flatnonzero(~tested)),
            "test": ("train", np.flatnonzero(tested)),
            "validation": ("valid", np.arange(len(self._tables["valid"].paths))),
        }

    def _held_out(self, patients: Sequence[str]) -> np.ndarray:
        """Return which rows are tested on: those of patients in a random order, each whole,
        while there is room.
        """
        names, of_row, counts = np.unique(patients, return_inverse=True, return_counts=True)
        held_out = self.held_out or max(1, round(HELD_OUT * len(patients) / OFFICIAL["train"]))
        chosen, left = np.zeros(len(names), bool), held_out
        for place in torch.randperm(len(names), generator=derived_generator("chexpert", "test")).tolist():
            if counts[place] <= left:
                chosen[place], left = True, left - int(counts[place])
        if left or chosen.all():
            raise RequestError(
                f"{held_out:,} images of whole patients cannot be held out of the {len(patients):,} that"
                f" '{self.folder / TABLES['train']}' lists, of {len(names):,} patients, with some left to"
                " train on: is it complete? For a part of CheXpert say how many: held_out=..."
            )
        return chosen[of_row]

    def listing(self, split: str) -> Listing:
        """Return the images of "train", "test" or "validation" that are there,
        and the names of those that are not.

        An id counts the images of these views in train.csv, then in valid.csv. Raises RequestError for
        another split, and for an image that is a link out of the folder.
        """
        if split not in SPLITS:
            raise unknown("split of CheXpert", split, SPLITS)
        part, rows = self._rows[split]
        table, first = self._tables[part], len(self._tables["train"].paths) * (part == "valid")
        there = np.array([self._is_there(table.paths[row]) for row in rows])
        kept = rows[there]
        return Listing(
            Files(self.folder, table.paths),
            kept,
            table.labels[kept],
            kept + first,
            tuple(self.labels),
            tuple(table.paths[row] for row in rows[~there]),
        )

    def _is_there(self, path: str) -> bool:
        file = self.folder / path
        if not file.is_file():
            return False
        if not os.path.realpath(file).startswith(f"{self._real_folder}{os.sep}"):
            raise RequestError(f"'{file}' leads out of '{self.folder}'; nothing else is read")
        return True

    @cached_property
    def _real_folder(self) -> str:
        return os.path.realpath(self.folder)

    @property
    def card(self) -> DatasetCard:
        """What it is, with the sizes that the tables say."""
        counts = {part: len(table.paths) for part, table in self._tables.items()}
        note = entry("chexpert").card.note
        if self.views != "all":
            note += f" Of the views only the {self.views} ones."
        elif counts != OFFICIAL:
            note += (
                f" The tables list {counts['train']:,} and {counts['valid']:,} images; officially"
                f" {OFFICIAL['train']:,} and {OFFICIAL['valid']:,}."
            )
        sizes = {split: len(self._rows[split][1]) for split in SPLITS}
        return replace(entry("chexpert").card, classes=len(self.labels), sizes=sizes, note=note)

    def fingerprint(self) -> str:
        """sha256 of the tables, the size of every image, and how they are read."""
        sizes = {
            path: (self.folder / path).stat().st_size if (self.folder / path).is_file() else None
            for table in self._tables.values()
            for path in table.paths
        }
        tables = [digest_file(self.folder / name) for name in TABLES.values()]
        settings = [list(self.labels), self.views, self.held_out, self.side]
        return digest_bytes(canonical_json([tables, sizes, settings]).encode())

    def __call__(self, draw: int = 0) -> Iterator[tuple[str, ImageSet]]:
        """(split, images), decoded; every draw has the same. Raises DamagedFileError for images that are not
        there, or are damaged."""
        for split in SPLITS:
            listing = self.listing(split)
            if listing.missing:
                total = len(listing) + len(listing.missing)
                raise DamagedFileError(
                    f"{len(listing.missing):,} of {total:,} images of CheXpert's split '{split}' are not in"
                    f" '{self.folder}', '{listing.missing[0]}' the first; unpack the archive again"
                )
            pixels = np.empty((len(listing), self.side, self.side, 3), np.uint8)
            for index in range(len(listing)):
                file = self.folder / listing.name(index)
                pixels[index] = middle_square(file, read_colours(file)[0], self.side, self.side)
            yield split, ImageSet(pixels, listing.labels, listing.ids, listing.class_names)


def chexpert(known: PublishedSet, root: Path, split: str) -> Listing:
    """Return a split of CheXpert, or of a part of it, with the labels and the views of its entry."""
    return Chexpert(root, held_out=None).listing(split)
