"""Loading of plug-in files, their identity, and calls of their code in processes of their own.

A file registers what it defines, by the decorators of `penultimate.register`, when it is executed. It is
loaded whole or not at all: if it fails, the names that it took are released. When a file is loaded again, an
unchanged one stays as it is and a changed one replaces its own names, so that a notebook can continue.

A plug-in is identified by the code of its file, without comments and docstrings, and by the content of the
files that it declares. What else it reads is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from penultimate import registry, shipped, userfile
from penultimate.errors import PenultimateError, RequestError
from penultimate.registry import Entry

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

WHAT = "plug-in"

Accepted: TypeAlias = Mapping[str, Mapping[str, str]]
"""Of changed plug-ins by "kind:name", the digest in whose place another one counts: {digest: earlier one}."""
T = TypeVar("T")


@dataclass(frozen=True)
class Plugin:
    """Loaded file: its path, its entries, and the text that was executed."""

    path: Path
    entries: tuple[Entry, ...]
    source: bytes = field(repr=False)

    @property
    def is_registered(self) -> bool:
        """Whether its names are still its own."""
        known = registry.registered()
        return all(known.get((entry.kind, entry.name)) is entry for entry in self.entries)


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
    if old is not None and old.source == source and old.is_registered:
        return old
    with registry.all_or_nothing():
        for entry in () if old is None else old.entries:
            registry.forget(entry.kind, entry.name)
        before = registry.registered()
        with userfile.executed(WHAT, name, path, source) as module:
            fresh = [each for key, each in registry.registered().items() if before.get(key) is not each]
            if not fresh:
                raise RequestError(_registers_nothing(name, module))
        entries = tuple(registry.adopt(entry, module.__name__, source) for entry in fresh)
    _loaded[path] = Plugin(path, entries, source)
    return _loaded[path]


def _registers_nothing(name: str, module: ModuleType) -> str:
    if "STUDY" in vars(module):
        return f"'{name}' is a study file, not a plug-in; penultimate run {name} runs it"
    return (
        f"the plug-in '{name}' registers nothing: write 'from penultimate import register' and @register.loss"
        f" (or another of {', '.join(registry.PLUGIN_KINDS)}) above a function"
    )


def loaded() -> tuple[Plugin, ...]:
    """Return the plug-in files of this process in loading order; a worker must load them too."""
    return tuple(plugin for plugin in _loaded.values() if plugin.is_registered)


def identity(kind: str, name: str) -> dict[str, str]:
    """Return {"kind:name": sha256} of a plug-in's code and declared files, or {} for a built-in name.

    Raises RequestError for a plug-in that a study's processes cannot load.
    """
    entry = registry.entry(kind, name)
    if entry.is_plugin and not entry.source:
        registry.open_packages()  # it may be of one whose module was imported already
        entry = registry.entry(kind, name)
    return {f"{kind}:{name}": entry.source_digest()} if entry.is_plugin else {}


def refuse_changed(plugins: Mapping[str, str]) -> None:
    """Raise RequestError if a plug-in is no longer what {"kind:name": sha256} says, at the end of a step."""
    for plugin, digest in plugins.items():
        kind, _, name = plugin.partition(":")
        if identity(kind, name) != {plugin: digest}:
            raise RequestError(
                f"a file that the {kind} '{name}' reads was changed since the study began; start it again"
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
        raise RequestError(f"a process that runs your code {child.fate()}") from None
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


def one_line(error: BaseException) -> str:
    """Return an exception in one line, with the place in the plug-in's file if it passed through one."""
    words = userfile.in_words(error, WHAT, None)
    places = {path.name: line for path in _loaded if (line := userfile.line_of(error, path))}
    if isinstance(error, PenultimateError) or not places:
        return words
    name, line = next(iter(places.items()))
    return f"the plug-in '{name}'{line}: {words}"
