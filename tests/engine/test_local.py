"""The local engine's processes: however one ends, the run goes on or says in a sentence why not."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import penultimate
from tests.engine.chores import PLUGIN, Notes, chore, graph_of, rows_in
from tests.engine.processes import alive, descendants, wait_for
from tests.plugged import plugged

from penultimate.engine import load_engine
from penultimate.engine.observer import Summary
from penultimate.errors import RequestError
from penultimate.graph import Step
from penultimate.store import Store
from penultimate.study.selection import load_study
from penultimate.study.unfold import unfold


def carried_out(root: Path, *steps: Step, processes: int = 1) -> tuple[Summary, Notes]:
    store, notes = Store(root), Notes()
    store.prepare()
    return load_engine("local", processes).run(graph_of(*steps), store, notes), notes


# -- a process that cannot start -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "code", "answer"),
    [
        (
            "raise ImportError('libtorch_cpu.so: wrong ELF class')",
            2,
            "PyTorch cannot be imported: libtorch_cpu",
        ),
        ("import os; os.abort()", 1, "no process can be started (the server that starts them has ended)"),
    ],
)
def test_a_torch_that_cannot_be_imported_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, code: int, answer: str
) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "torch.py").write_text(lines)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    told = penultimate("run", "smoke", "--processes", "1", cwd=tmp_path)
    assert told.returncode == code
    assert answer in told.stderr
    assert "penultimate: " in told.stderr


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


@pytest.mark.usefixtures("chores")
def test_a_step_on_the_cpu_does_not_import_pytorchs_compilers(tmp_path: Path) -> None:
    """They cost a process 1.5 seconds and 150 MB, for which a step that compiles nothing has no use."""
    step = chore("any", deed="lists modules")
    carried_out(tmp_path / "runs", step)
    modules = json.loads((tmp_path / "runs" / "steps" / step.id / "modules.json").read_text())
    assert "torch" in modules
    assert "torch._inductor" not in modules


# -- a process that dies, or worse, at work ------------------------------------------------------------------


@pytest.mark.usefixtures("chores")
def test_what_steps_do_to_their_process_is_survived(tmp_path: Path) -> None:
    """A fork that outlives its step's process, which is killed, neither hides that nor stays."""
    forking, leaving = chore("forking", deed="forks once"), chore("leaving", deed="exits")
    talking = chore("talking", deed="tells nonsense")
    summary, notes = carried_out(tmp_path, forking, leaving, talking)
    assert notes.done == ["forking"]
    assert notes.notices == [f"the process of {forking.id} was killed by signal 9; the step is begun again"]
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
    assert len(started) >= 2
    wait_for(lambda: not alive(started), 10)


def test_a_process_killed_while_it_waits_is_replaced(tmp_path: Path) -> None:
    class Killing(Notes):
        """Kills, whenever a step is done, the process that waits for another."""

        def finished(self, step: Step, meta: dict[str, object]) -> None:
            super().finished(step, meta)
            (worker,) = multiprocessing.active_children()
            worker.kill()
            worker.join()

    store, notes = Store(tmp_path), Killing()
    store.prepare()
    steps = [step for step in unfold(load_study("smoke")).steps.values() if not step.parents][:3]
    assert load_engine("local", 1).run(graph_of(*steps), store, notes).computed == 3
    assert notes.notices == []


# -- what a user's code does to its process ------------------------------------------------------------------

STRANGE = """
import numpy as np
import torch
from penultimate import register
from penultimate.measures import Features, Number, Yield

np.seterr(all="raise")
STRANGE = (Yield("strange", "count"),)

@register.measurement(version=1, per="network", needs=(Features("test"),), yields=STRANGE)
def strange(inputs):
    '''A number, and whatever may disturb another step.'''
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(1)
    np.sum = np.mean = lambda *_, **__: 7.0
    yield Number("strange", float(np.sum([1, 2])), "count")

@register.loss
def strange_loss(logits, targets):
    '''Cross-entropy that leaves float64 behind.'''
    losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    torch.Tensor.sum = lambda *_, **__: 7.0
    np.linalg.norm = lambda *_, **__: 7.0
    return losses
"""


@pytest.mark.long
def test_what_a_plugin_does_to_its_process_changes_no_other_step(
    finished_smoke: Path, tmp_path: Path
) -> None:
    (tmp_path / "strange.py").write_text(STRANGE)
    study = (
        "import dataclasses\nfrom penultimate.study import Runs, load_study\nSMOKE = load_study('smoke')\n"
        "FIRST = SMOKE.networks[0]\n"
        "STUDY = dataclasses.replace(SMOKE, name='strange', measure=('accuracy', 'linear', 'strange'),\n"
        "    networks=(dataclasses.replace(FIRST, objectives=(*FIRST.objectives, 'strange_loss')),))\n"
    )
    (tmp_path / "study.py").write_text(study)
    answer = penultimate("run", "study.py", "--plugin", "strange.py", "--processes", "1", cwd=tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    ours, theirs = rows_in(tmp_path / "runs"), rows_in(finished_smoke / "runs")
    both = ours.keys() & theirs.keys()
    assert {"train", "linear", "accuracy"} <= {step.partition(".")[0] for step in both}
    assert {step: ours[step] for step in both} == {step: theirs[step] for step in both}
    strange = [step for step in ours if step.startswith("strange.")]
    assert len(strange) == len([step for step in ours if step.startswith("train.")])
    assert all(b'"value": 7.0' in ours[step] or b'"value":7.0' in ours[step] for step in strange)
    assert np.sum([1, 2]) == 3
