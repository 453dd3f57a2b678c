"""What an engine is: something that runs a graph, tells an observer what happens, and sums it up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from penultimate.graph import Step
from penultimate.store import Store
from penultimate.study.graph import Graph


class Observer(Protocol):
    """Who is told what happens (the terminal, a log, nobody)."""

    def opened(self, graph: Graph, cached: int, processes: int) -> None: ...
    def started(self, step: Step) -> None: ...
    def progressed(self, step: Step, news: dict[str, Any]) -> None: ...
    def finished(self, step: Step, meta: dict[str, Any]) -> None: ...
    def failed(self, step: Step, reason: str, log: str) -> None: ...
    def noticed(self, message: str) -> None: ...
    def closed(self) -> None: ...


class Silent:
    """An observer that says nothing."""

    def opened(self, graph: Graph, cached: int, processes: int) -> None: ...
    def started(self, step: Step) -> None: ...
    def progressed(self, step: Step, news: dict[str, Any]) -> None: ...
    def finished(self, step: Step, meta: dict[str, Any]) -> None: ...
    def failed(self, step: Step, reason: str, log: str) -> None: ...
    def noticed(self, message: str) -> None: ...
    def closed(self) -> None: ...


@dataclass
class Summary:
    """What became of a study's steps."""

    total: int = 0
    cached: int = 0
    computed: int = 0
    diverged: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        return not self.failed


class Engine(Protocol):
    """Something that does every step of a graph that the store does not hold yet."""

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        """Do what is not done. However it ends, what was done stays, and another run does the rest."""
        ...


def spans_machines(engine: Engine) -> bool:
    """Return whether the engine says, by an attribute of this name,
    that its steps are done by several machines.
    """
    return bool(getattr(engine, "spans_machines", False))
