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

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

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
        "penultimate.report.exhibits",
        "penultimate.evaluation.exhibits",
        "penultimate.portrait.exhibits",
    ),
    "page": ("penultimate.paper", "penultimate.evaluation", "penultimate.portrait"),
    "reference": ("penultimate.paper",),
    "printed": ("penultimate.paper.published",),
}
"""The rooms that declare the built-in names of each kind; each is imported when its kind is first needed."""
KINDS = tuple(ROOMS)
PLUGIN_KINDS = (
    *("loss", "head", "fixed_head", "penalty", "projector", "regulariser"),
    *("dataset", "backbone", "metric", "probe", "measurement"),
)
"""The kinds of plug-ins that are functions or classes under a decorator."""
OWN = "penultimate."
"""The prefix of this package's own modules; what they register is built in."""

SESSION = "__main__"
"""The module of everything defined in a notebook or at a prompt."""

OF_OBJECTIVE = ("label", "ranges", "grids")
"""What a plug-in that is a part of an objective may state of itself."""

Plugin = TypeVar("Plugin", bound=Callable[..., Any])
Value = TypeVar("Value")


@dataclass(frozen=True)
class Entry:
    """Registered name of one kind. `location` is "module:attribute"; a plug-in carries its object as well.

    `facts` are known without importing the object, such as the size of a backbone.
    """

    name: str
    kind: str
    location: str
    summary: str = ""
    paper: str = ""
    target: Any = field(default=None, compare=False)
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def resolve(self) -> Any:
        """Return the object itself; its module is imported on first use."""
        if self.target is not None:
            return self.target
        module, _, attribute = self.location.partition(":")
        return getattr(importlib.import_module(module), attribute)

    @property
    def is_plugin(self) -> bool:
        return self.target is not None

    @property
    def of_session(self) -> bool:
        """Whether it was defined in a notebook or at a prompt; a file that registers the name replaces it."""
        return self.location.startswith(f"{SESSION}:")

    def source_digest(self) -> str:
        """Return the sha256 of a plug-in's source text (part of a step's identity), or '' for a built-in.

        Raises RequestError for a plug-in without a file, because it was defined in this session.
        """
        if self.target is None:
            return ""
        module = inspect.getmodule(self.target)
        if module is None or self.of_session:
            raise RequestError(
                f"the {self.kind} '{self.name}' was defined in this session, where a study's processes"
                " cannot see it; put it in a file, mine.py say, and load that: --plugin mine.py, or"
                " penultimate.plugins.load_plugin('mine.py')"
            )
        return hashlib.sha256(inspect.getsource(module).encode()).hexdigest()


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
    if old is not None and old.location != new.location and not old.of_session:
        raise RequestError(
            f"{new.kind} '{new.name}' is registered twice: by {old.location} and by {new.location}."
            " Rename one of them."
        )
    _table[new.kind, new.name] = new


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
    """Decorator such as `@register.loss` or `@register.loss(name=...)`, which returns the function itself."""

    def __init__(self, kind: str, *facts: str) -> None:
        self.kind, self.facts = kind, facts

    @overload
    def __call__(self, function: Plugin) -> Plugin: ...
    @overload
    def __call__(self, *, name: str = "", paper: str = "", **facts: Any) -> Callable[[Plugin], Plugin]: ...

    def __call__(
        self, function: Plugin | None = None, *, name: str = "", paper: str = "", **facts: Any
    ) -> Plugin | Callable[[Plugin], Plugin]:
        for fact in facts:
            if fact not in self.facts:
                raise TypeError(f"register.{self.kind}() got an unexpected keyword argument '{fact}'")

        def add(target: Plugin) -> Plugin:
            registered_name = name or getattr(target, "__name__", "")
            summary = (inspect.getdoc(target) or "").partition("\n")[0]
            location = f"{target.__module__}:{getattr(target, '__qualname__', registered_name)}"
            if target.__module__.startswith(OWN):
                declare(self.kind, registered_name, location, summary, paper, **facts)
            else:
                _open_room(self.kind)
                _add(Entry(registered_name, self.kind, location, summary, paper, target, facts))
            return target

        return add if function is None else add(function)


class _Declaring(_Decorator):
    """Decorator `@register.measurement(version=1, per=..., ...)`; the function keeps these as `declared`."""

    @overload
    def __call__(self, function: Plugin) -> Plugin: ...
    @overload
    def __call__(self, *, name: str = "", paper: str = "", **declared: Any) -> Callable[[Plugin], Plugin]: ...

    def __call__(
        self, function: Plugin | None = None, *, name: str = "", paper: str = "", **declared: Any
    ) -> Plugin | Callable[[Plugin], Plugin]:
        if function is not None:  # it has no declaration, which is reported once the measurement is asked for
            return super().__call__(function)
        add = super().__call__(name=name, paper=paper)

        def declare_and_add(target: Plugin) -> Plugin:
            target.declared = declared  # type: ignore[attr-defined]
            return add(target)

        return declare_and_add


class _Value:
    """Function such as `register.study(STUDY)`, which registers a value under its own name and returns it."""

    def __init__(self, kind: str, *facts: str) -> None:
        self.kind, self.facts = kind, facts

    def __call__(self, value: Value, *, name: str = "", **facts: Any) -> Value:
        for fact in facts:
            if fact not in self.facts:
                raise TypeError(f"register.{self.kind}() got an unexpected keyword argument '{fact}'")
        name, summary = name or getattr(value, "name", ""), getattr(value, "title", "")
        module = sys._getframe(1).f_globals.get("__name__", SESSION)
        _open_room(self.kind)
        _add(Entry(name, self.kind, f"{module}:{name}", summary, target=value, facts=facts))
        return value


class Register:
    """Decorators for all kinds of plug-ins, and functions that register the values of a paper.

    A file that adds another paper registers its studies, their exhibits and the page that draws them:
    `register.study(Study(...))`, `register.exhibit(Exhibit(...))`, `register.page(StudyPage(...))`, and the
    tables that it prints, `register.printed(rows, name="table1")`: a mapping {column: text} for each row.
    With its page it may name the study to run `first`, the objective that is its `baseline`, and `further`
    architectures besides its main one.

    A part of an objective may state its `label` in tables, and of its hyperparameters the `ranges` and the
    `grids` that a search tries, `ranges={"gamma": "[0, inf)"}, grids={"gamma": (1, 2, 5)}`. A loss that is
    defined on one head alone names it: `head="cosines"`, with which it shares hyperparameters of one name.
    """

    loss = _Decorator("loss", "head", *OF_OBJECTIVE)
    head = _Decorator("head", *OF_OBJECTIVE)
    fixed_head = _Decorator("fixed_head", *OF_OBJECTIVE)
    penalty = _Decorator("penalty", *OF_OBJECTIVE)
    projector = _Decorator("projector", *OF_OBJECTIVE)
    regulariser = _Decorator("regulariser", *OF_OBJECTIVE)
    dataset = _Decorator("dataset")
    backbone = _Decorator("backbone", "size")
    metric = _Decorator("metric")
    probe = _Decorator("probe")
    measurement = _Declaring("measurement")
    study = _Value("study")
    exhibit = _Value("exhibit")
    page = _Value("page", "baseline", "first", "further")
    printed = _Value("printed")


register = Register()
