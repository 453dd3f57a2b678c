"""Loading of plug-ins from files and from installed packages, without importing a tensor library.

A file registers what it defines, by the decorators of `penultimate.register`, when it is executed. It is
loaded whole or not at all: if it fails, the names that it took are released. When a file is loaded again, an
unchanged one stays as it is and a changed one replaces its own names, so that a notebook can continue.

A package announces its plug-ins by an entry point in the group `penultimate.plugins`, whose value is the
module that registers them. Such modules are imported only if a name is not found elsewhere or if all names
are listed. A module that fails is reported in a sentence and does not stop the command.

A plug-in is identified by the code of its file, without comments and docstrings, and by the content of the
files that it declares. What else it reads is not seen.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from penultimate import registry, shipped, userfile
from penultimate.errors import PenultimateError, RequestError
from penultimate.registry import Entry, code_digest
from penultimate.userfile import first_line

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

GROUP = "penultimate.plugins"
WHAT = "plug-in"
SPOKEN = ("objective", "loss", "head", "fixed_head", "penalty", "projector", "regulariser")
"""Kinds whose names share spec strings such as "focal + dropout"."""

Accepted: TypeAlias = Mapping[str, Mapping[str, str]]
"""Of changed plug-ins by "kind:name", the digest in whose place another one counts: {digest: earlier one}."""
T = TypeVar("T")


@dataclass(frozen=True)
class Plugin:
    """Loaded file: its path, the sha256 of its code, its entries, and the text that was executed."""

    path: Path
    digest: str
    entries: tuple[Entry, ...]
    source: bytes = field(repr=False)


class Installed(NamedTuple):
    """Plug-ins of installed packages; `failures` has a sentence for each that cannot be loaded."""

    plugins: tuple[Plugin, ...]
    failures: tuple[str, ...]


_loaded: dict[Path, Plugin] = {}


def load_plugin(path: Path | str) -> Plugin:
    """Execute one Python file and return what it registered; `examples:focal` is one of the package's own.

    Raises RequestError, and leaves the registry as it was, for a file that cannot be read, fails (the message
    gives the line and the exception), registers nothing, or uses a name that is taken.

    >>> import tempfile
    >>> text = "from penultimate import register\\n@register.loss\\ndef hinge(logits, targets): ..."
    >>> file = Path(tempfile.mkdtemp()) / "hinge.py"
    >>> _ = file.write_text(text)
    >>> [(entry.kind, entry.name) for entry in load_plugin(file).entries]
    [('loss', 'hinge')]
    >>> registry.forget("loss", "hinge")
    """
    path = shipped.resolved(path)
    return load_source(path, userfile.read(WHAT, str(path), Path(path)))


def load_source(path: Path | str, source: bytes) -> Plugin:
    """Load a plug-in file from the text that another process has read (`Plugin.path`, `Plugin.source`).

    A study sends the text to its workers, so that editing the file meanwhile does not change the run. Raises
    RequestError as `load_plugin` does.
    """
    name, path = str(path), Path(path).resolve()
    old = _loaded.get(path)
    if old is not None and old.source == source and all(map(_holds, old.entries)):
        return old
    with all_or_nothing():
        for entry in () if old is None else old.entries:
            registry.forget(entry.kind, entry.name)
        before, entries = _registered(), []
        with userfile.executed(WHAT, name, path, source) as module:
            fresh = _fresh(before, name)
            if not fresh:
                raise RequestError(_registers_nothing(name, module))
        for entry in fresh:
            location = f"{module.__name__}:{entry.name}"
            entries.append(dataclasses.replace(entry, location=location, source=source))
            registry.forget(entry.kind, entry.name)
            registry._add(entries[-1])
    _loaded[path] = Plugin(path, code_digest(source), tuple(entries), source)
    return _loaded[path]


def loaded() -> tuple[Plugin, ...]:
    """Return the plug-in files of this process in loading order; a worker must load them too."""
    return tuple(plugin for plugin in _loaded.values() if any(map(_holds, plugin.entries)))


@cache
def load_installed() -> Installed:
    """Import the modules that installed packages announce as plug-ins, once per process.

    A module that fails or registers nothing is reported in `failures`; the others are still loaded.
    """
    from importlib import metadata

    plugins, failures = [], []
    for point in metadata.entry_points(group=GROUP):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
        who = f"the plug-in '{point.name}' of the installed package {package}"
        try:
            with all_or_nothing():
                plugins.append(_imported(point.module))
        except (Exception, SystemExit) as error:
            failures.append(f"{who} cannot be loaded: {userfile.in_words(error, WHAT, None)}")
    return Installed(tuple(plugins), tuple(failures))


def _imported(name: str) -> Plugin:
    before, module = _registered(), importlib.import_module(name)
    fresh = _fresh(before, name)
    if not fresh:
        raise RequestError(f"its module {name} registers nothing: it has no @register above a function")
    path = Path(module.__file__ or "")
    source = path.read_bytes()
    return Plugin(path, code_digest(source), tuple(fresh), source)


def _fresh(before: Mapping[tuple[str, str], Entry], name: str) -> list[Entry]:
    """Return what was registered since then, or by a module of this name that was imported earlier.

    Raises RequestError for a name that could mean two things in a spec string, where objectives and what they
    are made of are named.
    """
    fresh = []
    for key, entry in _registered().items():
        if before.get(key) is entry and not entry.location.startswith((f"{name}:", f"{name}.")):
            continue
        fresh.append(entry)
        for kind in SPOKEN if entry.kind in SPOKEN else ():
            if kind != entry.kind and entry.name in registry.names(kind):
                raise RequestError(
                    f"the plug-in '{name}' registers the {entry.kind} '{entry.name}', but the {kind}"
                    f" '{entry.name}' is there already, and a spec string could mean either; rename yours"
                )
    return fresh


def identity(kind: str, name: str, accepted: Accepted = MappingProxyType({})) -> dict[str, str]:
    """Return {"kind:name": sha256} of a plug-in's code and declared files, or {} for a built-in name.

    In place of a digest that was `accepted`, the earlier one counts.
    """
    entry = registry.entry(kind, name)
    if not entry.is_plugin:
        return {}
    key, digest = f"{kind}:{name}", entry.source_digest()
    return {key: accepted.get(key, {}).get(digest, digest)}


def refuse_changed(plugins: Mapping[str, str]) -> None:
    """Raise RequestError if a plug-in is no longer what {"kind:name": sha256} says, at the end of a step."""
    for plugin, digest in plugins.items():
        kind, _, name = plugin.partition(":")
        if identity(kind, name) != {plugin: digest}:
            raise RequestError(
                f"a file that the {kind} '{name}' reads was changed since the study began; start it again"
            )


def refuse_unshared(entry: Entry) -> None:
    """Raise RequestError, with the remedy, for a plug-in that a study's processes cannot load.

    They load the files of `load_plugin` and installed packages, and not what this session imported.
    """
    if not entry.is_plugin or entry.source:
        return
    entry.source_digest()
    if not any(known is entry for plugin in load_installed().plugins for known in plugin.entries):
        module = entry.location.partition(":")[0]
        raise RequestError(
            f"the {entry.kind} '{entry.name}' was imported from '{module}', which a study's processes do not"
            f" import; load its file instead: --plugin {entry.file}"
        )


def in_child(function: Callable[..., T], *arguments: Any) -> T:
    """Return what a function answers in a fresh process that has loaded the plug-ins of this one.

    Raises RequestError for an exception there, with the line of the plug-in, and for a process that dies.
    """
    from penultimate.child import Child

    child = Child(_answer, [(plugin.path, plugin.source) for plugin in loaded()], function, arguments)
    try:
        answer, failure = child.connection.recv()
    except EOFError:
        fate = child.fate()
        hint = "; is there enough memory?" if fate.endswith("signal 9") else ""
        raise RequestError(f"a process that runs your code {fate}{hint}") from None
    finally:
        child.end()
    if failure:
        raise RequestError(failure)
    result: T = answer
    return result


def _answer(
    connection: Connection,
    files: Iterable[tuple[Path, bytes]],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    try:
        for path, source in files:
            load_source(path, source)
        connection.send((function(*arguments), ""))
    except (Exception, SystemExit) as error:
        connection.send((None, one_line(error)))


def _registered() -> dict[tuple[str, str], Entry]:
    """Return what was registered from outside this package until now; no room of it is imported."""
    return {key: each for key, each in registry.registered().items() if each.is_foreign}


def _holds(entry: Entry) -> bool:
    return registry.registered().get((entry.kind, entry.name)) is entry


@contextlib.contextmanager
def all_or_nothing() -> Iterator[None]:
    """Give every name back to its previous owner if the block fails."""
    before = _registered()
    try:
        yield
    except BaseException:
        for kind, name in _registered():
            registry.forget(kind, name)
        for entry in before.values():
            registry._add(entry)
        raise


def one_line(error: BaseException) -> str:
    """Return an exception in one line, with the place in the plug-in's file if it passed through one."""
    if isinstance(error, PenultimateError):
        return str(error)
    line = _line_in({str(path) for path in _loaded}, error)
    return f"the plug-in '{line[0]}', line {line[1]}: {_in_words(error)}" if line else _in_words(error)


