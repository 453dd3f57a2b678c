"""The world's characters and faces as data, read from `classes.json` and `tasks.json`.

`classes.json` holds the 128 pretraining classes. `tasks.json` holds the characters of each transfer task,
look-alikes removed, with the rule by which they were chosen and the twins that it dropped.
"""

from __future__ import annotations

import json
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
FACES = {
    "syllabics": SANS,
    "georgian": SANS + SERIF,
    "armenian": DEJAVU,
    "cyrillic": SANS + SERIF + STIX,
    "maths": (*SANS, *STIX[:2]),
    "findings": SANS[:2],
    "typeface": DEJAVU + STIX,
}
"""The faces that draw the characters of each task."""


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path(__file__).with_name(name).read_text("utf-8"))
    return content


def _characters(codes: str) -> str:
    """Return the characters of code points in hexadecimal.

    >>> _characters("0041 2202")
    'A\u2202'
    """
    return "".join(chr(int(code, 16)) for code in codes.split())


def pretraining_classes() -> tuple[str, ...]:
    """Return the 128 classes of the world: one string of four characters per class.

    >>> pretraining_classes()[0]
    'AaBb'
    """
    classes = _read("classes.json")["pretraining_classes"]
    return tuple(_characters(" ".join(members)) for members in classes)


def selected(task: str) -> tuple[str, ...]:
    """Return the characters of a transfer task: a string per class where it gathers several,
    else a character.

    "shared" and "unshared" are the classes between which the tasks `shared_N` are composed.

    >>> len(selected("syllabics")), selected("newfaces")[0]
    (40, 'AaBb')
    """
    tasks = _read("tasks.json")["tasks"]
    if task not in tasks:
        raise unknown("glyph task", task, tasks)
    if "classes" in tasks[task]:
        return tuple(map(_characters, tasks[task]["classes"]))
    return tuple(_characters(tasks[task]["characters"]))
