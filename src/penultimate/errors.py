"""Errors for people: what was expected, what came, where, and the nearest fix."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable

LONGEST = 2000
"""The largest number of characters in a sentence about a name or value; the middle of a longer one is cut."""
MANY = 12
"""The most names that stand behind a guess; of more, only where to find them is said."""
LISTED = {
    "objective": "objectives",
    "data set": "datasets",
    "dataset": "datasets",
    "backbone": "backbones",
    "metric": "metrics",
    "probe": "probes",
    "measurement": "measurements",
    "study": "studies --all",
    "exhibit": "exhibits",
}
"""What `penultimate list` calls the kinds of names."""
_TURNING = re.compile("[\N{ARABIC LETTER MARK}\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of the text, including the text after them."""


class PenultimateError(Exception):
    """The base of every error that this package raises on purpose."""


class RequestError(PenultimateError, ValueError):
    """Error for a wrong request (a name, a value or a file); the exit code is 2, and nothing is lost."""


class DamagedFileError(PenultimateError):
    """Error for a stored file whose digest, size or form is no longer that of the file that was written."""


def legible(text: object) -> str:
    r"""Return text that is safe for a terminal and for XML.

    Control characters, characters that set the direction of text and unpaired surrogates become spaces; line
    breaks are kept.

    >>> legible("a\x1b[31m\nb\u202ec")
    'a [31m\nb c'
    """
    told = str(text)
    if told.isprintable():
        return told
    return "".join(
        " " if c != "\n" and unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c
        for c in _TURNING.sub(" ", told)
    )


def expect_apart(what: str, names: Iterable[str]) -> None:
    """Raise RequestError for two names that differ only in capitals: some file systems take them for one.

    >>> expect_apart("networks", ["net", "Net"])
    Traceback (most recent call last):
    penultimate.errors.RequestError: the networks 'net' and 'Net' differ only in capitals; rename one of them
    """
    known: dict[str, str] = {}
    for name in names:
        first = known.setdefault(name.casefold(), name)
        if first != name:
            raise RequestError(
                f"the {what} {first!r} and {name!r} differ only in capitals; rename one of them"
            )


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return text without its middle if it is too long to read."""
    left = len(text) - longest
    half = longest // 2
    return text if left <= 0 else f"{text[:half]} [... {left:,} characters ...] {text[-half:]}"


def counted(count: int, noun: str) -> str:
    """Return a count followed by its noun.

    >>> counted(1, "cell"), counted(9000, "cell")
    ('1 cell', '9,000 cells')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def as_sentence(text: str) -> str:
    """Return text with its full stop, unless it ends in one, or in a question.

    >>> as_sentence("no function 'biuld'. Did you mean 'build'?"), as_sentence("the file is gone")
    ("no function 'biuld'. Did you mean 'build'?", 'the file is gone.')
    """
    return text if text.endswith((".", "?")) else f"{text}."


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article.

    >>> with_article("int"), with_article("str")
    ('an int', 'a str')
    """
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return the hint that ends an error message about an unknown name.

    >>> nearest("cosine_sofmax", ["softmax", "cosine_softmax"])
    " Did you mean 'cosine_softmax'?"
    >>> nearest("zzz", ["softmax"])
    ''
    """
    name = name[:LONGEST]
    pool = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), pool, n=1, cutoff=0.5)
    return f" Did you mean '{pool[close[0]]}'?" if close else ""


def unknown(kind: str, name: str, candidates: Iterable[str]) -> RequestError:
    """Return the error for an unknown name: the nearest one, and all others unless they are many.

    >>> print(unknown("metric", "top-1", ["top1", "knn"]))
    unknown metric 'top-1'. Did you mean 'top1'? Known: top1, knn.
    >>> print(unknown("study", "nin", ["nine", *map(str, range(53))]))
    unknown study 'nin'. Did you mean 'nine'? All 54: penultimate list studies --all
    """
    name, known = str(name), list(candidates)
    guess = nearest(name, known)
    if guess and len(known) > MANY:
        if kind in LISTED:
            return RequestError(
                f"unknown {kind} '{name}'.{guess} All {len(known)}: penultimate list {LISTED[kind]}"
            )
        known = [*known[:MANY], f"and {len(known) - MANY} more"]
    listed = ", ".join(known) if known else "none"
    return RequestError(f"unknown {kind} '{name}'.{guess} Known: {listed}.")
