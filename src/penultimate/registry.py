"""The registry of names: built-ins resolved on first use, and plug-ins that register themselves.

A built-in is *declared* (name, location, one line) in the `__init__` of its room, which imports nothing
heavy, so listing names loads no tensor library. A plug-in is an ordinary function under a decorator:

>>> from penultimate import register
>>> @register.loss(paper="Lin et al., 2017, eq. 4")
... def doctest_focal(logits, targets, *, gamma=2.0):
...     '''Softmax cross-entropy, weighted by how wrong the prediction is.'''
...     log_p = logits.log_softmax(-1)
...     return -(targets * (1 - log_p.exp()) ** gamma * log_p).sum(-1)
>>> entry("loss", "doctest_focal").paper
'Lin et al., 2017, eq. 4'
>>> forget("loss", "doctest_focal")

An installed package announces its plug-ins by an entry point in the group `penultimate.plugins`, whose value
is the module that registers them. Such modules are imported only if a name is not found elsewhere, or if all
names are listed.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import importlib
import inspect
import json
import keyword
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar, overload

from penultimate import userfile
from penultimate.errors import RequestError, unknown

ROOMS: Mapping[str, tuple[str, ...]] = {
    "objective": ("penultimate.objectives",),
    "loss": ("penultimate.objectives",),
    "head": ("penultimate.objectives",),
    "fixed_head": ("penultimate.objectives",),
    "penalty": ("penultimate.objectives",),
    "projector": ("penultimate.objectives",),
    "regulariser": ("penultimate.objectives",),
    "dataset": ("penultimate.data",),
    "backbone": ("penultimate.backbones",),
    "metric": ("penultimate.metrics",),
    "probe": ("penultimate.probes",),
    "measurement": ("penultimate.measures",),
    "study": ("penultimate.paper.studies",),
    "exhibit": (
        "penultimate.paper.exhibits",
        "penultimate.results.exhibits",
        "penultimate.evaluation.exhibits",
        "penultimate.portrait.exhibits",
    ),
    "page": ("penultimate.paper", "penultimate.evaluation", "penultimate.portrait"),
    "reference": ("penultimate.paper",),
    "printed": ("penultimate.paper.published",),
}
"""The rooms that declare the built-in names of each kind; each is imported when its kind is first needed."""
KINDS = tuple(ROOMS)
PLUGIN_KINDS = ("loss", "head", "regulariser", "projector", "measurement", "dataset", "backbone")
"""The kinds of plug-ins that are functions or classes under a decorator."""
BY_FIRST_ARGUMENT = {("head", "num_classes"): "fixed_head", ("regulariser", "logits"): "penalty"}
"""Kinds of objective parts that share a decorator, by what their function is given first."""
SPOKEN = ("objective", "loss", "head", "fixed_head", "penalty", "projector", "regulariser")
"""Kinds whose names share spec strings such as "focal + dropout", so that a name belongs to one of them."""
OF_OBJECTIVE = ("label", "ranges", "grids")
"""What a plug-in that is a part of an objective may state of itself."""
OWN = "penultimate."
"""The prefix of this package's own modules; what they register is built in."""
SESSION = "__main__"
"""The module of everything defined in a notebook or at a prompt."""
GROUP = "penultimate.plugins"

Key = tuple[str, str]
T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """Registered name of one kind. `location` is "module:attribute"; a plug-in carries its object as well.

    `facts` are known without importing the object, such as the size of a backbone. `source` is the text of a
    plug-in file, or of an installed package's module, as it was executed.
    """

    name: str
    kind: str
    location: str
    summary: str = ""
    paper: str = ""
    target: Any = field(default=None, compare=False)
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)
    source: bytes = field(default=b"", compare=False, repr=False)

    def resolve(self) -> Any:
        """Return the object itself; its module is imported on first use."""
        if self.target is not None:
            return self.target
        module, _, attribute = self.location.partition(":")
        return getattr(importlib.import_module(module), attribute)

    @property
    def is_plugin(self) -> bool:
        """Whether it comes from outside this package."""
        return self.target is not None and not self.location.startswith(OWN)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that a plug-in declares to read, by paths relative to its own."""
        declared = self.facts.get("files", ())
        return (declared,) if isinstance(declared, str) else tuple(declared)

    @property
    def file(self) -> Path | None:
        """The file of a plug-in; one that was defined in this session has none."""
        module = self.location.partition(":")[0]
        found = getattr(sys.modules.get(module), "__file__", None)
        return None if found is None or module == SESSION else Path(found)

    def source_digest(self) -> str:
        """Return the sha256 of a plug-in's code and files (part of a step's identity), or '' for a built-in.

        Raises RequestError for a plug-in that is in no file that was loaded, which a study's processes do not
        see, and for a declared file that cannot be read.
        """
        if not self.is_plugin:
            return ""
        if self.file is None or not self.source:
            raise RequestError(
                f"the {self.kind} '{self.name}' was defined or imported by this session, where a study's"
                " processes cannot see it; load its file instead: --plugin mine.py, or"
                " penultimate.plugins.load_plugin('mine.py')"
            )
        code, folder = code_digest(self.source), self.file.parent
        try:
            contents = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in self.files}
        except OSError as error:
            raise RequestError(
                f"the {self.kind} '{self.name}' declares the file '{error.filename}', which cannot be read:"
                f" {error.strerror}"
            ) from None
        text = json.dumps([code, contents], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest() if contents else code


def code_digest(source: bytes) -> str:
    """Return the sha256 of a Python file without its comments, docstrings and layout.

    >>> code_digest(b"x = 1  # a remark") == code_digest(b"'Explained.'; x  =  1")
    True
    """
    return hashlib.sha256(ast.unparse(without_docstrings(source)).encode()).hexdigest()


def without_docstrings(source: bytes) -> ast.Module:
    """Return the syntax tree of a Python file without its docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node) is not None:  # type: ignore[arg-type]
            node.body = node.body[1:] or [ast.Pass()]  # type: ignore[attr-defined]
    return tree


