"""The world's characters and faces as data, read from `classes.json` and `tasks.json`.

`classes.json` is the world's own list: the 128 pretraining classes and the characters first proposed for each
transfer task. `tasks.json` holds the characters that remain for the tasks after the look-alikes were removed
(`tests/data/selection.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.errors import unknown

SANS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique")
MONO = ("DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSansMono-Oblique", "DejaVuSansMono-BoldOblique")
SERIF = ("DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic", "DejaVuSerif-BoldItalic")
DEJAVU = SANS + MONO + SERIF
STIX = ("STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta")

FACE_TITLES = dict(
    zip(
        DEJAVU + STIX,
        (
            *("Sans", "Sans Bold", "Sans Oblique", "Sans Bold Oblique"),
            *("Sans Mono", "Sans Mono Bold", "Sans Mono Oblique", "Sans Mono Bold Oblique"),
            *("Serif", "Serif Bold", "Serif Italic", "Serif Bold Italic"),
            *("STIX", "STIX Bold", "STIX Italic", "STIX Bold Italic"),
        ),
        strict=True,
    )
)

CLASSES_FILE = Path(__file__).with_name("classes.json")
TASKS_FILE = Path(__file__).with_name("tasks.json")


@dataclass(frozen=True)
class Script:
    """Characters of one Unicode block and the faces that draw them.

    `classes` is how many are taken (None: all that pass); `categories` are the Unicode categories from which
    gaps may be filled.
    """

    classes: int | None
    block: range
    faces: tuple[str, ...]
    categories: tuple[str, ...] = ("L",)


SCRIPTS = {
    "syllabics": Script(40, range(0x1400, 0x1680), SANS),
    "georgian": Script(33, range(0x10A0, 0x1100), SANS + SERIF),
    "armenian": Script(33, range(0x0530, 0x0590), DEJAVU),
    "cyrillic": Script(26, range(0x0400, 0x0500), SANS + SERIF + STIX),
    "maths": Script(36, range(0x2200, 0x2300), (*SANS, *STIX[:2]), ("Sm",)),
    "findings": Script(12, range(0x2D30, 0x2D80), SANS[:2]),
    "typeface": Script(None, range(0x0370, 0x0400), DEJAVU + STIX),
}

ALPHABETS = {
    "greek": Script(32, range(0x0370, 0x0400), STIX),
    "cyrillic": Script(32, range(0x0400, 0x0500), STIX),
}
"""What the classes of the tasks `shared_N` are drawn from that are not pretraining classes."""


def to_codes(characters: Iterable[str]) -> str:
    """Code points in hexadecimal, as in the files.

    >>> to_codes("A\u2202"), from_codes("0041 2202") == "A\u2202"
    ('0041 2202', True)
    """
    return " ".join(f"{ord(character):04X}" for character in characters)


def from_codes(codes: str) -> str:
    """Return the characters of code points in hexadecimal."""
    return "".join(chr(int(code, 16)) for code in codes.split())


def pretraining_classes() -> tuple[str, ...]:
    """Return the 128 classes of the world: one string of four characters per class.

    >>> pretraining_classes()[0]
    'AaBb'
    """
    classes = json.loads(CLASSES_FILE.read_text("utf-8"))["pretraining_classes"]
    return tuple(from_codes(" ".join(members)) for members in classes)


def first_thoughts(task: str) -> str:
    """Return the characters first listed for a task, before its look-alikes were removed."""
    listed = json.loads(CLASSES_FILE.read_text("utf-8"))["transfer"].get(task, [])
    return from_codes(" ".join(members[0] for members in listed))


def selected(task: str) -> tuple[str, ...]:
    """Return the characters of a transfer task: a string per class where it gathers several,
    else a character.

    "shared" and "unshared" are the classes between which the tasks `shared_N` are composed.

    >>> len(selected("syllabics")), selected("newfaces")[0]
    (40, 'AaBb')
    """
    tasks: dict[str, Any] = json.loads(TASKS_FILE.read_text("utf-8"))["tasks"]
    if task not in tasks:
        raise unknown("glyph task", task, tasks)
    if "classes" in tasks[task]:
        return tuple(from_codes(codes) for codes in tasks[task]["classes"])
    return tuple(from_codes(tasks[task]["characters"]))
