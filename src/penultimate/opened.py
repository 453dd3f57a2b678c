"""A Python audit hook that notices the files that a user's code opens while it runs."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

INSTALLED = re.compile(r"[/\\](site|dist)-packages\b")
LIBRARY = Path(sysconfig.get_paths()["stdlib"])
"""The folder of the standard library."""
OURS = str(Path(__file__).parent)
LEFT_OUT = tuple(
    f"{place}{os.sep}"
    for place in {
        *("/dev", "/proc", "/sys", str(LIBRARY), os.path.realpath(LIBRARY), OURS, os.path.realpath(OURS)),
        *(
            str(Path(prefix, name))
            for prefix in ("/", "/usr", "/usr/local", sys.prefix, sys.base_prefix)
            for name in ("bin", "sbin", "lib", "lib64", "libexec", "share", "include", "etc")
        ),
    }
)
"""Folders of the system, of the interpreter and of this package."""
COMPILED = re.compile(r"[/\\](torchinductor_[^/\\]*|\.triton|__pycache__)[/\\]")
"""Folders in which compilers keep their output."""
GIVEN = ("penultimate.data", "penultimate.measures", "penultimate.features", "penultimate.layers")
"""Packages of penultimate that read a step's inputs, which the step's identity already covers."""
CALLER = "penultimate.origin"
"""The module that opens the blocks; the frames of a user's code lie above its own."""
READ, WRITTEN, EITHER = "read", "written", "either"


class Stack(NamedTuple):
    """User files whose code is running when a file is opened: all of them, and those being imported.

    `given` is true if this package opens the file to read an input that the step's identity already covers.
    """

    running: list[str]
    importing: list[str]
    given: bool


Notice = Callable[[str, str, Stack], None]
"""Function that is called with the path of a file, how it is opened, and by whom."""


def is_of_user(file: str) -> bool:
    """Return whether a Python file belongs to a user.

    It does if it is a plug-in, or if it is part neither of Python, nor of an installed package, nor of this
    one.
    """
    return file in plugged or _lies_apart(file)


@functools.cache
def _lies_apart(file: str) -> bool:
    return Path(file).is_absolute() and not file.startswith(LEFT_OUT) and not INSTALLED.search(file)


_blocks: list[tuple[FrameType | None, Notice]] = []
_within = threading.local()
_temporary: set[str] = set()
plugged: set[str] = set()
"""Paths of plug-in files, wherever they lie."""
EVENTS = frozenset(("open", "os.rename", "sqlite3.connect", "tempfile.mkdtemp"))


@functools.cache
def _installed() -> None:
    sys.addaudithook(_heard)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    """Report an opened file to the blocks; exceptions are caught, since they would prevent the opening."""
    if not _blocks or event not in EVENTS or getattr(_within, "hook", False):
        return
    _within.hook = True
    try:
        if event == "tempfile.mkdtemp":
            _temporary.add(os.path.realpath(arguments[0]) + os.sep)
            return
        path, how = _opening(event, arguments)
        for frame, notice in [*_blocks] if path else ():
            if (stack := _stack(sys._getframe(1), frame, path.endswith(".py"))) is not None:
                notice(path, how, stack)
    except Exception:
        return
    finally:
        _within.hook = False


def _opening(event: str, arguments: tuple[Any, ...]) -> tuple[str, str]:
    """Return the path of the file that is opened ("" if it does not count), and how it is opened."""
    given = arguments[1] if event == "os.rename" else arguments[0]
    if isinstance(given, int) or given is None:
        return "", READ
    place = Path(os.fsdecode(given))
    if place.parent.name == "__pycache__" and place.suffix == ".pyc":
        place = Path(importlib.util.source_from_cache(str(place)))
    path = str(place.parent.resolve() / place.name)  # a link is read each time, whatever it leads to
    if path.startswith((*LEFT_OUT, *_temporary)) or INSTALLED.search(path) or COMPILED.search(path):
        return "", READ
    if event == "os.rename":
        return path, WRITTEN
    if event == "sqlite3.connect":
        return path, EITHER
    flags = arguments[2] if isinstance(arguments[2], int) else 0
    if flags & os.O_ACCMODE == os.O_WRONLY or flags & (os.O_CREAT | os.O_TRUNC | os.O_APPEND):
        return path, WRITTEN
    if place.is_dir():
        return "", READ
    return path, EITHER if flags & os.O_ACCMODE == os.O_RDWR else READ


def _stack(frame: FrameType | None, last: FrameType | None, is_code: bool) -> Stack | None:
    """Return the user files whose code opens a file, from the frames above the block's own frame, `last`.

    Returns None if no user's code does, or if a library that is being imported reads its own files.
    """
    running: list[str] = []
    importing: list[str] = []
    given = False
    while frame is not None and frame is not last:
        code = frame.f_code
        if is_of_user(code.co_filename):
            running.append(code.co_filename)
            if code.co_name == "<module>":
                importing.append(code.co_filename)
        elif not running:
            importing_it = is_code and code.co_filename.startswith("<frozen importlib")
            if (code.co_name == "<module>" or code.co_filename.startswith("<frozen")) and not importing_it:
                return None
            given |= str(frame.f_globals.get("__name__")).startswith(GIVEN)
        frame = frame.f_back
    return Stack(running, importing, given) if running else None


@contextlib.contextmanager
def noticed(notice: Notice) -> Iterator[None]:
    """Call `notice` for each file that a user's code opens in the block, before it is opened."""
    _installed()
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals["__name__"] in (__name__, CALLER, contextlib.__name__):
        frame = frame.f_back
    _blocks.append((frame, notice))
    try:
        yield
    finally:
        _blocks.pop()
