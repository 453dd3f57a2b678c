"""Locks that one process holds: flock on one machine, leases where machines share a folder.

The kernel frees a flock when its holder ends, however it ends. On a file system that machines share, no
kernel knows all holders. A lease is therefore held by a heartbeat: its holder keeps changing its file, and a
lease ends once a waiter has looked at it a given number of times without seeing a change. Looks are counted
and no times are compared, so that clocks may differ or be set back, and a waiter may have been asleep.

A lease is a file in a folder, and its name is a number. The process that creates the next number (O_EXCL lets
only one succeed) is the holder; it writes only to the file that it has open. A holder that was merely slow
can thus not take its lease back. It can tell that its lease is over, because a greater number exists or its
file is gone.

The holder's description in a lock or lease may be damaged, and is read with care. If it cannot be read, the
holder is unknown, and the lease is over once its file has stood still for as long as any other's.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penultimate.errors import PenultimateError, RequestError, legible, shortened
from penultimate.handles import close, opened
from penultimate.variables import LEASE_SECONDS, RANGES
from penultimate.variables import seconds as seconds_of

USUAL_SECONDS, *SECONDS = RANGES[LEASE_SECONDS]
LOOKS = 30
"""The number of looks without a change after which a lease is over."""
BEATS = 6
"""The number of times that a holder changes its file during these looks."""
FREE = b"free".ljust(12)
MOST_SAID = 4096
"""The number of bytes up to which a holder's description is read."""
SHARED = (
    *("nfs", "cifs", "smb", "fuse.", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "9p", "virtiofs"),
    *("afs", "ocfs2", "gfs2", "orangefs", "pvfs2", "wekafs", "panfs", "vboxsf", "vmhgfs"),
)
"""Prefixes of the types of file systems that several machines may mount."""


class BusyError(PenultimateError):
    """Error for a lock that another process holds; `holder` is its description, {} if it cannot be read."""

    def __init__(self, holder: dict[str, Any]) -> None:
        self.holder = holder
        super().__init__(f"it is held by {said_of(holder)}")


class LostLeaseError(PenultimateError):
    """Error for a process so slow that another process took over its lease."""


def is_shared(folder: Path, mounts: str | None = None) -> bool:
    """Return whether a folder lies on a type of file system that machines can share.

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


def said_of(holder: dict[str, Any]) -> str:
    """Return a sentence part that names the holder.

    >>> said_of({"pid": 7, "host": "alpha"}), said_of({})
    ('process 7 on alpha', 'a process of which nothing can be read')
    """
    if not holder:
        return "a process of which nothing can be read"
    return f"process {holder['pid']} on {holder['host']}"


@contextlib.contextmanager
def flocked(path: Path, wait: bool = False) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel frees it when the process ends, however it ends.

    Raises BusyError if another process holds it and `wait` is false, and RequestError if the file cannot
    serve as a lock.
    """
    file = _locked(path, wait)
    try:
        yield
    finally:
        close(file)


