"""Several machines: nodes that come, go or do not fit; runs that are stopped; clusters that do not answer."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import penultimate
from tests.engine.chores import PLUGIN, rows_in
from tests.engine.clusters import SRC, Cluster, cluster

from penultimate.engine import load_engine, ray
from penultimate.engine.nodes import Node
from penultimate.errors import RequestError
from penultimate.graph import Resources
from penultimate.store import Store


def test_a_cluster_is_named_by_its_address() -> None:
    engine = load_engine("ray:head:6379", 3)
    assert isinstance(engine, ray.RayEngine)
    assert (engine.address, engine.processes) == ("head:6379", 3)


@pytest.mark.long
@pytest.mark.parametrize(
    ("address", "answer"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at '127.0.0.1:1': Connection refused. Is it running"),
        ("no-such-host.invalid:6379", "no Ray cluster answers at 'no-such-host.invalid:6379': "),
        ("head", "--on ray:HOST:PORT or --on ray:auto, not ray:head"),
    ],
)
def test_a_cluster_that_does_not_answer_is_a_sentence(tmp_path: Path, address: str, answer: str) -> None:
    began = time.monotonic()
    told = penultimate("run", "smoke", "--on", f"ray:{address}", cwd=tmp_path)
    assert told.returncode == 2
    assert answer in told.stderr
    assert "Traceback" not in told.stderr
    assert time.monotonic() - began < 30


def test_where_no_cluster_was_started_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "CURRENT", str(tmp_path / "none"))
    with pytest.raises(RequestError, match="no Ray cluster is known on this machine"):
        ray._local_address()
    (tmp_path / "none").write_text("10.0.0.7:6379")
    assert ray._local_address() == "10.0.0.7:6379"
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert ray._local_address() == "head:6379"


def test_steps_share_the_cores_and_gpus_of_a_node() -> None:
    node, third = Node("1", "one", cores=8, gpus=1), Resources(threads=2, gpus=1 / 3)
    assert not node.has(Resources(threads=1, gpus=2))
    for _ in range(3):
        assert node.has_left(third)
        node.taken.append(third)
    assert not node.has_left(third)
    assert node.has_left(Resources(threads=2))
    assert not node.has_left(Resources(threads=3))


def test_what_listens_but_is_no_cluster_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "ANSWER_WITHIN", 2)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        pytest.raises(RequestError, match="what listens there did not within 2 seconds"),
    ):
        ray._probe(f"127.0.0.1:{listening.getsockname()[1]}")


@pytest.fixture(scope="module")
def head() -> Iterator[Cluster]:
    with cluster() as made:
        yield made


def begun(head: Cluster, out: Path) -> subprocess.Popen[str]:
    """The smoke study on the cluster, in a process of its own."""
    command = [sys.executable, "-P", "-m", "penultimate.cli", "run", "smoke", "--on", f"ray:{head.address}"]
    return subprocess.Popen(
        [*command, "--out", str(out)],
        env={**os.environ, **head.environment},
        cwd=out.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def heard(run: subprocess.Popen[str], word: str) -> str:
    """What a run says until it says this."""
    assert run.stdout is not None
    said = ""
    for line in run.stdout:
        said += line
        if word in line:
            return said
    raise AssertionError(said)


@pytest.mark.long
def test_whatever_is_stopped_killed_or_joins_the_rows_are_those_of_one_machine(
    head: Cluster, tmp_path: Path, finished_smoke: Path
) -> None:
    out = tmp_path / "runs"
    (tmp_path / "torch.py").write_text("raise ImportError('a file of the current folder is no module')")
    with begun(head, out) as run:
        heard(run, "rendered")
        run.send_signal(signal.SIGINT)
        told = run.communicate(timeout=60)[0]
        assert run.returncode == 130
        assert "stopped; the same command continues from here" in told
        assert "Traceback" not in told

    with begun(head, out) as run:
        heard(run, "smoke: continuing")
        second = head.add()
        heard(run, "trained")
        run.kill()

    with begun(head, out) as run:
        heard(run, "trained")
        head.kill(second)
        heard(run, "is gone")
        third = head.add()
        told = run.communicate(timeout=240)[0]
        assert run.returncode == 0, told
        assert "Traceback" not in told
    head.kill(third)
    assert rows_in(out) == rows_in(finished_smoke / "runs")
    for step_id in rows_in(out):
        Store(out).verify(step_id)
    assert not list((out / "partial").glob("*@*"))


@pytest.mark.long
def test_a_head_that_dies_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    with cluster() as lone, begun(lone, tmp_path / "runs") as run:
        heard(run, "rendered")
        lone.kill(lone.folders[0], but=run.pid)
        told = run.communicate(timeout=120)[0]
        assert run.returncode == 2
        assert f"the head of the cluster, {lone.address}, is gone; what was done is kept" in told
        assert "Traceback" not in told


CHORES = """
import json, sys
from pathlib import Path
from penultimate.engine import load_engine, nodes
from penultimate.plugins import load_plugin
from penultimate.store import Store
from penultimate.graph import Resources
from tests.engine.chores import Notes, chore, graph_of

nodes.PATIENCE = 20
address, plugin, out = sys.argv[1:]
load_plugin(plugin)
store, notes = Store(out), Notes()
store.prepare()
unlucky = chore("unlucky", deed="killed once")
steps = [chore("one", number=1), unlucky, chore("two", unlucky, number=2), chore("wrong", deed="fails")]
summary = load_engine(f"ray:{address}").run(graph_of(*steps, chore("wide", threads=64)), store, notes)
failures = {name: reason for name, (reason, _) in notes.failures.items()}
told = {"begun": notes.begun, "done": notes.done, "notices": notes.notices, "failures": failures}
print("TOLD", json.dumps(told))
"""


@pytest.mark.long
def test_a_node_that_does_not_fit_is_refused_by_name_and_steps_end_as_on_one_machine(
    head: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "chores.py").write_text(PLUGIN)
    other = shutil.copytree(SRC, tmp_path / "other", ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "penultimate/store.py").open("a") as file:
        file.write("# changed\n")
    bare = f"{sys.base_prefix}/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    packages = sysconfig.get_paths()["purelib"]
    unfit = [head.add(path=str(other)), head.add(python=bare, path=packages)]
    root = Path(__file__).parents[2]
    answer = subprocess.run(
        [sys.executable, "-c", CHORES, head.address, str(tmp_path / "chores.py"), str(tmp_path / "runs")],
        env={**os.environ, **head.environment, "PYTHONPATH": f"{SRC}:{root}"},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    for node in unfit:
        head.kill(node)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    told = json.loads(answer.stdout.partition("TOLD ")[2])
    refusals = sorted(text.partition("gets no steps: ")[2] for text in told["notices"] if "gets no" in text)
    assert refusals == [
        "penultimate is not installed there",
        "the source of penultimate there is not the one here, although its version is",
    ]
    assert sorted(told["done"]) == ["one", "two", "unlucky"]
    assert (told["begun"].count("unlucky"), told["begun"].count("wrong")) == (2, 1)
    assert "no such luck" in told["failures"]["wrong"]
    assert told["failures"]["wide"] == "it needs 64 cores, and no node has that (the most: 1 core)"
