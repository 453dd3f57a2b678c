"""The environment variables that this package reads; a value that is not valid is refused.

An empty variable counts as unset.
"""

from __future__ import annotations

import math
import os

from penultimate.errors import RequestError, shortened

DEVICE = "PENULTIMATE_DEVICE"
"""The device for steps that have a share of a GPU; the engines set it."""
CUDA, CPU = "cuda", "cpu"
CHECKPOINT_SECONDS = "PENULTIMATE_CHECKPOINT_SECONDS"
"""The seconds between two checkpoints of a training; they change no result."""
RANGES = {CHECKPOINT_SECONDS: (20.0, 0.0, 86_400.0)}
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


def device(usual: str) -> str:
    """Return the device that DEVICE gives, or the default if it is not set."""
    text = os.environ.get(DEVICE) or usual
    if text not in (CUDA, CPU):
        raise _refused(DEVICE, f"is '{CUDA}' or '{CPU}'")
    return text


def expect_variables() -> None:
    """Raise RequestError for the first variable whose value is not valid."""
    for variable in RANGES:
        seconds(variable)
    device(CUDA)


def _refused(variable: str, expected: str) -> RequestError:
    text = shortened(repr(os.environ[variable]), 80)
    return RequestError(f"the environment variable {variable} {expected}, not {text}; change it or unset it")
