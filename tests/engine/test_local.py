"""The local engine's workers: one that dies between two steps costs nothing but another process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.engine.chores import Notes, chore, graph_of
from tests.plugged import plugged

from penultimate.engine import load_engine, local
from penultimate.errors import RequestError
from penultimate.store import Store


class Fresh:
    """What is started in place of a dead worker."""

    def __init__(self, threads: int) -> None:
        self.threads = threads


def dead(ready: bool) -> Any:
    """A worker without a step whose process was killed."""
    return SimpleNamespace(end=lambda: None, process=SimpleNamespace(returncode=-9), step=None, ready=ready)


def test_a_worker_killed_while_it_waits_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_Worker", Fresh)
    notes = Notes()
    replaced: Any = local._replace(dead(ready=True), SimpleNamespace(observer=notes, threads=2))  # type: ignore[arg-type]
    assert replaced.threads == 2
    assert notes.notices == ["a process that waited for work was killed by signal 9; another takes its place"]


def test_a_worker_that_never_became_ready_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_Worker", Fresh)
    with pytest.raises(RuntimeError, match="before it was given any work"):
        local._replace(dead(ready=False), SimpleNamespace(observer=Notes(), threads=2))  # type: ignore[arg-type]


def test_a_step_given_to_a_dead_worker_is_still_known_as_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    sockets: list[int] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *_, pass_fds, **__: sockets.append(os.dup(pass_fds[0])))
    worker, step = local._Worker(1), chore("any")
    os.close(sockets[0])
    worker.give("runs", step)
    assert worker.step is step
    with pytest.raises((EOFError, OSError)):
        worker.connection.recv()
    worker.connection.close()


def test_a_plugin_that_only_this_process_can_load_is_refused(tmp_path: Path) -> None:
    file, store = tmp_path / "elsewhere.py", Store(tmp_path / "runs")
    file.write_text(
        "import os\nfrom penultimate import register\n"
        f"assert os.getpid() == {os.getpid()}, 'not here'\n"
        "@register.loss\ndef only_here(logits, targets): ..."
    )
    store.prepare()
    with (
        plugged(file),
        pytest.raises(RequestError, match=r"elsewhere\.py', line 3: .*not here.*in a process of the study"),
    ):
        load_engine("local", 1).run(graph_of(chore("any")), store, Notes())
