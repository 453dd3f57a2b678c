"""Several machines, played by nodes on this one: who is refused, what is retried, and the same rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import penultimate
from tests.engine.chores import Notes, chore, graph_of, rows_in
from tests.engine.processes import wait_for

from penultimate.engine import load_engine, ray
from penultimate.errors import RequestError
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
def test_a_step_that_no_node_is_large_enough_for_fails_and_the_others_go_on(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "PATIENCE", 2.0)
    store, notes = Store(tmp_path), Notes()
    store.prepare()
    steps = chore("wide", threads=64), chore("on a GPU", gpus=0.5, number=1), chore("one", number=2)
    summary = load_engine(f"ray:{cluster.address}").run(graph_of(*steps), store, notes)
    assert summary.computed == 1
    assert {name: reason for name, (reason, _) in notes.failures.items()} == {
        "wide": "no node of the cluster has 64 cores",
        "on a GPU": "no node of the cluster has 1 core and 0.5 GPUs",
    }


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

    def trains(count: int) -> bool:
        return len(list((out / "partial").glob("train.*/checkpoint*"))) >= count

    with begun(cluster, out) as run:
        wait_for(lambda: trains(1))
        run.send_signal(signal.SIGINT)
        told = run.communicate(timeout=60)[0]
        assert run.returncode == 130
        assert told.endswith("stopped; the same command continues from here\n")

    with begun(cluster, out) as run:
        wait_for(lambda: trains(2))
        cluster.remove_node(cluster.worker)
        cluster.worker = cluster.add_node(num_cpus=1)
        told = run.communicate(timeout=240)[0]
        assert run.returncode == 0, told
        assert "a node of the cluster, where train." in told
        assert "Traceback" not in told
    assert rows_in(out) == rows_in(finished_smoke / "runs")
