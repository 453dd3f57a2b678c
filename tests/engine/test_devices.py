"""Steps on GPUs: who gets a share of which, on a machine whose "GPUs" are the CPU under other names."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from tests.conftest import penultimate
from tests.engine.chores import PLUGIN, Notes, chore, graph_of, rows_in
from tests.plugged import plugged

from penultimate.engine import load_engine
from penultimate.engine.devices import ASKED, gpus
from penultimate.engine.observer import Summary
from penultimate.engine.run import run
from penultimate.errors import RequestError
from penultimate.store import Store
from penultimate.study.graph import Step
from penultimate.study.selection import load_study
from penultimate.study.unfold import unfold


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "first,second")
    monkeypatch.setenv("PENULTIMATE_DEVICE", "cpu")


def carried_out(root: Path, *steps: Step, processes: int) -> tuple[Summary, Notes]:
    store, notes = Store(root), Notes()
    store.prepare()
    plugin = root / "chores.py"
    plugin.write_text(PLUGIN)
    with plugged(plugin):
        return load_engine("local", processes).run(graph_of(*steps), store, notes), notes


def places(root: Path) -> dict[str, tuple[str, str, float, float]]:
    """Of each step, by its label: the GPU it saw, the device it was told, when it began and ended."""
    found = (root / "steps").glob("*/place.json")
    return {path.parent.name.split(".")[1]: json.loads(path.read_text()) for path in found}


def test_gpus_are_those_that_may_be_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", " 0, GPU-1b ,,")
    assert gpus() == ("0", "GPU-1b")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert gpus() == ()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus() == ()
    driver = tmp_path / ASKED[0]
    driver.write_text("#!/bin/sh\necho GPU-aa\necho GPU-bb\n")
    driver.chmod(0o755)
    assert gpus() == ("GPU-aa", "GPU-bb")
    driver.write_text("#!/bin/sh\necho No devices were found\nexit 6\n")
    assert gpus() == ()


@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_is_shared_by_no_more_than_it_has_shares(tmp_path: Path) -> None:
    on_gpus = [chore(f"gpu{number}", gpus=0.5, number=number, deed="stays") for number in range(8)]
    others = [chore(f"cpu{number}", number=10 + number, deed="stays") for number in range(3)]
    summary, _ = carried_out(tmp_path, *on_gpus, *others, processes=5)
    found = places(tmp_path)
    assert summary.computed == len(found) == 11
    used = {label: place for label, place in found.items() if label.startswith("gpu")}
    assert {gpu for gpu, *_ in used.values()} == {"first", "second"}
    for gpu in ("first", "second"):
        times = [(began, ended) for name, _, began, ended in used.values() if name == gpu]
        assert max(sum(a <= began < b for a, b in times) for began, _ in times) <= 2


@pytest.mark.long
@pytest.mark.usefixtures("two_gpus")
def test_a_process_without_a_share_takes_only_what_needs_none(tmp_path: Path) -> None:
    steps = [chore(f"gpu{number}", gpus=1.0, number=number, deed="stays") for number in range(4)]
    summary, _ = carried_out(tmp_path, *steps, chore("cpu", number=9, deed="stays"), processes=4)
    assert summary.complete
    assert {gpu for label, (gpu, *_) in places(tmp_path).items() if label != "cpu"} == {"first", "second"}


def test_where_there_is_no_gpu_the_study_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(RequestError, match="--gpus 0 runs them on the CPU"):
        carried_out(tmp_path, chore("one", gpus=1.0), processes=1)
    told = penultimate("run", "smoke", "--gpus", "0.5", "--out", "runs", cwd=tmp_path)
    assert told.returncode == 2
    assert "this machine has none" in told.stderr


def test_a_gpu_that_pytorch_cannot_use_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(RequestError, match="cannot use GPU '7'"):
        carried_out(tmp_path, chore("one", gpus=1.0), processes=1)


@pytest.mark.usefixtures("two_gpus")
def test_after_an_error_of_the_gpu_another_process_takes_the_place(tmp_path: Path) -> None:
    steps = chore("lost", gpus=1.0, deed="loses its GPU once"), chore("next", gpus=1.0, number=1)
    summary, notes = carried_out(tmp_path, *steps, processes=1)
    assert summary.complete
    assert any("lost its GPU (CUDA error" in notice for notice in notes.notices)


@pytest.mark.long
@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_that_fails_twice_costs_its_step_alone(tmp_path: Path) -> None:
    steps = chore("lost", gpus=1.0, deed="loses its GPU"), chore("next", gpus=1.0, number=1)
    summary, notes = carried_out(tmp_path, *steps, processes=1)
    assert (summary.computed, list(notes.failures)) == (1, ["lost"])


@pytest.mark.usefixtures("two_gpus")
def test_a_study_with_shares_of_gpus_is_the_same_study(tmp_path: Path) -> None:
    smoke = load_study("smoke")
    shared = dataclasses.replace(smoke, gpus=0.25)
    steps, plain = unfold(shared).steps, unfold(smoke).steps
    assert list(steps) == list(plain)
    on_gpus = {step.name for step in steps.values() if step.resources.gpus}
    assert {"train", "extract", "similarity", "robustness"} <= on_gpus
    assert not {"data", "linear", "knn", "collapse"} & on_gpus
    assert not any(step.resources.gpus for step in plain.values())


@pytest.mark.long
@pytest.mark.usefixtures("two_gpus")
def test_rows_are_those_of_a_run_without(tmp_path: Path) -> None:
    smoke = load_study("smoke")
    run(smoke, tmp_path / "plain", 2)
    run(dataclasses.replace(smoke, gpus=0.5), tmp_path / "shared", 2)
    assert rows_in(tmp_path / "plain") == rows_in(tmp_path / "shared")


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), True, "one"])
def test_a_share_is_of_one_gpu(share: object) -> None:
    with pytest.raises(RequestError, match="share of one GPU"):
        dataclasses.replace(load_study("smoke"), gpus=share)
