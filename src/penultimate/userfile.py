"""Execution of a user's Python file (a plug-in, a study, a network), with errors turned into sentences.

In messages, `what` is the file's role, a key of `ONLY`, and `name` is the user's name for it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dis
import importlib
import importlib.util
import inspect
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from penultimate.containment import ROOTS, ChangedState, PassingError, contained
from penultimate.errors import PenultimateError, RequestError, nearest
from penultimate.files import digest_bytes
from penultimate.opened import INSTALLED, LIBRARY

LIMIT = 60.0
"""Seconds that a file may take to execute, including the packages that it imports."""
ONLY = {
    "plug-in": "a plug-in only defines and registers",
    "study file": "a study file only defines STUDY",
    "network file": "a network file only defines a function that builds the network",
}
PACKAGE = "penultimate"
AGAIN, PATIENCE = 0.1, 3.0
"""Seconds between the attempts to stop a file, and until the whole command is stopped."""
LARGEST = 10_000_000
"""The largest file in bytes."""
UNEXPECTED = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'$")
NOT_IN = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")

_LEAVE = os._exit


class _TooLongError(PassingError):
    """Error raised inside a file at its time limit; no `except Exception` in the file stops it."""


def read(what: str, name: str, path: Path) -> bytes:
    """Return the text of a file; raises RequestError, with the nearest file, if it is missing or unusable."""
    try:
        if path.is_dir():
            files = sorted(path.glob("*.py"))
            hint = f"; give one file, such as '{files[0]}'" if files else ""
            raise RequestError(f"the {what} '{name}' is a folder; a {what} is one Python file{hint}")
        if not path.exists():
            beside = [str(file) for file in path.parent.glob("*.py")]
            file = what if what.endswith("file") else f"{what} file"
            raise RequestError(f"there is no {file} '{name}'.{nearest(name, beside)}")
        if path.suffix != ".py" or not path.is_file():
            raise RequestError(f"'{name}' is not a Python file; a {what} is one file whose name ends in .py")
        if path.stat().st_size > LARGEST:
            raise RequestError(f"the {what} '{name}' has more than {LARGEST:,} bytes; is it the right file?")
        return path.read_bytes()
    except OSError as error:
        raise RequestError(f"the {what} '{name}' cannot be read: {error.strerror or error}") from None


def compiled(what: str, name: str, path: Path, source: bytes) -> tuple[ast.Module, CodeType]:
    """Return the file's syntax tree and code; raises RequestError with the line if it is not Python."""
    try:
        tree = ast.parse(source, str(path))
        return tree, compile(tree, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        text = f": {error.text.strip()}" if error.text and error.text.strip() else ""
        raise RequestError(f"the {what} '{name}'{line} is not Python: {error.msg}{text}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise RequestError(
            f"the {what} '{name}' is not Python: {error or 'it is nested too deeply'}"
        ) from None


def module_name(what: str, path: Path) -> str:
    """Return the name of a file's module, which is unique to the file."""
    kind, stem = (re.sub(r"[^A-Za-z0-9]+", "_", text) for text in (what, path.stem))
    return f"penultimate_{kind}_{stem}_{digest_bytes(bytes(path))[:8]}"


@contextlib.contextmanager
def fresh_module(what: str, path: Path) -> Iterator[ModuleType]:
    """Yield a new module for the file; it stays in `sys.modules` if the block succeeds.

    Dataclasses and pickle look for it there.
    """
    name = module_name(what, path)
    module = ModuleType(name)
    module.__file__ = str(path)
    old = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield module
    except BaseException:
        if old is None:
            del sys.modules[name]
        else:
            sys.modules[name] = old
        raise


def execute(
    what: str,
    name: str,
    path: Path,
    code: CodeType,
    module: ModuleType,
    told: Callable[[BaseException], str] | None = None,
    held: bool = False,
) -> ChangedState:
    """Execute a file, and return the changes that it made to the process, which are undone.

    Raises RequestError, with the line, if it fails, ends the program, or replaces functions of libraries.
    `told` puts an exception into words. If the caller has opened a `contained` block itself (`held`), changes
    are undone only at the end of that block.
    """
    if not held:
        import_first(code, f"the {what} '{name}'", path)
    try:
        with exits_noticed(), contextlib.nullcontext(ChangedState()) if held else contained() as left:
            exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        said = told(error) if told else in_words(error, what, path)
        raise RequestError(f"the {what} '{name}'{line_of(error, path)}: {said}") from error
    if left.replaced:
        raise RequestError(left.sentence(f"the {what} '{name}'"))
    return left


def import_first(code: CodeType, who: str, path: Path) -> None:
    """Import the packages that a file imports, so that its changes can be distinguished from theirs.

    Raises RequestError for an installed package that replaces functions of libraries when it is imported.
    """
    module: Any = None
    for one in dis.get_instructions(code):
        if one.opname == "IMPORT_NAME":
            module, root = None, str(one.argval).partition(".")[0]
            if root in ROOTS:
                with contextlib.suppress(Exception):  # the file itself reports what is missing
                    module = importlib.import_module(one.argval)
            elif one.argval not in sys.modules and _is_package(root, path):
                with exits_noticed(), contained() as left, contextlib.suppress(Exception, SystemExit):
                    importlib.import_module(one.argval)
                if left.replaced:
                    package = f"the package '{root}', which {who} imports,"
                    raise RequestError(left.sentence(package, "Write what you need of it in your own file"))
        elif one.opname == "IMPORT_FROM" and module is not None:
            with contextlib.suppress(Exception):
                if not hasattr(module, one.argval):
                    importlib.import_module(f"{module.__name__}.{one.argval}")


def _is_package(root: str, path: Path) -> bool:
    """Return whether a name belongs to an installed package and not to a module beside a file."""
    if not root or root in sys.stdlib_module_names or root == PACKAGE:
        return False
    if (path.parent / root).is_dir() or (path.parent / f"{root}.py").is_file():
        return False
    try:
        return importlib.util.find_spec(root) is not None
    except (ImportError, ValueError):
        return False


def in_words(error: BaseException, what: str, path: Path | None) -> str:
    """Return an exception of a module as a sentence, with the remedy if one is known."""
    if isinstance(error, PenultimateError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"it ends the whole program (sys.exit); {ONLY[what]}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _missing(error.name, what, path)
    first = first_line(error)
    hint = _nearest_meant(error)
    return f"{type(error).__name__}: {first}{hint and '.'}{hint}" if first else type(error).__name__


def _nearest_meant(error: BaseException) -> str:
    """Return the nearest name to a missing one: a field, a variable, an attribute or an import."""
    first = first_line(error)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    known = {**vars(builtins), **frames[-1].f_globals, **frames[-1].f_locals} if frames else {}
    if isinstance(error, NameError) and error.name:
        return nearest(error.name, known)
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType | type):
        return nearest(error.name or "", dir(error.obj))
    if isinstance(error, ImportError) and (said := NOT_IN.match(first)):
        return nearest(said[1], dir(sys.modules.get(said[2])))
    if isinstance(error, TypeError) and (said := UNEXPECTED.match(first)) and callable(known.get(said[1])):
        return nearest(said[2], inspect.signature(known[said[1]]).parameters)
    return ""


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, or '' if it cannot give one.

    >>> first_line(ValueError("too long"))
    'too long'
    """
    try:
        return str(error).strip().partition("\n")[0]
    except Exception:
        return ""


def _missing(name: str, what: str, path: Path | None) -> str:
    package = name.partition(".")[0]
    if package != name and importlib.util.find_spec(package) is not None:
        return f"the installed package '{package}' has no module '{name}'; is it another version?"
    beside = path.parent / package if path else None
    if beside is not None and (beside.is_dir() or beside.with_suffix(".py").is_file()):
        if what == "network file":
            return (
                f"'{package}' lies beside it, and is found while the file is executed: import it at its top"
            )
        return (
            f"'{package}' lies beside the {what}, but a {what} is one file and its folder is not searched;"
            f" move the code it needs into the file, or install '{package}' as a package"
        )
    return f"it needs the package '{package}', which is not installed here"


def line_of(error: BaseException, path: Path | None) -> str:
    """Return the line of the file where an exception was raised, as words for a message."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f", line {frames[-1].lineno}" if frames else ""


@contextlib.contextmanager
def beside(folder: Path) -> Iterator[None]:
    """Import modules from a folder in the block, and remove all of them afterwards.

    The folder is searched after the standard library and before installed packages, so that no file in it
    replaces a module that Python itself needs. A module is read afresh in each block.
    """
    names = {path.stem for path in folder.glob("*") if path.suffix == ".py" or path.is_dir()} - {PACKAGE}
    aside = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in names and isinstance(module, ModuleType) and not _is_installed(module)
    }
    for name in aside:
        del sys.modules[name]
    before, path, wrote = {*sys.modules}, [*sys.path], sys.dont_write_bytecode
    place = next((at for at, each in enumerate(path) if INSTALLED.search(each)), len(path))
    sys.path.insert(place, str(folder))
    sys.dont_write_bytecode = (
        True  # Python would otherwise use stale bytecode for a module that changes twice in a second
    )
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, wrote
        for name in sys.modules.keys() - before:
            module = sys.modules[name]
            if (
                isinstance(module, ModuleType)
                and not _is_installed(module)
                and _is_local(module, folder, path)
            ):
                del sys.modules[name]
        sys.modules.update(aside)


