"""The labels that people give to their images, in whatever form: as classes, as no label, or refused.

Tables, arrays and Hugging Face's columns are all read by `read_labels`, so a value means the same in each.
"""

from __future__ import annotations

import ast
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from penultimate.errors import RequestError

MISSING = frozenset(
    ("", "nan", "NaN", "-nan", "-NaN", "None", "NULL", "null", "<NA>", "NA", "N/A", "n/a", "#N/A", "#NA")
)
"""Texts that stand for a missing value: those that pandas reads as one."""
IGNORED = frozenset((-1, -100))
"""Class indices by which data sets and training loops mark images without a label."""
SEPARATORS = (",", ";", "|")
_WHOLE = re.compile(r"[+-]?\d+(\.0*)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_MEMBER = re.compile(r"'([^']*)'|\"([^\"]*)\"|([^\s,]+)")
Plain: TypeAlias = str | int | None
"""A label that was read: a name, a whole number, or None where there is no label."""


@dataclass(frozen=True)
class Labels:
    """The labels of each split, and the classes that they are of.

    names      of the classes, in their order
    of         {split: int64 [n]}; -1 where an image has no label
    notes      what a reader of results must know, such as how many images have no label
    """

    names: tuple[str, ...]
    of: Mapping[str, np.ndarray]
    notes: tuple[str, ...]


def read_labels(
    where: object,
    columns: Mapping[str, Sequence[Any] | np.ndarray],
    names: Sequence[str] = (),
    *,
    typed: bool = True,
    plural: bool = False,
) -> Labels:
    """Read the labels of each split, {split: values}.

    `names` are those of the classes, if the data set has them: a label is then a name or a place among them.
    Text that is not `typed`, as in a table, may be numbers. A column that is called in the `plural` may hold
    several labels in a cell. Raises RequestError for labels that are no classes.

    >>> read_labels("x", {"train": ["b", "a", None]}).of["train"].tolist()
    [1, 0, -1]
    """
    distinct = {split: _distinct(values) for split, values in columns.items()}
    read = {
        split: [_plain(f"'{where}': {f'a {split}' if split else 'an'} image", value) for value in values]
        for split, (values, _) in distinct.items()
    }
    found = {value for values in read.values() for value in values if value is not None}
    notes: list[str] = []
    numbers = _numbers(where, found)
    ignored = {value for value, number in numbers.items() if number in _unlabelled(where, numbers, notes)}
    named = {value: str(value) for value in found - ignored}
    if not numbers and not names:
        _expect_one_each(where, {str(value) for value in found}, plural, notes)
    if names:
        place = _among(where, {*named.values()}, names, any(isinstance(value, str) for value in found))
    else:
        if numbers and not typed:  # one class for "7", "7.0" and "+7", as for whoever reads numbers
            spelt = {numbers[value]: named[value] for value in sorted(named, key=_longest_first)}
            named = {value: _without_point(spelt[numbers[value]]) for value in named}
        as_numbers = bool(numbers) and not (typed and any(isinstance(value, str) for value in found))
        names = sorted({*named.values()}, key=lambda name: (int(name) if as_numbers else 0, name))
        place = {name: label for label, name in enumerate(names)}
    of = {}
    for split, (values, which) in distinct.items():
        codes = np.array([place[named[v]] if v in named else -1 for v in read[split]], np.int64)
        of[split] = codes[which] if len(codes) else np.zeros(0, np.int64)
        lacking = int((of[split] < 0).sum())
        if lacking:
            marks = ", ".join(sorted({repr(values[i]) for i in np.flatnonzero(codes < 0)})[:3])
            notes.append(
                f"without a label ({marks}), and left out: {lacking:,} of {len(which):,}"
                f" {f'{split} ' if split else ''}images"
            )
    if all((labels < 0).all() for labels in of.values()):
        raise RequestError(f"'{where}': no image has a label")
    return Labels(tuple(names), of, tuple(notes))


