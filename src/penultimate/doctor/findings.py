"""What is found: a sentence, and what to do about it where something is to be done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A fact; without a remedy it is sound, or nothing that anyone has to act on."""

    text: str
    remedy: str = ""
