"""An engine without processes, for studies that are done in the blink of an eye."""

from __future__ import annotations

from penultimate.engine.execute import execute
from penultimate.engine.messages import Done
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.schedule import Schedule, carry_out
from penultimate.store import Store
from penultimate.study.graph import Graph


class InProcess:
    """One step after the other, here; what a step raises passes through."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        return carry_out(graph, store, observer, 1, _work)


def _work(schedule: Schedule, places: int) -> None:
    while (step := schedule.next()) is not None:
        schedule.ended(step.id, Done(execute(schedule.store, step, lambda news: None)))
