"""Errors for people: what was expected, what came, where, and the nearest fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PenultimateError(Exception):
    """The base of every error that this package raises on purpose."""


class RequestError(PenultimateError, ValueError):
    """The request itself was wrong (a name, a value, a file): exit code 2, and nothing is lost."""


class DamagedFileError(PenultimateError):
    """A stored file is not what was written: its digest, its size or its form has changed."""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """The hint that ends an error message about a name.

    >>> nearest("cosine_sofmax", ["softmax", "cosine_softmax"])
    " Did you mean 'cosine_softmax'?"
    >>> nearest("zzz", ["softmax"])
    ''
    """
    pool = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), pool, n=1, cutoff=0.5)
    return f" Did you mean '{pool[close[0]]}'?" if close else ""


def unknown(kind: str, name: str, candidates: Iterable[str]) -> RequestError:
    """The error for an unknown name.

    >>> print(unknown("metric", "top-1", ["top1", "knn"]))
    unknown metric 'top-1'. Did you mean 'top1'? Known: top1, knn.
    """
    name, known = str(name), list(candidates)
    listed = ", ".join(known) if known else "none"
    return RequestError(f"unknown {kind} '{name}'.{nearest(name, known)} Known: {listed}.")
