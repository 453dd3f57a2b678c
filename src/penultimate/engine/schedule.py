"""The scheduling rules of all engines: which steps can start, which wait, and which will never run.

An engine takes steps with `next`, places them, and reports the ending of each with `ended`. This module
handles retries, damaged parents, diverging runs and full disks. The work is linear in the number of steps and
parents, because each step counts the parents for which it still waits.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
import time
from collections import Counter
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from penultimate.engine.messages import Damaged, Died, Done, Ending, Failed, Lost
from penultimate.engine.observer import Observer, Summary
from penultimate.errors import DamagedFileError
from penultimate.graph import Step
from penultimate.processes import usable_cores
from penultimate.store import Store
from penultimate.study.graph import Graph

ATTEMPTS = 2
"""The number of attempts at a step whose process dies or that a child finds damaged."""

LOSSES = 20
"""The number of attempts at a step whose machine or GPU is lost, which may happen at any time."""
ANY = 0
"""The number of parallel steps on changing machines: as many as there is room for."""


class _State(Enum):
    WAITING = auto()
    READY = auto()
    RUNNING = auto()
    DONE = auto()
    FAILED = auto()
    SKIPPED = auto()


class Schedule:
    """The steps of a graph, as an engine works through them.

    left            the steps that were unfinished when it was made
    threads, gpus   the most that any of these steps needs
    """

    def __init__(self, graph: Graph, store: Store, observer: Observer) -> None:
        self.graph, self.store, self.observer = graph, store, observer
        self.summary = Summary(total=len(graph.steps))
        self._children = graph.children()
        self._order = {step_id: position for position, step_id in enumerate(graph.steps)}
        self._state = dict.fromkeys(graph.steps, _State.WAITING)
        self._missing = {step_id: len(step.parents) for step_id, step in graph.steps.items()}
        self._attempts: Counter[tuple[str, int]] = Counter()
        self._absent: set[str] = set()
        self._heaps: dict[bool, list[tuple[int, int, str]]] = {False: [], True: []}
        self._running = 0
        self._stopped = False
        for step_id in [step_id for step_id in graph.steps if self._was_done(step_id)]:
            self._release(step_id)
        for step_id in graph.steps:
            self._queue_if_free(step_id)
        over = (_State.DONE, _State.SKIPPED)
        self.left = [step for step_id, step in graph.steps.items() if self._state[step_id] not in over]
        self.threads = max((step.resources.threads for step in self.left), default=1)
        self.gpus = max((step.resources.gpus for step in self.left), default=0.0)

    def next(self, gpus: float = math.inf) -> Step | None:
        """Return the most urgent step that can start, and mark it as started; None if there is none.

        Among the steps that need GPUs, only the most urgent one may start, and only if enough GPUs are free.
        A step that needs several GPUs thus waits for them, and no less urgent step takes them meanwhile.
        """
        waiting = [
            heap
            for heap in self._heaps.values()
            if self._top(heap) and math.ceil(self.graph.steps[heap[0][2]].resources.gpus) <= gpus
        ]
        if not waiting or self._stopped:
            return None
        _, _, step_id = heapq.heappop(min(waiting))
        step = self.graph.steps[step_id]
        self._state[step_id] = _State.RUNNING
        self._running += 1
        self.observer.started(step)
        absent = tuple(parent for parent in step.parents if parent in self._absent)
        return dataclasses.replace(step, absent=absent) if absent else step

    def _top(self, heap: list[tuple[int, int, str]]) -> bool:
        """Return whether a step in the heap can start; steps that no longer can are removed from its top."""
        while heap and self._state[heap[0][2]] is not _State.READY:
            heapq.heappop(heap)
        return bool(heap)

    @property
    def is_over(self) -> bool:
        """Whether no step is running and none can start."""
        return not self._running and (self._stopped or not any(map(self._top, self._heaps.values())))

    def places(self, processes: int | None) -> int:
        """Return the number of parallel steps: as requested or as the cores allow, but no idle ones."""
        if processes == ANY:
            return ANY
        return min(processes or side_by_side(self.threads), len(self.left))

    def progressed(self, step_id: str, news: dict[str, Any]) -> None:
        """Receive the progress of a running step, or a notice for the user."""
        if "notice" in news:
            self.observer.noticed(f"step {step_id}: {news['notice']}")
        else:
            self.observer.progressed(self.graph.steps[step_id], news)

    def ended(self, step_id: str, ending: Ending) -> None:
        """Receive the ending of a running step, act on it and report it."""
        step = self.graph.steps[step_id]
        self._running -= 1
        match ending:
            case Done(meta):
                self._done(step, meta)
            case Damaged(parent, reason):
                if self._renew(parent):
                    self._again(step, f"{reason}; it was set aside and is computed again")
                else:
                    self._fail(step, reason)
            case Died(how) if self._may_try_again(step_id, ATTEMPTS):
                self._again(step, f"the process of {step_id} {how}; the step is begun again")
            case Died(how):
                hint = "; is there enough memory?" if how.startswith("was killed") else ""
                self._fail(step, f"its process {how} {ATTEMPTS} times{hint}")
            case Lost(place) if self._may_try_again(step_id, LOSSES):
                self._again(step, f"{place}, where {step_id} was, is gone; the step is begun again")
            case Lost(place):
                self._fail(step, f"it was {LOSSES} times on a machine that went, at last on {place}")
            case Failed(reason, log, disk_full):
                self._fail(step, reason, log)
                if disk_full and not self._stopped:
                    self._stopped = True
                    self.observer.noticed("the disk is full: free some space, then repeat the command")

    def _was_done(self, step_id: str) -> bool:
        """Return whether the store holds the step; a damaged step is set aside."""
        try:
            meta = self.store.finished(step_id)
        except DamagedFileError as error:
            self.observer.noticed(f"{error}; it was set aside and is computed again")
            self.store.set_aside(step_id)
            return False
        if meta is None:
            return False
        self._state[step_id] = _State.DONE
        self.summary.cached += 1
        if meta.status == "diverged":
            self.summary.diverged[step_id] = str(meta.content.get("reason", ""))
        return True

    def _queue_if_free(self, step_id: str) -> None:
        if self._state[step_id] is _State.WAITING and not self._missing[step_id]:
            self._state[step_id] = _State.READY
            step = self.graph.steps[step_id]
            heap = self._heaps[step.resources.gpus > 0]
            heapq.heappush(heap, (step.priority, self._order[step_id], step_id))

    def _release(self, step_id: str) -> None:
        """Release the children of a finished step; after divergence, only those that gather results."""
        if step_id in self.summary.diverged:
            self._give_up_below(step_id, diverged=True)
            return
        for child in self._children[step_id]:
            self._missing[child] -= 1
            self._queue_if_free(child)

    def _give_up_below(self, step_id: str, diverged: bool = False) -> None:
        """Skip the steps that need this one; gathering steps continue without a diverged run."""
        lost = [step_id]
        while lost:
            parent = lost.pop()
            for child in self._children[parent]:
                if diverged and self.graph.steps[child].gathers:
                    self._absent.add(parent)
                    self._missing[child] -= 1
                    self._queue_if_free(child)
                elif self._state[child] in (_State.WAITING, _State.READY):
                    self._skip(child)
                    lost.append(child)

    def _skip(self, step_id: str) -> None:
        self._state[step_id] = _State.SKIPPED
        self.summary.skipped.append(step_id)

    def _done(self, step: Step, meta: dict[str, Any]) -> None:
        self._state[step.id] = _State.DONE
        self.summary.computed += 1
        if meta["status"] == "diverged":
            self.summary.diverged[step.id] = str(meta.get("reason", ""))
        self._release(step.id)
        self.observer.finished(step, meta)

    def _fail(self, step: Step, reason: str, log: str = "") -> None:
        self._state[step.id] = _State.FAILED
        self.summary.failed[step.id] = reason
        self._give_up_below(step.id)
        self.observer.failed(step, reason, log)

    def _again(self, step: Step, notice: str) -> None:
        self.observer.noticed(notice)
        self._state[step.id] = _State.WAITING
        if self._cannot_be_done(step.id):  # a parent was given up while the step ran
            self._skip(step.id)
            self._give_up_below(step.id)
        self._queue_if_free(step.id)

    def _may_try_again(self, step_id: str, most: int) -> bool:
        self._attempts[step_id, most] += 1
        return self._attempts[step_id, most] < most

    def _renew(self, parent: str) -> bool:
        """Set a damaged parent aside and schedule it again; return False if that cannot help.

        Its children wait, but for those that run: one that misses a file will report the parent, too.
        """
        if self._state[parent] is _State.DONE:
            if self._cannot_be_done(parent) or not self._may_try_again(parent, ATTEMPTS):
                return False
            self.store.set_aside(parent)
            self._state[parent] = _State.WAITING
            for child in self._children[parent]:
                self._missing[child] += 1
                if self._state[child] is _State.READY:
                    self._state[child] = _State.WAITING
            self._queue_if_free(parent)
        return True

    def _cannot_be_done(self, step_id: str) -> bool:
        """Return whether a step needs one that was given up or has diverged."""
        step = self.graph.steps[step_id]
        given_up = (_State.FAILED, _State.SKIPPED)
        lost = (p for p in step.parents if self._state[p] in given_up or p in self.summary.diverged)
        return any(not step.gathers or parent not in self._absent for parent in lost)


def side_by_side(threads: int) -> int:
    """Return the number of steps with this many threads that fit on this process's cores."""
    return max(1, usable_cores() // threads)


def carry_out(
    graph: Graph,
    store: Store,
    observer: Observer,
    processes: int | None,
    work: Callable[[Schedule, int], None],
) -> Summary:
    """Carry out a graph for any engine, which supplies `work(schedule, places)`."""
    began = time.monotonic()
    schedule = Schedule(graph, store, observer)
    if not schedule.is_over:
        places = schedule.places(processes)
        observer.opened(graph, schedule.summary.cached, places)
        try:
            work(schedule, places)
        finally:
            observer.closed()
    schedule.summary.seconds = time.monotonic() - began
    return schedule.summary
