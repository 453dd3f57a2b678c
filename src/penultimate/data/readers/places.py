"""A path with settings for reading the data there, such as "birds.csv(label='species')"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.errors import RequestError, unknown
from penultimate.registry import parse

_SAID = re.compile(r"(?P<path>.+?)\s*(?P<listed>\(\s*\w+\s*=.*\))", re.DOTALL)
TABLES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson")
SETTINGS = ("image", "label", "split", "test")


@dataclass(frozen=True)
class Place:
    """The path of data, and optional settings that give the meaning of columns or folders.

    image   the column that names the images
    label   the column of labels, or several columns of 0 and 1, one for each class
    split   the column that gives the split; None if no column or folder gives it
    test    the values of that column, or the folders, that hold test images; all others are for training
    """

    path: Path
    image: str = ""
    label: tuple[str, ...] = ()
    split: str | None = ""
    test: tuple[str, ...] = ()

    def expect_only(self, what: str, *settings: str) -> None:
        """Raise RequestError if any setting other than these is given."""
        for name in SETTINGS:
            if name not in settings and getattr(self, name) not in ("", ()):
                raise RequestError(f"'{self.path}': {name}=... does not apply to {what}")

    def with_setting(self, name: str, value: object) -> str:
        """Return this place with a setting, as text for an error message.

        >>> Place(Path("a/birds.csv")).with_setting("label", "kind")
        '"a/birds.csv(label=\\'kind\\')"'
        """
        return f'"{self.path}({name}={value!r})"'


def read_place(text: str | Path) -> Place:
    """Read a path that may end in settings in parentheses; raises RequestError for unknown settings.

    >>> read_place("birds.csv(label='species')").label
    ('species',)
    """
    path = Path(text).expanduser()
    said = _SAID.fullmatch(str(path))
    if path.exists() or said is None:
        return Place(path)
    settings: dict[str, Any] = parse(f"place{said['listed']}").arguments
    for name, value in settings.items():
        if name not in SETTINGS:
            raise unknown(f"setting of '{text}'", name, SETTINGS)
        of_test = name == "test" and isinstance(value, int)
        of_several = name in ("label", "test") and isinstance(value, (tuple, list))
        no_split = name == "split" and value is None
        if not (isinstance(value, str) or of_test or of_several or no_split):
            raise RequestError(f"'{text}': {name} must be a name, not {value!r}")
    for name in ("label", "test"):
        if name in settings:
            value = settings[name]
            settings[name] = tuple(map(str, value)) if isinstance(value, (tuple, list)) else (str(value),)
    return Place(Path(said["path"]), **settings)
