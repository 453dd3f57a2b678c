"""Loading of plug-ins from files and from installed packages, without importing a tensor library.

A file registers what it defines, by the decorators of `penultimate.register`, when it is executed. It is
loaded whole or not at all: if it fails, the names that it took are released. When a file is loaded again, an
unchanged one stays as it is and a changed one replaces its own names, so that a notebook can continue.

A package announces its plug-ins by an entry point in the group `penultimate.plugins`, whose value is the
module that registers them. Such modules are imported only if a name is not found elsewhere or if all names
are listed. A module that fails is reported in a sentence and does not stop the command.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType

from penultimate import registry, shipped, userfile
from penultimate.containment import contained
from penultimate.errors import PenultimateError, RequestError, unknown
from penultimate.files import digest_bytes
from penultimate.origin import Origin, Seen, executed, forget, origin
from penultimate.registry import Entry, Register
from penultimate.userfile import first_line

GROUP = "penultimate.plugins"
WHAT = "plug-in"
SPOKEN = ("objective", "loss", "head", "fixed_head", "penalty", "projector", "regulariser")
"""Kinds whose names share spec strings such as "focal + dropout"."""


@dataclass(frozen=True)
class FileEntry(Entry):
    """Entry of a plug-in file; its source is the whole file as it was read, with the files that it read."""

    origin: Origin | None = field(default=None, compare=False)

    def source_digest(self) -> str:
        """Return the sha256 of the plug-in's file and of what it read, which is part of a step's identity."""
        assert self.origin is not None
        return self.origin.identity()


@dataclass(frozen=True)
class Plugin:
    """Loaded file: its path, the sha256 of its text and of what it read, its entries, and the text that ran.

    `left` names the changes that the file made to the process when it was executed, all of which were undone.
    `reads` holds the digests of the files that it read at that time, by paths relative to its folder, and
    `wrote` lists the files that it wrote.
    """

    path: Path
    digest: str
    entries: tuple[Entry, ...]
    source: bytes = field(repr=False)
    left: tuple[str, ...] = ()
    reads: Mapping[str, str] = field(default_factory=dict, repr=False)
    wrote: frozenset[str] = frozenset()

    @property
    def origin(self) -> Origin:
        return Origin(self.path, digest_bytes(self.source), self.reads)


@dataclass(frozen=True)
class Installed:
    """Plug-ins of installed packages; `failures` has a sentence for each that cannot be loaded."""

    plugins: tuple[Plugin, ...]
    failures: tuple[str, ...]


_loaded: dict[Path, Plugin] = {}


def load_plugin(path: Path | str) -> Plugin:
    """Execute one Python file and return what it registered; `examples:focal` is one of the package's own.

    Raises RequestError, and leaves the registry as it was, if the file cannot be found or read, is a folder,
    has a syntax error, fails (the message gives the line and the exception), needs a missing package,
    registers nothing, or uses a name that is taken.

    >>> import tempfile
    >>> text = "from penultimate import register\\n@register.loss\\ndef hinge(logits, targets): ..."
    >>> file = Path(tempfile.mkdtemp()) / "hinge.py"
    >>> _ = file.write_text(text)
    >>> [(entry.kind, entry.name) for entry in load_plugin(file).entries]
    [('loss', 'hinge')]
    >>> registry.forget("loss", "hinge")
    """
    path = shipped.resolved(path)
    source = userfile.read(WHAT, str(path), Path(path))
    with userfile.in_time(WHAT, f"the plug-in '{path}'", Path(path).resolve()):
        return load_source(path, source)


def load_source(path: Path | str, source: bytes, reads: Mapping[str, str] | None = None) -> Plugin:
    """Load a plug-in file from the text that another process has read (`Plugin.path`, `Plugin.source`).

    A study sends the text to its workers, so that editing the file meanwhile does not change the run. Raises
    RequestError as `load_plugin` does, and also if the plug-in reads other content than `reads`, which holds
    what it read in that process.
    """
    name, path = str(path), Path(path).resolve()
    old = _loaded.get(path)
    if old is not None and old.source == source and all(_holds(entry) for entry in old.entries):
        changed = [file for file, digest in old.reads.items() if old.origin.now(file) != digest]
        if not changed:
            return old
        forget(sys.modules[userfile.module_name(WHAT, path)], old.origin, changed)
    tree, code = userfile.compiled(WHAT, name, path, source)
    _refuse_repeats(name, tree)
    with all_or_nothing(), userfile.fresh_module(WHAT, path) as module:
        for entry in () if old is None else old.entries:
            registry.forget(entry.kind, entry.name)
        before = _snapshot()
        with executed(path):
            left = userfile.execute(WHAT, name, path, code, module, lambda error: _sentence_of(error, path))
        found, wrote = origin(path, digest_bytes(source), module)
        if reads is not None:
            for file, digest in reads.items():
                if found.reads.get(file, found.now(file)) != digest and file not in wrote:
                    raise RequestError(
                        f"'{file}', which the plug-in '{name}' reads, was changed since the plug-in was"
                        " loaded; load it again, or start the command again"
                    )
            found = Origin(path, found.text, reads)
        fresh = [entry for key, entry in _snapshot().items() if before.get(key) is not entry]
        if not fresh:
            raise RequestError(_registers_nothing(name, module))
        for entry in fresh:
            old_entry = before.get((entry.kind, entry.name))
            if old_entry is not None and not old_entry.of_session:
                raise RequestError(
                    f"the plug-in '{name}' redefines the {entry.kind} '{entry.name}'; rename yours"
                )
            _refuse_ambiguous(name, entry)
        entries = tuple(
            FileEntry(e.name, e.kind, e.location, e.summary, e.paper, e.target, e.facts, found) for e in fresh
        )
        for entry in entries:
            registry._add(entry)
    _loaded[path] = Plugin(path, found.identity(), entries, source, tuple(left), found.reads, wrote)
    return _loaded[path]


def loaded() -> tuple[Plugin, ...]:
    """Return the plug-in files of this process in loading order; a worker must load them too."""
    return tuple(plugin for plugin in _loaded.values() if any(_holds(entry) for entry in plugin.entries))


@cache
def load_installed() -> Installed:
    """Import the modules that installed packages announce as plug-ins, once per process.

    The digest of such a plug-in is that of the module's own file. A module that fails or registers nothing is
    reported in `failures`; the others are still loaded.
    """
    from importlib import metadata

    plugins, failures = [], []
    for point in metadata.entry_points(group=GROUP):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
        who = f"the plug-in '{point.name}' of the installed package {package}"
        try:
            with all_or_nothing():
                plugins.append(_imported(point.module, who))
        except RequestError as error:
            failures.append(str(error))
    return Installed(tuple(plugins), tuple(failures))


def origin_of(entry: Entry) -> Origin:
    """Return the origin of a plug-in."""
    if isinstance(entry, FileEntry) and entry.origin is not None:
        return entry.origin
    module = sys.modules[entry.location.partition(":")[0]]
    return Origin(Path(getattr(module, "__file__", None) or ""), entry.source_digest())


def origins() -> dict[str, Origin]:
    """Return the origins of this process's plug-ins, keyed by their files."""
    entries = [entry for entry in _snapshot().values() if not entry.of_session]
    return {str(found.path): found for found in map(origin_of, entries)}


