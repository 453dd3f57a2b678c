"""The environment variables that this package reads; a value that is not valid is refused.

An empty variable counts as unset.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

from penultimate.errors import RequestError, shortened

CACHE = "PENULTIMATE_CACHE"
"""The folder in which timings are kept, in place of penultimate in $XDG_CACHE_HOME or ~/.cache."""
ANYWAY = "PENULTIMATE_ANYWAY"
"""Whether to start a study that does not fit according to the estimates, which may be wrong."""
DEVICE = "PENULTIMATE_DEVICE"
"""The device for steps that have a share of a GPU; the engines set it."""
CUDA, CPU = "cuda", "cpu"
CHECKPOINT_SECONDS = "PENULTIMATE_CHECKPOINT_SECONDS"
"""The seconds between two checkpoints of a training; they change no result."""
LEASE_SECONDS = "PENULTIMATE_LEASE_SECONDS"
"""The seconds after which the leases of this process's steps expire."""
RANGES = {CHECKPOINT_SECONDS: (20.0, 0.0, 86_400.0), LEASE_SECONDS: (30.0, 0.01, 3600.0)}
"""The default, smallest and largest number of seconds."""


def seconds(variable: str) -> float:
    """Return the seconds that a variable gives, or the default if it is not set."""
    usual, least, most = RANGES[variable]
    text = os.environ.get(variable, "")
    try:
        found = float(text) if text else usual
    except ValueError:
        found = math.nan
    if not least <= found <= most:
        raise _refused(variable, f"is a number of seconds from {least:g} to {most:,.0f} (usually {usual:g})")
    return found


def is_wanted(variable: str) -> bool:
    """Return whether a variable is 1 (yes) or 0 (no); raises RequestError for any other value."""
    text = os.environ.get(variable, "")
    if text not in ("", "0", "1"):
        raise _refused(variable, "is 1 (yes) or 0 (no)")
    return text == "1"


def device(usual: str) -> str:
    """Return the device that DEVICE gives, or the default if it is not set."""
    text = os.environ.get(DEVICE) or usual
    if text not in (CUDA, CPU):
        raise _refused(DEVICE, f"is '{CUDA}' or '{CPU}'")
    return text


def cache() -> Path:
    """Return the folder for what is cached about this machine; it may not exist yet.

    Raises RuntimeError if CACHE is not set and there is no home folder.
    """
    said = os.environ.get(CACHE)
    if not said:
        return (Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "penultimate").expanduser()
    try:
        folder = Path(said).expanduser()
        is_possible = next(place.is_dir() for place in (folder, *folder.absolute().parents) if place.exists())
    except (OSError, RuntimeError):  # the name is too long, or the user has no home
        is_possible = False
    if not is_possible:
        raise _refused(CACHE, "is a folder, or one that can be made")
    return folder


def expect_variables() -> None:
    """Raise RequestError for the first variable whose value is not valid."""
    readers: list[tuple[Callable[[str], object], str]] = [
        *((seconds, variable) for variable in RANGES),
        (is_wanted, ANYWAY),
        (device, CUDA),
    ]
    for read, what in readers:
        read(what)
    if os.environ.get(CACHE):
        cache()


def _refused(variable: str, expected: str) -> RequestError:
    text = shortened(repr(os.environ[variable]), 80)
    return RequestError(f"the environment variable {variable} {expected}, not {text}; change it or unset it")
