"""The local engine, which runs steps in parallel worker processes of this machine, with their threads."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Mapping
from multiprocessing.connection import Connection, wait
from typing import Any

from penultimate.engine.devices import VISIBLE, places_on_gpus
from penultimate.engine.messages import Died, Ready, Unfit
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.process import sources, variables
from penultimate.engine.schedule import Schedule, carry_out
from penultimate.errors import PenultimateError
from penultimate.graph import Step
from penultimate.processes import command, environment
from penultimate.store import Store
from penultimate.study.graph import Graph

GRACE = 1.0
"""The seconds that a process has to end after it closed its socket."""
ADVICE = (
    "look at the memory that is left, give fewer --processes, and try python -c 'import torch';"
    " nothing done is lost, and the same command continues from here"
)


class LocalEngine:
    """An engine of worker processes, by default as many as the cores allow."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        """Run every unfinished step; Ctrl-C ends the workers and leaves everything resumable."""
        return carry_out(graph, store, observer, self.processes, _work)


class _Worker:
    """A worker process, the socket to it, and its current step.

    gpu     the variables of its share of a GPU; empty if it takes no step that needs one
    again   whether it replaces a worker that died while starting
    heir    whether it replaces a worker that had worked
    """

    def __init__(self, threads: int, gpu: Mapping[str, str], again: bool = False, heir: bool = False) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            try:
                self.process = subprocess.Popen(
                    command("penultimate.engine.worker", str(theirs.fileno())),
                    pass_fds=(theirs.fileno(),),
                    env=environment({**variables(threads), **gpu}),
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                raise PenultimateError(f"no process can be started ({error.strerror}); {ADVICE}") from None
            self.connection = Connection(ours.detach())
        self.gpu, self.again, self.heir = gpu, again, heir
        self.name = gpu.get(VISIBLE, "")
        self.ready = False
        self.step: Step | None = None
        with contextlib.suppress(OSError):
            self.connection.send(sources())

    @property
    def uses(self) -> tuple[str, ...]:
        """The GPUs that its current step uses."""
        return (self.step.resources.on or (self.name,)) if self.step and self.name else ()

    def give(self, root: str, step: Step) -> None:
        """Send a step to the process; if the process is dead, this shows when its answer is awaited."""
        self.step = step
        with contextlib.suppress(OSError):
            self.connection.send((root, step))

    def fate(self) -> str:
        """Return how the process ended, after its end of the socket has closed."""
        try:
            code = self.process.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            return "no longer answered"
        return f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"

    def end(self) -> None:
        """End the process and those that its step started; their files are resumed or removed later."""
        self.connection.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _work(schedule: Schedule, places: int) -> None:
    workers: list[_Worker] = []
    try:
        on_gpus = places_on_gpus(schedule.gpus) if schedule.gpus else []
        names = tuple(dict.fromkeys(place[VISIBLE] for place in on_gpus))
        for place in range(places):
            workers.append(_Worker(schedule.threads, on_gpus[place] if place < len(on_gpus) else {}))
        while not schedule.is_over:
            _deal(schedule, workers, names)
            by_connection = {worker.connection: worker for worker in workers}
            for connection in wait(list(by_connection)):
                assert isinstance(connection, Connection)
                worker = by_connection[connection]
                try:
                    message = connection.recv()
                except (EOFError, OSError):
                    workers[workers.index(worker)] = _replace(worker, schedule)
                else:
                    others = schedule.gpus <= 1 and any(each.gpu for each in workers if each is not worker)
                    if isinstance(message, Unfit) and worker.heir and worker.gpu and others:
                        schedule.observer.noticed(f"{message.reason}; the other GPUs go on")
                        workers.remove(worker)
                        worker.end()
                        continue
                    _hear(message, worker, schedule)
                    if isinstance(message, Died):  # its GPU failed, so that it cannot continue
                        worker.end()
                        workers[workers.index(worker)] = _Worker(schedule.threads, worker.gpu, heir=True)
    finally:
        for worker in workers:
            worker.end()


def _deal(schedule: Schedule, workers: list[_Worker], gpus: tuple[str, ...]) -> None:
    """Give a step to each waiting worker, and idle GPUs to a training that shares several."""
    for worker in workers:
        used = {name for each in workers for name in each.uses}
        lent = {name for each in workers if each.step for name in each.step.resources.on}
        if not worker.ready or worker.step is not None or worker.name in lent:
            continue
        free = [name for name in gpus if name != worker.name and name not in used]
        alone = worker.name not in used
        if step := schedule.next((1 + len(free) * alone) if worker.name else 0):
            others = round(step.resources.gpus) - 1
            on = (worker.name, *free[:others]) if others > 0 else ()
            worker.give(str(schedule.store.root), step.placed(on))


def _replace(worker: _Worker, schedule: Schedule) -> _Worker:
    """Return a new worker in place of one that died (killed, out of memory); its step may be retried.

    Raises PenultimateError if two in a row die while starting, because all others might too.
    """
    how = worker.fate()
    worker.end()
    if worker.step is not None:
        schedule.ended(worker.step.id, Died(how))
    elif worker.ready:
        schedule.observer.noticed(f"a process that waited for work {how}; another takes its place")
    elif worker.again:
        raise PenultimateError(
            f"two processes, one after the other, ended while they started (the last {how}); what they"
            f" printed may say why; else {ADVICE}"
        )
    else:
        schedule.observer.noticed(f"a process {how} while it started; it is begun again")
    return _Worker(schedule.threads, worker.gpu, not worker.ready, worker.ready or worker.heir)


def _hear(message: Any, worker: _Worker, schedule: Schedule) -> None:
    match message:
        case Ready():
            worker.ready = True
        case Unfit():
            raise message.refusal()
        case dict():
            assert worker.step is not None
            schedule.progressed(worker.step.id, message)
        case _:
            assert worker.step is not None
            step, worker.step = worker.step, None
            schedule.ended(step.id, message)
