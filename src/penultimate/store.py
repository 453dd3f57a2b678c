"""Step folders on disk: written in `partial/` and renamed when complete, with a sha256 of every file.

ROOT/steps/ID/      meta.json (which holds its own sha256 and those of the other files), rows.jsonl and the
                    step's other files; never written again
ROOT/partial/ID/    work in progress, with its checkpoints; a killed run leaves it, the next one resumes it
ROOT/locks/ID       locked (flock) while a process works on the step; the kernel frees it when the process
                    ends. If machines share the store, there is also a lease, locks/ID.lease/NUMBER, and the
                    partial folder is called ID@NUMBER
ROOT/locks/.shared  a mark that machines share this store, whatever its file system; its text is random
ROOT/damaged/       files that no longer matched their digests, kept for inspection
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import shutil
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import FULL, atomic_write, digest_file, given_path, read_sealed, sealed, sync
from penultimate.locks import Lease, LostLeaseError, flock_holder, flocked, is_shared, lease_holder, leased

SCHEMA = 2
META = "meta.json"
SMALL = 64 * 1024
"""The size in bytes up to which files are digested at every look, because that costs next to nothing."""


@dataclass(frozen=True)
class Meta:
    """Record of a finished step, as its `meta.json` holds it."""

    id: str
    step: str
    status: str
    content: dict[str, Any]

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        files: dict[str, dict[str, Any]] = self.content["files"]
        return files


class Store:
    """The shared root of all finished and unfinished steps; a `thorough` store always digests every file.

    Raises RequestError if the root cannot be a folder.
    """

    def __init__(self, root: Path | str, thorough: bool = False) -> None:
        self.root = given_path(root, "--out")
        self.thorough = thorough
        try:
            is_file = self.root.exists() and not self.root.is_dir()
            (self.root / "steps").exists()
        except OSError as error:
            raise RequestError(
                f"the output folder '{root}' cannot be read: {error.strerror or error}; give --out another"
                " folder"
            ) from None
        if is_file:
            raise RequestError(f"the output folder '{root}' is, or lies below, a file; give --out a folder")
        self._verified: set[str] = set()
        self._metas: dict[str, Meta] = {}
        self._leases: dict[str, Lease] = {}

    def prepare(self, shared: bool = False) -> None:
        """Make the folders; raises RequestError if this place cannot be written to.

        In a store that is `shared`, every lock is a lease from now on, for all processes on all machines.
        """
        folders = [self.root / name for name in ("steps", "partial", "locks", "studies")]
        for path in (*folders, self.root / "damaged", self.mark):
            if path.is_symlink():
                raise RequestError(f"'{path}' is a link, which nothing is written through; move it away")
        try:
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
            atomic_write(self.root / "partial" / ".writable", b"")
            if shared or is_shared(self.root):
                with contextlib.suppress(FileExistsError), self.mark.open("x", encoding="utf-8") as file:
                    file.write(secrets.token_hex(16))
        except (FileExistsError, NotADirectoryError) as error:
            raise RequestError(
                f"'{error.filename}' is, or lies below, a file; move it away, or give --out another folder"
            ) from None
        except PermissionError:
            raise RequestError(
                f"the output folder '{self.root}' is read-only for this user; give --out a folder you own"
            ) from None
        except OSError as error:
            mend = "free some space or give" if error.errno in FULL else "give"
            raise RequestError(
                f"the output folder '{self.root}' cannot be written to: {error.strerror or error};"
                f" {mend} --out another folder"
            ) from None

    def study(self, name: str) -> Path:
        """Make and return the folder of a study; raises RequestError if the path is anything else."""
        folder = self.root / "studies" / name
        why = "is a link, which nothing is written through" if folder.is_symlink() else ""
        try:
            folder.mkdir(exist_ok=True)
        except FileExistsError:
            why = why or "is a file"
        for other in () if why else folder.parent.iterdir():
            if other.name != name and not other.is_symlink() and other.samefile(folder):
                why = f"is the folder of '{other.name}' too: this file system takes the names for the same"
        if why:
            raise RequestError(f"'{folder}' {why}; give the study another name, or move that away")
        return folder

    def folder(self, step_id: str) -> Path:
        return self.root / "steps" / step_id

    def partial(self, step_id: str) -> Path:
        """Return the folder in which this process works on a step."""
        lease = self._leases.get(step_id)
        return self.root / "partial" / (step_id if lease is None else f"{step_id}@{lease.number}")

    @property
    def mark(self) -> Path:
        """Path of the file that exists if machines share the store."""
        return self.root / "locks" / ".shared"

    @contextlib.contextmanager
    def lock(self, path: Path, wait: bool = False, above: int = 0) -> Iterator[Lease | None]:
        """Hold a lock of this store: a flock and, if machines share the store, a lease; raises BusyError.

        There is no flock on a file system that machines share. The mark is looked for once the flock is held,
        so that it can be set at any time. The number of a lease is greater than `above`.
        """
        with contextlib.ExitStack() as stack:
            over_network = is_shared(self.root)
            if not over_network:
                stack.enter_context(flocked(path, wait))
            if over_network or self.mark.exists():
                yield stack.enter_context(leased(_lease(path), wait, above))
            else:
                yield None

    def holder(self, path: Path) -> dict[str, Any] | None:
        """Return the description of a lock's holder, as far as one look can tell, or None if it is free."""
        holder = lease_holder(_lease(path))
        return flock_holder(path) if holder is None else holder

    @contextlib.contextmanager
    def step_lock(self, step_id: str) -> Iterator[None]:
        """Let one process work on a step; a second one waits, and then finds the step done.

        Raises LostLeaseError if this process was so slow that another one has taken the step over. An
        exception that was raised meanwhile may be a consequence of that.
        """
        # If a lease was deleted, its holder may still be working in the folder that has its number.
        above = max(self._numbered(step_id), default=0)
        with self.lock(self.root / "locks" / step_id, True, above) as lease:
            if lease is None:
                yield
                return
            self._leases[step_id] = lease
            try:
                self._take_over(step_id, lease)
                yield
            except Exception as error:
                if not lease.is_held():
                    shutil.rmtree(self.partial(step_id), ignore_errors=True)
                    raise LostLeaseError(f"step {step_id} was taken over by another process") from error
                raise
            finally:
                del self._leases[step_id]

    def _take_over(self, step_id: str, lease: Lease) -> None:
        """Move what earlier holders left to the folder of this lease, where a slow holder does not find it.

        Files that such a holder may still have open are copied, so that it does not write into ours.
        """
        _look_anew(self.root / "steps")
        partial, mine = self.root / "partial", self.partial(step_id)
        earlier = self._numbered(step_id)
        for path in (partial / step_id, *(earlier[number] for number in sorted(earlier))):
            if path != mine and path.is_dir() and not path.is_symlink():
                with contextlib.suppress(FileNotFoundError):
                    _remove(mine)
                with contextlib.suppress(FileNotFoundError):
                    path.replace(mine)
        if lease.took_over:
            for path in [path for path in mine.rglob("*") if path.is_file() and not path.is_symlink()]:
                copy = path.with_name(f".{path.name}.tmp")
                shutil.copy2(path, copy)
                copy.replace(path)

    def _numbered(self, step_id: str) -> dict[int, Path]:
        """Return the partial folders of a step that are named after leases, by the numbers of the leases."""
        found = (self.root / "partial").glob(f"{glob.escape(step_id)}@*")
        numbered = {path.name.rpartition("@")[2]: path for path in found}
        return {int(text): path for text, path in numbered.items() if text.isdecimal() and text.isascii()}

    def meta(self, step_id: str) -> Meta | None:
        """Return the meta of a finished step, or None if the step does not exist.

        Raises DamagedFileError if the meta is missing or not what was written, and RequestError if it has
        another schema.
        """
        if step_id not in self._metas:
            meta = self._read_meta(step_id)
            if meta is None:
                return None
            self._metas[step_id] = meta
        return self._metas[step_id]

    def _read_meta(self, step_id: str) -> Meta | None:
        try:
            content = read_sealed(self._file(step_id, META), SCHEMA, f"step {step_id}: {META}")
        except FileNotFoundError as error:
            if not self.folder(step_id).exists():
                return None
            raise DamagedFileError(f"step {step_id}: {META} cannot be read ({error.strerror})") from None
        if content["id"] != step_id:
            raise DamagedFileError(f"step {step_id}: {META} is that of step {content['id']}")
        return Meta(step_id, content["step"], content["status"], content)

    def holds(self, step_id: str) -> bool:
        """Return whether a step exists, whole or not; no file is read.

        Raises OSError if its folder cannot be looked into.
        """
        try:
            os.stat(self._file(step_id, META))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return False
            raise
        return True

    def written(self, step_id: str) -> float:
        """Return the time at which a step was finished, in seconds since 1970: that of its meta.json."""
        return os.stat(self._file(step_id, META)).st_mtime

    def digest(self, step_id: str) -> str | None:
        """Return the sha256 of a finished step's meta.json, which holds those of its other files, or None."""
        try:
            return digest_file(self._file(step_id, META))
        except OSError:
            return None

    def finished(self, step_id: str) -> Meta | None:
        """Return the meta of a step that is done and, at a quick look, whole, or None if it does not exist.

        Small files and rows are digested, a large file only if its size is wrong or its time is later than
        that of meta.json. A large file that was changed while its time was kept, or while the clock was set
        back, is found by a thorough store and by `verify`, which digests all files of a step before they are
        used. What was read is not kept, because a study has many steps. Raises DamagedFileError.
        """
        self._metas.pop(step_id, None)
        meta = self._read_meta(step_id)
        if meta is not None:
            for name, facts in meta.files.items():
                if self.thorough or not self._looks_untouched(step_id, name, facts["bytes"]):
                    self._expect_whole(meta, name)
        return meta

    def is_whole(self, step_id: str) -> bool:
        """Return whether a step is done and, at a quick look, whole."""
        try:
            return self.finished(step_id) is not None
        except DamagedFileError:
            return False

    def verify(self, step_id: str) -> Path:
        """Return the folder of a finished step; its files are compared with their digests the first time."""
        if step_id not in self._verified:
            meta = self.meta(step_id)
            if meta is None:
                raise DamagedFileError(f"step {step_id} is missing")
            for name in meta.files:
                self._expect_whole(meta, name)
            self._verified.add(step_id)
        return self.folder(step_id)

    def verified(self, step_id: str, name: str) -> Path:
        """Return a file of a finished step, checked against its digest; raises DamagedFileError."""
        meta = self.meta(step_id)
        if meta is None or name not in meta.files:
            raise DamagedFileError(f"step {step_id}: {name} is missing")
        self._expect_whole(meta, name)
        return self.folder(step_id) / name

    def set_aside(self, step_id: str) -> None:
        """Move a damaged step out of the way, so that it is computed again."""
        folder = self.folder(step_id)
        self._metas.pop(step_id, None)
        self._verified.discard(step_id)
        if os.path.lexists(folder):
            self.keep_aside(folder)

    def keep_aside(self, path: Path) -> None:
        """Move a file, a folder or a link to the folder of damaged files."""
        damaged = self.root / "damaged" / f"{path.name}-{secrets.token_hex(4)}"
        damaged.mkdir(parents=True)
        path.replace(damaged / path.name)

    def begin(self, step_id: str) -> Path:
        """Return the partial folder of a step, with what it already holds.

        Temporary files that were left are removed, and so are links, through which files would be written
        elsewhere.
        """
        folder = self.partial(step_id)
        if not folder.is_dir() or folder.is_symlink():
            folder.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        for path in list(folder.rglob("*")):
            left = path.is_file() and path.name.startswith(".") and path.suffix == ".tmp"
            if left or path.is_symlink():
                path.unlink(missing_ok=True)
        return folder

    def finish(self, step_id: str, meta: dict[str, Any], scratch: tuple[str, ...] = ()) -> None:
        """Digest the files of the partial folder, write meta.json, and move the durable folder into place.

        Raises LostLeaseError if another process has taken the step over meanwhile.
        """
        from concurrent.futures import ThreadPoolExecutor

        folder = self.partial(step_id)
        for pattern in scratch:
            for path in folder.glob(pattern):
                _remove(path)
        files = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != META:
                facts = {"sha256": digest_file(path), "bytes": path.stat().st_size}
                files[path.relative_to(folder).as_posix()] = facts
        (folder / META).write_bytes(sealed({"id": step_id, **meta, "files": files}, SCHEMA))
        with ThreadPoolExecutor(4) as pool:  # together, so that one commit of the file system holds several
            deque(pool.map(sync, (folder, *folder.rglob("*"))), maxlen=0)
        lease = self._leases.get(step_id)
        if lease is not None and not lease.is_held():
            raise LostLeaseError(f"step {step_id} was taken over by another process")
        target = self.folder(step_id)
        self.set_aside(step_id)
        folder.replace(target)
        sync(target.parent)
        self._metas.pop(step_id, None)
        self._verified.add(step_id)

    def _file(self, step_id: str, name: str) -> str:
        return f"{self.root}/steps/{step_id}/{name}"

    def _expect_whole(self, meta: Meta, name: str) -> None:
        """Raise DamagedFileError if a file of a step does not have the digest that its meta states."""
        try:
            same = digest_file(self._file(meta.id, name)) == meta.files[name]["sha256"]
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise DamagedFileError(f"step {meta.id}: {name} is missing") from None
        except OSError as error:
            raise DamagedFileError(f"step {meta.id}: {name} cannot be read ({error.strerror})") from None
        if not same:
            raise DamagedFileError(f"step {meta.id}: {name} is not what was written (its sha256 differs)")

    def _looks_untouched(self, step_id: str, name: str, size: int) -> bool:
        """Return whether a file is large, has the size that its meta states, and is no newer than that."""
        if size <= SMALL or name.endswith(".jsonl"):
            return False
        try:
            state, meta = ((self.folder(step_id) / file).stat() for file in (name, META))
        except OSError:
            return False
        return state.st_size == size and state.st_mtime_ns <= meta.st_mtime_ns


def _lease(path: Path) -> Path:
    return path.with_name(f"{path.name}.lease")


def _remove(path: Path) -> None:
    """Remove a file, a folder with its content, or a link, but not the target of the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _look_anew(folder: Path) -> None:
    """Change a folder for a moment, so that an NFS client that remembers missing files asks again."""
    path = folder / f".{os.getpid()}.tmp"
    path.touch()
    path.unlink(missing_ok=True)
