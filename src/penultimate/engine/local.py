"""The local engine, which runs steps in parallel processes of this machine.

The package's own steps are done by processes that serve one after another. A step that runs a user's code has
a fresh process, so that nothing that the code does to its process meets another step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from multiprocessing.connection import Connection, wait

from penultimate.child import Child
from penultimate.engine.devices import VISIBLE, places_on_gpus
from penultimate.engine.messages import Died, Lost, Unfit
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.process import Source, sources, variables
from penultimate.engine.schedule import Schedule, carry_out
from penultimate.engine.worker import runs_user_code, serve
from penultimate.errors import PenultimateError, RequestError
from penultimate.graph import Step
from penultimate.store import Store
from penultimate.study.graph import Graph

ADVICE = (
    "look at the memory that is left, give fewer --processes, and try python -c 'import torch';"
    " nothing done is lost, and the same command continues from here"
)


class LocalEngine:
    """An engine of processes of this machine, by default as many as the cores allow."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        """Run every unfinished step; Ctrl-C ends the processes and leaves everything resumable."""
        return carry_out(graph, store, observer, self.processes, _work)


class _StepPlace:
    """A place for one step at a time.

    gpu         the name of the GPU that it has a share of; empty if it takes no step that needs one
    worker      the process that does the package's own steps
    process     the process of the current step: the worker, or a fresh one
    has_worked  whether a step was done here
    """

    def __init__(self, threads: int, share: Mapping[str, str]) -> None:
        self.variables, self.gpu = {**variables(threads), **share}, share.get(VISIBLE, "")
        self.worker: Child | None = None
        self.process: Child | None = None
        self.step: Step | None = None
        self.has_worked = False

    @property
    def uses(self) -> tuple[str, ...]:
        """The GPUs that its current step uses."""
        return (self.step.resources.on or (self.gpu,)) if self.step and self.gpu else ()

    def begin(self, step: Step, root: str, is_users: bool) -> None:
        """Give a step to a process; if the process is dead, this shows when its answer is awaited."""
        self.step = step
        has_died = self.worker is not None and self.worker.connection.poll()
        if self.worker is not None and (has_died or (is_users and self.gpu)):  # it holds memory of the GPU
            self.worker.end()
            self.worker = None
        if is_users:
            self.process = self._started(sources())
        else:
            self.process = self.worker = self.worker or self._started([])
        with contextlib.suppress(OSError):
            self.process.connection.send((root, step))

    def _started(self, files: list[Source]) -> Child:
        try:
            return Child(serve, files, variables=self.variables)
        except (OSError, EOFError) as error:
            why = getattr(error, "strerror", None) or "the server that starts them has ended"
            raise PenultimateError(f"no process can be started ({why}); {ADVICE}") from None

    def finish(self, goes_on: bool) -> Step:
        """Return the step that has ended; a fresh process ends with it, and a worker that does not go on."""
        step, process, self.step, self.process = self.step, self.process, None, None
        assert step is not None
        assert process is not None
        if process is not self.worker or not goes_on:
            process.end()
            self.worker = None if process is self.worker else self.worker
        return step

    def end(self) -> None:
        """End the processes; the files of a step that is not done are resumed or removed later."""
        for process in (self.process, self.worker):
            if process is not None:
                process.end()


def _work(schedule: Schedule, count: int) -> None:
    shares = places_on_gpus(schedule.gpus) if schedule.gpus else []
    gpus = tuple(dict.fromkeys(share[VISIBLE] for share in shares))
    places = [_StepPlace(schedule.threads, share) for share in [*shares, *[{}] * count][:count]]
    try:
        while not schedule.is_over:
            _deal(schedule, places, gpus)
            running = {place.process.connection: place for place in places if place.process is not None}
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                _hear(connection, running[connection], places, schedule)
    finally:
        for place in places:
            place.end()


def _deal(schedule: Schedule, places: list[_StepPlace], gpus: tuple[str, ...]) -> None:
    """Give a step to each free place, and idle GPUs to a training that shares several."""
    for place in places:
        used = {name for each in places for name in each.uses}
        lent = {name for each in places if each.step for name in each.step.resources.on}
        if place.step is not None or place.gpu in lent:
            continue
        free = [name for name in gpus if name != place.gpu and name not in used]
        alone = place.gpu not in used
        if step := schedule.next((1 + len(free) * alone) if place.gpu else 0):
            others = round(step.resources.gpus) - 1
            on = (place.gpu, *free[:others]) if others > 0 else ()
            is_users = runs_user_code(step, schedule.graph)
            place.begin(step.placed(on), str(schedule.store.root), is_users)


def _hear(connection: Connection, place: _StepPlace, places: list[_StepPlace], schedule: Schedule) -> None:
    """Receive a message of the process at a place, or learn how it ended."""
    assert place.process is not None
    assert place.step is not None
    try:
        message = connection.recv()
    except (EOFError, OSError):
        message = Died(place.process.fate())
    if isinstance(message, dict):
        schedule.progressed(place.step.id, message)
        return
    step = place.finish(goes_on=not isinstance(message, Died | Unfit))
    if isinstance(message, Unfit):
        others = schedule.gpus <= 1 and any(each.gpu not in ("", place.gpu) for each in places)
        if not (place.has_worked and place.gpu and others):
            raise RequestError(message.reason)
        schedule.observer.noticed(f"{message.reason}; the other GPUs go on")
        places.remove(place)
        place.end()
        message = Lost(f"GPU '{place.gpu}'")
    place.has_worked = True
    schedule.ended(step.id, message)