def _distinct(values: Sequence[Any] | np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Return the different values, and which of them each is."""
    if isinstance(values, np.ndarray):
        different, which = np.unique(values, return_inverse=True)
        return different.tolist(), which.reshape(-1)
    places: dict[Any, int] = {}
    firsts: list[Any] = []
    which = np.empty(len(values), np.int64)
    for at, value in enumerate(values):
        key = (type(value), value if isinstance(value, (str, int, bytes)) else repr(value))
        if key not in places:
            places[key] = len(firsts)
            firsts.append(value)
        which[at] = places[key]
    return firsts, which


def _plain(whose: str, value: Any) -> Plain:
    """Return what one value says; raises RequestError for several labels, and for what names no class."""
    match value:
        case None:
            return None
        case bool() | np.bool_():
            return str(bool(value))
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            if math.isnan(value):
                return None
            if not float(value).is_integer():
                raise _no_class(whose, value)
            return int(value)
        case bytes():
            try:
                return _plain(whose, value.decode())
            except UnicodeDecodeError:
                raise _no_class(whose, value) from None
        case str():
            text = unicodedata.normalize("NFC", value.strip())
            written = _written(text)
            if written is not None:
                return _plain(whose, written)
            return None if text in MISSING else text
        case list() | tuple() | set() | np.ndarray():
            members = value.ravel().tolist() if isinstance(value, np.ndarray) else list(value)
            if len(members) > 1:
                raise RequestError(
                    f"{whose} has several labels, {value!r}; one class for each image is expected. A data set"
                    " plug-in may give several labels to an image, as an array [n l]."
                )
            return _plain(whose, members[0]) if members else None
    raise _no_class(whose, value)


def _no_class(whose: str, value: Any) -> RequestError:
    kind = type(value).__name__
    return RequestError(
        f"{whose} has the label {value!r}, a {kind}, which names no class; a name or a whole number is"
        " expected"
    )


def _written(text: str) -> Any:
    """Return the list or dictionary that a text spells out, as str() or NumPy writes one; else None."""
    if text[:1] == "[" and text[-1:] == "]":
        return ["".join(groups) for groups in _MEMBER.findall(text[1:-1])]
    if text[:1] in ("{", "(") and text[-1:] in ("}", ")"):
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
        return found if isinstance(found, (dict, set, tuple)) else None
    return None


def _numbers(where: object, found: Collection[str | int]) -> dict[str | int, int]:
    """Return the whole number that each label is, and nothing where some are names.

    Raises RequestError where all are numbers, but not whole ones: those are measured, and no classes.
    """
    if all(isinstance(value, int) or _WHOLE.fullmatch(value) for value in found):
        return {value: int(str(value).partition(".")[0]) for value in found}
    if all(isinstance(value, int) or _NUMBER.fullmatch(value) for value in found):
        first = next(value for value in found if not _WHOLE.fullmatch(str(value)))
        raise RequestError(
            f"'{where}': labels such as {first} are numbers that were measured, and no classes"
        )
    return {}


def _unlabelled(where: object, numbers: Mapping[str | int, int], notes: list[str]) -> Collection[int]:
    """Return the numbers that stand for no label: -1 and -100, unless -1 and 1 are the two classes."""
    values = set(numbers.values())
    below = {number for number in values if number < 0}
    if values == {-1, 1}:
        notes.append("the labels -1 and 1 are taken for two classes")
        return ()
    if below - IGNORED:
        raise RequestError(
            f"'{where}' has the label {min(below)}; classes are numbered from 0, and -1 stands for no label"
        )
    return below


def _longest_first(value: str | int) -> tuple[int, str]:
    return -len(str(value)), str(value)


def _without_point(text: str) -> str:
    return str(int(float(text))) if not text.isdecimal() else text


def _among(where: object, values: Set[str], names: Sequence[str], text: bool) -> dict[str, int]:
    """Return the label of each value: text is a name, a whole number a place among the names.

    Where not every value is one, but every value is the other, it is that.
    """
    by_name = {name: label for label, name in enumerate(names)}
    if len(by_name) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise RequestError(f"'{where}' names the class {twice!r} twice; name each once")
    by_place = {str(label): label for label in range(len(names))}
    meant, other = (by_name, by_place) if text else (by_place, by_name)
    if not meant.keys() >= values:
        meant = other if other.keys() >= values else meant
    unnamed = sorted(values - meant.keys())
    if unnamed:
        raise RequestError(f"'{where}' has the label {unnamed[0]}; there are {len(names)} class names")
    return meant


def _expect_one_each(where: object, texts: Collection[str], plural: bool, notes: list[str]) -> None:
    """Refuse labels that hold several, such as "cat,odd" beside "dog,odd"; say where that may be meant.

    Parts recur in several labels where these are sets of labels. So they do in classes that are pairs ("red
    car", "red bus"), but those have equally many parts each.
    """
    for separator in (*SEPARATORS, *((" ",) if plural else ())):
        parts = {text: [part.strip() for part in text.split(separator)] for text in texts}
        holding = sorted(text for text in texts if len(parts[text]) > 1)
        counts: dict[str, int] = {}
        for part in (part for of in parts.values() for part in {*of}):
            counts[part] = counts.get(part, 0) + 1
        if not holding or max(counts.values()) < 2:
            continue
        is_uneven = len({len(of) for of in parts.values()}) > 1
        is_joined = separator == " " or any(re.search(rf"{re.escape(separator)}\S", text) for text in holding)
        if plural or (is_uneven and is_joined):
            raise RequestError(
                f"'{where}': labels such as {holding[0]!r} hold several, with {separator!r} between them; one"
                " class for each image is expected. If each is the name of one class, write it without"
                f" {separator!r}" + (", or call the column 'label'." if plural else ".")
            )
        notes.append(
            f"each taken for one class, though their parts recur: {_some(holding)}; images with several"
            " labels would be another task"
        )


def _some(texts: Iterable[str]) -> str:
    texts = [*texts]
    return ", ".join(map(repr, texts[:3])) + (", ..." if len(texts) > 3 else "")