def _locked(path: Path, wait: bool) -> int:
    """Open the file of a lock as soon as this process can hold it."""
    with _refusing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            file = opened(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise _no_lock(path, "it is no file")
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                except BlockingIOError:
                    raise BusyError(_holder(os.pread(file, MOST_SAID, 0))) from None
                if is_at(file, path):  # otherwise the file was removed during the wait
                    me = {"pid": os.getpid(), "host": os.uname().nodename}
                    os.ftruncate(file, 0)
                    os.pwrite(file, json.dumps(me).encode(), 0)
                    return file
            except BaseException:
                close(file)
                raise
            close(file)


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn an error about the file of a lock into a RequestError that names the file."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise _no_lock(path, why) from None


def _no_lock(path: Path, why: str) -> RequestError:
    return RequestError(
        f"'{path}' cannot be used as a lock ({why}); nothing but the lock belongs there: once no run uses"
        " this folder, move it away, or mend who may read and write it"
    )


def is_at(file: int, path: Path) -> bool:
    """Return whether a path still leads to the file that is open."""
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except OSError:
        return False


def flock_holder(path: Path) -> dict[str, Any] | None:
    """Return the description of the holder of a file's lock, or None if it is free; nothing is changed.

    The description is {} if it cannot be read.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(os.pread(file, MOST_SAID, 0))
    except OSError:
        pass
    finally:
        os.close(file)
    return None


def _holder(content: bytes) -> dict[str, Any]:
    """Return a holder's description, or {} if it does not have the expected form."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):  # it is damaged or about to be written
        return {}
    pid, host = (said.get("pid"), said.get("host")) if isinstance(said, dict) else (None, None)
    if type(pid) is not int or not 0 < pid < 2**31 or type(host) is not str:
        return {}
    return {**said, "host": shortened(legible(host), 253)}


class Lease:
    """Lease of one holder; `took_over` says that the previous holder may still be working, only slowly."""

    def __init__(self, folder: Path, number: int, file: int, took_over: bool) -> None:
        self.folder, self.number, self.took_over = folder, number, took_over
        self._file = file

    def is_held(self) -> bool:
        """Return whether no other lease has followed and the file has not been replaced."""
        try:
            return _last(self.folder) == self.number and is_at(self._file, self.folder / str(self.number))
        except OSError:
            return False

    def beat(self, mark: bytes) -> None:
        with contextlib.suppress(
            OSError
        ):  # the disk is full or absent, and another process may take the lease over
            os.pwrite(self._file, mark, 0)
            os.fsync(self._file)

    def close(self) -> None:
        close(self._file)


@contextlib.contextmanager
def leased(folder: Path, wait: bool = False, above: int = 0) -> Iterator[Lease]:
    """Hold the lease of a folder, which is made if needed; its number is greater than `above`.

    Raises BusyError if its holder shows signs of life and `wait` is false, and RequestError if the folder
    cannot hold leases.
    """
    seconds = seconds_of(LEASE_SECONDS)
    with _refusing(folder):
        if folder.is_symlink():
            raise _no_lock(folder, "it is a link")
        folder.mkdir(parents=True, exist_ok=True)
        lease = _next(folder, wait, above, seconds)
    over = threading.Event()
    beating = threading.Thread(target=_beat, args=(lease, over, seconds), daemon=True)
    beating.start()
    try:
        yield lease
    finally:
        over.set()
        beating.join()
        lease.beat(FREE)
        lease.close()


def lease_holder(folder: Path) -> dict[str, Any] | None:
    """Return the holder of a folder's lease, as far as one look and this machine's clock can tell."""
    try:
        number = _last(folder)
        content = _read(folder, number) if number else FREE
        facts = _facts(content)
        if content.startswith(FREE) or _runs(facts) is False:
            return None
        if _runs(facts):
            return facts
        quiet = time.time() - (folder / str(number)).lstat().st_mtime
    except OSError:  # it cannot be read, or another lease has just followed it
        return None
    return None if abs(quiet) > 10 * facts.get("seconds", USUAL_SECONDS) else facts


def _next(folder: Path, wait: bool, above: int, seconds: float) -> Lease:
    watched: tuple[int, bytes] | None = None
    quiet = 0
    while True:
        number = _last(folder)
        content = _read(folder, number) if number else FREE
        facts = _facts(content)
        is_over = content.startswith(FREE) or _runs(facts) is False
        quiet = quiet + 1 if watched == (number, content) else 0
        if is_over or quiet >= LOOKS:
            lease = _claim(folder, max(number, above) + 1, not is_over, seconds)
            if lease is not None:
                return lease
        elif not wait and (_runs(facts) or watched not in (None, (number, content))):
            raise BusyError(facts)
        else:
            watched = (number, content)
            time.sleep(facts.get("seconds", seconds) / LOOKS)


def _claim(folder: Path, number: int, took_over: bool, seconds: float) -> Lease | None:
    """Return the lease with this number, or None if another process has created it already."""
    if not _number(str(number)):
        raise _no_lock(folder / str(number - 1), "its number is too great")
    try:
        file = opened(folder / str(number), os.O_CREAT | os.O_EXCL | os.O_RDWR)
    except FileExistsError:
        return None
    lease, is_mine = Lease(folder, number, file, took_over), False
    try:
        facts = {"pid": os.getpid(), "host": os.uname().nodename, "seconds": seconds}
        mine = {**facts, "machine": _machine(), "began": _began(os.getpid())}
        os.write(file, b"0".rjust(len(FREE)) + json.dumps({**mine, "sha256": _digest(mine)}).encode())
        os.fsync(file)
        is_mine = lease.is_held()  # otherwise the look is outdated, and other leases came and went
    finally:
        if not is_mine:
            lease.close()
            (folder / str(number)).unlink(missing_ok=True)
    if not is_mine:
        return None
    for older in folder.iterdir():
        if 0 < _number(older.name) < number:
            with contextlib.suppress(OSError):  # a folder has the name of a lease, which disturbs nobody
                older.unlink()
    return lease


def _beat(lease: Lease, over: threading.Event, seconds: float) -> None:
    count = 0
    while not over.wait(seconds / BEATS):
        count += 1
        lease.beat(str(count).rjust(len(FREE)).encode())


def _last(folder: Path) -> int:
    """Return the greatest number of a lease in a folder, or 0 if there is none."""
    try:
        return max((_number(path.name) for path in folder.iterdir()), default=0)
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _number(name: str) -> int:
    """Return the number of a lease from the name of its file, or 0 for any other file."""
    return int(name) if re.fullmatch(r"[1-9][0-9]{0,14}", name) else 0


def _read(folder: Path, number: int) -> bytes:
    """Return the content of a lease or, if it is unreadable, something that changes with each heartbeat."""
    path = folder / str(number)
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            return os.pread(file, MOST_SAID, 0)
        finally:
            os.close(file)
    except FileNotFoundError:
        return b""
    except OSError:
        with contextlib.suppress(OSError):
            return f"changed {path.lstat().st_mtime_ns}".encode()
        return b""


def _facts(content: bytes) -> dict[str, Any]:
    """Return the description of a lease's holder, or {} if no holder wrote it."""
    facts = _holder(content[len(FREE) :])
    return facts if facts.pop("sha256", "") == _digest(facts) and _is_possible(facts.get("seconds")) else {}


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _runs(facts: dict[str, Any]) -> bool | None:
    """Return whether the process with this description still runs, or None if that cannot be told."""
    if not facts or facts.get("machine") != _machine() or not facts["machine"]:
        return None
    return bool(facts.get("began") == _began(facts["pid"]))


def _machine() -> str:
    """Return an identifier of this boot and process namespace, or "" if the system does not give one."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8", "replace").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _began(pid: int) -> str | None:
    """Return the start time of a process of this machine in ticks since boot, or None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def _is_possible(seconds: object) -> bool:
    return isinstance(seconds, int | float) and SECONDS[0] <= seconds <= SECONDS[1]
