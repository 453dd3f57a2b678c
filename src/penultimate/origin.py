"""The origin of a plug-in: its text and the files that it reads, which together make its identity.

A plug-in may read class weights, a teacher's checkpoint or a configuration that its text does not contain. A
Python audit hook reports every file that is opened. While a user's code runs, the files that it opens for
reading are noted here with the sha256 of their content, in two ways:

- A file that is read while the plug-in's file is executed is known at every start, before any step has an
  identity. Its content joins the plug-in's text in the identity of the steps that use it, in every store.
- A file that is read later, when a plug-in is called, is known only after a step has read it. A store keeps
  the content of each such file at its first reading (`Seen`), and a later start compares it with the present
  content. If it has changed, the new content joins the plug-in's text, so that its steps, and all steps that
  depend on them, are computed again. A step is refused if a file changes between the study's start and its
  end.

Files that the code itself writes do not count, nor do files in the folders of the interpreter, of installed
packages, of the system, of this package or of the store. Files that are opened without Python go unnoticed:
by safetensors, PyArrow, OpenCV, h5py, `torch.jit.load`, `torch.from_file`, `torchvision.io`, and by other
processes. If such a file matters, `open(path).close()` in the plug-in's file counts as reading it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import stat
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType

from penultimate.errors import RequestError
from penultimate.files import canonical_json, digest_bytes, digest_file
from penultimate.opened import EITHER, WRITTEN, Stack, is_of_user, noticed, plugged

MISSING = ""
"""The entry in place of a digest if the file does not exist."""
RECENT = 2_000_000_000
"""The time in nanoseconds within which a file may be rewritten without a change of its modification time."""


@dataclass(frozen=True)
class Origin:
    """Origin of a plug-in: its file, the sha256 of its text, and the files read while it was executed.

    `reads` holds digests by paths relative to the file's folder, so that a project can be moved.
    """

    path: Path
    text: str
    reads: Mapping[str, str] = field(default_factory=dict)

    def identity(self, seen: Seen | None = None) -> str:
        """Return the sha256 that identifies the plug-in in a store whose earlier observations are `seen`.

        It is the sha256 of the text, unless a file is read when the text is executed, or a file that is read
        when the plug-in is called no longer has the content that the store saw first.
        """
        known = {} if seen is None else seen.known(self.text)
        files = {
            name: digest
            for name, digest in self.files(seen).items()
            if name in self.reads or digest != known[name]
        }
        return digest_bytes(canonical_json([self.text, files]).encode()) if files else self.text

    def files(self, seen: Seen | None = None) -> dict[str, str]:
        """Return the digests of the files that the plug-in reads, without those that it writes itself.

        Files that it read while it was executed have the digest of that time, files that it reads when it is
        called their present digest.
        """
        known = {} if seen is None else seen.known(self.text)
        files = {name: digest for name, digest in self.reads.items() if known.get(name, "") is not None}
        return files | {name: self.now(name) for name in self.called(seen)}

    def called(self, seen: Seen | None) -> list[str]:
        """Return the files that the plug-in read when it was called, as far as the store has seen."""
        known = {} if seen is None else seen.known(self.text)
        return [name for name, first in known.items() if first is not None]

    def now(self, name: str) -> str:
        """Return the present digest of a file, whose name is relative to the plug-in's folder."""
        return digest_now(os.path.normpath(self.path.parent / name))

    def named(self, path: str) -> str:
        """Return a path relative to the plug-in's folder."""
        try:
            return os.path.relpath(path, self.path.parent)
        except ValueError:  # on another drive
            return path


