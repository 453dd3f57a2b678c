"""An engine of this process alone: one step after another, for networks that no other process knows."""

from __future__ import annotations

from functools import partial

from penultimate.engine.observer import Observer, Summary
from penultimate.engine.schedule import Schedule, carry_out
from penultimate.engine.worker import attempt
from penultimate.store import Store
from penultimate.study.graph import Graph


class InProcessEngine:
    """Steps are done here, each with its threads; the number of threads is as it was afterwards."""

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        import torch

        threads = torch.get_num_threads()
        try:
            return carry_out(graph, store, observer, 1, _work)
        finally:
            torch.set_num_threads(threads)


def _work(schedule: Schedule, places: int) -> None:
    while (step := schedule.next()) is not None:
        schedule.ended(step.id, attempt(schedule.store, step, partial(schedule.progressed, step.id)))