_table: dict[Key, Entry] = {}
_rooms_open: set[str] = set()


def _open_room(kind: str) -> None:
    for room in ROOMS.get(kind, ()):
        if room not in _rooms_open:
            _rooms_open.add(room)
            importlib.import_module(room)


def add(new: Entry) -> None:
    """Register an entry; raises RequestError for a name that is taken, unless this session defined it."""
    if new.kind not in KINDS:
        raise unknown("kind", new.kind, KINDS)
    if not new.name.isidentifier() or keyword.iskeyword(new.name):
        raise RequestError(f"a {new.kind} must be named by a Python identifier, not '{new.name[:80]}'")
    kinds = SPOKEN if new.is_plugin and new.kind in SPOKEN else (new.kind,)
    for kind in kinds:
        old = _table.get((kind, new.name))
        if old is None or old.location.startswith(f"{SESSION}:"):
            continue
        if (old.kind, old.location, old.target) != (new.kind, new.location, new.target):
            raise RequestError(
                f"the name '{new.name}' is registered twice: as {old.kind} by {_place(old)} and as"
                f" {new.kind} by {_place(new)}. Rename one of them."
            )
    _table[new.kind, new.name] = new


def _place(entry: Entry) -> str:
    return f"{entry.file}:{entry.name}" if entry.is_plugin and entry.file else entry.location


def declare(kind: str, name: str, location: str, summary: str = "", paper: str = "", **facts: Any) -> None:
    """Declare a built-in by its location "module:attribute", without importing it."""
    add(Entry(name, kind, location, summary, paper, facts=facts))


def forget(kind: str, name: str) -> None:
    """Remove a name (for a notebook that redefines its plug-in, or a test)."""
    _table.pop((kind, name), None)


def registered() -> dict[Key, Entry]:
    """Return what was registered from outside this package until now; no room of it is imported."""
    return {key: each for key, each in _table.items() if each.is_plugin}


@contextlib.contextmanager
def all_or_nothing() -> Iterator[None]:
    """Give every name back to its previous owner if the block fails."""
    before = registered()
    try:
        yield
    except BaseException:
        for key in registered():
            del _table[key]
        _table.update(before)
        raise


def adopt(entry: Entry, module: str, source: bytes) -> Entry:
    """Have a plug-in count as one of a module whose text is known, and return it."""
    adopted = dataclasses.replace(entry, location=f"{module}:{entry.name}", source=source)
    _table[entry.kind, entry.name] = adopted
    return adopted


def names(kind: str) -> list[str]:
    """Return all names of one kind, in order of declaration."""
    _open_room(kind)
    return [name for entry_kind, name in _table if entry_kind == kind]


def entry(kind: str, name: str) -> Entry:
    """Return the entry of a name; installed packages are searched last.

    Raises RequestError for an unknown name, with the nearest known one.
    """
    _open_room(kind)
    failures = () if (kind, name) in _table else open_packages()
    if (kind, name) not in _table:
        raise RequestError(" ".join([str(unknown(kind, name, names(kind))), *failures]))
    return _table[kind, name]


