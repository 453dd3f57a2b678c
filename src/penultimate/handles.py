"""Open files that stand for a lock or a lease, held only by the process that opened them.

The kernel releases a flock once no process has its file open. A forked process inherits all open files, so a
process that decodes images, for example, would keep the locks of a parent that was killed.
"""

from __future__ import annotations

import os
from pathlib import Path

_held: set[int] = set()


def opened(path: Path, flags: int) -> int:
    """Open a file that no fork of this process keeps open."""
    file = os.open(path, flags, 0o666)
    _held.add(file)
    return file


def close(file: int) -> None:
    """Close a file that `opened` has opened."""
    _held.discard(file)
    os.close(file)


def _let_go() -> None:
    """Redirect the files that a fork inherited, so that it may write and close them without any effect."""
    if _held:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for file in _held:
            os.dup2(nowhere, file, inheritable=False)
        os.close(nowhere)


os.register_at_fork(after_in_child=_let_go)
