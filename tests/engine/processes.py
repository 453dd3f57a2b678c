"""Processes that a test has started, seen from outside."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], seconds: float = 60, poll: float = 0.02) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(poll)


def descendants(process: int) -> set[int]:
    """The processes that a process has started, and those that these have."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    parents = {int(pid): int(parent) for pid, parent in map(str.split, listed.stdout.splitlines())}
    found = {process}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {process}


def alive(processes: set[int]) -> set[int]:
    """Those that still run; a zombie that nobody asks about does not."""
    listed = subprocess.run(["ps", "-eo", "pid=,stat="], capture_output=True, text=True, check=True)
    states = dict(map(str.split, listed.stdout.splitlines()))
    return {pid for pid in processes if not states.get(str(pid), "Z").startswith("Z")}


def processes_called(beginning: str) -> set[int]:
    """The processes whose command line begins with this text."""
    listed = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True)
    split = (line.split(maxsplit=1) for line in listed.stdout.splitlines())
    return {int(pid) for pid, arguments in split if arguments.startswith(beginning)}