@cache
def open_packages() -> tuple[str, ...]:
    """Load the plug-ins of installed packages, once; returns a sentence for each that could not be loaded."""
    from importlib import metadata

    failures = []
    for point in metadata.entry_points(group=GROUP):
        try:
            with all_or_nothing():
                importlib.import_module(point.module)
                for each in registered().values():
                    module = each.location.partition(":")[0]
                    if f"{module}.".startswith(f"{point.module}.") and each.file is not None:
                        adopt(each, module, each.file.read_bytes())
        except (Exception, SystemExit) as error:
            package = (
                f" of the installed package {point.dist.name} {point.dist.version}" if point.dist else ""
            )
            reason = userfile.in_words(error, "plug-in", None)
            failures.append(f"the plug-in '{point.name}'{package} cannot be loaded: {reason}")
    return tuple(failures)


class _Decorator:
    """Decorator such as `@register.loss` or `@register.loss(name=...)`, which returns the function itself.

    `register.study(STUDY)` registers a value under its own name. What `@register.measurement(version=1,
    per=..., ...)` declares is kept by the function as `declared`.
    """

    def __init__(self, kind: str, *facts: str) -> None:
        self.kind, self.facts = kind, facts

    @overload
    def __call__(self, target: T, *, name: str = "", paper: str = "", **facts: Any) -> T: ...
    @overload
    def __call__(self, *, name: str = "", paper: str = "", **facts: Any) -> Callable[[T], T]: ...

    def __call__(self, target: Any = None, *, name: str = "", paper: str = "", **facts: Any) -> Any:
        declared = None
        if self.kind == "measurement" and target is None:
            declared, facts = facts, {"files": facts.pop("files", ())}
        for fact in facts.keys() - {*self.facts, "files"}:
            raise TypeError(f"register.{self.kind}() got an unexpected keyword argument '{fact}'")

        def register(target: Any) -> Any:
            if declared is not None:
                target.declared = declared
            _register(self.kind, target, name, paper, facts, sys._getframe(1).f_globals["__name__"])
            return target

        if target is None:
            return register
        _register(self.kind, target, name, paper, facts, sys._getframe(1).f_globals["__name__"])
        return target


def _register(kind: str, target: Any, name: str, paper: str, facts: dict[str, Any], module: str) -> None:
    """Register a function, a class or a value under a decorator that was used in a module."""
    attribute = getattr(target, "__qualname__", "")
    name = name or getattr(target, "__name__", "") or getattr(target, "name", "")
    summary = (inspect.getdoc(target) or "").partition("\n")[0] if attribute else getattr(target, "title", "")
    if kind in ("head", "regulariser"):
        kind = BY_FIRST_ARGUMENT.get((kind, next(iter(inspect.signature(target).parameters), "")), kind)
    is_declared = bool(attribute) and module.startswith(OWN)
    if not is_declared:
        _open_room(kind)
    location = f"{module}:{attribute or name}"
    add(Entry(name, kind, location, summary, paper, None if is_declared else target, facts))


GONE = {
    "penalty": "write @register.regulariser over f(logits, head, *, ...)",
    "fixed_head": "write @register.head over f(num_classes, num_features, generator, *, ...)",
    "metric": "write a measurement (penultimate check --example measurement)",
    "probe": "write a measurement (penultimate check --example measurement)",
}
"""Decorators of earlier versions, and what replaces them."""


class Register:
    """Decorators for all kinds of plug-ins, and functions that register the values of a paper.

    docs/plugins.md says what each kind of plug-in is given and returns. Every plug-in declares the files that
    it reads, `files=("weights.npz",)`, by paths relative to its own: what they hold is part of the identity
    of its steps. A part of an objective may state its `label` in tables, and of its hyperparameters the
    `ranges` and the `grids` that a search tries: `ranges={"gamma": "[0, inf)"}, grids={"gamma": (1, 2)}`. A
    loss that is defined on one head alone names it, `head="cosines"`, and shares hyperparameters with it.

    A file that adds a paper registers its `study(Study(...))`, each `exhibit(Exhibit(...))`, the tables that
    it prints, `printed(rows, name="table1")`, and its `page(StudyPage(...))`; with the page, the study to run
    `first`, the objective that is its `baseline`, and `further` architectures.
    """

    loss = _Decorator("loss", "head", *OF_OBJECTIVE)
    head = _Decorator("head", *OF_OBJECTIVE)
    projector = _Decorator("projector", *OF_OBJECTIVE)
    regulariser = _Decorator("regulariser", *OF_OBJECTIVE)
    dataset = _Decorator("dataset")
    backbone = _Decorator("backbone", "size")
    measurement = _Decorator("measurement")
    study = _Decorator("study")
    exhibit = _Decorator("exhibit")
    page = _Decorator("page", "baseline", "first", "further")
    printed = _Decorator("printed")

    def __getattr__(self, name: str) -> NoReturn:
        if name in GONE:
            raise RequestError(f"register.{name} is gone: {GONE[name]}")
        raise AttributeError(f"register has no '{name}'", name=name, obj=self)


register = Register()
