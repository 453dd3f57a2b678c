"""Files that a user's code opens while it runs, noticed through an audit hook of Python's."""

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
"""Folders in which compilers keep what they have made."""
GIVEN = ("penultimate.data", "penultimate.measures", "penultimate.features", "penultimate.layers")
"""Rooms that read what a step is given, which is in its identity already."""
CALLER = "penultimate.origin"
"""The module whose blocks these are; the user's code runs above what enters them."""
READ, WRITTEN, EITHER = "read", "written", "either"


class Stack(NamedTuple):
    """The files of users whose code is under way where a file is opened: all, and those being imported.

    `given`: this package opens it, to give a step what is in its identity already.
    """

    running: list[str]
    importing: list[str]
    given: bool


Notice = Callable[[str, str, Stack], None]
"""What is called with a path, how it is opened, and by whom."""


def is_of_user(file: str) -> bool:
    """Return whether a Python file is a plug-in's, or at least not installed, Python's or this package's."""
    return file in plugged or _lies_apart(file)


@functools.cache
def _lies_apart(file: str) -> bool:
    return Path(file).is_absolute() and not file.startswith(LEFT_OUT) and not INSTALLED.search(file)


_blocks: list[tuple[FrameType | None, Notice]] = []
_within = threading.local()
_temporary: set[str] = set()
plugged: set[str] = set()
"""The files of plug-ins, wherever they lie."""
EVENTS = frozenset(("open", "os.rename", "sqlite3.connect", "tempfile.mkdtemp"))


@functools.cache
def _installed() -> None:
    sys.addaudithook(_heard)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    """Tell the block of a file that is opened; an exception would keep the file from being opened."""
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
    """Return which file is opened, and how; "" for one that does not count."""
    given = arguments[1] if event == "os.rename" else arguments[0]
    if isinstance(given, int) or given is None:
        return "", READ
    place = Path(os.fsdecode(given))
    if place.parent.name == "__pycache__" and place.suffix == ".pyc":
        place = Path(importlib.util.source_from_cache(str(place)))
    path = str(place.parent.resolve() / place.name)  # a link is read anew, whatever it leads to
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
    """Whose code opens a file, above the `last` frame, that of the block; None where it is none of a user's.

    Nor is it where a library that is being imported reads what is its own.
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
    """Have `notice` told of each file that a user's code opens in the block, before it is opened."""
    _installed()
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals["__name__"] in (__name__, CALLER, contextlib.__name__):
        frame = frame.f_back
    _blocks.append((frame, notice))
    try:
        yield
    finally:
        _blocks.pop()
