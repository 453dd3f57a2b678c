"""The local engine: steps side by side in worker processes, each with its own threads."""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from penultimate.errors import RequestError
from penultimate.plugins import loaded
from penultimate.store import Store
from penultimate.study.graph import Graph, Step

ATTEMPTS = 2
"""How often a step is begun when its worker process dies under it, or when a parent turns out damaged."""


class Observer(Protocol):
    """Who is told what happens (the terminal, a log, nobody)."""

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


class _Worker:
    """A worker process, the socket to it, and the step that it is on."""

    def __init__(self, threads: int) -> None:
        ours, theirs = socket.socketpair()
        environment = dict(os.environ)
        for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[variable] = str(threads)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penultimate.study.worker", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self.connection = Connection(ours.detach())
        self.connection.send([(str(plugin.path), plugin.source) for plugin in loaded()])
        self.step: Step | None = None
        self.ready = False

    def give(self, root: str, step: Step) -> None:
        """Send a step to the process; that it is dead shows when its answer is waited for."""
        self.step = step
        with contextlib.suppress(OSError):
            self.connection.send((root, step.to_json()))

    def end(self) -> None:
        self.connection.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class _Schedule:
    """Which steps can go now, which wait for parents, which never will."""

    def __init__(self, graph: Graph, store: Store, observer: Observer, summary: Summary) -> None:
        self.graph, self.store, self.observer, self.summary = graph, store, observer, summary
        self.children = graph.children()
        self.order = {step_id: position for position, step_id in enumerate(graph.steps)}
        self.finished: set[str] = set()
        self.queued: set[str] = set()
        self.attempts: dict[str, int] = {}
        self.heap: list[tuple[int, int, str]] = []
        self.stopped = False
        self.absent: set[str] = set()
        self.running: set[str] = set()
        self.condemned: set[str] = set()
        for step_id in graph.steps:
            if store.is_whole(step_id):
                summary.cached += 1
                self.finished.add(step_id)
                meta = store.meta(step_id)
                if meta is not None and meta.status == "diverged":
                    summary.diverged[step_id] = str(meta.content.get("reason", ""))
            elif store.folder(step_id).exists():
                observer.noticed(f"{step_id} is damaged; it was set aside and is computed anew")
                store.set_aside(step_id)
        for step_id in list(summary.diverged):
            self._skip_below(step_id, diverged=True)
        for step_id in graph.steps:
            self._queue_if_free(step_id)

    def _queue_if_free(self, step_id: str) -> None:
        step = self.graph.steps[step_id]
        if self.stopped or step_id in self.finished | self.queued or step_id in self.summary.skipped:
            return
        there = self.finished | self.absent if step.gathers else self.finished
        if step_id not in self.summary.failed and there.issuperset(step.parents):
            self.queued.add(step_id)
            heapq.heappush(self.heap, (step.priority, self.order[step_id], step_id))

    def _skip_below(self, step_id: str, diverged: bool = False) -> None:
        """Give up what needs this step; what gathers goes on without a run that diverged."""
        for child in self.children[step_id]:
            if child in self.summary.skipped or child in self.finished:
                continue
            if diverged and self.graph.steps[child].gathers:
                self.absent.add(step_id)
                self._queue_if_free(child)
                continue
            self.summary.skipped.append(child)
            self._skip_below(child, diverged)

    def next(self) -> Step | None:
        while self.heap:
            _, _, step_id = heapq.heappop(self.heap)
            if step_id not in self.queued:
                continue
            step = self.graph.steps[step_id]
            self.running.add(step_id)
            absent = tuple(parent for parent in step.parents if parent in self.absent)
            return dataclasses.replace(step, absent=absent) if step.gathers else step
        return None

    def _left(self, step_id: str) -> None:
        """A step runs no more: damaged parents that it read, and no other step reads, are set aside."""
        self.queued.discard(step_id)
        self.running.discard(step_id)
        for parent in self.graph.steps[step_id].parents:
            if parent in self.condemned and self.running.isdisjoint(self.children[parent]):
                self.condemned.discard(parent)
                self.store.set_aside(parent)
                self._queue_if_free(parent)

    def done(self, step_id: str, meta: dict[str, Any]) -> None:
        self._left(step_id)
        self.finished.add(step_id)
        self.summary.computed += 1
        if meta["status"] == "diverged":
            self.summary.diverged[step_id] = str(meta.get("reason", ""))
            self._skip_below(step_id, diverged=True)
            return
        for child in self.children[step_id]:
            self._queue_if_free(child)

    def fail(self, step_id: str, reason: str) -> None:
        self._left(step_id)
        self.summary.failed[step_id] = reason
        self._skip_below(step_id)

    def stop(self) -> None:
        """Begin nothing more; what runs is let finish."""
        self.stopped = True
        self.heap.clear()

    def again(self, step_id: str) -> bool:
        """Put a step back in the queue; False when it was tried often enough."""
        self._left(step_id)
        self.attempts[step_id] = self.attempts.get(step_id, 1) + 1
        if self.attempts[step_id] > ATTEMPTS:
            return False
        self._queue_if_free(step_id)
        return True

    def renew_parent(self, child: str, parent: str) -> bool:
        """A parent was damaged: it is set aside and computed, then the child again.

        It stays where it is while another step reads it; none that would is begun meanwhile.
        """
        if parent in self.finished:
            self.attempts[parent] = self.attempts.get(parent, 1) + 1
            if self.attempts[parent] > ATTEMPTS:
                return False
            self.finished.discard(parent)
            self.condemned.add(parent)
            waiting = set(self.children[parent]) - self.running
            self.queued -= waiting
            self.heap = [one for one in self.heap if one[2] not in waiting]
            heapq.heapify(self.heap)
        self._left(child)
        return True


