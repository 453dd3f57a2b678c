"""The interface of engines, which run a graph, report events to an observer and return a summary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from penultimate.graph import Step
from penultimate.store import Store
from penultimate.study.graph import Graph


class Observer:
    """The receiver of events; this one ignores them all, and others (the terminal, a log) extend it."""

    def opened(self, graph: Graph, cached: int, processes: int) -> None:
        """Receive the graph, how many of its steps are done, and how many run side by side (0: unknown)."""

    def started(self, step: Step) -> None: ...
    def progressed(self, step: Step, news: dict[str, Any]) -> None: ...
    def finished(self, step: Step, meta: dict[str, Any]) -> None: ...
    def failed(self, step: Step, reason: str, log: str) -> None: ...
    def noticed(self, message: str) -> None: ...
    def closed(self) -> None: ...


@dataclass
class Summary:
    """The outcome of a study's steps."""

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
    """The interface of an object that runs every step of a graph that the store lacks."""

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        """Run the unfinished steps; finished steps stay however it ends, and another run does the rest."""
        ...
