"""The environment variables that this package reads; an empty variable counts as unset."""

from __future__ import annotations

import math
import os

from penultimate.errors import RequestError, shortened

DEVICE = "PENULTIMATE_DEVICE"
"""The device for steps that have a share of a GPU; the engines set it."""
CUDA, CPU = "cuda", "cpu"
CHECKPOINT_SECONDS = "PENULTIMATE_CHECKPOINT_SECONDS"
"""The seconds between two checkpoints of a training; they change no result."""
USUAL_SECONDS, MOST_SECONDS = 20.0, 86_400.0


def checkpoint_seconds() -> float:
    """Return the seconds between two checkpoints; raises RequestError for a value that is no such number."""
    text = os.environ.get(CHECKPOINT_SECONDS) or str(USUAL_SECONDS)
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= MOST_SECONDS:
        raise RequestError(
            f"the environment variable {CHECKPOINT_SECONDS} is a number of seconds from 0 to"
            f" {MOST_SECONDS:,.0f} (usually {USUAL_SECONDS:g}), not {shortened(repr(text), 80)}"
        )
    return found


def device(usual: str) -> str:
    """Return the device that DEVICE gives, or the default if it is not set."""
    text = os.environ.get(DEVICE) or usual
    if text not in (CUDA, CPU):
        raise RequestError(f"the environment variable {DEVICE} is '{CUDA}' or '{CPU}', not '{text}'")
    return text


def expect_variables() -> None:
    """Raise RequestError for the first variable whose value is not valid."""
    checkpoint_seconds(), device(CUDA)
