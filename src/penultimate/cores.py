"""The number of processor cores that this process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the number of cores that this process may use under the limits set by taskset or Slurm.

    A system that does not report limits (macOS, Windows) allows all cores of the machine.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
