"""What only the Ray engine can get wrong: Ray that is missing or in use, and what is left of it."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from tests.conftest import penultimate
from tests.engine.chores import Notes, chore, graph_of

from penultimate.engine import load_engine
from penultimate.engine import ray as engine
from penultimate.errors import RequestError
from penultimate.store import Store


def test_an_engine_that_nobody_knows_is_named_with_the_nearest(tmp_path: Path) -> None:
    answer = penultimate("run", "smoke", "--on", "rey", cwd=tmp_path)
    assert answer.returncode == 2
    assert "unknown engine 'rey'. Did you mean 'ray'? Known: local, ray." in answer.stderr
    assert not (tmp_path / "runs").exists()


def test_that_ray_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RequestError, match=r"not installed: pip install 'penultimate\[ray\]'"):
        load_engine("ray").run(graph_of(chore("any")), Store(tmp_path), Notes())


def test_ray_that_is_in_use_already_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ray.py").write_text("def is_initialized(): return True")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = penultimate("run", "smoke", "--on", "ray", cwd=tmp_path)
    assert answer.returncode == 2
    assert "Ray is in use in this process already; call ray.shutdown() first" in answer.stderr


FAILING = """
import types
def is_initialized(): return False
def shutdown(): pass
def init(**settings):
    assert not settings["log_to_driver"]
    raise ConnectionError("Failed to connect") from RuntimeError("the port is taken.\\nMore of it")
job_config = types.SimpleNamespace(JobConfig=types.SimpleNamespace)
"""


@pytest.mark.usefixtures("chores")
@pytest.mark.parametrize("on", ["ray", "ray:127.0.0.1:6379"])
def test_a_ray_that_does_not_start_is_a_sentence_with_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    monkeypatch.setitem(sys.modules, "ray", ray := ModuleType("ray"))
    exec(FAILING, vars(ray))
    ray.__spec__ = ModuleSpec("ray", None)
    monkeypatch.setattr(engine, "_probe", lambda address: None)
    # Another test of this process may have run a Ray of its own.
    monkeypatch.setattr(engine, "_authentication", functools.cache(dict))
    store = Store(tmp_path)
    what = {"ray": "started on this machine", "ray:127.0.0.1:6379": "6379' cannot be joined"}
    store.prepare()
    with pytest.raises(RequestError, match=rf"{what[on]}: the port is taken\. [A-Z]"):
        load_engine(on, 1).run(graph_of(chore("any")), store, Notes())


@pytest.mark.usefixtures("chores")
def test_a_process_that_has_run_a_ray_of_its_own_joins_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_authentication", cache(lambda: {"RAY_AUTH_TOKEN": "secret"}))
    monkeypatch.setattr(engine, "_probe", lambda address: pytest.fail("it is not looked for"))
    engine._authentication()
    with pytest.raises(RequestError, match=r"'head:6379' cannot be joined by this process.* new process$"):
        load_engine("ray:head:6379").run(graph_of(chore("any")), Store(tmp_path), Notes())


UNLIKELY = ("a" * 70, "..", "\0", "\udcff", "\u202e", " ", "[::1]", "x" * 300 + ".org", "{0}")


@pytest.mark.parametrize("address", [f"{host}:1" for host in UNLIKELY])
def test_a_host_that_cannot_be_is_a_sentence(address: str) -> None:
    with pytest.raises(RequestError, match="no Ray cluster answers at"):
        engine._probe(address)


@pytest.mark.parametrize("port", ["²", "-1", "", "٣", "0x10", "1e3", " 1"])
def test_a_port_that_cannot_be_is_a_sentence(port: str) -> None:
    with pytest.raises(RequestError, match="a Ray cluster is named --on ray:HOST:PORT"):
        engine._probe(f"127.0.0.1:{port}")


def test_no_module_but_one_imports_ray() -> None:
    package = Path(__file__).parents[2] / "src/penultimate"
    importing = {
        path.name
        for path in package.rglob("*.py")
        if any(text in path.read_text() for text in ("import ray", 'import_module("ray")'))
    }
    assert importing == {"ray.py"}


def writing_in(folder: Path) -> subprocess.Popen[bytes]:
    """A process with a file open in a folder."""
    folder.mkdir()
    with (folder / "log").open("w") as log:
        return subprocess.Popen(["sleep", "60"], stdout=log)


def test_the_guard_ends_what_is_left_in_its_folder_but_for_the_run_itself(tmp_path: Path) -> None:
    folder = tmp_path / "session"
    left, other = writing_in(folder), writing_in(tmp_path / "elsewhere")
    try:
        with (folder / "driver.log").open("w"):
            command = [sys.executable, "-m", "penultimate.engine.ray", str(folder)]
            with subprocess.Popen(command, stdin=subprocess.PIPE) as guard:
                assert left.poll() is None
                guard.communicate(timeout=60)
        assert left.wait(timeout=10) == -signal.SIGKILL
        assert other.poll() is None
        assert not folder.exists()
    finally:
        for process in (left, other):
            process.kill()
            process.wait()


@pytest.mark.long
@pytest.mark.usefixtures("chores")
def test_one_process_runs_a_study_after_another(tmp_path: Path) -> None:
    for number in range(2):
        store, notes = Store(tmp_path / str(number)), Notes()
        store.prepare()
        assert load_engine("ray", 1).run(graph_of(chore("any")), store, notes).computed == 1
        assert notes.notices == []
