"""What the columns of a table mean: which one names the images, which the labels, and which the splits.

A column is chosen by what is said of the place, then by its name, then by its cells; what may mean several
things is refused with the words that choose one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from penultimate.data.readers.labels import MISSING
from penultimate.data.readers.places import Place
from penultimate.data.readers.split_names import SPLITS, part_of, words_of
from penultimate.data.readers.walking import some
from penultimate.errors import RequestError, unknown

PATHS: tuple[str, ...] = (
    *("path", "file", "filename", "file_name", "filepath", "file_path", "image", "image_path", "img"),
    *("img_path", "image_file", "image_filename", "image_name", "img_name", "image_id", "img_id"),
)
PLURAL = ("labels", "classes", "categories", "tags")
LABELS = (
    *("class", "class_name", "classname", "label_name", "target", "category", "species", "breed"),
    *("diagnosis", "dx", "y", *PLURAL, "tag", "class_id", "label_id", "category_id", "target_id"),
)
WORDS = frozenset(("label", "class", "category", "target", "species", "breed", "diagnosis"))
"""Words that tell a column of labels from others whose values recur."""
PARTITIONS = ("split", "data_split", "dataset_split", "subset", "partition")
"""Columns that say the split by their names: a cell that names none is an error."""
PHASES = frozenset(("split", "subset", "partition", "usage", "phase", "dataset", "set"))
"""Words in the names of columns that may number the splits."""
NUMBERED = {"0": "train", "1": "validation", "2": "test"}
"""The splits that numbers stand for, as in CelebA and WILDS."""
NUMBERS_TOLD = ", ".join(f"{number} for {part}" for number, part in NUMBERED.items())
UNCLEAR = ("valid", "dev", "eval")
"""Columns of true and false that may mean something else: "valid" may mark images that can be used."""
TRUTH = dict.fromkeys(("true", "1", "1.0", "yes", "t", "y"), True)
TRUTH |= dict.fromkeys(("false", "0", "0.0", "no", "f", "n", ""), False)
ONE_HOT = frozenset(("0", "1", "0.0", "1.0", "true", "false"))
Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""The cells of each column, by its name in small letters; the columns are equally long."""
Parts: TypeAlias = list[str | None]
"""The split of each row: "" where nothing says it, None where it is in none."""


def text_of_cell(cell: Any) -> str:
    """Return a cell as text without blanks at its ends; "" for none."""
    return "" if cell is None else str(cell).strip()


def image_column(place: Place, columns: Columns, leads_to_files: Callable[[Sequence[str]], bool]) -> str:
    """Return the column that names the images; raises RequestError where none does, or several may."""
    if place.image:
        return column_name(place, columns, place.image)
    named = [name for name in PATHS if name in columns]
    if len(named) == 1:
        return named[0]
    leading = [name for name in (named or columns) if _is_of_files(columns[name], leads_to_files)]
    if named:
        return (leading or named)[0]
    if len(leading) == 1:
        return leading[0]
    if len(leading) > 1:
        raise RequestError(
            f"'{place.path}': {some(leading, 'column names', 'columns name')} images; say which one is to be"
            f" read: {place.with_setting('image', leading[0])}"
        )
    example = next((name for name in columns if name), "COLUMN")
    raise RequestError(
        f"'{place.path}' has the columns {', '.join(columns) or 'of no header'}; one called"
        f" {', '.join(PATHS[:-1])} or {PATHS[-1]} is expected, or one of another name whose cells lead to"
        " images from the table's folder, with or without their endings. Else say it:"
        f" {place.with_setting('image', example)}"
    )


def _is_of_files(cells: Sequence[Any], leads_to_files: Callable[[Sequence[str]], bool]) -> bool:
    texts = [text_of_cell(cell) for cell in cells]
    return len({*texts}) == len(texts) and all(texts) and leads_to_files(texts[:20])


def label_columns(place: Place, columns: Columns, others: Collection[str], notes: list[str]) -> list[str]:
    """Return the column of labels, or several of 0 and 1, one for each class.

    `others` are those that mean something else. Raises RequestError where it is not clear.
    """
    if place.label:
        return [column_name(place, columns, name) for name in place.label]
    free = [name for name in columns if name and name not in others]
    if "label" in free:
        return ["label"]
    named = [name for name in LABELS if name in free]
    if named:
        differing = [name for name in named[1:] if not _say_the_same(columns[named[0]], columns[name])]
        if differing:
            raise _ask_for_label(place, [named[0], *differing])
        return named[:1]
    one_hot = [name for name in free if {text_of_cell(c).lower() for c in columns[name]} <= ONE_HOT]
    if len(one_hot) > 1 and all(len(marked) == 1 for marked in _marked_in(columns, one_hot)):
        notes.append(
            f"the class of an image is the one that its row marks: {some(one_hot, 'column', 'columns')}"
        )
        return one_hot
    recurring = [name for name in free if _recurs(columns[name])]
    worded = [name for name in recurring if {*words_of(name)} & WORDS] or recurring
    if len(worded) == 1:
        notes.append(f"the labels are those of the column '{worded[0]}'")
        return worded
    if len(one_hot) > 2 and {*worded} <= {*one_hot}:
        expect_one_class(place, columns, one_hot)
    raise _ask_for_label(place, worded or free)


