"""Execution of a user's Python file (a plug-in, a study, a network), with errors turned into sentences.

In messages, `what` is the file's role, such as "plug-in", and `name` is the user's name for it.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import re
import sys
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from penultimate.errors import PenultimateError, RequestError, nearest

UNEXPECTED = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'$")
PACKAGES = {"site-packages", "dist-packages"}


def read(what: str, name: str, path: Path) -> bytes:
    """Return the text of a file; raises RequestError, with the nearest file, if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        file = what if what.endswith("file") else f"{what} file"
        beside = [str(Path(name).with_name(each.name)) for each in path.parent.glob("*.py")]
        raise RequestError(f"there is no {file} '{name}'.{nearest(name, beside)}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RequestError(f"the {what} '{name}' cannot be read: {why}") from None


@contextlib.contextmanager
def executed(what: str, name: str, path: Path, source: bytes) -> Iterator[ModuleType]:
    """Execute a file's text as a module, which stays in `sys.modules` if the block succeeds.

    Dataclasses and pickle look for it there. Raises RequestError, with the line, if the text is not Python or
    raises an exception.
    """
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise RequestError(f"the {what} '{name}' is not Python: {first_line(error)}") from None
    kind, stem = (re.sub(r"[^A-Za-z0-9]+", "_", text) for text in (what, path.stem))
    module = ModuleType(f"penultimate_{kind}_{stem}_{zlib.crc32(bytes(path)):08x}")
    module.__file__ = str(path)
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        try:
            exec(code, module.__dict__)
        except (Exception, SystemExit) as error:
            words = in_words(error, what, path)
            raise RequestError(f"the {what} '{name}'{line_of(error, path)}: {words}") from error
        yield module
    except BaseException:
        del sys.modules[module.__name__]
        if before is not None:
            sys.modules[module.__name__] = before
        raise


@contextlib.contextmanager
def beside(folder: Path) -> Iterator[None]:
    """Import modules from a folder in the block, although the session may know others of the same names.

    They are forgotten afterwards: the folder of another network may have modules of these names, too.
    """
    names = {path.stem for path in folder.glob("*")} - {*sys.stdlib_module_names, "penultimate"}
    aside = {
        name: sys.modules.pop(name)
        for name in [*sys.modules]
        if name.partition(".")[0] in names and not PACKAGES & {*_file_of(name).parts}
    }
    before, wrote = {*sys.modules}, sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True  # else a module that changes twice in a second would be stale
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = wrote
        for name in {*sys.modules} - before:
            file = _file_of(name)
            if file.is_relative_to(folder) and not PACKAGES & {*file.parts}:
                del sys.modules[name]
        sys.modules.update(aside)


def _file_of(module: str) -> Path:
    return Path(getattr(sys.modules[module], "__file__", None) or "/")


def in_words(error: BaseException, what: str, path: Path | None) -> str:
    """Return an exception of a file as a sentence, with the remedy if one is known."""
    if isinstance(error, PenultimateError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _missing(error.name, what, path)
    first, hint = first_line(error)[:300], _nearest_meant(error)
    return f"{type(error).__name__}: {first}{hint and '.'}{hint}" if first else type(error).__name__


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, or '' if it cannot give one.

    >>> first_line(ValueError("too long"))
    'too long'
    """
    try:
        return str(error).strip().partition("\n")[0]
    except Exception:
        return ""


def line_of(error: BaseException, path: Path | str) -> str:
    """Return the line of the file where an exception was raised, as words for a message."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    return f", line {lines[-1]}" if lines else ""


def _missing(name: str, what: str, path: Path | None) -> str:
    package = name.partition(".")[0]
    if path and any(path.with_name(f"{package}{ending}").exists() for ending in ("", ".py")):
        if what == "network file":
            return f"'{package}' lies beside it; import it at the top of the file, not in a function"
        return (
            f"'{package}' lies beside the {what}, whose folder is not searched; move the code that it needs"
            f" into the file, or install '{package}' as a package"
        )
    return f"it needs the {'module' if '.' in name else 'package'} '{name}', which is not installed here"


def _nearest_meant(error: BaseException) -> str:
    """Return the nearest name to a missing variable, attribute, import or argument, as a hint."""
    if isinstance(error, AttributeError):
        return nearest(error.name or "", dir(error.obj))
    if isinstance(error, ImportError) and "cannot import name '" in first_line(error):
        return nearest(first_line(error).split("'")[1], dir(sys.modules.get(error.name or "")))
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    known = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    if isinstance(error, NameError) and error.name:
        return nearest(error.name, known)
    if isinstance(error, TypeError) and (found := UNEXPECTED.match(first_line(error))):
        function = known.get(found[1])
        return nearest(found[2], inspect.signature(function).parameters) if callable(function) else ""
    return ""
