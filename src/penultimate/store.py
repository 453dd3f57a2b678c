"""Step folders on disk: written in `partial/`, renamed when whole, every file under a sha256.

ROOT/steps/ID/      meta.json (which holds the sha256 of the others, and its own), rows.jsonl and the step's
                    other files; never written again
ROOT/partial/ID/    work in progress, with its checkpoints; a killed run leaves it, the next one resumes it
ROOT/locks/ID       held (flock) while a process works on the step, freed by the kernel when it dies
ROOT/damaged/       what no longer matched its digest, kept for a look
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from penultimate.errors import DamagedFileError, PenultimateError, RequestError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

SCHEMA = 2
META = "meta.json"
SMALL = 64 * 1024
"""Bytes up to which a file is digested whenever its step is looked at, for that costs next to nothing."""
FULL = (errno.ENOSPC, errno.EDQUOT)


class BusyError(PenultimateError):
    """Another process holds the lock."""


def digest_bytes(content: bytes) -> str:
    """sha256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def digest_file(path: Path | str) -> str:
    """sha256 of a file's content, in hexadecimal."""
    state = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 (read for every step of a store)
        while block := file.read(SMALL):
            state.update(block)
    return state.hexdigest()


def digest_arrays(*arrays: npt.NDArray[np.generic]) -> str:
    """sha256 of the types, shapes and contents of arrays, in their order."""
    import numpy as np

    state = hashlib.sha256()
    for array in arrays:
        whole = np.ascontiguousarray(array)
        state.update(f"{whole.dtype.str}{whole.shape}".encode())
        state.update(whole.reshape(-1).view(np.uint8).data)
    return state.hexdigest()


