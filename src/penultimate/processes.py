"""The processor cores and the environment of processes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping


def usable_cores() -> int:
    """Return the number of cores that this process may use under the limits set by taskset or Slurm."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def with_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for this process, and for those that it starts, within the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})
