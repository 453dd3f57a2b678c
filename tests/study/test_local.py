"""The local engine's workers: one that dies between two steps costs nothing but another process."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import pytest

from penultimate.study import local
from penultimate.study.graph import Graph, Step
from penultimate.study.running import Silent

STEP = Step("data", {"name": "digits_smoke", "draw": 0}, (), {"target": "digits_smoke"})


class Fresh:
    """What is started in place of a dead worker."""

    def __init__(self, threads: int) -> None:
        self.threads = threads


class Notices(Silent):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def noticed(self, message: str) -> None:
        self.heard.append(message)


def dead(ready: bool) -> Any:
    """A worker without a step whose process was killed."""
    return SimpleNamespace(
        end=lambda: None, process=SimpleNamespace(returncode=-9), step=None, ready=ready, threads=1
    )


def test_a_worker_killed_while_it_waits_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_Worker", Fresh)
    observer = Notices()
    replaced: Any = local._replace(dead(ready=True), None, observer, threads=2)  # type: ignore[arg-type]
    assert replaced.threads == 2
    assert any("killed by signal 9" in notice for notice in observer.heard)


def test_a_worker_that_never_became_ready_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_Worker", Fresh)
    with pytest.raises(RuntimeError, match="before it was given any work"):
        local._replace(dead(ready=False), None, Notices(), threads=2)  # type: ignore[arg-type]


def test_a_step_given_to_a_dead_worker_is_still_known_as_its_own() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    worker = object.__new__(local._Worker)
    worker.connection = Connection(ours.detach())
    worker.give("runs", STEP)
    assert worker.step is STEP
    with pytest.raises((EOFError, OSError)):
        worker.connection.recv()
    worker.connection.close()


class Shelf:
    """A store in which everything is done, and which tells what is set aside."""

    def __init__(self) -> None:
        self.aside: list[str] = []

    def is_whole(self, step_id: str) -> bool:
        return step_id == PARENT.id

    def meta(self, step_id: str) -> None:
        return None

    def folder(self, step_id: str) -> Any:
        return SimpleNamespace(exists=lambda: False)

    def set_aside(self, step_id: str) -> None:
        self.aside.append(step_id)


PARENT = STEP
READERS = [Step("extract", {"draw": place}, (PARENT.id,), {"target": "digits_smoke"}) for place in range(3)]


def begun(count: int) -> tuple[Any, Shelf, list[str]]:
    """A schedule of one parent that is done and three steps that read it, so many of them begun."""
    shelf = Shelf()
    steps = {step.id: step for step in (PARENT, *READERS)}
    graph = Graph(None, steps)  # type: ignore[arg-type]
    schedule = local._Schedule(graph, shelf, Silent(), local.Summary())  # type: ignore[arg-type]
    running = [step.id for _ in range(count) if (step := schedule.next()) is not None]
    assert len(running) == count
    return schedule, shelf, running


def drained(schedule: Any) -> Sequence[str]:
    return [step.id for step in iter(schedule.next, None)]


@pytest.mark.parametrize("how", ["done", "fail", "again", "damaged"])
def test_a_damaged_parent_stays_while_another_step_reads_it(how: str) -> None:
    schedule, shelf, (first, second) = begun(2)
    assert schedule.renew_parent(first, PARENT.id)
    assert shelf.aside == []
    assert drained(schedule) == []  # the third reader waits, too
    if how == "done":
        schedule.done(second, {"status": "done"})
    elif how == "fail":
        schedule.fail(second, "no reason")
    elif how == "again":
        assert schedule.again(second)
    else:
        assert schedule.renew_parent(second, PARENT.id)
    assert shelf.aside == [PARENT.id]
    assert drained(schedule) == [PARENT.id]
    schedule.done(PARENT.id, {"status": "done"})
    left = {step.id for step in READERS} - ({second} if how in ("done", "fail") else set())
    again = drained(schedule)
    assert sorted(again) == sorted(left)


def test_a_damaged_parent_that_nobody_else_reads_is_set_aside_at_once() -> None:
    schedule, shelf, (first,) = begun(1)
    assert schedule.renew_parent(first, PARENT.id)
    assert shelf.aside == [PARENT.id]
    assert drained(schedule) == [PARENT.id]
