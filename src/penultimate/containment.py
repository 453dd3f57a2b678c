"""Containment of a user's code: `contained` runs it and afterwards restores the state of the process.

State that the code changed (such as the working folder, the default dtype or the warning filters) is put
back. Functions of libraries that it replaced are also put back, and the code is refused, because what it
computed depends on them. This module imports no library: a library that nobody has imported has no state.
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
"""Packages whose functions other steps depend on."""
ALONE = ("builtins", "math", "random", "statistics", "os", "json", "copy", "itertools", "functools")
"""Modules of the standard library that are also checked."""
STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals whose handlers may raise KeyboardInterrupt."""
UNSEEN = ("distributed", "onnx", "testing", "export", "fx", "jit", "ao", "package", "tests")
"""Parts of packages that this package never uses."""
CONSTANT = (bool, int, float, str, bytes, tuple, frozenset, type(None))

OF_PACKAGES = ("environment variables", "filters of warnings", "sys.meta_path", "sys.path", "sys.excepthook")
"""State that packages change when they are imported."""
Functions: TypeAlias = dict[ModuleType | type, dict[str, Any]]

_LEAVE = os._exit
_entered = False
_looking: list[Functions] = []
_processes: list[int] = []


class PassingError(BaseException):
    """Exception that this package raises inside a user's code and that must pass through it."""


class EndingError(RequestError):
    """Error for a user's code that raised an exception that ends programs, such as KeyboardInterrupt."""

    def __init__(self, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        place = f"line {frames[-1].lineno} of {Path(frames[-1].filename).name} " if frames else "it "
        super().__init__(
            f"{place}raises {type(error).__name__}, which would end the whole program; raise an ordinary"
            " exception, such as ValueError"
        )


class ChangedState(list[str]):
    """Names of the state that a user's code changed; `replaced` names the library functions among it."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[str] = []

    def sentence(self, who: str, mend: str = "Write a function or a class of your own, and call that") -> str:
        """Return a sentence that says what was changed and what to do about it."""
        if self.replaced:
            listed = ", ".join(self.replaced[:3]) + (", ..." if len(self.replaced) > 3 else "")
            return f"{who} replaces {listed}, on which other code rests; it was put back. {mend}"
        return f"{who} changes {', '.join(self)} for everything that runs after it; change it back"


def has_run() -> bool:
    """Return whether this process has executed any code of a user."""
    return _entered


@contextlib.contextmanager
def contained(who: str = "", *, patches: bool = True) -> Iterator[ChangedState]:
    """Run a user's code in the block, and restore the state of the process afterwards.

    `who` names the code in messages. If it is given, a RequestError refuses code that replaced functions of
    libraries; otherwise they are only listed in the object that is yielded. Without `patches`, such functions
    are looked for only if an inner block does so. An exception that would end the program is raised as
    EndingError. A forked process ends when it leaves the block, and a fork of a fork ends at once.
    """
    global _entered
    _entered |= patches
    process, left, came = os.getpid(), ChangedState(), list[int]()
    with _noted(came):
        before, drawn, imported = state(), generators(), len(sys.modules)
        functions: Functions = {}
        _looking.append(functions)
        _processes.append(process)
        if patches:
            found = _functions()
            for lacking in _looking:  # the enclosing blocks in which no such code has run yet
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
    """End a process that a user's code forked from a fork, because such code could fork without end.

    Processes of the multiprocessing library are left alone, since they never return to the user's code.
    """
    library: Any = sys.modules.get("multiprocessing.process")
    if _processes and os.getppid() != _processes[0] and not (library and library.parent_process()):
        _LEAVE(0)


os.register_at_fork(after_in_child=_end_fork_of_fork)


@contextlib.contextmanager
def _noted(came: list[int]) -> Iterator[None]:
    """Note the signals that raise KeyboardInterrupt, to tell them from an exception raised by the code."""
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
    """Return all functions, classes and constants that the public modules of libraries define now."""
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
    """Restore whatever was replaced, and return the names of the functions and classes among it.

    A constant is restored silently: a user's code may want truncated images to be read, for example.
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
    """Return whether a library wrapped its own function, as torch does when a part of it is imported."""
    if getattr(current, "__wrapped__", None) is not value:
        return False
    root = str(getattr(value, "__module__", "")).partition(".")[0]
    home = Path(getattr(sys.modules.get(root), "__file__", None) or os.devnull).parent
    return Path(getattr(getattr(current, "__code__", None), "co_filename", "")).is_relative_to(home)


def _counts(name: str, value: Any) -> bool:
    """Return whether an attribute is a function, a class or a constant rather than state of a library."""
    if isinstance(value, CONSTANT):
        return name.isupper() or name in ("pi", "e", "inf", "nan")
    return callable(value) or isinstance(value, property | classmethod | staticmethod)


def _called(owner: ModuleType | type) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