def identity(kind: str, name: str, seen: Seen | None) -> dict[str, str]:
    """Return the sha256 that identifies a plug-in ("kind:name") in a store, or {} for a built-in name."""
    entry = registry.entry(kind, name)
    return {f"{kind}:{name}": origin_of(entry).identity(seen)} if entry.is_plugin else {}


def refuse_unshared(entry: Entry) -> None:
    """Raise RequestError, with the remedy, for a plug-in that a study's processes cannot load.

    These processes load the files of `load_plugin` and installed packages. They do not know what this session
    has defined or imported.
    """
    if not entry.is_plugin or isinstance(entry, FileEntry):
        return
    entry.source_digest()
    installed = (known for plugin in load_installed().plugins for known in plugin.entries)
    if not any(known is entry for known in installed):
        module = sys.modules[entry.location.partition(":")[0]]
        file = getattr(module, "__file__", None) or f"{module.__name__}.py"
        raise RequestError(
            f"the {entry.kind} '{entry.name}' was imported from '{module.__name__}', which a study's"
            f" processes do not import; load its file instead: --plugin {file}, or"
            f" penultimate.plugins.load_plugin('{file}')"
        )


def _imported(name: str, who: str) -> Plugin:
    before = _snapshot()
    with userfile.in_time(WHAT, who):
        try:
            spec = importlib.util.find_spec(name)
            with executed(Path((spec and spec.origin) or name)), contained(who):
                module = importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise RequestError(f"{who} cannot be loaded: {_sentence_of(error)}") from error
    path = Path(module.__file__ or "")
    fresh = [
        entry
        for key, entry in _snapshot().items()
        if before.get(key) is not entry
        or (entry.is_plugin and entry.location.startswith((f"{name}:", f"{name}.")))
    ]
    if not fresh:
        raise RequestError(f"{who} registers nothing: its module {name} has no @register above a function")
    for entry in fresh:
        _refuse_ambiguous(str(path), entry)
    source = path.read_bytes() if path.is_file() else b""
    return Plugin(path, digest_bytes(source), tuple(fresh), source)


