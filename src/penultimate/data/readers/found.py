"""What a reader found of each split, as listings: labels are numbered, images without one are left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from penultimate.data.listing import Files, ImageSource, Listing
from penultimate.errors import RequestError

SPAN = 1 << 32
"""The ids of the k-th split count from k times this."""
IGNORED = {"-1", "-100"}
"""Numbers by which data sets and training loops mark images without a label."""
_WHOLE = re.compile(r"[+-]?\d+(\.0*)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


class Found(NamedTuple):
    """The images of a split in order, with a label and perhaps a group each; `there` are those that exist."""

    source: ImageSource
    labels: Sequence[Any] | np.ndarray
    groups: Sequence[str] | None = None
    there: Sequence[bool] | None = None


def listings(
    where: object, found: Mapping[str, Found], names: Sequence[str] = ()
) -> tuple[dict[str, Listing], list[str]]:
    """Return the listing of each split, and notes.

    Labels are marks [n l] of the labels called `names`, or anything that `number_labels` takes.
    """
    notes: list[str] = []
    labels = {part: of.labels for part, of in found.items() if isinstance(of.labels, np.ndarray)}
    if not labels:
        names, labels = number_labels(where, {part: [*of.labels] for part, of in found.items()}, names)
    made = {}
    for number, (part, of) in enumerate(found.items()):
        known = labels[part] >= 0 if labels[part].ndim == 1 else np.ones(len(labels[part]), bool)
        there = known if of.there is None else known & np.array(of.there)
        if not known.all():
            called = f"{part} " if part else ""
            lacking = f"{np.sum(~known):,} of {len(known):,} {called}images"
            notes.append(f"without a label, and left out: {lacking}")
        if not known.any():
            continue
        rows, source = np.flatnonzero(there), of.source
        places = rows
        if isinstance(source, Files) and len(rows) < len(source):
            source = Files(source.root, tuple(source.paths[row] for row in rows))
            places = np.arange(len(rows))
        missing = tuple(of.source.name(int(row)) for row in np.flatnonzero(known & ~there))
        groups = None if of.groups is None else np.array(of.groups, str)[rows]
        ids = number * SPAN + rows
        made[part] = Listing(source, places, labels[part][rows], ids, tuple(names), missing, groups=groups)
    return made, notes


def number_labels(
    where: object, columns: Mapping[str, Sequence[Any]], names: Sequence[str] = ()
) -> tuple[tuple[str, ...], dict[str, np.ndarray]]:
    """Number the labels of each split: whole numbers in their order, others as text; -1 stands for none.

    None, NaN, "", and -1 or -100 (unless the labels are -1 and 1) are no label. `names` are those of the
    classes, if the data set has them: a label is then a place among them, or a name. Raises RequestError for
    several labels in a cell, and for measured numbers.

    >>> number_labels("x", {"train": ["b", "a", None]})
    (('a', 'b'), {'train': array([ 1,  0, -1])})
    """
    try:
        texts = {value: _text(value) for column in columns.values() for value in {*column}}
    except TypeError:
        raise RequestError(
            f"'{where}': a label is a list; one class for each image is expected. For several labels give"
            " columns of 0 and 1: labels=('A', 'B')"
        ) from None
    present = {*texts.values()} - {""}
    present -= IGNORED if present != {"-1", "1"} else {*()}
    if not present:
        raise RequestError(f"'{where}': no image has a label")
    if all(map(_NUMBER.fullmatch, present)) and not all(map(_WHOLE.fullmatch, present)):
        raise RequestError(
            f"'{where}': labels such as {min(present)} are numbers that were measured, and no classes"
        )
    has_names = bool(names)
    if not names:
        are_whole = all(map(_WHOLE.fullmatch, present))
        names = sorted(present, key=lambda text: (int(text) if are_whole else 0, text))
    label_of = {name: label for label, name in enumerate(names)}
    are_places = all(isinstance(value, int | np.integer | None) for value in texts)
    if has_names and (are_places or not present <= label_of.keys()):
        label_of = {str(label): label for label in range(len(names))}
    if unknown := sorted(present - label_of.keys()):
        raise RequestError(f"'{where}' has the label {unknown[0]}; there are {len(names)} class names")
    labels = {
        part: np.array([label_of.get(texts[value], -1) for value in column], np.int64)
        for part, column in columns.items()
    }
    return tuple(map(str, names)), labels


def _text(value: Any) -> str:
    """Return a label as text, a whole number without a point; "" for none."""
    if value is None or value != value:
        return ""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value).strip()
    return text.partition(".")[0] if _WHOLE.fullmatch(text) else text
