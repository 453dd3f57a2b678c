"""The words by which folders, tables, columns and arrays name their splits."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from penultimate.errors import RequestError

SPLITS = {
    **dict.fromkeys(("train", "training", "trn"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev", "eval", "evaluation", "publictest"), "validation"),
    **dict.fromkeys(("test", "testing", "tst", "privatetest"), "test"),
}
"""Kaggle's public test set counts as validation, because people choose their networks by it."""
FILLERS = frozenset(
    ("set", "data", "dataset", "image", "images", "img", "imgs", "split", "folder", "samples")
)
"""Words that say nothing beside the name of a split: "training_set" names the training images."""
OF_TABLES = frozenset(("label", "labels", "annotation", "annotations", "list", "metadata", "info", "df"))
"""Words that say nothing beside the name of a split in that of a table: "train_labels.csv"."""
_GLUED = re.compile(rf"({'|'.join(SPLITS)})(?:set|data|images|imgs)?\d*")


def part_of(name: str, common: Collection[str] = ()) -> str:
    """Return the split that a name stands for, or "" if it stands for none.

    `common` are words that the names beside it have too, and which therefore tell nothing.

    >>> [part_of(name) for name in ("Train", "test_set", "val2017", "bullet train", "Private Test")]
    ['train', 'test', 'validation', '', 'test']
    >>> part_of("seg_test", words_in_all(["seg_train", "seg_test"]))
    'test'
    """
    telling = [word for word in words_of(name) if word not in FILLERS and word not in common]
    found = _GLUED.fullmatch("".join(telling))
    return SPLITS[found[1]] if found else ""


def words_of(name: str) -> list[str]:
    """Return the words of a name, in small letters."""
    return [word for word in re.split(r"[\W_]+", name.lower()) if word]


def words_in_all(names: Iterable[str]) -> frozenset[str]:
    """Return the words that every name has, of two names or more."""
    words = [frozenset(words_of(name)) for name in names]
    return frozenset.intersection(*words) - SPLITS.keys() if len(words) > 1 else frozenset()


def expect_one_each(where: object, named: Iterable[tuple[str, str]]) -> None:
    """Raise RequestError where two names stand for the same split."""
    first: dict[str, str] = {}
    for name, part in named:
        if part and first.setdefault(part, name) != name:
            raise RequestError(
                f"'{where}': '{first[part]}' and '{name}' both stand for the {part} images; keep one"
            )
