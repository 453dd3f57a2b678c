"""An engine of this process alone: one step after another, for networks that no other process knows."""

from __future__ import annotations

from functools import partial

from penultimate.engine.devices import places_on_gpus
from penultimate.engine.messages import Unfit
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.process import REPRODUCIBLE, fitness
from penultimate.engine.schedule import Schedule, carry_out
from penultimate.engine.worker import attempt
from penultimate.processes import with_variables
from penultimate.store import Store
from penultimate.study.graph import Graph
from penultimate.variables import DEVICE


class InProcessEngine:
    """Steps are done here, each with its threads; afterwards the process is as it was.

    A step with a share of a GPU runs on the one that PyTorch uses in this process: no other can be chosen any
    more once it has used one.
    """

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        import torch

        threads, warns = torch.get_num_threads(), torch.is_deterministic_algorithms_warn_only_enabled()
        deterministic = torch.are_deterministic_algorithms_enabled()
        try:
            return carry_out(graph, store, observer, 1, _work)
        finally:
            torch.set_num_threads(threads)
            torch.use_deterministic_algorithms(deterministic, warn_only=warns)


def _work(schedule: Schedule, places: int) -> None:
    needed = {DEVICE: places_on_gpus(schedule.gpus)[0][DEVICE], **REPRODUCIBLE} if schedule.gpus else {}
    with with_variables(needed):
        if needed and isinstance(fit := fitness(), Unfit):
            raise fit.refusal()
        while (step := schedule.next()) is not None:
            schedule.ended(step.id, attempt(schedule.store, step, partial(schedule.progressed, step.id)))
