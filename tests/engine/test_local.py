"""The local engine's workers: however one comes to its end, the run goes on or says in a sentence why not."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import penultimate
from tests.engine.chores import PLUGIN, Notes, chore, graph_of
from tests.engine.processes import alive, descendants, wait_for
from tests.plugged import plugged

from penultimate.engine import load_engine, local
from penultimate.engine.observer import Summary
from penultimate.errors import PenultimateError, RequestError
from penultimate.graph import Step
from penultimate.store import Store


def carried_out(root: Path, *steps: Step, processes: int = 1) -> tuple[Summary, Notes]:
    store, notes = Store(root), Notes()
    store.prepare()
    return load_engine("local", processes).run(graph_of(*steps), store, notes), notes


# -- a worker that dies while it starts ----------------------------------------------------------------------


@pytest.fixture
def torch_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Puts another torch before the real one for the processes that are started; it runs some lines first.

    Each of its imports leaves a mark in the folder that comes back.
    """

    def put(lines: str) -> Path:
        place, marks = tmp_path / "path", tmp_path / "marks"
        place.mkdir()
        marks.mkdir()
        (place / "torch.py").write_text(
            "import os, signal, sys\n"
            f"begun = len(os.listdir({str(marks)!r}))\n"
            f"open(os.path.join({str(marks)!r}, str(os.getpid())), 'x').close()\n"
            f"{lines}\n"
            f"sys.path.remove({str(place)!r})\n"
            "del sys.modules['torch']\n"
            "import torch\n"
        )
        before = os.environ.get("PYTHONPATH", "")
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(place), before])))
        return marks

    return put


DIES = "os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.long
@pytest.mark.usefixtures("chores")
def test_a_worker_killed_while_it_starts_is_begun_again(torch_that, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    marks = torch_that(f"if begun == 0: {DIES}")
    summary, notes = carried_out(tmp_path / "runs", chore("any"))
    assert summary.computed == 1
    assert notes.notices == ["a process was killed by signal 9 while it started; it is begun again"]
    assert len(list(marks.iterdir())) == 2


@pytest.mark.long
@pytest.mark.parametrize("processes", [1, 3])
def test_workers_that_all_die_while_they_start_end_the_run_with_a_sentence(  # type: ignore[no-untyped-def]
    torch_that, tmp_path: Path, processes: int
) -> None:
    marks = torch_that(DIES)
    answer = penultimate("run", "smoke", "--processes", str(processes), cwd=tmp_path)
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr
    assert re.fullmatch(
        r"penultimate: two processes, one after the other, ended while they started \(the last was killed by"
        r" signal 9\); .*memory.*python -c 'import torch'; .*the same command continues from here\n",
        answer.stderr,
    )
    assert answer.stdout.count("it is begun again") <= processes
    assert 2 <= len(list(marks.iterdir())) <= 2 * processes  # the second death of one place ends the run


def test_a_torch_that_cannot_be_imported_is_told_at_once(torch_that, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    marks = torch_that("raise ImportError('libtorch_cpu.so: wrong ELF class')")
    answer = penultimate("run", "smoke", "--processes", "1", cwd=tmp_path)
    assert answer.returncode == 2
    assert "PyTorch cannot be imported: libtorch_cpu.so: wrong ELF class" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert len(list(marks.iterdir())) == 1


@pytest.mark.usefixtures("chores")
def test_that_no_process_can_be_started_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(PenultimateError, match=r"no process can be started .*fewer --processes"):
        carried_out(tmp_path / "runs", chore("any"))


@pytest.mark.usefixtures("chores")
def test_a_step_on_the_cpu_does_not_import_pytorchs_compilers(tmp_path: Path) -> None:
    """They cost a process 1.5 seconds and 150 MB, for which a step that compiles nothing has no use."""
    step = chore("any", deed="lists modules")
    carried_out(tmp_path / "runs", step)
    modules = json.loads((tmp_path / "runs" / "steps" / step.id / "modules.json").read_text())
    assert "torch" in modules
    assert "torch._inductor" not in modules


# -- a worker that dies, or worse, at work -------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.usefixtures("chores")
def test_a_worker_killed_while_it_waits_is_replaced(tmp_path: Path) -> None:
    class Killing(Notes):
        """Kills, once a step is done, the worker that waits for another."""

        def finished(self, step: Step, meta: dict[str, object]) -> None:
            super().finished(step, meta)
            if len(self.done) == 1:
                os.kill(min(descendants(os.getpid()) & workers()), signal.SIGKILL)

    store, notes = Store(tmp_path), Killing()
    store.prepare()
    first = chore("first", number=1)
    summary = load_engine("local", 1).run(graph_of(first, chore("second", first, number=2)), store, notes)
    assert summary.computed == 2
    assert len(notes.notices) == 1  # before the second step is given to it, or after
    assert "was killed by signal 9; " in notes.notices[0]


def workers() -> set[int]:
    """The processes of this machine that are workers."""
    listed = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True)
    return {
        int(line.split()[0]) for line in listed.stdout.splitlines() if "penultimate.engine.worker" in line
    }


@pytest.mark.long
@pytest.mark.usefixtures("chores")
def test_what_steps_do_to_their_process_is_survived(tmp_path: Path) -> None:
    forking, silent = chore("forking", deed="forks once"), chore("silent", deed="hangs up once")
    leaving, junk = chore("leaving", deed="exits"), chore("junk", deed="prints")
    talking = chore("talking", deed="tells nonsense")
    began = time.monotonic()
    summary, notes = carried_out(tmp_path, forking, silent, leaving, junk, talking)
    assert time.monotonic() - began < 60
    assert set(notes.done) == {"forking", "silent", "junk"}
    assert sorted(notes.notices) == sorted(
        [
            f"the process of {forking.id} was killed by signal 9; the step is begun again",
            f"the process of {silent.id} no longer answered; the step is begun again",
        ]
    )
    assert notes.failures["leaving"][0].endswith("SystemExit: enough")
    assert "TypeError" in notes.failures["talking"][0]
    assert [notes.begun.count(name) for name in ("leaving", "talking")] == [1, 1]
    assert set(summary.failed) == {leaving.id, talking.id}


@pytest.mark.long
def test_a_run_killed_leaves_no_process_of_a_step(tmp_path: Path) -> None:
    (tmp_path / "chores.py").write_text(PLUGIN)
    code = (
        "import sys; from pathlib import Path; from penultimate.plugins import load_plugin\n"
        "from tests.engine.chores import chore; from tests.engine.test_local import carried_out\n"
        "load_plugin('chores.py'); carried_out(Path('runs'), chore('any', deed='forks'))"
    )
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}
    )
    try:
        wait_for(lambda: list(tmp_path.glob("runs/partial/*/checkpoint")))
        started = descendants(process.pid)
    finally:
        process.kill()
        process.wait()
    assert len(started) == 2
    wait_for(lambda: not alive(started), 10)


def test_a_step_given_to_a_dead_worker_is_still_known_as_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    sockets: list[int] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *_, pass_fds, **__: sockets.append(os.dup(pass_fds[0])))
    worker, step = local._Worker(1, {}), chore("any")
    os.close(sockets[0])
    worker.give("runs", step)
    assert worker.step is step
    with pytest.raises((EOFError, OSError)):
        worker.connection.recv()
    worker.connection.close()


@pytest.mark.long
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
