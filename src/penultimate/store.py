"""Step folders on disk: written in `partial/` and renamed when complete, with a sha256 of every file.

ROOT/steps/ID/     meta.json (which holds its own sha256 and those of the other files), rows.jsonl and the
                   step's other files; never written again
ROOT/partial/ID/   work in progress, with its checkpoints; a killed run leaves it, the next one resumes it
ROOT/locks/ID      locked while a process works on the step
ROOT/damaged/      files that no longer matched their digests, kept for inspection
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penultimate.errors import DamagedFileError, RequestError
from penultimate.files import atomic_write, digest_file, given_path, read_sealed, sealed, sync
from penultimate.locks import locked

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
        if self.root.exists() and not self.root.is_dir():
            raise RequestError(f"the output folder '{root}' is a file; give --out a folder")
        self._verified: set[str] = set()
        self._metas: dict[str, Meta] = {}

    def prepare(self) -> None:
        """Make the folders; raises RequestError if this place cannot be written to."""
        try:
            for name in ("steps", "partial", "locks", "studies"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
            atomic_write(self.root / "partial" / ".writable", b"")
        except OSError as error:
            raise RequestError(
                f"the output folder '{self.root}' cannot be written to ({error.strerror or error}); give"
                " --out another folder"
            ) from None

    def study(self, name: str) -> Path:
        """Make and return the folder of a study."""
        folder = self.root / "studies" / name
        folder.mkdir(exist_ok=True)
        return folder

    def folder(self, step_id: str) -> Path:
        return self.root / "steps" / step_id

    def partial(self, step_id: str) -> Path:
        """Return the folder in which a process works on a step."""
        return self.root / "partial" / step_id

    def step_lock(self, step_id: str) -> contextlib.AbstractContextManager[None]:
        """Let one process work on a step; a second one waits, and then finds the step done."""
        return locked(self.root / "locks" / step_id, wait=True)

    def meta(self, step_id: str) -> Meta | None:
        """Return the meta of a finished step, or None if the step does not exist.

        Raises DamagedFileError if the meta is missing or not what was written, and RequestError if it has
        another schema.
        """
        meta = self._metas.get(step_id) or self._read_meta(step_id)
        if meta is not None:
            self._metas[step_id] = meta
        return meta

    def _read_meta(self, step_id: str) -> Meta | None:
        try:
            content = read_sealed(self._file(step_id, META), SCHEMA, f"step {step_id}: {META}")
        except FileNotFoundError:
            if not self.folder(step_id).exists():
                return None
            raise DamagedFileError(f"step {step_id}: {META} is missing") from None
        if content["id"] != step_id:
            raise DamagedFileError(f"step {step_id}: {META} is that of step {content['id']}")
        return Meta(step_id, content["step"], content["status"], content)

    def holds(self, step_id: str) -> bool:
        """Return whether a step exists, whole or not; raises OSError if its folder cannot be looked into."""
        try:
            os.stat(self._file(step_id, META))
        except FileNotFoundError:
            return False
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
        that of meta.json. A thorough store and `verify` digest all files. What was read is not kept, because
        a study has many steps. Raises DamagedFileError.
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
        self._metas.pop(step_id, None)
        self._verified.discard(step_id)
        if self.folder(step_id).exists():
            self.keep_aside(self.folder(step_id))

    def keep_aside(self, path: Path) -> None:
        """Move a file or a folder to the folder of damaged files."""
        damaged = self.root / "damaged" / f"{path.name}-{secrets.token_hex(4)}"
        damaged.mkdir(parents=True)
        path.replace(damaged / path.name)

    def begin(self, step_id: str) -> Path:
        """Return the partial folder of a step with what it holds, but for files that were half written."""
        folder = self.partial(step_id)
        folder.mkdir(parents=True, exist_ok=True)
        for path in list(folder.rglob(".*.tmp")):
            path.unlink()
        return folder

    def finish(self, step_id: str, meta: dict[str, Any], scratch: tuple[str, ...] = ()) -> None:
        """Digest the files of the partial folder, write meta.json, and move the durable folder into place."""
        folder = self.partial(step_id)
        for pattern in scratch:
            for path in list(folder.glob(pattern)):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        files = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != META:
                facts = {"sha256": digest_file(path), "bytes": path.stat().st_size}
                files[path.relative_to(folder).as_posix()] = facts
        (folder / META).write_bytes(sealed({"id": step_id, **meta, "files": files}, SCHEMA))
        for path in (*folder.rglob("*"), folder):
            sync(path)
        self.set_aside(step_id)
        folder.replace(self.folder(step_id))
        sync(self.root / "steps")
        self._verified.add(step_id)

    def _file(self, step_id: str, name: str) -> str:
        return f"{self.root}/steps/{step_id}/{name}"

    def _expect_whole(self, meta: Meta, name: str) -> None:
        """Raise DamagedFileError if a file of a step does not have the digest that its meta states."""
        try:
            same = digest_file(self._file(meta.id, name)) == meta.files[name]["sha256"]
        except FileNotFoundError:
            raise DamagedFileError(f"step {meta.id}: {name} is missing") from None
        except OSError as error:
            raise DamagedFileError(f"step {meta.id}: {name} cannot be read ({error.strerror})") from None
        if not same:
            raise DamagedFileError(f"step {meta.id}: {name} is not what was written (its sha256 differs)")

    def _looks_untouched(self, step_id: str, name: str, size: int) -> bool:
        """Return whether a file is large, has the size that its meta states, and is no newer than that."""
        with contextlib.suppress(OSError):
            if size > SMALL and not name.endswith(".jsonl"):
                state, meta = (os.stat(self._file(step_id, file)) for file in (name, META))
                return state.st_size == size and state.st_mtime_ns <= meta.st_mtime_ns
        return False
