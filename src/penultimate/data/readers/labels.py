"""Labels of one class each, from tables, arrays and Hugging Face's columns alike, as class numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penultimate.errors import RequestError

IGNORED = ("-1", "-100")
"""Numbers by which data sets and training loops mark images without a label."""
_WHOLE = re.compile(r"[+-]?\d+(\.0*)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Labels:
    """The names of the classes, the labels of each split (int64 [n], -1 where there is none), and notes."""

    names: tuple[str, ...]
    of: Mapping[str, np.ndarray]
    notes: tuple[str, ...]


def number_labels(where: object, columns: Mapping[str, Sequence[Any]], names: Sequence[str] = ()) -> Labels:
    """Number the labels of each split, {split: values}: whole numbers in their order, others as text.

    None, NaN, "", and -1 or -100 (unless the labels are -1 and 1) are no label. `names` are those of the
    classes, if the data set has them: a whole number is then a place among them, and a text a name. Raises
    RequestError for several labels in a cell, and for measured numbers.

    >>> number_labels("x", {"train": ["b", "a", None]}).of["train"].tolist()
    [1, 0, -1]
    """
    import pandas as pd

    codes, texts, typed = {}, {}, True
    for part, column in columns.items():
        try:
            codes[part], found = pd.factorize(pd.Series(column, dtype=object))
        except TypeError:
            raise RequestError(
                f"'{where}': a label is a list; one class for each image is expected. For several labels give"
                " columns of 0 and 1: labels=('A', 'B')"
            ) from None
        typed &= all(isinstance(value, int | np.integer) for value in found)
        texts[part] = [_text(value) for value in found]
    present = {text for those in texts.values() for text in those if text}
    ignored = {*IGNORED} & present if present != {"-1", "1"} else set()
    present -= ignored
    if not present:
        raise RequestError(f"'{where}': no image has a label")
    if all(map(_NUMBER.fullmatch, present)) and not all(map(_WHOLE.fullmatch, present)):
        raise RequestError(
            f"'{where}': labels such as {min(present)} are numbers that were measured, and no classes"
        )
    if names:
        by_name, by_place = ({str(each): i for i, each in enumerate(of)} for of in (names, range(len(names))))
        place = by_place if typed or not present <= by_name.keys() else by_name
        if unknown := sorted(present - place.keys()):
            raise RequestError(f"'{where}' has the label {unknown[0]}; there are {len(names)} class names")
    else:
        are_whole = all(_WHOLE.fullmatch(text) for text in present)
        names = sorted(present, key=lambda text: (int(text) if are_whole else 0, text))
        place = {name: label for label, name in enumerate(names)}
    of, notes = {}, []
    for part, its in codes.items():
        table = np.array([*(place.get(text, -1) for text in texts[part]), -1], np.int64)  # code -1: missing
        of[part] = table[its]
        if lacking := int((of[part] < 0).sum()):
            called = f"{part} " if part else ""
            notes.append(f"without a label, and left out: {lacking:,} of {len(its):,} {called}images")
    return Labels(tuple(map(str, names)), of, tuple(notes))


def _text(value: Any) -> str:
    """Return a label as text, a whole number without a point; "" for none."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value).strip()
    return text.partition(".")[0] if _WHOLE.fullmatch(text) else text