def run_graph(store: Store, graph: Graph, observer: Observer, processes: int | None = None) -> Summary:
    """Do every step of a graph that is not done; Ctrl-C ends the workers and leaves all of it resumable."""
    count = processes or max(1, (os.cpu_count() or 1) // graph.study.threads)
    began = time.monotonic()
    summary = Summary(total=len(graph.steps))
    schedule = _Schedule(graph, store, observer, summary)
    todo = summary.total - summary.cached - len(summary.skipped)
    if todo:
        workers = [_Worker(graph.study.threads) for _ in range(min(count, todo))]
        observer.opened(graph, summary.cached, len(workers))
        try:
            _work(store, schedule, workers, observer, graph.study.threads)
        finally:
            observer.closed()
            for worker in workers:
                worker.end()
    summary.seconds = time.monotonic() - began
    return summary


def _work(
    store: Store, schedule: _Schedule, workers: list[_Worker], observer: Observer, threads: int
) -> None:
    while True:
        for worker in workers:
            if worker.step is None and worker.ready:
                step = schedule.next()
                if step is None:
                    break
                worker.give(str(store.root), step)
                observer.started(step)
        if not schedule.heap and all(worker.step is None for worker in workers):
            return
        by_connection = {worker.connection: worker for worker in workers}
        for connection in wait(list(by_connection)):
            assert isinstance(connection, Connection)
            worker = by_connection[connection]
            try:
                message = connection.recv()
            except (EOFError, OSError):
                workers[workers.index(worker)] = _replace(worker, schedule, observer, threads)
                continue
            _hear(message, worker, schedule, observer)


def _replace(worker: _Worker, schedule: _Schedule, observer: Observer, threads: int) -> _Worker:
    """A worker died (killed, out of memory): a fresh one comes, in which its step is begun again.

    Raises RuntimeError for one that died while it started, for so might every other.
    """
    worker.end()
    code = worker.process.returncode
    how = f"was killed by signal {-code}" if code and code < 0 else f"ended with code {code}"
    step = worker.step
    if step is None:
        if not worker.ready:
            raise RuntimeError(f"a worker process {how} before it was given any work; see its output above")
        observer.noticed(f"a process that waited for work {how}; another takes its place")
    elif schedule.again(step.id):
        observer.noticed(f"the process of {step.id} {how}; the step is begun again")
    else:
        schedule.fail(step.id, f"its process {how} {ATTEMPTS} times; is there enough memory?")
        observer.failed(step, schedule.summary.failed[step.id], "")
    return _Worker(threads)


def _hear(message: dict[str, Any], worker: _Worker, schedule: _Schedule, observer: Observer) -> None:
    kind = message["kind"]
    if kind == "ready":
        worker.ready = True
        return
    if kind == "unfit":
        raise RequestError(
            f"{message['reason']} (in a process of the study, which begins in the current folder and has"
            " nothing that this session has defined or put on its path)"
        )
    step = worker.step
    assert step is not None
    if kind == "progress":
        observer.progressed(step, message)
        return
    worker.step = None
    if kind == "done":
        schedule.done(step.id, message["meta"])
        observer.finished(step, message["meta"])
    elif kind == "damaged" and schedule.renew_parent(step.id, message["parent"]):
        observer.noticed(f"{message['reason']}; it was set aside and is computed anew")
    else:
        schedule.fail(step.id, message["reason"])
        observer.failed(step, message["reason"], message.get("log", ""))
        if message.get("full") and not schedule.stopped:
            observer.noticed("the disk is full: free some space, then the same command continues from here")
            schedule.stop()
