"""Tables of images that have several labels each: columns of 1 (present), 0 (absent) and -1 (uncertain)."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from penultimate.data.listing import Listing
from penultimate.data.readers.columns import TRUTH, Columns, column_name, text_of_cell
from penultimate.data.readers.places import Place
from penultimate.data.readers.reading import SPAN, listed
from penultimate.errors import RequestError

MARKS = {**{text: int(value) for text, value in TRUTH.items() if text}, "-1": -1, "-1.0": -1}
"""What a cell says of a label: present, absent or uncertain."""


def several_labels(place: Place, columns: Columns, header: Mapping[str, str]) -> tuple[list[str], list[Any]]:
    """Return the columns that a place names as labels, and of each row 1, 0 or -1 (uncertain) for each.

    A pattern such as "finding_*" stands for all columns that match. Raises RequestError for other cells, and
    for fewer than two columns.
    """
    names: list[str] = []
    for asked in place.labels:
        known = asked.strip().lower()
        found = [known] if known in columns else fnmatch.filter(columns, known)
        names += [name for name in found or [column_name(place, columns, asked)] if name not in names]
    if len(names) < 2:
        raise RequestError(
            f"'{place.path}': labels=... are two columns of 0 and 1 or more; of one alone say"
            f" {place.with_setting('label', names[0])}"
        )
    rows = []
    for row, cells in enumerate(zip(*(columns[name] for name in names), strict=True), 1):
        marks = [MARKS.get(text_of_cell(cell).lower()) for cell in cells]
        if None in marks:
            at = marks.index(None)
            raise RequestError(
                f"'{place.path}': labels=... are columns of 1 (present), 0 (absent) and -1 (uncertain);"
                f" row {row} of '{header[names[at]]}' holds {text_of_cell(cells[at])!r}"
            )
        rows.append(tuple(marks))
    return names, rows


def with_several_labels(
    path: Path, base: Path, rows: Mapping[str, Sequence[tuple[str, Any]]], names: Sequence[str]
) -> dict[str, Listing]:
    """Return the listing of each split, {split: (path, marks)}, with labels int64 [n l]."""
    listings = {}
    for number, (part, its) in enumerate(rows.items()):
        start = number * SPAN
        there = listed(base, [(where, 0) for where, _ in its], names, start, str(path), anywhere=True)
        labels = np.array([marks for _, marks in its], np.int64)[there.ids - start]
        listings[part] = replace(there, labels=labels)
    return listings