def raised_by(name: str, function: object, error: BaseException) -> str:
    """Return an exception as a sentence, with the last line of the plug-in's file that it passed through.

    >>> def careless(logits): return 1 / 0
    >>> try: careless(0)
    ... except ZeroDivisionError as error: raised_by("careless", careless, error)
    'careless raises: ZeroDivisionError: division by zero.'
    """
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    line = _line_in({getattr(module, "__file__", None) or ""}, error)
    place = f" on line {line[1]} of {line[0]}" if line else ""
    return f"{name} raises{place}: {_in_words(error).rstrip('.')}."


def _in_words(error: BaseException) -> str:
    first = first_line(error)[:300]
    return type(error).__name__ + (f": {first}" if first else "")


def _line_in(files: Collection[str], error: BaseException) -> tuple[str, int | None] | None:
    """Return the name of the last of some files that an exception passed through, and the line there."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    return (Path(frames[-1].filename).name, frames[-1].lineno) if frames else None


def _registers_nothing(name: str, module: ModuleType) -> str:
    if "STUDY" in vars(module):
        return f"'{name}' is a study file, not a plug-in; penultimate run {name} runs it"
    functions = [
        key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
    ]
    above = f"'{functions[-1]}'" if functions else "a function"
    return (
        f"the plug-in '{name}' registers nothing: write 'from penultimate import register' and @register.loss"
        f" (or another of {', '.join(registry.PLUGIN_KINDS)}) above {above}"
    )


registry.when_unknown(lambda: load_installed().failures)
