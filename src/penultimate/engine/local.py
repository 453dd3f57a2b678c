"""The local engine: steps side by side in worker processes of this machine, each with its own threads."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from multiprocessing.connection import Connection, wait
from typing import Any

from penultimate.engine.messages import Died, Ready, Unfit
from penultimate.engine.observer import Observer, Summary
from penultimate.engine.schedule import Schedule, carry_out
from penultimate.engine.worker import sources, thread_variables
from penultimate.store import Store
from penultimate.study.graph import Graph, Step


class LocalEngine:
    """Worker processes: as many as are asked for, else as the cores allow."""

    def __init__(self, processes: int | None = None) -> None:
        self.processes = processes

    def run(self, graph: Graph, store: Store, observer: Observer) -> Summary:
        """Do every step that is not done; Ctrl-C ends the workers and leaves all of it resumable."""
        return carry_out(graph, store, observer, self.processes, _work)


class _Worker:
    """A worker process, the socket to it, and the step that it is on."""

    def __init__(self, threads: int) -> None:
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penultimate.engine.worker", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            env={**os.environ, **thread_variables(threads)},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self.connection = Connection(ours.detach())
        self.connection.send(sources())
        self.step: Step | None = None
        self.ready = False

    def give(self, root: str, step: Step) -> None:
        """Send a step to the process; that it is dead shows when its answer is waited for."""
        self.step = step
        with contextlib.suppress(OSError):
            self.connection.send((root, step))

    def end(self) -> None:
        self.connection.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _work(schedule: Schedule, places: int) -> None:
    workers = [_Worker(schedule.threads) for _ in range(places)]
    try:
        while not schedule.is_over:
            for worker in workers:
                if worker.ready and worker.step is None and (step := schedule.next()) is not None:
                    worker.give(str(schedule.store.root), step)
            by_connection = {worker.connection: worker for worker in workers}
            for connection in wait(list(by_connection)):
                assert isinstance(connection, Connection)
                worker = by_connection[connection]
                try:
                    message = connection.recv()
                except (EOFError, OSError):
                    workers[workers.index(worker)] = _replace(worker, schedule)
                else:
                    _hear(message, worker, schedule)
    finally:
        for worker in workers:
            worker.end()


def _replace(worker: _Worker, schedule: Schedule) -> _Worker:
    """A worker died (killed, out of memory): another takes its place, and its step may be begun again.

    Raises RuntimeError for one that died while it started, for so might every other.
    """
    worker.end()
    code = worker.process.returncode
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    if worker.step is not None:
        schedule.ended(worker.step.id, Died(how))
    elif worker.ready:
        schedule.observer.noticed(f"a process that waited for work {how}; another takes its place")
    else:
        raise RuntimeError(f"a worker process {how} before it was given any work; see its output above")
    return _Worker(schedule.threads)


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
