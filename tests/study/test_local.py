"""The local engine's workers: one that dies between two steps costs nothing but another process."""

from __future__ import annotations

import socket
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import pytest

from penultimate.study import local
from penultimate.study.graph import Step
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
