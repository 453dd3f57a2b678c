"""An engine without processes, for studies that are done in the blink of an eye."""

from __future__ import annotations

from penultimate.engine.execute import execute
from penultimate.engine.messages import Done
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.schedule import Schedule
from penultimate.store import Store
from penultimate.study.graph import Graph


class InProcess:
    """One step after the other, here; what a step raises passes through."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        schedule = Schedule(graph, store, observer)
        while not schedule.is_over:
            step = schedule.next()
            assert step is not None
            schedule.ended(step.id, Done(execute(store, step, lambda news: None)))
        return schedule.summary
