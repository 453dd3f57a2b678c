"""Open files that stand for a lock or a lease: only the process that opened them holds them.

The kernel frees a flock once no process has its file open. A fork has all files of its process open, so that
a process that decodes images, say, would keep the locks of a parent that was killed.
"""

from __future__ import annotations

import os
from pathlib import Path

_held: set[int] = set()


def opened(path: Path, flags: int) -> int:
    """Open a file that no fork of this process is to hold."""
    file = os.open(path, flags, 0o666)
    _held.add(file)
    return file


def close(file: int) -> None:
    """Close such a file."""
    _held.discard(file)
    os.close(file)


def _let_go() -> None:
    """Make what a fork of the holder has open lead nowhere: it may write and close, and changes nothing."""
    if _held:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for file in _held:
            os.dup2(nowhere, file, inheritable=False)
        os.close(nowhere)


os.register_at_fork(after_in_child=_let_go)