def _is_local(module: ModuleType, folder: Path, path: list[str]) -> bool:
    """Return whether all of a module lies in a folder, or outside the folders of the import path."""
    places = [
        place for place in (getattr(module, "__file__", None), *getattr(module, "__path__", ())) if place
    ]
    return bool(places) and all(
        Path(place).is_relative_to(folder)
        or not any(Path(place).is_relative_to(each or ".") for each in path)
        for place in places
    )


def _is_installed(module: ModuleType) -> bool:
    """Return whether a module belongs to an installed package, the standard library or this package."""
    file = getattr(module, "__file__", None) or ""
    name = getattr(module, "__name__", "")
    return name.startswith(PACKAGE) or bool(INSTALLED.search(file)) or Path(file).is_relative_to(LIBRARY)


@contextlib.contextmanager
def in_time(what: str, who: str, path: Path | None = None) -> Iterator[None]:
    """Execute a file in the block within LIMIT; raises RequestError with the line at which it was stopped.

    `who` names it in the message. One attempt can fail: an exception that is raised while Python formats
    another one, as in `int('x')`, is lost. A file that catches all of them is stopped together with the whole
    command. There is no limit outside the main thread, because signals reach no other thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    late = f"it was still running after {LIMIT:g} seconds; {ONLY[what]}, and the work goes into functions"
    times = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal times
        times += 1
        if times * AGAIN > PATIENCE:
            os.write(2, f"penultimate: {who}: {late}\n".encode(errors="replace"))
            _LEAVE(2)
        raise _TooLongError

    handler = signal.signal(signal.SIGALRM, stop)
    before = signal.setitimer(signal.ITIMER_REAL, LIMIT, AGAIN)
    try:
        yield
    except _TooLongError as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise RequestError(f"{who}{line_of(error, path)}: {late}") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
        signal.signal(signal.SIGALRM, handler)


@contextlib.contextmanager
def exits_noticed() -> Iterator[None]:
    """Turn `os._exit` into `sys.exit`: it ends a program silently, and its code 0 would look like success."""
    process = os.getpid()

    def noticed(status: Any = 0) -> None:
        if os.getpid() != process:  # this is a fork of the process
            _LEAVE(status)
        raise SystemExit(status)

    os._exit = noticed  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = _LEAVE
