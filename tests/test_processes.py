"""Processes are started without the current folder on their path, whatever Python files lie in it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from penultimate import processes
from penultimate.data.disk.loading import in_order
from penultimate.data.readers.matlab import elements
from penultimate.engine import load_engine, ray, sharing
from penultimate.engine.local import _Worker
from penultimate.engine.messages import Ready
from penultimate.graph import Step
from penultimate.store import Store
from tests.conftest import penultimate
from tests.engine.chores import Notes, graph_of, rows_in
from tests.plugged import plugged

NAMES = ("types", "random", "json", "colorsys", "numpy", "resource", "torch")


@pytest.fixture
def littered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in which files are called like modules; each leaves a mark when it is executed."""
    folder = tmp_path / "littered"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(
            f"open({str(folder / 'executed')!r}, 'a').write('{name} ')\nraise ImportError('not me')\n"
        )
    monkeypatch.chdir(folder)
    return folder


def executed(folder: Path) -> str:
    mark = folder / "executed"
    return mark.read_text() if mark.exists() else ""


def test_a_worker_of_the_local_engine(littered: Path) -> None:
    worker = _Worker(1, {})
    try:
        assert isinstance(worker.connection.recv(), Ready)
    finally:
        worker.end()
    assert executed(littered) == ""


def test_a_process_that_shares_a_training(littered: Path) -> None:
    member = sharing._Member("")
    member.connection.close()  # it has nothing to do, and ends
    assert member.process.wait(60) == 0
    assert executed(littered) == ""


def test_the_guard_of_rays(littered: Path, tmp_path: Path) -> None:
    (tmp_path / "ray").mkdir()
    command = processes.command(ray.__name__, str(tmp_path / "ray"))
    subprocess.run(command, env=processes.environment(), stdin=subprocess.DEVNULL, check=True)
    assert not (tmp_path / "ray").exists()
    assert executed(littered) == ""


@pytest.mark.parametrize("first", ["", "littered"])
def test_the_reader_of_matlab_files(littered: Path, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook has the current folder on its own path, as "" or by its name."""
    monkeypatch.setattr(sys, "path", [first and str(littered), *sys.path])
    file = io.BytesIO()
    savemat(file, {"x": np.arange(3) + len(first)})
    assert elements(file.getvalue(), "'x.mat'", "x", int) == [each + len(first) for each in range(3)]
    assert executed(littered) == ""


def test_the_command_itself_and_the_processes_of_a_run(littered: Path) -> None:
    (littered / "types.py").unlink()  # which Python needs itself before it begins with any module
    (littered / "torch.py").unlink()
    answer = penultimate("list", "studies", cwd=littered)
    assert (answer.returncode, executed(littered)) == (0, ""), answer.stderr


@pytest.mark.parametrize("how", [["-m", "penultimate"], ["-mpenultimate.cli"], ["-Bm", "penultimate"]])
def test_the_command_as_a_module(littered: Path, how: list[str]) -> None:
    (littered / "types.py").unlink()
    command = [sys.executable, *how, "list", "objectives"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, executed(littered)) == (0, ""), answer.stderr
    assert "cosine_softmax" in answer.stdout


@pytest.mark.parametrize("how", [["{}/mine.py"], ["-m", "mine"]])
def test_a_script_of_a_user_keeps_its_folder_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    (tmp_path / "beside.py").touch()
    (tmp_path / "mine.py").write_text("import penultimate, beside\nprint('found')")
    monkeypatch.chdir(tmp_path)
    options = [part.format(tmp_path) for part in how]
    command = [sys.executable, *options, "-m", "penultimate.x"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "found\n"


def _path_of(piece: int) -> str:
    return os.environ.get("PYTHONSAFEPATH", "")


def test_a_pool_is_started_safely_and_the_environment_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    assert list(in_order(_path_of, [1, 2], 1)) == ["1", "1"]
    assert "PYTHONSAFEPATH" not in os.environ


def test_the_path_that_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "/somewhere", ""]))
    assert processes.environment()["PYTHONPATH"].split(os.pathsep) == ["/somewhere", processes.HERE]
    path = processes.environment({"MORE": "1"}, ["", str(tmp_path), "/elsewhere"])
    assert path["PYTHONPATH"].split(os.pathsep) == ["/elsewhere", processes.HERE]
    assert path["MORE"] == "1"


PLUGIN = """
import sys
from penultimate import register
from penultimate.measures import Number

@register.measurement(version=1, per="network", needs=(), yields=None)
def littering(inputs):
    import colorsys, resource
    yield Number("folders", float({folder!r} in sys.path), "count")
"""


@pytest.mark.long
def test_the_tasks_of_ray(littered: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN.format(folder=str(littered)))
    store, notes = Store(tmp_path / "runs"), Notes()
    store.prepare()
    with plugged(tmp_path / "mine.py"):
        load_engine("ray", 1).run(graph_of(Step("littering", 1, {}, {})), store, notes)
    assert (notes.failures, executed(littered)) == ({}, "")
    assert [json.loads(rows)["value"] for rows in rows_in(store.root).values()] == [0.0]
