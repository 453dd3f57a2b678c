"""Several machines, played by nodes on this one: who is refused, what is retried, and the same rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import penultimate
from tests.engine.chores import Notes, chore, graph_of, rows_in
from tests.engine.processes import wait_for

from penultimate.engine import load_engine, ray
from penultimate.errors import RequestError
from penultimate.graph import Step
from penultimate.store import Store


def test_an_engine_that_nobody_knows_is_named_with_the_nearest(tmp_path: Path) -> None:
    answer = penultimate("run", "smoke", "--on", "rey", cwd=tmp_path)
    assert answer.returncode == 2
    assert "unknown engine 'rey'. Did you mean 'ray'? Known: local, ray." in answer.stderr
    assert not (tmp_path / "runs").exists()


def test_ray_needs_the_address_of_a_cluster(tmp_path: Path) -> None:
    answer = penultimate("run", "smoke", "--on", "ray", cwd=tmp_path)
    assert answer.returncode == 2
    assert "--on ray:HOST:PORT, or ray:auto" in answer.stderr
    assert "processes of this machine do the same" in answer.stderr


def test_that_ray_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    store = Store(tmp_path)
    store.prepare()
    with pytest.raises(RequestError, match=r"not installed: pip install 'penultimate\[ray\]'"):
        load_engine("ray:auto").run(graph_of(chore("any")), store, Notes())


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1:1", "Connection refused"),
        ("no-such-host.invalid:6379", ""),
        ("head", "HOST:PORT"),
        ("auto", "Ray"),
    ],
)
def test_a_cluster_that_does_not_answer_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, why: str
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    told = penultimate("run", "smoke", "--on", f"ray:{address}", cwd=tmp_path)
    assert told.returncode == 2
    assert f"the Ray cluster at '{address}' cannot be joined: " in told.stderr
    assert why in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.long
@pytest.mark.usefixtures("chores")
def test_a_node_that_differs_is_refused_by_name(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, engine = Store(tmp_path), load_engine(f"ray:{cluster.address}")
    store.prepare()
    here = ray.versions()
    monkeypatch.setattr(ray, "versions", lambda: {**here, "numpy": "1.0"})
    with pytest.raises(RequestError, match=rf"node .*: there, numpy is {here['numpy']} and not 1\.0$"):
        engine.run(graph_of(chore("any")), store, Notes())
    monkeypatch.setattr(ray, "versions", lambda: here)
    monkeypatch.setattr(Path, "touch", lambda self: None)
    with pytest.raises(RequestError, match=r"is not the folder of the run, which all nodes need"):
        engine.run(graph_of(chore("any")), store, Notes())


@pytest.mark.long
@pytest.mark.usefixtures("chores")
def test_a_step_that_no_node_is_large_enough_for_is_told_and_the_others_are_done(
    cluster: Any, tmp_path: Path
) -> None:
    class Told(Notes):
        def noticed(self, message: str) -> None:
            super().noticed(message)
            if self.done:
                raise KeyboardInterrupt

        def finished(self, step: Step, meta: dict[str, Any]) -> None:
            super().finished(step, meta)
            if self.notices:
                raise KeyboardInterrupt

    store, notes = Store(tmp_path), Told()
    store.prepare()
    with pytest.raises(KeyboardInterrupt):
        load_engine(f"ray:{cluster.address}").run(
            graph_of(chore("wide", threads=64), chore("one", number=1)), store, notes
        )
    assert notes.done == ["one"]
    assert notes.notices == ["no node of the cluster has 64 cores and 0 GPUs; such steps wait for one"]


def begun(cluster: Any, out: Path) -> subprocess.Popen[str]:
    """The smoke study on the cluster, in a process of its own."""
    command = [sys.executable, "-P", "-m", "penultimate.cli", "run", "smoke", "--out", str(out)]
    return subprocess.Popen(
        [*command, "--on", f"ray:{cluster.address}"],
        env={**os.environ, "PENULTIMATE_CHECKPOINT_SECONDS": "0"},
        cwd=out.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.long
def test_whatever_is_stopped_or_killed_the_rows_are_those_of_one_machine(
    cluster: Any, tmp_path: Path, finished_smoke: Path
) -> None:
    out = tmp_path / "runs"

    def trains(count: int, since: float = 0) -> bool:
        """Whether that many networks have left a checkpoint since then."""
        found = [path for path in (out / "partial").glob("train.*") if path.stat().st_mtime > since]
        return sum(any(path.glob("checkpoint*")) for path in found) >= count

    with begun(cluster, out) as run:
        wait_for(lambda: trains(1))
        run.send_signal(signal.SIGINT)
        told = run.communicate(timeout=60)[0]
        assert run.returncode == 130
        assert told.endswith("stopped; the same command continues from here\n")

    began = time.time()
    with begun(cluster, out) as run:
        wait_for(lambda: trains(2, began))
        cluster.remove_node(cluster.worker)
        cluster.worker = cluster.add_node(num_cpus=1)
        told = run.communicate(timeout=240)[0]
        assert run.returncode == 0, told
        assert "a node of the cluster, where train." in told
        assert "Traceback" not in told
    assert rows_in(out) == rows_in(finished_smoke / "runs")