canonical_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""JSON with sorted keys and no spaces: equal values have equal strings."""


def sync(path: Path) -> None:
    """Make a file's content durable, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Make a folder that a user has named, with those above it; raises RequestError where it cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in FULL:
            raise
        raise RequestError(
            f"'{path}' cannot be made a folder ({error.strerror or error}); give another place with --to"
        ) from None


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new one, never a part."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
        sync(path.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def lock(path: Path, wait: bool = False) -> Iterator[IO[str]]:
    """Hold an exclusive lock on a file; the kernel frees it when the process ends, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.seek(0)
            raise BusyError(file.read().strip()) from None
        file.seek(0)
        file.truncate()
        file.write(json.dumps({"pid": os.getpid(), "host": os.uname().nodename}))
        file.flush()
        yield file


@dataclass(frozen=True)
class Meta:
    """What a finished step says of itself (`meta.json`)."""

    id: str
    step: str
    status: str
    content: dict[str, Any]

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        files: dict[str, dict[str, Any]] = self.content["files"]
        return files


class Store:
    """The shared root of all finished and unfinished steps."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self._verified: set[str] = set()
        self._metas: dict[str, Meta] = {}

    def prepare(self) -> None:
        """Make the folders, and say so plainly when this place cannot be written to."""
        try:
            for name in ("steps", "partial", "locks", "studies"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            atomic_write(self.root / "partial" / ".writable", b"")
        except (FileExistsError, NotADirectoryError):
            raise RequestError(
                f"the output folder '{self.root}' is, or lies below, a file; give --out a folder"
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

    def folder(self, step_id: str) -> Path:
        return self.root / "steps" / step_id

    def partial(self, step_id: str) -> Path:
        return self.root / "partial" / step_id

    def step_lock(self, step_id: str) -> contextlib.AbstractContextManager[IO[str]]:
        """One process works on a step; a second one waits, and then finds it done."""
        return lock(self.root / "locks" / step_id, wait=True)

    def meta(self, step_id: str) -> Meta | None:
        """The meta of a finished step; None where the step is not there.

        Raises DamagedFileError for a meta that is missing or not what was written, RequestError for one of
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
            with open(self._file(step_id, META), "rb", buffering=0) as file:  # noqa: PTH123
                sealed = file.read()
            content = json.loads(sealed.decode())
            digest = content.pop("sha256", None)
            fits = digest in _digests(sealed, content)
            schema = content["schema"]
            is_ours = fits and content["id"] == step_id
        except OSError as error:
            if not self.folder(step_id).exists():
                return None
            raise DamagedFileError(f"step {step_id}: {META} cannot be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DamagedFileError(f"step {step_id}: {META} is not what was written") from None
        if schema != SCHEMA and (fits or digest is None):
            raise RequestError(
                f"step {step_id} in '{self.root}' was written by another version of penultimate (schema"
                f" {schema}; this one reads {SCHEMA}); give --out another folder"
            )
        if not is_ours:
            raise DamagedFileError(f"step {step_id}: {META} is not what was written (its sha256 differs)")
        return Meta(step_id, content["step"], content["status"], content)

    def holds(self, step_id: str) -> bool:
        """Whether a step is there, whole or not: no file is read."""
        return os.path.exists(self._file(step_id, META))  # noqa: PTH110

    def finished(self, step_id: str) -> Meta | None:
        """The meta of a step that is done and, at a quick look, whole; None where the step is not there.

        Small files and rows are digested, a large file only if it was touched after meta.json; `verify`,
        which runs before a step's files are used, digests all of them. What was read is not kept: a study
        has many steps. Raises DamagedFileError.
        """
        self._metas.pop(step_id, None)
        meta = self._read_meta(step_id)
        if meta is not None:
            for name, facts in meta.files.items():
                if not self._looks_untouched(step_id, name, facts["bytes"]):
                    self._expect_whole(meta, name)
        return meta

    def is_whole(self, step_id: str) -> bool:
        """Whether a step is done and, at a quick look, whole."""
        try:
            return self.finished(step_id) is not None
        except DamagedFileError:
            return False

    def verify(self, step_id: str) -> Path:
        """The folder of a finished step, its files checked against their digests (once per `Store`)."""
        if step_id not in self._verified:
            meta = self.meta(step_id)
            if meta is None:
                raise DamagedFileError(f"step {step_id} is missing")
            for name in meta.files:
                self._expect_whole(meta, name)
            self._verified.add(step_id)
        return self.folder(step_id)

    def verified(self, step_id: str, name: str) -> Path:
        """A file of a finished step, checked against its digest; raises DamagedFileError."""
        meta = self.meta(step_id)
        if meta is None or name not in meta.files:
            raise DamagedFileError(f"step {step_id}: {name} is missing")
        self._expect_whole(meta, name)
        return self.folder(step_id) / name

    def set_aside(self, step_id: str) -> None:
        """Move a damaged step out of the way, so that it is computed anew."""
        folder = self.folder(step_id)
        self._metas.pop(step_id, None)
        self._verified.discard(step_id)
        if folder.exists():
            damaged = self.root / "damaged"
            damaged.mkdir(exist_ok=True)
            target = Path(tempfile.mkdtemp(dir=damaged, prefix=f"{step_id}-"))
            folder.replace(target / step_id)

    def begin(self, step_id: str) -> Path:
        """The partial folder of a step, stale temporary files swept; what it already holds is kept."""
        folder = self.partial(step_id)
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.glob(".*.tmp"):
            stale.unlink(missing_ok=True)
        return folder

    def finish(self, step_id: str, meta: dict[str, Any], scratch: tuple[str, ...] = ()) -> None:
        """Digest the partial folder's files, write meta.json, and rename it into place once it is durable."""
        from concurrent.futures import ThreadPoolExecutor

        folder = self.partial(step_id)
        for pattern in scratch:
            for path in folder.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        files = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != META:
                facts = {"sha256": digest_file(path), "bytes": path.stat().st_size}
                files[path.relative_to(folder).as_posix()] = facts
        content = {"schema": SCHEMA, "id": step_id, **meta, "files": files}
        (folder / META).write_bytes(_sealed(content))
        with ThreadPoolExecutor(4) as pool:  # at once, so that one commit of the file system holds several
            deque(pool.map(sync, (folder, *folder.rglob("*"))), maxlen=0)
        target = self.folder(step_id)
        if target.exists():
            self.set_aside(step_id)
        folder.replace(target)
        sync(target.parent)
        self._metas.pop(step_id, None)
        self._verified.add(step_id)

    def _file(self, step_id: str, name: str) -> str:
        return f"{self.root}/steps/{step_id}/{name}"

    def _expect_whole(self, meta: Meta, name: str) -> None:
        """Raises DamagedFileError for a file of a step whose digest is not that of its meta."""
        try:
            same = digest_file(self._file(meta.id, name)) == meta.files[name]["sha256"]
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise DamagedFileError(f"step {meta.id}: {name} is missing") from None
        except OSError as error:
            raise DamagedFileError(f"step {meta.id}: {name} cannot be read ({error.strerror})") from None
        if not same:
            raise DamagedFileError(f"step {meta.id}: {name} is not what was written (its sha256 differs)")

    def _looks_untouched(self, step_id: str, name: str, size: int) -> bool:
        """Whether a file too large to digest at every look has its size, and no time after meta.json's."""
        if size <= SMALL or name.endswith(".jsonl"):
            return False
        try:
            state, meta = ((self.folder(step_id) / file).stat() for file in (name, META))
        except OSError:
            return False
        return state.st_size == size and state.st_mtime_ns <= meta.st_mtime_ns


SEAL = b'\n "sha256": "'
"""What stands before the digest of a sealed file, and nowhere else in it: texts hold no newlines."""


def _sealed(content: Mapping[str, Any]) -> bytes:
    """JSON with the sha256 of its own bytes, which are digested without it."""
    whole = (json.dumps({**content, "sha256": ""}, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()
    before, seal, after = whole.partition(SEAL)
    return before + seal + digest_bytes(whole).encode() + after


def _digests(sealed: bytes, content: Mapping[str, Any]) -> Iterator[str]:
    """The digest that a sealed file should hold, then the one that the first stores held: of its content."""
    before, seal, after = sealed.partition(SEAL)
    yield digest_bytes(before + seal + after[64:])
    yield digest_bytes(canonical_json(content).encode())
