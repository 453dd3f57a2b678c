"""Checks of single values; their errors say what was expected, what came and the nearest known name."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TypeGuard

from penultimate.errors import RequestError, shortened, unknown

LARGEST = 2**63 - 1
"""The largest 64-bit integer."""


def is_whole(value: object, least: int = -LARGEST) -> TypeGuard[int]:
    """Return whether a value is an int of at least `least`; True and False do not count.

    >>> is_whole(3), is_whole(0, 1), is_whole(True), is_whole(3.0)
    (True, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite int or float; True and False do not count.

    >>> is_number(0.5), is_number(float("nan")), is_number(10**400), is_number(False)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def whole_number(value: object, name: str, least: int, most: int = LARGEST) -> int:
    """Return `value` as an int from `least` to `most`; raises RequestError for anything else.

    >>> whole_number(0, "k", 1)
    Traceback (most recent call last):
    penultimate.errors.RequestError: k must be a whole number of at least 1; got 0
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        above = "" if most == LARGEST else f" and at most {most}"
        raise RequestError(f"{name} must be a whole number of at least {least}{above}; got {value!r}")
    return int(value)


def real_number(value: object, name: str, above: float, below: float = math.inf) -> float:
    """Return `value` as a float strictly between two bounds; raises RequestError for anything else.

    >>> real_number("x", "temperature", above=0)
    Traceback (most recent call last):
    penultimate.errors.RequestError: temperature must be a number in (0, inf); got 'x'
    """
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    try:
        found = float(value) if is_real else math.nan  # type: ignore[arg-type]
    except OverflowError:
        found = math.nan
    if not above < found < below:
        raise RequestError(f"{name} must be a number in ({above:g}, {below:g}); got {shortened(repr(value))}")
    return found


def one_of(value: object, kind: str, known: Iterable[str]) -> None:
    """Raise RequestError, with the nearest known name, unless `value` is one of the known names."""
    if not isinstance(value, str) or value not in known:
        raise unknown(kind, str(value), known)