def _ask_for_label(place: Place, candidates: Sequence[str]) -> RequestError:
    may_be = f"; it may be {' or '.join(map(repr, candidates[:6]))}" if candidates else ""
    return RequestError(
        f"'{place.path}': which column holds the labels is not clear{may_be}. Call it label, or say it:"
        f" {place.with_setting('label', candidates[0] if candidates else 'COLUMN')}"
    )


def _say_the_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return whether two columns part the images alike, under whatever names."""
    pairs = {(text_of_cell(a), text_of_cell(b)) for a, b in zip(one, other, strict=True)}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def expect_one_class(place: Place, columns: Columns, names: Sequence[str]) -> list[int]:
    """Return which of some columns of 0 and 1 each row marks; raises RequestError unless it is one."""
    of_rows = _marked_in(columns, names)
    for row, marked in enumerate(of_rows, 1):
        if len(marked) != 1:
            raise RequestError(
                f"'{place.path}': {some(names, 'column', 'columns')} of 0 and 1 are to mark one class for"
                f" each image; row {row} marks {len(marked)}. One of them alone:"
                f" {place.with_setting('label', names[0])}. Several labels for an image, each by itself:"
                f" {place.with_setting('labels', (*names[:2],))}"
            )
    return [marked[0] for marked in of_rows]


def _marked_in(columns: Columns, names: Sequence[str]) -> list[list[int]]:
    """Return the places of those columns of true and false that are true, for each row."""
    rows = zip(*(columns[name] for name in names), strict=True)
    return [[at for at, cell in enumerate(row) if TRUTH.get(text_of_cell(cell).lower())] for row in rows]


def _recurs(cells: Sequence[Any]) -> bool:
    """Return whether a column holds few values, each of them again and again, as labels are."""
    texts = [text for text in map(text_of_cell, cells) if text not in MISSING]
    return 2 <= len({*texts}) <= len(texts) / 2


def column_name(place: Place, columns: Columns, name: str) -> str:
    if name.strip().lower() not in columns:
        raise unknown(f"column of '{place.path}'", name, columns)
    return name.strip().lower()


def parts_of(
    place: Place, columns: Columns, image: str, lines: Sequence[int], notes: list[str]
) -> tuple[Parts, list[str]]:
    """Return the split of each row, and the columns that say it or may.

    Raises RequestError for a cell that names no split where one must, and for columns that disagree.
    """
    if place.test and not place.split:
        raise RequestError(
            f"'{place.path}': test={place.test!r} goes with the column whose cells they are, split='COLUMN'"
        )
    none: Parts = [""] * len(lines)
    if place.split is None:
        return none, []
    if place.split:
        name = column_name(place, columns, place.split)
        return _as_said(place, name, columns[name], notes), [name]
    taken: dict[str, Parts] = {}
    doubted: list[str] = []
    for name, cells in columns.items():
        if not name or name in (image, "label", *LABELS) or name in place.label:
            continue
        texts = [text_of_cell(cell).lower() for cell in cells]
        if (found := _named(place, name, texts, lines, notes)) is not None:
            taken[name] = found
        elif why := _doubt(name, {*texts}):
            notes.append(f"the column '{name}' {why}, and is not used; {_how(place, name, texts)}")
            doubted.append(name)
    if not taken:
        flags = _flags(place, columns, image, lines, notes)
        if not flags:
            return none, doubted
        return _marked(place, flags, columns[image], lines, notes), [*doubted, *flags]
    first, *further = taken
    for name in further:
        if taken[name] != taken[first]:
            raise RequestError(
                f"'{place.path}': the columns '{first}' and '{name}' name different splits; say which one"
                f" holds: {place.with_setting('split', first)}"
            )
    return taken[first], [*taken, *doubted]


def _how(place: Place, name: str, texts: Sequence[str]) -> str:
    settings = f"split={name!r}, test={max(texts)!r}"
    return f'"{place.path}({settings})" tests on the images of one of its values'


def _doubt(name: str, values: Collection[str]) -> str:
    """Return why a column that is not used may have been meant to say the split, or ""."""
    if name in UNCLEAR or _flag(name):
        return ""
    if {*words_of(name)} & {"fold", "folds", "cv"} and len(values) > 1:
        return "numbers parts for cross-validation"
    parts = {part_of(value) for value in values} - {""}
    if len(parts) > 1:
        return "names splits in some of its cells only"
    is_numbered = {*words_of(name)} & {*PHASES, "train", "test"} - {"dataset"} and 1 < len(values) < 6
    return "may number the splits" if is_numbered and all(v[:1].isdecimal() for v in values) else ""


def _as_said(place: Place, name: str, cells: Sequence[Any], notes: list[str]) -> Parts:
    """Return the splits by a column that is said; what names none is left out."""
    texts = [text_of_cell(cell).lower().removesuffix(".0") for cell in cells]
    if place.test:
        tested = {value.strip().lower() for value in place.test}
        lacking = sorted(tested - {*texts})
        if lacking:
            raise unknown(f"value of '{name}' in '{place.path}'", lacking[0], sorted({*texts} - {""}))
        parts: Parts = ["test" if text in tested else "train" if text else None for text in texts]
    else:
        is_numbered = NUMBERED.keys() >= {*texts}
        meant = {text: NUMBERED.get(text, "") if is_numbered else part_of(text) for text in {*texts}}
        if not any(meant.values()):
            raise RequestError(
                f"'{place.path}': no cell of '{name}' names a split; {_how(place, name, texts)}"
            )
        parts = [meant[text] or None for text in texts]
        if is_numbered:
            notes.append(f"the numbers in the column '{name}' stand for splits: {NUMBERS_TOLD}")
    notes.append(f"the splits are those of the column '{name}'")
    _note_left_out(parts, notes)
    return parts


def _named(
    place: Place, name: str, texts: Sequence[str], lines: Sequence[int], notes: list[str]
) -> Parts | None:
    """Return the splits that a column names or numbers; None if it says nothing of splits."""
    is_one = name in PARTITIONS
    plain = {text: text.removesuffix(".0") for text in texts}
    words = {*words_of(name)}
    if NUMBERED.keys() >= {*plain.values()} and (is_one or (words & PHASES and not words & SPLITS.keys())):
        meant = {text: NUMBERED[number] for text, number in plain.items()}
        if not is_one and len({*meant.values()}) < 2:
            return None
        sizes = {number: sum(plain[text] == number for text in texts) for number in {*plain.values()}}
        if len(sizes) > 1 and sizes.get("0", 0) < max(sizes.values()):
            raise RequestError(
                f"'{place.path}': the column '{name}' numbers the splits, but 0, which is training elsewhere,"
                f" is not the largest; {_how(place, name, texts)}"
            )
        notes.append(f"the numbers in the column '{name}' stand for splits: {NUMBERS_TOLD}")
        return [meant[text] for text in texts]
    meant = {text: part_of(text) for text in plain}
    several = len({*meant.values()} - {""}) > 1
    if not is_one and not (several and (words & PHASES or all(meant.values()))):
        return None
    for line, text in zip(lines, texts, strict=True):
        if not meant[text]:
            error = unknown(f"split in line {line} of '{place.path}'", text, SPLITS)
            hint = f"To leave out what names no split: {place.with_setting('split', name)}"
            raise RequestError(f"{error} {hint if any(meant.values()) else _how(place, name, texts)}")
    if not is_one:
        notes.append(f"the splits are those of the column '{name}'")
    return [meant[text] for text in texts]


def _flag(name: str) -> str:
    """Return the split whose images a column marks with true, or "": "is_valid" marks validation images."""
    bare = re.sub(r"^(is[_ -]?|(in|for)[_ -])", "", name)
    return "" if name in UNCLEAR else part_of(bare)


def _flags(
    place: Place, columns: Columns, image: str, lines: Sequence[int], notes: list[str]
) -> dict[str, tuple[str, list[bool]]]:
    """Return the columns of true and false that mark splits, each with its split and what it marks."""
    flags = {}
    for name, cells in columns.items():
        texts = [text_of_cell(cell).lower() for cell in cells]
        if name in UNCLEAR and len({*texts}) == 2 and TRUTH.keys() >= {*texts}:
            notes.append(f"the column '{name}' is not used; call it 'is_{name}' if it says what is tested on")
        part = _flag(name) if name != image else ""
        if not part:
            continue
        odd = next((at for at, text in enumerate(texts) if text not in TRUTH), None)
        if odd is None:
            flags[name] = part, [TRUTH[text] for text in texts]
        elif name.startswith("is"):
            raise RequestError(
                f"'{place.path}', line {lines[odd]}: {name} is '{text_of_cell(cells[odd])}'; true or false is"
                " expected"
            )
    return flags


def _marked(
    place: Place,
    flags: Mapping[str, tuple[str, list[bool]]],
    images: Sequence[Any],
    lines: Sequence[int],
    notes: list[str],
) -> Parts:
    """Return the splits that columns of true and false mark; what none of them marks is what they lack."""
    marked = {part for part, _ in flags.values()}
    rest = next((part for part in ("train", "test") if part not in marked), None)
    parts: Parts = []
    for row, line in enumerate(lines):
        its = [(name, part) for name, (part, truth) in flags.items() if truth[row]]
        if len({part for _, part in its}) > 1:
            names = " and ".join(name for name, _ in its)
            raise RequestError(f"'{place.path}', line {line}: '{images[row]}' is of two splits, by {names}")
        parts.append(its[0][1] if its else rest)
    columns = " and ".join(f"'{name}'" for name in flags)
    notes.append(f"the splits are those of the column{'s' if len(flags) > 1 else ''} {columns}")
    _note_left_out(parts, notes)
    return parts


def _note_left_out(parts: Parts, notes: list[str]) -> None:
    if None in parts:
        notes.append(f"of no split, and left out: {parts.count(None):,} of {len(parts):,} images")
