"""Times measured on this machine, kept in a small file of the user's cache folder to be measured once.

A time is valid for one processor type, one version of Python, torch and this package, the loaded plug-ins and
the timed task. It is measured again after KEPT_FOR days or when any of these changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from penultimate.engine.machine import machine
from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import atomic_write, canonical_json, digest_bytes, read_sealed, sealed
from penultimate.plugins import loaded
from penultimate.variables import cache

FILE, SCHEMA = "timings.json", 1
KEPT_FOR, MOST = 30, 200
"""The days for which a time is kept, and the number of times kept."""
DAY = 24 * 60 * 60
T = TypeVar("T")


class Timings:
    """The cached times, and those measured now.

    may_take   whether missing times are measured
    say        is called with a description before each measurement
    """

    def __init__(self, may_take: bool = True, say: Callable[[str], None] = lambda text: None) -> None:
        self.may_take, self.say = may_take, say

    def of(self, what: str, key: Any, take: Callable[[], T]) -> T | None:
        """Return the cached result of `take` or a new one; None if it is not cached and may not be measured.

        `key` holds everything that the measurement depends on besides this machine. `what` describes it for
        the user; "" means that it takes almost no time.
        """
        name = digest_bytes(canonical_json([key, _here()]).encode())
        kept = _kept()
        if name in kept:
            found: T = kept[name]["found"]
            return found
        if not self.may_take:
            return None
        if what:
            self.say(f"timing a batch of {what} on this machine")
        found = take()
        if found is not None:
            _keep({**kept, name: {"found": found, "at": time.time()}})
        return found


def _here() -> list[Any]:
    facts = machine()
    versions = [facts["packages"][name] for name in ("torch", "numpy", "penultimate")]
    return [facts["processor"], facts["python"], versions, [digest_bytes(each.source) for each in loaded()]]


def _place() -> Path:
    return cache() / FILE


def _kept() -> dict[str, dict[str, Any]]:
    """Return the valid cached times; none if the file is damaged or cannot be read."""
    try:
        found: dict[str, dict[str, Any]] = read_sealed(_place(), SCHEMA)["times"]
    except (OSError, RuntimeError, DamagedFileError, RequestError, KeyError):
        return {}
    now = time.time()
    return {name: each for name, each in found.items() if 0 <= now - each["at"] < KEPT_FOR * DAY}


def _keep(times: dict[str, dict[str, Any]]) -> None:
    latest = sorted(times, key=lambda name: times[name]["at"])[-MOST:]
    with suppress(OSError, RuntimeError, RequestError):  # no home folder, or a full disk: measured again
        place = _place()
        place.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(place, sealed({"times": {name: times[name] for name in latest}}, SCHEMA), durable=False)
