"""Locks that one process holds: flock on one machine, leases where machines share a folder.

The kernel frees a flock when its holder ends, however it ends. No kernel knows of all holders on a file
system that machines share, so there a lease is held by beating: its holder keeps changing its file, and a
lease that stood still for so many looks of whoever waits is over. Looks are counted and no times compared, so
clocks that differ or are set back do not matter, nor does a waiter that was asleep itself.

A lease is a file in a folder of its own, named by its number. Whoever makes the next number (O_EXCL: one of
all) is the holder; a holder writes to the file that it has open and to nothing else. So a holder that was
only slow cannot take its lease back, and can tell that it is over: a greater number is there.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penultimate.errors import PenultimateError

LEASE_SECONDS = "PENULTIMATE_LEASE_SECONDS"
"""The environment variable with the seconds after which the leases of this process's steps are over."""
LOOKS = 30
"""The looks without a change after which a lease is over."""
BEATS = 6
"""How often a holder changes its file in this time."""
FREE = b"free".ljust(12)
SHARED: tuple[str, ...] = (
    "nfs",
    "cifs",
    "smb",
    "fuse.",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "glusterfs",
    "9p",
    "virtiofs",
)
SHARED += ("afs", "ocfs2", "gfs2", "orangefs", "pvfs2", "wekafs", "panfs", "vboxsf", "vmhgfs")
"""How the types of file systems begin that several machines may have mounted."""


class BusyError(PenultimateError):
    """Another process holds the lock; the message is what it says of itself, as JSON."""


class LostLeaseError(PenultimateError):
    """This process was so slow that another took its lease over, and goes on with its work."""


def is_shared(folder: Path, mounts: str | None = None) -> bool:
    """Whether a folder lies on a file system of a kind that several machines share.

    >>> is_shared(Path("/shared/a/runs"), "/dev/sda / ext4 rw 0 0\\nserver:/shared /shared nfs4 rw 0 0")
    True
    >>> is_shared(Path("/shares/runs"), "/dev/sda / ext4 rw 0 0\\nserver:/shared /shared nfs4 rw 0 0")
    False
    """
    if mounts is None:
        try:
            mounts = os.fsdecode(Path("/proc/self/mounts").read_bytes())
        except OSError:
            return False
    types = {}
    for line in mounts.splitlines():
        _, place, kind, *_ = line.split(" ")
        types[Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), place))] = kind
    resolved = folder.resolve()
    return next(
        (types[at].startswith(SHARED) for at in (resolved, *resolved.parents) if at in types),
        False,
    )


@contextlib.contextmanager
def flocked(path: Path, wait: bool = False) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel frees it when the process ends, however it ends.

    Raises BusyError where another holds it and it is not waited for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.seek(0)
            raise BusyError(file.read().strip()) from None
        file.seek(0)
        file.truncate()
        file.write(json.dumps({"pid": os.getpid(), "host": os.uname().nodename}))
        file.flush()
        yield


def flock_holder(path: Path) -> dict[str, Any] | None:
    """Who holds the lock of a file, which is not changed."""
    try:
        with path.open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                facts: dict[str, Any] = json.loads(file.read() or "{}")
                return facts
    except OSError:
        pass
    return None


class Lease:
    """A turn of one holder; `took_over` says that the one before may still be at work, slow as it was."""

    def __init__(self, folder: Path, number: int, file: int, took_over: bool) -> None:
        self.folder, self.number, self.took_over = folder, number, took_over
        self._file = file

    def is_held(self) -> bool:
        return _last(self.folder) == self.number

    def beat(self, mark: bytes) -> None:
        with contextlib.suppress(OSError):  # a full or absent disk: another may take the lease over
            os.pwrite(self._file, mark, 0)
            os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)


@contextlib.contextmanager
def leased(folder: Path, wait: bool = False) -> Iterator[Lease]:
    """Hold the lease of a folder, which is made.

    Raises BusyError where its holder shows signs of life and is not waited for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lease = _next(folder, wait)
    over = threading.Event()
    beating = threading.Thread(target=_beat, args=(lease, over), daemon=True)
    beating.start()
    try:
        yield lease
    finally:
        over.set()
        beating.join()
        lease.beat(FREE)
        lease.close()


def lease_holder(folder: Path) -> dict[str, Any] | None:
    """Who holds the lease of a folder, as far as one look and this machine's clock can tell."""
    number = _last(folder)
    content = _read(folder, number) if number else FREE
    facts = _facts(content)
    if content.startswith(FREE) or _has_ended(facts):
        return None
    quiet = time.time() - (folder / str(number)).stat().st_mtime
    return None if quiet > 10 * facts.get("seconds", _seconds()) else facts


def _next(folder: Path, wait: bool) -> Lease:
    watched: tuple[int, bytes] | None = None
    quiet = 0
    while True:
        number = _last(folder)
        content = _read(folder, number) if number else FREE
        facts = _facts(content)
        is_over = content.startswith(FREE) or _has_ended(facts)
        quiet = quiet + 1 if watched == (number, content) else 0
        if is_over or quiet >= LOOKS:
            lease = _claim(folder, number + 1, took_over=not is_over)
            if lease is not None:
                return lease
        elif not wait and (_runs(facts) or watched not in (None, (number, content))):
            raise BusyError(json.dumps(facts))
        else:
            watched = (number, content)
            time.sleep(facts.get("seconds", _seconds()) / LOOKS)


def _claim(folder: Path, number: int, took_over: bool) -> Lease | None:
    """The lease of this number, or None where another process was there before."""
    try:
        file = os.open(folder / str(number), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
    except FileExistsError:
        return None
    facts = {"pid": os.getpid(), "host": os.uname().nodename, "seconds": _seconds()}
    mine = {**facts, "machine": _machine(), "began": _began(os.getpid())}
    os.write(file, b"0".rjust(len(FREE)) + json.dumps(mine).encode())
    os.fsync(file)
    lease = Lease(folder, number, file, took_over)
    if not lease.is_held():  # it was looked for long ago: others came and went
        lease.close()
        (folder / str(number)).unlink(missing_ok=True)
        return None
    for older in folder.iterdir():
        if older.name.isdigit() and int(older.name) < number:
            older.unlink(missing_ok=True)
    return lease


def _beat(lease: Lease, over: threading.Event) -> None:
    count = 0
    while not over.wait(_seconds() / BEATS):
        count += 1
        lease.beat(str(count).rjust(len(FREE)).encode())


def _last(folder: Path) -> int:
    try:
        return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=0)
    except FileNotFoundError:
        return 0


def _read(folder: Path, number: int) -> bytes:
    try:
        return (folder / str(number)).read_bytes()
    except FileNotFoundError:
        return b""


def _facts(content: bytes) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads(content[len(FREE) :])
    except ValueError:  # its holder was about to write it
        return {}
    return facts


def _runs(facts: dict[str, Any]) -> bool:
    """Whether the process is one of those that are seen from here."""
    return _is_here(facts) and facts["began"] == _began(facts["pid"])


def _has_ended(facts: dict[str, Any]) -> bool:
    """Whether the process was one of those that are seen from here; its number may be another's by now."""
    return _is_here(facts) and facts["began"] != _began(facts["pid"])


def _is_here(facts: dict[str, Any]) -> bool:
    return bool(facts) and facts["machine"] == _machine() != ""


def _machine() -> str:
    """This kernel since it was started, and the processes that are seen from here; "" where it cannot say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8", "replace").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _began(pid: int) -> str | None:
    """When a process of this machine was started, in ticks since the kernel was; None where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _seconds() -> float:
    return float(os.environ.get(LEASE_SECONDS, "30"))
