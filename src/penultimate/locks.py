"""Locks that one process holds at a time; the kernel frees a lock when its holder ends, however it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from errno import ENOLCK, ENOSYS, EOPNOTSUPP
from pathlib import Path

from penultimate.errors import PenultimateError, RequestError


class BusyError(PenultimateError):
    """Error for a lock that another process holds."""


@contextlib.contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a file, whose content does not matter; its folder is made if needed.

    Raises BusyError if another process holds it and `wait` is false, and RequestError on a file system
    without locks.
    """
    from filelock import FileLock, Timeout  # which takes 0.03 s that a listing does not need

    lock = FileLock(path, fallback_to_soft=False)
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        raise BusyError(f"another process holds the lock '{path}'") from None
    except OSError as error:
        if error.errno not in (ENOSYS, EOPNOTSUPP, ENOLCK):
            raise
        raise RequestError(
            f"the file system of '{path.parent}' has no locks, without which two runs could write the same"
            " file; give a folder on another disk, or have it mounted with locks (Lustre: -o flock)"
        ) from None
    try:
        yield
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock of a file; no file is made."""
    try:
        with locked(path) if path.exists() else contextlib.nullcontext():
            return False
    except (BusyError, OSError) as error:  # or this user may not open it
        return isinstance(error, BusyError)
