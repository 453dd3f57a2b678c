"""A place on disk with what is said of the data there: "birds.csv(label='species')"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.errors import RequestError, unknown
from penultimate.files import given_path
from penultimate.specs import parse

_SAID = re.compile(r"(?P<path>.+?)\s*(?P<listed>\(\s*\w+\s*=.*\))", re.DOTALL)
TABLES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".parquet")
SETTINGS = ("image", "label", "labels", "split", "test", "group")
LISTS = ("label", "labels", "test")
"""The settings that may hold several names."""


@dataclass(frozen=True)
class Place:
    """Where data lie, and which columns or folders mean what, as far as that is said.

    image   the column that names the images
    label   the column of labels, or several columns of 0 and 1, one for each class
    labels  the columns of 0, 1 and -1 (uncertain) of images that have several labels each, or patterns
    split   the column that says which images are tested on; None where no column or folder is to say it
    test    the cells of that column, or the folders, that are tested on; the others are trained on
    group   the column of groups that are not split between training and test, or the level of the folders
            that are: 1 is the first below a class (or below a table's folder)
    """

    path: Path
    image: str = ""
    label: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    split: str | None = ""
    test: tuple[str, ...] = ()
    group: str | int = ""

    def expect_only(self, what: str, *settings: str) -> None:
        """Raise RequestError if anything but these settings is said."""
        for name in SETTINGS:
            if name not in settings and getattr(self, name) not in ("", ()):
                raise RequestError(f"'{self.path}': {name}=... is not said of {what}")

    def with_setting(self, name: str, value: object) -> str:
        """Return how a setting is said of this place, for an error message.

        >>> Place(Path("a/birds.csv")).with_setting("label", "kind")
        '"a/birds.csv(label=\\'kind\\')"'
        """
        return f'"{self.path}({name}={value!r})"'

    @property
    def groups_called(self) -> str:
        """How the groups are called within a sentence."""
        return f"folder level {self.group}" if isinstance(self.group, int) else f"'{self.group}'"


def is_table(path: Path) -> bool:
    """Return whether a file is a table by its ending."""
    return path.suffix.lower() in TABLES and path.is_file()


def tables_in(folder: Path) -> list[Path]:
    """Return the tables in a folder, by name, without hidden ones."""
    return sorted(each for each in folder.iterdir() if each.name[0] != "." and is_table(each))


def place_of(path: str | Path, **settings: Any) -> Place:
    """Return a place with settings; raises RequestError for unknown ones and values that are no names."""
    for name, value in settings.items():
        if name not in SETTINGS:
            raise unknown(f"setting of '{path}'", name, SETTINGS)
        several = value if isinstance(value, tuple | list) and name in LISTS else (value,)
        fits = all(isinstance(one, str | int) for one in several) or (name == "split" and value is None)
        if not fits or (name == "group" and value in (0, "0")):
            raise RequestError(f"'{path}': {name} is a name, not {value!r}")
        if name in LISTS:
            settings[name] = tuple(map(str, several))
    if settings.get("label") and settings.get("labels"):
        raise RequestError(
            f"'{path}': label=... is of images of one class each, labels=... of others; say one"
        )
    return Place(given_path(path, "the place of data", home=True), **settings)


def read_place(text: str | Path) -> Place:
    """Read a path, behind which settings may stand in parentheses; raises RequestError for unknown ones.

    >>> read_place("birds.csv(label='species')").label
    ('species',)
    """
    said = _SAID.fullmatch(str(text))
    if said is None or _is_there(text):
        return place_of(text)
    return place_of(said["path"], **parse(f"place{said['listed']}").arguments)


def with_group(text: str, group: str | int) -> str:
    """Return a place with the groups of its images, unless it says them itself.

    >>> with_group("scans.csv", "patient"), with_group("scans.csv(label='dx')", 1)
    ("scans.csv(group='patient')", "scans.csv(label='dx', group=1)")
    """
    if _SAID.fullmatch(text) is None or _is_there(text):
        return f"{text}(group={group!r})"
    return text if read_place(text).group else f"{text.rstrip()[:-1]}, group={group!r})"


def _is_there(text: str | Path) -> bool:
    """Return whether a text, with its parentheses, is a path at which something lies."""
    try:
        return Path(text).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # it can be no path
        return False
