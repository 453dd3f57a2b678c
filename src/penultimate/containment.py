"""What a user's code leaves behind in its process, undone: `contained` runs the code, and all is as before.

State that the code changed (the working folder, the default dtype, filters of warnings and the like) is put
back. Functions of libraries that it replaced are put back too and refused, since what it computed rests on
them. No library is imported here: one that nobody has imported has no state.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from penultimate.errors import RequestError
from penultimate.state import generators, state

ROOTS = ("numpy", "torch", "sklearn", "scipy", "PIL", "torchvision", "timm", "penultimate")
"""Packages whose functions other steps rest on."""
ALONE = ("builtins", "math", "random", "statistics", "os", "json", "copy", "itertools", "functools")
"""Modules of the standard library that are looked at as well."""
STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals whose handlers may raise KeyboardInterrupt."""
UNSEEN = ("distributed", "onnx", "testing", "export", "fx", "jit", "ao", "package", "tests")
"""Parts of packages that nothing here uses."""
CONSTANT = (bool, int, float, str, bytes, tuple, frozenset, type(None))

OF_PACKAGES = ("environment variables", "filters of warnings", "sys.meta_path", "sys.path", "sys.excepthook")
"""State that packages change when they are imported."""
Functions: TypeAlias = dict[ModuleType | type, dict[str, Any]]

_LEAVE = os._exit
_entered = False
_looking: list[Functions] = []
_processes: list[int] = []


class PassingError(BaseException):
    """An exception that is raised inside a user's code by this package, and passes through."""


class EndingError(RequestError):
    """A user's code raised an exception that would have ended the program, such as KeyboardInterrupt."""

    def __init__(self, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        place = f"line {frames[-1].lineno} of {Path(frames[-1].filename).name} " if frames else "it "
        super().__init__(
            f"{place}raises {type(error).__name__}, which would end the whole program; raise an ordinary"
            " exception, such as ValueError"
        )


class Left(list[str]):
    """What a user's code had changed when it ended, in words; `replaced` are functions of libraries."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[str] = []

    def sentence(self, who: str, mend: str = "Write a function or a class of your own, and call that") -> str:
        """Return what was changed, and what to do about it."""
        if self.replaced:
            listed = ", ".join(self.replaced[:3]) + (", ..." if len(self.replaced) > 3 else "")
            return f"{who} replaces {listed}, on which other code rests; it was put back. {mend}"
        return f"{who} changes {', '.join(self)} for everything that runs after it; change it back"


def has_run() -> bool:
    """Return whether this process has executed any code of a user's."""
    return _entered


@contextlib.contextmanager
def contained(who: str = "", *, patches: bool = True) -> Iterator[Left]:
    """Run a user's code in the block; afterwards the state of the process is as it was before.

    `who` names the code in messages; with it, functions of libraries that the code replaced are refused by a
    RequestError, and without it they are only told in what is yielded. Without `patches` they are looked for
    only if a block within this one does. An exception that would end the program comes out as EndingError. A
    fork that the code has left to return ends here; one that forks in its turn does so in vain.
    """
    global _entered
    _entered |= patches
    process, left, came = os.getpid(), Left(), list[int]()
    with _noted(came):
        before, drawn, imported = state(), generators(), len(sys.modules)
        functions: Functions = {}
        _looking.append(functions)
        _processes.append(process)
        if patches:
            found = _functions()
            for lacking in _looking:  # those around this block, in which no such code has run until now
                lacking.update({} if lacking else found)
        try:
            yield left
        except (Exception, SystemExit, PassingError):
            raise
        except BaseException as error:
            if came or os.getpid() != process:
                raise
            raise EndingError(error) from error
        finally:
            if os.getpid() != process:
                _LEAVE(0)
            _looking.pop()
            _processes.pop()
            left += [piece.what for piece in before if piece.put_back()]
            if len(sys.modules) > imported:
                left[:] = [what for what in left if what not in OF_PACKAGES]
            for put_back in drawn:
                put_back()
            left.replaced += _functions_put_back(functions)
    if left.replaced and who:
        raise RequestError(left.sentence(who))


def _end_fork_of_fork() -> None:
    """End a fork of a fork that a user's code has left to return: called again and again, it would fork more
    processes than a machine has. A process of the multiprocessing library's does not return.
    """
    library: Any = sys.modules.get("multiprocessing.process")
    if _processes and os.getppid() != _processes[0] and not (library and library.parent_process()):
        _LEAVE(0)


os.register_at_fork(after_in_child=_end_fork_of_fork)


@contextlib.contextmanager
def _noted(came: list[int]) -> Iterator[None]:
    """Note the signals that raise KeyboardInterrupt, to tell them from an exception that the code raises."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def noting(handler: Callable[..., Any]) -> Callable[..., Any]:
        def note(number: int, frame: Any) -> None:
            came.append(number)
            handler(number, frame)

        return note

    before = {number: handler for number in STOPS if callable(handler := signal.getsignal(number))}
    noting_now = {number: noting(handler) for number, handler in before.items()}
    for number, handler in noting_now.items():
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- functions of libraries ---------------------------------------------------------------------------------


def _functions() -> Functions:
    """Everything that the public modules of libraries define now, and their classes."""
    found: Functions = {}
    for name, module in [*sys.modules.items()]:
        if not isinstance(module, ModuleType) or not _is_looked_at(name):
            continue
        found[module] = {**vars(module)}
        for value in found[module].values():
            if isinstance(value, type) and value.__module__ == name:
                found[value] = {**vars(value)}
    return found


def _is_looked_at(name: str) -> bool:
    root, _, rest = name.partition(".")
    if root not in ROOTS:
        return name in ALONE
    return not rest.startswith(UNSEEN) and "._" not in name


def _functions_put_back(before: Functions) -> list[str]:
    """Put back what was replaced; the names of the functions and classes among it.

    A constant is put back without a word: images that are cut off are read while a user's code wants them.
    """
    replaced: list[str] = []
    for owner, known in before.items():
        now = {**vars(owner)}
        for name, value in known.items():
            current = now.get(name)
            if current is value or not _counts(name, value) or _is_wrapped_by_its_library(current, value):
                continue
            with contextlib.suppress(AttributeError, TypeError):
                setattr(owner, name, value)
                if not isinstance(value, CONSTANT):
                    replaced.append(f"{_called(owner)}.{name}")
        for name in now.keys() - known.keys() if isinstance(owner, type) else ():
            if any(name in vars(base) for base in owner.__mro__[1:]) and _counts(name, now[name]):
                with contextlib.suppress(AttributeError, TypeError):
                    delattr(owner, name)
                    replaced.append(f"{_called(owner)}.{name}")
    return replaced


def _is_wrapped_by_its_library(current: Any, value: Any) -> bool:
    """Return whether a library has wrapped a function of its own,
    as torch does when a part of it is imported.
    """
    if getattr(current, "__wrapped__", None) is not value:
        return False
    root = str(getattr(value, "__module__", "")).partition(".")[0]
    home = Path(getattr(sys.modules.get(root), "__file__", None) or os.devnull).parent
    return Path(getattr(getattr(current, "__code__", None), "co_filename", "")).is_relative_to(home)


def _counts(name: str, value: Any) -> bool:
    """Return whether an attribute is a function, a class or a constant, and no note that a library keeps."""
    if isinstance(value, CONSTANT):
        return name.isupper() or name in ("pi", "e", "inf", "nan")
    return callable(value) or isinstance(value, property | classmethod | staticmethod)


def _called(owner: ModuleType | type) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
