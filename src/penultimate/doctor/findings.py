"""Findings: a sentence, and a remedy if something is to be done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A fact; without a remedy it is sound, or nobody has to act on it."""

    text: str
    remedy: str = ""
