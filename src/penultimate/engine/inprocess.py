"""An engine in this process, which runs one step after another for networks unknown to other processes."""

from __future__ import annotations

from functools import partial

from penultimate.engine.devices import places_on_gpus
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.process import REPRODUCIBLE, prepare, unfit
from penultimate.engine.schedule import Schedule, carry_out
from penultimate.engine.worker import attempt
from penultimate.errors import RequestError
from penultimate.graph import Resources
from penultimate.processes import with_variables
from penultimate.store import Store
from penultimate.study.graph import Graph
from penultimate.variables import DEVICE


class InProcessEngine:
    """An engine that runs steps in this process, each with its threads, which it gives back in the end.

    A step with a share of a GPU runs on the GPU that PyTorch uses in this process, because PyTorch cannot
    switch to another one after its first use.
    """

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        import torch

        before = Resources(torch.get_num_threads(), float(torch.are_deterministic_algorithms_enabled()))
        try:
            return carry_out(graph, store, observer, 1, _work)
        finally:
            prepare(before)


def _work(schedule: Schedule, places: int) -> None:
    needed = {DEVICE: places_on_gpus(schedule.gpus)[0][DEVICE], **REPRODUCIBLE} if schedule.gpus else {}
    with with_variables(needed):
        if refusal := unfit([]):
            raise RequestError(refusal.reason)
        while (step := schedule.next()) is not None:
            schedule.ended(step.id, attempt(schedule.store, step, partial(schedule.progressed, step.id)))