class Seen:
    """A store's record of the files that plug-ins opened when they were called.

    There is one file for each plug-in's text. Each line holds a path and the digest of its first content, or
    null if the plug-in writes the file itself.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / "opened"
        self._known: dict[str, tuple[int, dict[str, str | None]]] = {}

    def known(self, text: str) -> dict[str, str | None]:
        """Return {path: digest of its first content}, with None for a file that the plug-in writes itself."""
        path = self.folder / f"{text}.jsonl"
        size, found = self._known.get(text, (0, {}))
        try:
            state = path.lstat()
            if not stat.S_ISREG(state.st_mode):  # a link, through which nothing is to be written, or a pipe
                raise RequestError(f"'{path}' is no ordinary file; move it away")
            if state.st_size == size:
                return found
            content = Path(path).read_bytes()
        except OSError:
            return {}
        found = {}
        for line in content.splitlines():
            with contextlib.suppress(ValueError, RecursionError):  # a killed process may leave part of a line
                match json.loads(line):
                    case [str(name), None]:
                        found[name] = None
                    case [str(name), str(digest)]:
                        found.setdefault(name, digest)
        self._known[text] = len(content), found
        return found

    def note(self, text: str, name: str, digest: str | None) -> None:
        """Add a line unless the store has it already."""
        known = self.known(text)
        if name in known and (digest is not None or known[name] is None):
            return
        line = b"\n" + json.dumps([name, digest]).encode() + b"\n"
        self.folder.mkdir(exist_ok=True)
        with (self.folder / f"{text}.jsonl").open("ab", buffering=0) as file:
            file.write(line)
            size, _ = self._known.get(text, (0, known))
            if file.tell() == size + len(line):  # no other process has added one
                known[name] = digest
                self._known[text] = file.tell(), known


@functools.lru_cache(10_000)
def _digest(path: str, *state: int) -> str:
    return digest_file(path)


def digest_now(path: str) -> str:
    """Return the sha256 of a file's content, or MISSING; an untouched file is not read a second time."""
    try:
        found = Path(path).stat()
        if not stat.S_ISREG(found.st_mode):
            return MISSING
        if abs(time.time_ns() - found.st_ctime_ns) < RECENT:
            return digest_file(path)
        return _digest(path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    except OSError:
        return MISSING


# -- while a file is executed -------------------------------------------------------------------------------

_read: defaultdict[str, dict[str, str]] = defaultdict(dict)
_wrote: defaultdict[str, set[str]] = defaultdict(set)


@contextlib.contextmanager
def executed(file: Path) -> Iterator[None]:
    """Note the files that are read in the block while a Python file and its imports are executed."""
    either: dict[str, str] = {}

    def notice(path: str, how: str, stack: Stack) -> None:
        if how == WRITTEN:
            for importing in stack.importing:
                _wrote[importing].add(path)
        elif digest := digest_now(path):
            for importing in stack.importing:
                _read[importing].setdefault(path, digest)
            if how == EITHER:
                either[path] = digest

    _read.pop(str(file), None)
    plugged.add(str(file))
    with noticed(notice):
        yield
    _wrote[str(file)].update(path for path, digest in either.items() if digest_now(path) != digest)


def origin(path: Path, text: str, module: ModuleType) -> tuple[Origin, frozenset[str]]:
    """Return the origin of a plug-in whose file was executed, and the paths that the plug-in wrote itself.

    Files read by the user's modules that it imports count as its own, and so do the texts of these modules.
    """
    sources = {str(path): "", **{file: digest_now(file) for file in helpers(module).values()}}
    read = {file: digest for file, digest in sources.items() if digest}
    for source in sources:
        read |= _read.get(source, {})
    wrote = {file for source in sources for file in _wrote.get(source, ())}
    found = Origin(path, text)
    left_out = {*wrote, str(path)}
    reads = {found.named(file): digest for file, digest in read.items() if file not in left_out}
    return Origin(path, text, reads), frozenset(map(found.named, wrote))


def helpers(module: ModuleType) -> dict[str, str]:
    """Return {name: file} of the user's modules that a module uses, directly or through others."""
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        for value in [*vars(waiting.pop()).values()]:
            used = value if isinstance(value, ModuleType) else None
            if isinstance(value, FunctionType | type):
                used = sys.modules.get(value.__module__)
            file = getattr(used, "__file__", None)
            if used is None or used is module or used.__name__ in found or not isinstance(file, str):
                continue
            if is_of_user(file) and file.endswith(".py"):
                found[used.__name__] = file
                waiting.append(used)
    return found


def forget(module: ModuleType, found: Origin, changed: list[str]) -> None:
    """Make Python import the modules of a plug-in again whose files or inputs have changed."""
    for name, file in helpers(module).items():
        if any(found.named(path) in changed for path in (file, *_read.get(file, ()))):
            del sys.modules[name]
            _read.pop(file, None)


# -- while a step is done -----------------------------------------------------------------------------------


@contextlib.contextmanager
def called(origins: Mapping[str, Origin], usual: list[Origin], seen: Seen) -> Iterator[None]:
    """Note the files that plug-ins read when they are called in the block.

    `origins` holds the origin of each plug-in file. A user's code outside these files is attributed to the
    `usual` origins. Files that a package read when it was imported, possibly long before, count as read when
    called.
    """
    ours, process = f"{os.path.realpath(seen.folder.parent)}{os.sep}", os.getpid()
    done: set[tuple[str, str]] = set()
    wrote: set[str] = set()
    either: list[tuple[str, str, list[Origin]]] = []

    def notice(path: str, how: str, stack: Stack) -> None:
        if stack.given or path.startswith(ours):
            return
        owners = [origins[file] for file in stack.running if file in origins] or usual
        if how == WRITTEN:
            wrote.add(path)
        for owner in owners:
            name = owner.named(path)
            if path == str(owner.path):
                continue
            if how == WRITTEN:
                if name in seen.known(owner.text):
                    seen.note(owner.text, name, None)
            elif path not in wrote and (owner.text, path) not in done:
                seen.note(owner.text, name, digest_now(path))
                done.add((owner.text, path))
        if how == EITHER and os.getpid() == process:
            either.append((path, digest_now(path), owners))

    plugged.update(origins)
    for file, owner in origins.items():
        for path, digest in _read.get(file, {}).items():
            if (name := owner.named(path)) not in owner.reads and path not in _wrote.get(file, ()):
                seen.note(owner.text, name, digest)
    with noticed(notice):
        yield
    for path, digest, owners in either:
        if digest_now(path) != digest:
            for owner in owners:
                seen.note(owner.text, owner.named(path), None)
