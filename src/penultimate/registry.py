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
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar, overload

from penultimate.checks import identifier
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
OWN = "penultimate."
"""The prefix of this package's own modules; what they register is built in."""

SESSION = "__main__"
"""The module of everything defined in a notebook or at a prompt."""

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
"""The parts of a file that may begin with a docstring."""

OF_OBJECTIVE = ("label", "ranges", "grids")
"""What a plug-in that is a part of an objective may state of itself."""

Plugin = TypeVar("Plugin", bound=Callable[..., Any])
Value = TypeVar("Value")


@dataclass(frozen=True)
class Entry:
    """Registered name of one kind. `location` is "module:attribute"; a plug-in carries its object as well.

    `facts` are known without importing the object, such as the size of a backbone. `source` is the text of a
    plug-in file as it was executed; that of an installed package's module is read where it lies.
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
        """Whether it carries its object; a built-in is imported when it is needed."""
        return self.target is not None

    @property
    def is_foreign(self) -> bool:
        """Whether it is a plug-in from outside this package."""
        return self.is_plugin and not self.location.startswith(OWN)

    @property
    def of_session(self) -> bool:
        """Whether it was defined in a notebook or at a prompt; a file that registers the name replaces it."""
        return self.location.startswith(f"{SESSION}:")

    @property
    def files(self) -> tuple[str, ...]:
        """The files that a plug-in declares to read, by paths relative to its own."""
        declared = self.facts.get("files", ())
        return (declared,) if isinstance(declared, str) else tuple(declared)

    @property
    def file(self) -> Path | None:
        """The file of a plug-in; one that was defined in this session has none."""
        module = sys.modules.get(self.location.partition(":")[0])
        found = getattr(module, "__file__", None)
        return None if found is None or self.of_session else Path(found)

    def source_digest(self) -> str:
        """Return the sha256 of a plug-in's code and files (part of a step's identity), or '' for a built-in.

        Raises RequestError for a plug-in that was defined in this session, and for a declared file that
        cannot be read.
        """
        if self.target is None:
            return ""
        if self.file is None:
            raise RequestError(
                f"the {self.kind} '{self.name}' was defined in this session, where a study's processes"
                " cannot see it; put it in a file, mine.py say, and load that: --plugin mine.py, or"
                " penultimate.plugins.load_plugin('mine.py')"
            )
        code = code_digest(self.source or self.file.read_bytes())
        if not self.files:
            return code
        contents = {name: self._digest_of(self.file.parent / name) for name in self.files}
        return hashlib.sha256(json.dumps([code, contents], sort_keys=True).encode()).hexdigest()

    def _digest_of(self, path: Path) -> str:
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise RequestError(
                f"the {self.kind} '{self.name}' declares the file '{path}', which cannot be read:"
                f" {error.strerror or error}"
            ) from None


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
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


_table: dict[tuple[str, str], Entry] = {}
_rooms_open: set[str] = set()
_openers: list[Callable[[], tuple[str, ...]]] = []


def _open_room(kind: str) -> None:
    for room in ROOMS.get(kind, ()):
        if room not in _rooms_open:
            _rooms_open.add(room)
            importlib.import_module(room)


def _add(new: Entry) -> None:
    if new.kind not in KINDS:
        raise unknown("kind", new.kind, KINDS)
    is_own = new.location.startswith(OWN)
    identifier(new.name, new.kind, () if is_own else [name for kind, name in _table if kind == new.kind])
    old = _table.get((new.kind, new.name))
    is_same = old is not None and (old.location, old.target) == (new.location, new.target)
    if old is not None and not is_same and not old.of_session:
        raise RequestError(
            f"{new.kind} '{new.name}' is registered twice: by {_place(old)} and by {_place(new)}."
            " Rename one of them."
        )
    _table[new.kind, new.name] = new


def _place(entry: Entry) -> str:
    return f"{entry.file}:{entry.name}" if entry.is_plugin and entry.file else entry.location


def declare(kind: str, name: str, location: str, summary: str = "", paper: str = "", **facts: Any) -> None:
    """Declare a built-in by its location "module:attribute", without importing it."""
    _add(Entry(name, kind, location, summary, paper, facts=facts))


def forget(kind: str, name: str) -> None:
    """Remove a name (for a notebook that redefines its plug-in, or a test)."""
    _table.pop((kind, name), None)


def registered() -> dict[tuple[str, str], Entry]:
    """Return all present entries by kind and name, without the built-ins of rooms not yet imported."""
    return dict(_table)


def names(kind: str) -> list[str]:
    """Return all names of one kind, in order of declaration."""
    _open_room(kind)
    return [name for entry_kind, name in _table if entry_kind == kind]


def when_unknown(opener: Callable[[], tuple[str, ...]]) -> None:
    """Add a function to call when a name is unknown; it may register more names, and returns failures."""
    _openers.append(opener)


def open_packages() -> tuple[str, ...]:
    """Load the plug-ins of installed packages, once; returns a sentence for each that could not be loaded."""
    return tuple(failure for opener in _openers for failure in opener())


def entry(kind: str, name: str) -> Entry:
    """Return the entry of a name; installed packages are searched last.

    Raises RequestError for an unknown name, with the nearest known one.
    """
    _open_room(kind)
    known = _table.get((kind, name))
    if known is None:
        failures = open_packages()
        known = _table.get((kind, name))
        if known is None:
            raise RequestError(" ".join([str(unknown(kind, name, names(kind))), *failures]))
    return known


class _Decorator:
    """Decorator such as `@register.loss` or `@register.loss(name=...)`, which returns the function itself.

    What `@register.measurement(version=1, per=..., ...)` declares is kept by the function as `declared`.
    """

    def __init__(self, kind: str, *facts: str) -> None:
        self.kind, self.facts = kind, ("files", *facts)

    @overload
    def __call__(self, function: Plugin) -> Plugin: ...
    @overload
    def __call__(self, *, name: str = "", paper: str = "", **facts: Any) -> Callable[[Plugin], Plugin]: ...

    def __call__(
        self, function: Plugin | None = None, *, name: str = "", paper: str = "", **facts: Any
    ) -> Plugin | Callable[[Plugin], Plugin]:
        declared = None
        if self.kind == "measurement" and function is None:
            declared, facts = facts, {"files": facts.pop("files", ())}
        _expect_facts(self.kind, facts, self.facts)

        def add(target: Plugin) -> Plugin:
            if declared is not None:
                target.declared = declared  # type: ignore[attr-defined]
            kind = BY_FIRST_ARGUMENT.get((self.kind, _first_argument(target)), self.kind)
            registered_name = name or getattr(target, "__name__", "")
            summary = (inspect.getdoc(target) or "").partition("\n")[0]
            location = f"{target.__module__}:{getattr(target, '__qualname__', registered_name)}"
            if target.__module__.startswith(OWN):
                declare(kind, registered_name, location, summary, paper, **facts)
            else:
                _open_room(kind)
                _add(Entry(registered_name, kind, location, summary, paper, target, facts))
            return target

        return add if function is None else add(function)


def _expect_facts(kind: str, facts: Iterable[str], known: Sequence[str]) -> None:
    for fact in facts:
        if fact not in known:
            raise TypeError(f"register.{kind}() got an unexpected keyword argument '{fact}'")


def _first_argument(function: Callable[..., Any]) -> str:
    try:
        return next(iter(inspect.signature(function).parameters), "")
    except (TypeError, ValueError):
        return ""


class _Value:
    """Function such as `register.study(STUDY)`, which registers a value under its own name and returns it."""

    def __init__(self, kind: str, *facts: str) -> None:
        self.kind, self.facts = kind, facts

    def __call__(self, value: Value, *, name: str = "", **facts: Any) -> Value:
        _expect_facts(self.kind, facts, self.facts)
        name, summary = name or getattr(value, "name", ""), getattr(value, "title", "")
        module = sys._getframe(1).f_globals.get("__name__", SESSION)
        _open_room(self.kind)
        _add(Entry(name, self.kind, f"{module}:{name}", summary, target=value, facts=facts))
        return value


def _gone(kind: str, now: str) -> Callable[..., NoReturn]:
    """Return a decorator of an earlier version, which names the one that replaces it."""

    def refuse(*arguments: Any, **facts: Any) -> NoReturn:
        raise RequestError(f"register.{kind} is gone: {now}")

    return refuse


class Register:
    """Decorators for all kinds of plug-ins, and functions that register the values of a paper.

    `penultimate.checking` says what each kind of plug-in is given and returns. Every plug-in declares the
    files that it reads, `files=("weights.npz",)`, by paths relative to its own: what they hold is part of the
    identity of its steps. A part of an objective may state its `label` in tables, and of its hyperparameters
    the `ranges` and the `grids` that a search tries: `ranges={"gamma": "[0, inf)"}, grids={"gamma": (1, 2)}`.
    A loss that is defined on one head alone names it, `head="cosines"`, and shares hyperparameters with it.

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
    study = _Value("study")
    exhibit = _Value("exhibit")
    page = _Value("page", "baseline", "first", "further")
    printed = _Value("printed")
    penalty = staticmethod(_gone("penalty", "write @register.regulariser over f(logits, head, *, ...)"))
    fixed_head = staticmethod(
        _gone("fixed_head", "write @register.head over f(num_classes, num_features, generator, *, ...)")
    )
    metric = staticmethod(_gone("metric", "write a measurement (penultimate check --example measurement)"))
    probe = staticmethod(_gone("probe", "write a measurement (penultimate check --example measurement)"))


register = Register()
