"""What is found: a sentence, and what to do about it where something is to be done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A fact; without a remedy it is sound, or nothing that anyone has to act on."""

    text: str
    remedy: str = ""


def size_text(count: float) -> str:
    """
    >>> size_text(512), size_text(45_300_000), size_text(2e12)
    ('512 bytes', '45.3 MB', '2.0 TB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"