def _snapshot() -> dict[tuple[str, str], Entry]:
    """Return the plug-ins that are registered now, without importing the rooms of built-in names."""
    return {key: entry for key, entry in registry.registered().items() if entry.is_plugin}


def _holds(entry: Entry) -> bool:
    return entry.name in registry.names(entry.kind) and registry.entry(entry.kind, entry.name) is entry


@contextlib.contextmanager
def all_or_nothing() -> Iterator[None]:
    """Give every name back to its previous owner if the block fails."""
    before = _snapshot()
    try:
        yield
    except BaseException:
        after = _snapshot()
        changed = [key for key in {**before, **after} if after.get(key) is not before.get(key)]
        for kind, name in changed:
            registry.forget(kind, name)
        for key in changed:
            if key in before:
                registry._add(before[key])
        raise


def one_line(error: BaseException) -> str:
    """Return an exception in one line, with the place in the plug-in's file if it passed through one."""
    if isinstance(error, PenultimateError):
        return str(error)
    files = {str(path) for path in _loaded}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    place = f"the plug-in '{Path(frames[-1].filename).name}', line {frames[-1].lineno}: " if frames else ""
    try:
        return f"{place}{type(error).__name__}: {error}"
    except Exception:  # the exception has no message
        return f"{place}{type(error).__name__}"


def raised_by(name: str, function: object, error: BaseException) -> str:
    """Return an exception as a sentence, with the last line of the plug-in's file that it passed through.

    >>> def careless(logits): return 1 / 0
    >>> try: careless(0)
    ... except ZeroDivisionError as error: raised_by("careless", careless, error)
    'careless raises: ZeroDivisionError: division by zero.'
    """
    first = first_line(error).rstrip(".")
    what = type(error).__name__ + (f": {first[:300]}" if first else "")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    place = f" on line {frames[-1].lineno} of {Path(frames[-1].filename).name}" if frames else ""
    return f"{name} raises{place}: {what}."


def _refuse_repeats(name: str, tree: ast.Module) -> None:
    """Raise RequestError for a name defined twice, as Python would silently replace the first."""
    lines: dict[tuple[str, str], int] = {}
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if not (isinstance(call, ast.Attribute) and ast.unparse(call.value).endswith("register")):
                continue
            keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
            given = [k.value.value for k in keywords if k.arg == "name" and isinstance(k.value, ast.Constant)]
            key = (call.attr, str(given[0]) if given else node.name)
            if key in lines:
                raise RequestError(
                    f"the plug-in '{name}' registers the {key[0]} '{key[1]}' twice, on lines"
                    f" {lines[key]} and {node.lineno}; rename one of them"
                )
            lines[key] = node.lineno


def _sentence_of(error: BaseException, path: Path | None = None) -> str:
    """Return an exception of a plug-in's file as a sentence; modules of plug-ins are named by their files."""
    if isinstance(error, AttributeError) and isinstance(error.obj, Register):
        kinds = [kind for kind in registry.KINDS if hasattr(Register, kind)]
        return str(unknown("kind of plug-in", str(error.name), kinds))
    sentence = userfile.in_words(error, WHAT, path)
    if isinstance(error, RequestError):
        for file in (*_loaded, *([path] if path else [])):
            sentence = sentence.replace(f"{userfile.module_name(WHAT, file)}:", f"{file}:")
    return sentence


def _refuse_ambiguous(name: str, entry: Entry) -> None:
    """Raise RequestError if the name of a plug-in could mean two things in a spec string.

    Objectives and what they are made of are all named in these strings.
    """
    if entry.kind not in SPOKEN:
        return
    for kind in SPOKEN:
        if kind != entry.kind and entry.name in registry.names(kind):
            other = registry.entry(kind, entry.name)
            owner = "of a plug-in" if other.is_plugin else "built in"
            raise RequestError(
                f"the plug-in '{name}' registers the {entry.kind} '{entry.name}', but the {kind}"
                f" '{entry.name}' ({owner}) already exists, and a spec string could mean either; rename yours"
            )


def _registers_nothing(name: str, module: ModuleType) -> str:
    if "STUDY" in vars(module):
        return (
            f"'{name}' is a study file, not a plug-in; penultimate plan {name} checks it,"
            f" penultimate run {name} runs it"
        )
    defined = [
        attribute
        for attribute, value in vars(module).items()
        if isinstance(value, FunctionType | type) and value.__module__ == module.__name__
    ]
    above = f" above '{defined[-1]}'" if defined else " above a function"
    return (
        f"the plug-in '{name}' registers nothing: write 'from penultimate import register' and"
        f" @register.loss (or .{', .'.join(kind for kind in registry.PLUGIN_KINDS if kind != 'loss')}){above}"
    )


registry.when_unknown(lambda: load_installed().failures)
